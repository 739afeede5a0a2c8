"""Fault campaign: hurt the spending stages in every way we know, and see whether a promise breaks.

Run: ``python -m tests.campaigns.faults [--kills 200] [--only KIND]``. Resumable: trials in the CSV are not run again.
Results: evidence/results/faults.csv; the table of evidence/FAULTS.md is printed at the end. Clocks, backups and cut
connections are tried by :mod:`tests.campaigns.nights`.

After each trial: no release without an entry, no entry twice, never over the cap; the next run succeeds or says clearly
why not (no traceback); and the run after it returns the same bytes and is charged nothing.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from evidence.pages import Results, markdown
from likeness.privacy.calibration import rho_for
from tests.campaigns.fault_field import CAP_RHO, EPSILON, Ended, Grounds, check, preload, saved, spend
from tests.campaigns.fault_runs import KilledRuns

RESULTS = Path("evidence/results/faults.csv")


class Skipped(Exception):
    """A trial that cannot be made on this machine, with the reason."""


Trial = Callable[[Grounds, int, random.Random], list[str]]


def kill_stage(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """kill -9 at a random moment of the stages that ask the door."""
    field = grounds.slot(f"kill {trial}")
    ended = field.start(spend).kill(dice.uniform(0, 1.1 * grounds.seconds))
    moment = "before the end" if ended.code == -signal.SIGKILL else "too late"
    return [*field.recovered(CAP_RHO), f"({moment})"]


def read_only(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """The ledger's folder, or its anchor's, on a file system that is mounted read-only."""
    field = grounds.slot(f"read-only {trial}")
    folder = field.home if trial % 2 else field.anchor
    with _mounted(folder, ["--bind", str(folder)], "remount,bind,ro"):
        refused = field.spend()
        wrong = _refused(refused) + (["released while read-only"] if field.released() else [])
    return wrong + field.recovered(CAP_RHO)


def disk_full(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """The ledger on a small file system with a random rest of it free."""
    field = grounds.fresh("full")
    field.set(ledger__attempt=str(trial))
    aside = field.home.with_name("aside")
    shutil.copytree(field.home, aside)
    with _mounted(field.home, ["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs"]):
        shutil.copytree(aside, field.home, dirs_exist_ok=True)
        filler = field.home / "filler"
        space = os.statvfs(field.home).f_bavail * 4096
        filler.write_bytes(b"x" * max(0, space - 4096 * dice.randint(0, 40)))
        ended = field.spend()
        wrong = [] if ended.clear else [f"not clear: {ended.output.strip()[:300]}"]
        filler.unlink()
        return wrong + field.recovered(CAP_RHO) + ["(refused)" if ended.code else "(had room)"]


def file_limit(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """No file may grow beyond a random size: quota and full disks look like this too."""
    field = grounds.slot(f"limit {trial}")
    size = (field.home / "ledger.sqlite").stat().st_size
    ended = field.child(spend, most_bytes=dice.choice([4096, size // 2, size, size + 4096, 150_000]))
    wrong = [] if ended.clear else [f"not clear: {ended.output.strip()[:300]}"]
    return wrong + field.recovered(CAP_RHO) + ["(refused)" if ended.code else "(had room)"]


def race(processes: int) -> Trial:
    """Processes that ask at the same time, each for another release, where the budget is enough for one."""

    def run(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
        field = grounds.fresh("race", cap=EPSILON * 1.2)
        clones = [field.another(grounds.folder / "race" / f"clone {place}") for place in range(processes)]
        for place, clone in enumerate(clones):
            clone.set(ledger__attempt=f"{place}")
        ended = [child.wait() for child in [clone.start(spend) for clone in clones]]
        cap = rho_for(EPSILON * 1.2, 1e-5)
        wrong = [rule for clone in clones for rule in clone.broken_rules(cap)]
        winners = [one for one in ended if one.code == 0]
        wrong += [f"{len(winners)} of {processes} finished"] if len(winners) > 1 else []
        for one in ended:
            wrong += _refused(one, "over budget") if one.code else []
        return [*wrong, f"({len(winners)} finished)"]

    run.__doc__ = f"{processes} processes at the same time, where the budget is enough for one."
    return run


def same_race(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """Eight processes that ask for the same release at the same time."""
    field = grounds.slot(f"same {trial}")
    clones = [field.another(grounds.folder / "same" / f"{trial} {place}") for place in range(8)]
    ended = [child.wait() for child in [clone.start(spend) for clone in clones]]
    wrong = [f"one failed: {one.output.strip()[:200]}" for one in ended if one.code]
    if len({tuple(sorted(clone.released().items())) for clone in clones}) != 1:
        wrong.append("not the same bytes")
    shutil.rmtree(grounds.folder / "same")
    return wrong + field.recovered(CAP_RHO)


def old_clone(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """A clone from yesterday, after other releases were made: its bytes come back and cost nothing."""
    field = grounds.slot(f"clone {trial}")
    wrong = _went_well(field.spend())
    clone = field.another(grounds.folder / "yesterday")
    before = clone.released()
    grounds.slot(f"clone {trial} tomorrow").spend()
    records = field.records()
    if trial % 2:
        clone.forget_released()
    wrong += _went_well(clone.spend())
    if clone.released() != before or field.records() != records:
        wrong.append("the clone was given other bytes, or charged")
    shutil.rmtree(clone.root)
    return wrong + field.broken_rules(CAP_RHO)


def restored_both(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """Ledger AND anchor restored: documented as not noticed by themselves, but a release made since is refused."""
    field = grounds.fresh("both")
    wrong = _went_well(field.spend())
    with saved(field.home), saved(field.anchor):
        asides = [(folder, folder.with_name(f"aside {folder.name}")) for folder in (field.home, field.anchor)]
        for folder, aside in asides:
            shutil.copytree(folder, aside)
        field.set(ledger__attempt="2")
        wrong += _went_well(field.spend())
        for folder, aside in asides:
            shutil.rmtree(folder)
            shutil.copytree(aside, folder)
        return wrong + _refused(field.child(check), "does not know this release")


def damaged_file(grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
    """The ledger's file cut short, or with bytes changed: refused, or, where nothing was written there, unharmed."""
    field = grounds.shared
    field.set(ledger__attempt="measure 1")
    field.forget_released()
    wrong = _went_well(field.spend())
    before, records = field.released(), field.records()
    path = field.home / "ledger.sqlite"
    whole = path.read_bytes()
    try:
        if trial % 2:
            path.write_bytes(whole[: dice.randrange(len(whole))])
        else:
            spoiled = bytearray(whole)
            for _ in range(dice.choice([1, 8, 200])):
                spoiled[dice.randrange(len(whole))] = dice.randrange(256)
            path.write_bytes(spoiled)
        field.forget_released()
        ended = field.spend()
        if not ended.clear:
            wrong.append(f"not clear: {ended.output.strip()[:300]}")
        if ended.code == 0 and field.released() != before:
            wrong.append("another release from a damaged ledger")
        if ended.code == 0 and field.records() != records:
            wrong.append("other records from a damaged ledger")
        if ended.code != 0 and field.released():
            wrong.append("released although refused")
    finally:
        for leftover in field.home.glob("ledger.sqlite-*"):
            leftover.unlink()
        path.write_bytes(whole)
    return wrong + field.broken_rules(CAP_RHO) + ["(refused)" if ended.code else "(unharmed)"]


