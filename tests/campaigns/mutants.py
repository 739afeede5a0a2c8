"""Planted faults: one line of the code is changed at a time, and the tests that should notice are run.

Run: ``python -m tests.campaigns.mutants [--only PATTERN] [--list] [--jobs 2]``. The faults stand in
tests/campaigns/mutants.yaml, by group and name: the file, the text that is there, the text instead, and pytest's words.

First the tests are run on the code as it is: where they do not pass, a failure would say nothing. Then a fault is
*found* where a test fails or does not end, and it *survived* where all pass. It is *broken*, an error of the list,
where its text does not occur exactly once, the file is no Python or YAML any more, no test runs, or its tests fail
without it. Exit code 1: a group is below 95 %, or something is broken.
"""

import argparse
import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import TypeVar

import yaml

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_suffix(".yaml")
WANTED = 0.95
OUTCOMES = ("found", "survived", "broken")
Item, Found = TypeVar("Item"), TypeVar("Found")
_SECONDS = 600  # a fault may keep a test from ending
_PASSED, _FAILED = 0, 1  # pytest's exit codes; every other one says that tests could not be run


@dataclass(frozen=True)
class Mutant:
    """One planted fault.

    Attributes:
        group: part of the code. name: unique in its group. file: relative to the project.
        old: text that occurs once in the file. new: what stands there instead.
        tests: words for pytest, files first.
    """

    group: str
    name: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def id(self) -> str:
        """Group and name."""
        return f"{self.group}/{self.name}"

    @property
    def test_files(self) -> list[str]:
        """Files among the words for pytest."""
        return [word.partition("::")[0] for word in shlex.split(self.tests) if word.startswith("tests/")]

    def planted(self, text: str) -> str:
        """The file's text with the fault.

        Raises:
            ValueError: the old text does not occur exactly once, or nothing that can be read is left.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"the old text occurs {text.count(self.old)} times in {self.file}, not once")
        changed = text.replace(self.old, self.new)
        try:
            ast.parse(changed) if self.file.endswith(".py") else yaml.safe_load(changed)
        except (SyntaxError, yaml.YAMLError) as error:
            raise ValueError(f"{self.file} cannot be read any more: {' '.join(str(error).split())}") from None
        return changed


@dataclass(frozen=True)
class Result:
    """How one fault ended: one of :data:`OUTCOMES`, in so many seconds, and why it is broken."""

    mutant: Mutant
    outcome: str
    seconds: float
    why: str = ""


def mutants(path: Path = LIST) -> list[Mutant]:
    """All faults of the list, in its order."""
    groups = yaml.safe_load(path.read_text())
    return [Mutant(group, name, **fields) for group, own in groups.items() for name, fields in (own or {}).items()]


def copy_tree(target: Path) -> None:
    """The files that git knows or would add, as they are on disk."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def run_tests(tree: Path, words: str) -> tuple[int, str]:
    """Pytest in a copy of the project.

    Returns:
        its exit code, 1 where it did not end; and the first failure that it tells, or else its last line.
    """
    # No compiled modules: two faults of one length, planted within a second, would look the same to Python.
    ours = {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", *shlex.split(words)]
    try:
        done = subprocess.run(
            command, cwd=tree, env=os.environ | ours, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return _FAILED, "did not end"
    lines = [line for line in done.stdout.splitlines() if line]
    told = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (told or lines[-1:] or [""])[0]


def judge(tree: Path, mutant: Mutant) -> Result:
    """Plant a fault in a copy, run its tests, and put the file back."""
    started = time.monotonic()
    path = tree / mutant.file
    original = path.read_text()
    try:
        path.write_text(mutant.planted(original))
        code, line = run_tests(tree, mutant.tests)
    except ValueError as error:
        return Result(mutant, "broken", time.monotonic() - started, str(error))
    finally:
        path.write_text(original)
    outcome = {_PASSED: "survived", _FAILED: "found"}.get(code, "broken")
    return Result(mutant, outcome, time.monotonic() - started, line if outcome == "broken" else "")


def in_copies(work: Callable[[Path, Item], Found], items: Sequence[Item], jobs: int) -> Iterable[Found]:
    """Apply to each item some work that needs a copy of the project; results as they come."""
    with tempfile.TemporaryDirectory(prefix="likeness-mutants") as folder, ThreadPoolExecutor(jobs) as pool:
        free: Queue[Path] = Queue()
        for job in range(jobs):
            copy_tree(Path(folder, str(job)))
            free.put(Path(folder, str(job)))

        def one(item: Item) -> Found:
            tree = free.get()
            try:
                return work(tree, item)
            finally:
                free.put(tree)

        running = [pool.submit(one, item) for item in items]
        for done, future in enumerate(as_completed(running), start=1):
            print(f"{done} of {len(items)}", file=sys.stderr, flush=True)
            yield future.result()


def table(results: Sequence[Result]) -> str:
    """Outcomes and the rate of each group, in Markdown."""
    lines = ["| group | planted | found | survived | broken | rate |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for group in dict.fromkeys(result.mutant.group for result in results):
        counts = Counter(result.outcome for result in results if result.mutant.group == group)
        numbers = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {group} | {counts.total()} | {numbers} | {rate(results, group):.1%} |")
    return "\n".join(lines)


def rate(results: Sequence[Result], group: str) -> float:
    """Share of a group's faults that were found."""
    own = [result for result in results if result.mutant.group == group]
    return sum(result.outcome == "found" for result in own) / len(own)


def main() -> int:
    """Plant, test, tell.

    Returns:
        0; 1 if a group is below 95 % or something is broken; 2 if the pattern names no fault.
    """
    parser = argparse.ArgumentParser(description="Plant faults, run the tests.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="regular expression; of GROUP/NAME")
    parser.add_argument("--list", action="store_true", help="show the faults, run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the project at work")
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if re.search(options.only, mutant.id)]
    if not chosen:
        print(f"mutants: no fault matches {options.only!r}. Look: --list", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{mutant.id:<50} {mutant.file}" for mutant in chosen))
        return 0
    selections = list(dict.fromkeys(mutant.tests for mutant in chosen))
    sound = in_copies(lambda tree, words: (words, run_tests(tree, words)), selections, options.jobs)
    unsound = {words: f"its tests do not pass without it: {line}" for words, (code, line) in sound if code != _PASSED}
    results = [Result(mutant, "broken", 0.0, unsound[mutant.tests]) for mutant in chosen if mutant.tests in unsound]
    results += in_copies(judge, [mutant for mutant in chosen if mutant.tests not in unsound], options.jobs)
    results.sort(key=lambda result: chosen.index(result.mutant))
    for one in results:
        if one.outcome != "found":
            print(f"{one.outcome}: {one.mutant.id} ({one.mutant.file}) {one.why}".rstrip())
    print(table(results))
    groups = {result.mutant.group for result in results}
    enough = all(rate(results, group) >= WANTED for group in groups)
    return 0 if enough and not any(result.outcome == "broken" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
