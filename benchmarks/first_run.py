"""How long it takes from ``likeness init`` to a verified bundle, and how much of it is a person's time.

Fills docs/evidence/WALK.md.

Run: ``python -m benchmarks.first_run [--person typed pasted private known]``. Adult as a CSV outside of a fresh clone
of this commit; a person is played at a pseudo-terminal, who answers ``likeness init --ask`` from the public codebook
(data/schema/adult.yaml), and yes to its last question, whether to run. The person is a model and not a person, and its
seconds are really waited:

- a key 0.28 s (average non-secretary typist), shift a key of its own; preparing for an answer or a command 1.35 s;
  pointing with a mouse 1.10 s, moving a hand to or from it 0.40 s: the keystroke-level model (Card, Moran and Newell,
  1980)
- reading, 238 words a minute (Brysbaert, 2019): all that ``init`` prints up to its last question, the codebook's line
  of every answer that is taken from it, and the verdict on the bundle

Four persons: ``typed`` types every list of categories, ``pasted`` copies them from the codebook with the mouse where
that is quicker, ``private`` says that they are not publicly known, ``known`` has the schema of the year before. Left
out: deciding what is public knowledge, finding the codebook, reading the pages, slips. Appends to
benchmarks/results/first_run.csv.
"""

import argparse
import os
import pty
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchmarks.common import keep
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema

RESULTS = Path("benchmarks/results/first_run.csv")
PERSONS = ("typed", "pasted", "private", "known")
KEY, MENTAL, POINT, HAND = 0.28, 1.35, 1.10, 0.40  # seconds: Card, Moran and Newell (1980)
PASTE = HAND + 2 * POINT + HAND + 9 * KEY  # of a line of the codebook
WORD = 60 / 238  # seconds: Brysbaert (2019)
SHIFTED = set('~!@#$%^&*()_+{}|:"<>?')  # of a US keyboard
INIT = "init ../people.csv -l income -a"
INIT_KNOWN = "init ../people.csv --answers data/schema/adult.yaml -a"
KEYS = ["person", "keys", "typing", "thinking", "reading", "pasting", "person_seconds"]
KEYS += ["machine_seconds", "cpu_seconds", "total_seconds", "verified", "rows", "commit", "cores"]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLUMN = re.compile(r"(\d+) (.+), (\w+): $")


@dataclass
class Person:
    """Seconds of a modeled person, waited as they pass.

    Attributes:
        pace: 1 waits them, 0 only counts. keys: pressed. seconds: by what they were spent on.
    """

    pace: float = 1.0
    keys: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("typing", "thinking", "reading", "pasting"), 0.0)
    )

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.seconds.values())

    def _spend(self, what: str, seconds: float) -> None:
        self.seconds[what] += seconds
        time.sleep(self.pace * seconds)

    def think(self) -> None:
        """Prepare for an answer or a command."""
        self._spend("thinking", MENTAL)

    def read(self, text: str) -> None:
        """Read all of it."""
        self._spend("reading", WORD * len(text.split()))

    def type(self, character: str) -> None:
        """One character, with shift where it needs it."""
        self.keys += keys_of(character)
        self._spend("typing", KEY * keys_of(character))

    def paste(self) -> None:
        """Mark a line of the codebook with the mouse, copy, come back, paste: 2 + 2 + 2 + 3 keys or buttons."""
        self.keys += 9
        self._spend("pasting", PASTE)


def keys_of(text: str) -> int:
    """Keys that are pressed for it."""
    return sum(1 + (character.isupper() or character in SHIFTED) for character in text)


@dataclass(frozen=True)
class Reply:
    """What a person does at a question: types one text, then perhaps pastes another, having read a line."""

    typed: str
    pasted: str = ""
    codebook: str = ""


def replies(schema: Schema, person: str) -> dict[str, Reply]:
    """By column, and by the beginning of the other questions."""
    numbers = {name: place for place, name in enumerate(schema.names, start=1)}
    missing = [column for column in schema.columns if column.nullable]
    codes = sorted({code for column in missing for code in column.missing_values})
    return {
        "Source": Reply("adult.names, UCI 1996"),
        "Columns with missing": Reply(" ".join(str(numbers[column.name]) for column in missing)),
        "Written for missing": Reply(", ".join(codes)),
        "Name of the PEOPLE": Reply("us-census-1994"),
        "Run now": Reply("y"),
        **{column.name: _reply(column, person, column.name == schema.label) for column in schema.columns},
    }


def _reply(column: Column, person: str, label: bool) -> Reply:
    if not column.is_categorical:
        lower, upper = column.bounds
        words = [f"{lower:.0f} {upper:.0f}"]
        words += ["log"] if column.transform == "log1p" else []
        words += ["spikes", *(f"{spike:.0f}" for spike in column.spikes)] if column.spikes else []
        return Reply(" ".join(words), codebook=f"{column.name}: {' '.join(words)}")
    if person == "private" and not label:
        return Reply("private *")
    kind, listed = "ordinal: " if column.kind == "ordinal" else "", ", ".join(column.categories)
    codebook = f"{column.name}: {listed}"
    short = KEY * keys_of(listed) < PASTE
    return Reply(kind + listed, "", codebook) if person == "typed" or short else Reply(kind, listed, codebook)