KINDS: dict[str, tuple[Trial, int]] = {
    "kill -9, stages": (kill_stage, 200), "read-only folder": (read_only, 6), "full disk": (disk_full, 12),
    "file size limit": (file_limit, 15), "race of 2": (race(2), 6), "race of 8": (race(8), 6),
    "race of 8 for one release": (same_race, 6), "clone from yesterday": (old_clone, 6),
    "restored ledger and anchor": (restored_both, 3), "damaged file": (damaged_file, 100),
    "kill -9, whole run": (KilledRuns(), 200),
}  # fmt: skip


def _went_well(ended: Ended) -> list[str]:
    return [] if ended.code == 0 else [f"failed: {ended.output.strip()[:300]}"]


def _refused(ended: Ended, word: str = "") -> list[str]:
    if ended.code == 0:
        return ["not refused"]
    return [] if ended.clear and word in ended.output else [f"not clear: {ended.output.strip()[:300]}"]


@contextmanager
def _mounted(folder: Path, source: list[str], remount: str | None = None) -> Iterator[None]:
    """Something mounted over a folder for as long.

    Raises:
        Skipped: this account may not mount.
    """
    commands = [["mount", *source, str(folder)]] + ([["mount", "-o", remount, str(folder)]] if remount else [])
    if subprocess.run(commands[0], capture_output=True).returncode:
        raise Skipped("this account may not mount")
    try:
        for command in commands[1:]:
            subprocess.run(command, check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def campaign(results: Path, most: dict[str, int]) -> pd.DataFrame:
    """Run what is missing of every kind; all results so far."""
    known = Results(results, ["kind", "trial"])
    trials = ((kind, trial) for kind in most for trial in range(1, most[kind] + 1))
    missing = [trial for trial in trials if known.of(*trial).empty]
    if missing:
        preload()
        with tempfile.TemporaryDirectory() as folder:
            grounds = Grounds(Path(folder))
            for kind, trial in missing:
                started = time.monotonic()
                try:
                    told = KINDS[kind][0](grounds, trial, random.Random(f"{kind} {trial}"))
                except Skipped as reason:
                    told = [f"(skipped: {reason})"]
                wrong = [text for text in told if not text.startswith("(")]
                note = " ".join(text.strip("()") for text in told if text.startswith("("))
                found = {"broken": "; ".join(wrong), "note": note, "seconds": time.monotonic() - started}
                known.add([kind, trial], found)
    return known.rows


def summary(results: pd.DataFrame) -> str:
    """One line a kind, in Markdown."""
    lines = []
    for kind, rows in results.groupby("kind", sort=False):
        notes = rows["note"].dropna().value_counts()
        told = ", ".join(f"{count} {note}" for note, count in notes.items() if note)
        lines.append([kind, len(rows), int(rows["broken"].notna().sum()), told])
    return markdown(["fault", "trials:", "broken promises:", "notes"], lines)


def main() -> int:
    """Run what is missing, print the table; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=KINDS["kill -9, stages"][1])
    parser.add_argument("--most", type=int, help="trials of any other kind")
    parser.add_argument("--only", action="append", choices=list(KINDS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    most = {kind: count if arguments.most is None else min(count, arguments.most) for kind, (_, count) in KINDS.items()}
    most["kill -9, stages"] = arguments.kills
    results = campaign(arguments.results, {kind: most[kind] for kind in arguments.only or KINDS})
    print(summary(results))
    return int(results["broken"].notna().any())


if __name__ == "__main__":
    raise SystemExit(main())