def answer_questions(
    command: Sequence[str], folder: Path, given: Mapping[str, Reply], person: Person
) -> tuple[int, str]:
    """Start a command at a pseudo-terminal and play the person until it ends.

    Returns:
        Its exit status and all that it printed.

    Raises:
        SystemExit: a question that has no reply, or the same one twice: an answer was refused.
    """
    child, terminal = pty.fork()
    if child == 0:  # the command's own process
        os.chdir(folder)
        os.execvp(command[0], list(command))
    shown, looked_at, asked = "", 0, set[str]()
    while True:
        text = _printed(terminal, wait=not _question(shown))
        if text is None:
            break
        shown = _ESCAPES.sub("", shown + text).replace("\r", "")
        if text or not _question(shown):
            continue
        name = next((name for name in given if _asks(_question(shown), name)), None)
        if name is None or name in asked:
            os.close(terminal)
            raise SystemExit(f"no answer, or a refused one:\n{shown}")
        asked.add(name)
        person.read(shown[looked_at:])
        person.read(given[name].codebook)
        person.think()
        for character in given[name].typed:
            person.type(character)
            os.write(terminal, character.encode())
        if given[name].pasted:
            person.paste()
            os.write(terminal, given[name].pasted.encode())
        person.type("\n")
        os.write(terminal, b"\n")
        echo = _ESCAPES.sub("", _echo(terminal)).replace("\r", "")
        # What came with the typed line's end, the next question perhaps, is still to be read.
        looked_at = len(shown) + echo.find("\n") + 1
        shown += echo
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def _printed(terminal: int, wait: bool) -> str | None:
    """What the command prints next; empty if it is silent for a moment and nobody has to wait; None: it ended."""
    ready, _, _ = select.select([terminal], [], [], None if wait else 0.1)
    if not ready:
        return ""
    try:
        data = os.read(terminal, 65536)
    except OSError:  # so Linux says that the other side is closed
        return None
    return data.decode(errors="replace") if data else None


def _echo(terminal: int) -> str:
    """The typed line, which the terminal shows, up to its end."""
    shown = ""
    while "\n" not in shown:
        text = _printed(terminal, wait=True)
        if text is None:
            break
        shown += text
    return shown


def _question(shown: str) -> str:
    """The last line, if it waits for an answer."""
    last = shown.rpartition("\n")[2]
    return last if last.endswith(": ") else ""


def _asks(question: str, name: str) -> bool:
    column = _COLUMN.fullmatch(question)
    return column[2] == name if column else question.startswith(name)


def measure(name: str, pace: float) -> None:
    """One person, from the first command to the verdict."""
    schema, person = Schema.load("data/schema/adult.yaml"), Person(pace)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as place:
        root, clone = Path(place), Path(place) / "clone"
        subprocess.run(["git", "clone", "-q", ".", str(clone)], check=True)
        people = pd.read_csv("data/raw/adult.csv.gz", dtype=str, keep_default_na=False).drop(columns="split")
        people.to_csv(root / "people.csv", index=False)
        environment = {"HOME": place, "PYTHONPATH": os.pathsep.join([str(clone / "src"), str(clone)])}
        environment |= {f"LIKENESS_{own}": f"{place}/{own}" for own in ("HOME", "ANCHOR")}
        os.environ.update({**environment, "LIKENESS_MLFLOW_URI": f"sqlite:///{place}/mlflow.db"})
        likeness = [sys.executable, "-m", "likeness"]
        spent, started = _cpu_seconds(), time.perf_counter()
        first = INIT_KNOWN if name == "known" else INIT
        _start(person, first)
        before, at = time.perf_counter(), person.total
        status, shown = answer_questions([*likeness, *first.split()], clone, replies(schema, name), person)
        machine = time.perf_counter() - before - pace * (person.total - at)
        print((clone / "data/schema/people.yaml").read_text(), shown, sep="\n")
        if status > 1:  # 1: a bundle that is wrong
            raise SystemExit(status)
        person.read(shown.strip().splitlines()[-1])
        total = time.perf_counter() - started
    row = {"person": name, "keys": person.keys, **person.seconds, "person_seconds": person.total}
    row |= {"machine_seconds": machine, "cpu_seconds": _cpu_seconds() - spent}
    row |= {"total_seconds": total, "verified": status == 0}
    keep(RESULTS, {**row, "rows": len(people), "commit": commit, "cores": os.cpu_count()}, KEYS)


def _start(person: Person, command: str) -> None:
    """The typing of a command."""
    person.think()
    for character in f"likeness {command}\n":
        person.type(character)


def _cpu_seconds() -> float:
    """Of all commands that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Every person that is asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--person", nargs="+", choices=PERSONS, default=PERSONS)
    for name in parser.parse_args().person:
        measure(name, pace=1.0)


if __name__ == "__main__":
    main()
