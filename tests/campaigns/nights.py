"""A simulated year of nights through the door, with faults at random.

Run: ``python -m tests.campaigns.nights [--nights 365]``. Resumable: nights in the CSV are not run again,
and a new ledger goes on with the next. Results: evidence/results/nights.csv. It prints the table of evidence/FAULTS.md.

Each night has other rows, so it is a new release. Nearly half of them are hurt. Then no release may lack its entry,
stand twice or exceed the cap. The next run succeeds by itself, or its message names the one command that helps. The run
after it gives the same bytes for nothing.
"""

import argparse
import contextlib
import datetime
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.pages import Results, markdown
from likeness.core import retry
from likeness.core.errors import LikenessError
from likeness.data.encoding.layout import encoding_digest
from likeness.ledger import records as records_of
from likeness.ledger.chain import Chain
from likeness.ledger.database import RECORDS, RELEASES
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger, recover
from likeness.ledger.reservation import Dataset
from likeness.ledger.witness import Witness, check_witnesses
from likeness.pipeline.project import Project
from likeness.release.door import Door
from likeness.release.records import Records
from tests.campaigns.fault_field import CAP_RHO, EPSILON, REFUSED, ROOM, Ended, Field, preload
from tests.postgres_server import server

RESULTS, FAULTS_RESULTS = Path("evidence/results/nights.csv"), Path("evidence/results/faults.csv")
NIGHTS, HURT = 365, 0.45
PLACES = ("SQLite", "PostgreSQL")
FIRST = datetime.date(2027, 1, 1)
BACKUP = 10  # nights between two backups


class Year:
    """Nights through one door and one ledger, on days that this process makes up."""

    def __init__(self, folder: Path) -> None:
        """A project and a new ledger; the environment says in which database."""
        self.field = Field.make(folder, EPSILON, ROOM)
        os.environ.update({"LIKENESS_HOME": str(self.field.home), "LIKENESS_ANCHOR": str(self.field.anchor)})
        project = Project.load(self.field.root)
        self.plan, context = project.plan, project.context
        self.query = next(iter(project.method.auxiliary_queries(context, {})))
        self.encoding = encoding_digest(context.schema)
        generator = np.random.default_rng(0)
        self.records = Records(generator.random((300, context.layout.width)), np.zeros(300, dtype=np.int64))
        self.postgres = Ledger.open(locate()).keeps_bytes
        project.ledger_to_spend  # noqa: B018 (records the cap)
        self.backup = 0
        self.seconds = 0.1

    def run(self, night: int) -> bytes:
        """The release of one night, as a new process makes it, whose connections may break."""

        def release() -> bytes:
            rows = Dataset(self.plan.identity, f"rows of night {night}", "1", self.encoding)
            return Door(self.plan, Ledger.open(locate()), rows, lambda: [self.records]).release(self.query)

        return retry.retry_on_disconnect(release)

    def child(self, night: int) -> Callable[[], None]:
        """The same for a process that may be hurt."""

        def body() -> None:
            try:
                self.run(night)
            except (LikenessError, OSError) as error:
                print(error)
                sys.exit(REFUSED)

        return body

    def connect(self) -> Any:
        """A transaction of the database's owner, who may switch triggers off."""
        return Ledger.open(locate()).chain.engine.begin()

    def save(self) -> None:
        """A backup of the database and its store."""
        self.backup = len(Ledger.open(locate()).records())
        if not self.postgres:
            shutil.rmtree(self.field.home.with_name("backup"), ignore_errors=True)
            shutil.copytree(self.field.home, self.field.home.with_name("backup"))

    def restore(self) -> None:
        """The backup in the place of the database; the anchor is the newest."""
        if not self.postgres:
            shutil.rmtree(self.field.home)
            shutil.copytree(self.field.home.with_name("backup"), self.field.home)
            return
        with self.connect() as connection:
            for table in (RECORDS, RELEASES):
                connection.exec_driver_sql(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
            connection.execute(RECORDS.delete().where(RECORDS.c.seq > self.backup))
            connection.execute(RELEASES.delete())  # an older dump has fewer of them
            for table in (RECORDS, RELEASES):
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ENABLE ALWAYS TRIGGER {table.name}_append_only")
            connection.exec_driver_sql("ALTER TABLE records ENABLE ALWAYS TRIGGER records_in_order")


Fault = Callable[[Year, int, random.Random], list[str]]


def killed(number: signal.Signals) -> Fault:
    """A signal at a random moment of the night."""

    def run(year: Year, night: int, dice: random.Random) -> list[str]:
        ended = year.field.start(year.child(night)).kill(dice.uniform(0, 1.1 * year.seconds), number)
        return [f"({'too late' if ended.code == 0 else 'before the end'})"]

    return run


def full_disk(year: Year, night: int, dice: random.Random) -> list[str]:
    """No file may grow beyond a random size."""
    size = (year.field.home / "ledger.sqlite").stat().st_size if not year.postgres else 65_536
    return _refusal(year.field.child(year.child(night), most_bytes=dice.choice([4096, size // 2, size])), "")


def cut_connection(year: Year, night: int, dice: random.Random) -> list[str]:
    """All connections to the server are ended at a random moment, once or several times."""
    child = year.field.start(year.child(night))
    for _ in range(dice.choice([1, 1, 3])):
        time.sleep(dice.uniform(0, year.seconds / 2))
        with year.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'likeness' AND pid <> pg_backend_pid()"
            )
    ended = child.wait()
    return [f"({'tried again' if 'Trying again' in ended.output else 'between connections'})"] + (
        [f"failed: {ended.output.strip()[:200]}"] if ended.code else []
    )


def clock_back(year: Year, night: int, dice: random.Random) -> list[str]:
    """The clock runs behind, by up to ten years."""
    with _day(night, -dice.randint(3, 3650)):
        ended = year.field.child(year.child(night))
    return [f"failed: {ended.output.strip()[:200]}"] if ended.code else []


def clock_ahead(year: Year, night: int, dice: random.Random) -> list[str]:
    """The clock runs ahead by years: refused, until somebody sets it right."""
    with _day(night, dice.randint(401, 30_000)):
        return [*_refusal(year.field.child(year.child(night)), "likeness ledger day"), "(a person is asked)"]


def clock_ahead_for_months(year: Year, night: int, dice: random.Random) -> list[str]:
    """It runs ahead by less: nobody can know, and a person's word brings the right day back."""
    with _day(night, dice.randint(3, 300)):
        ended = year.field.child(year.child(night))
    today = records_of._now()
    Ledger.open(locate()).confirm_day(today, {"asked_by": "a person"})
    wrong = [] if Ledger.open(locate()).records()[-1].time == today else ["the day did not come back"]
    return [*wrong, *([f"failed: {ended.output.strip()[:200]}"] if ended.code else []), "(a person is asked)"]


def restored_backup(year: Year, night: int, dice: random.Random) -> list[str]:
    """The database of some nights ago: refused, until the one command brings the records back."""
    before = len(Ledger.open(locate()).records())
    year.restore()
    if before == year.backup:
        return ["(the newest)"]
    wrong = _refusal(year.field.child(year.child(night)), "likeness ledger recover")
    back, costs = recover(locate(), {"asked_by": "a person"})
    if (back, costs) != (before - year.backup, 0):
        wrong.append(f"{back} records of {before - year.backup} came back, and {costs} costs")
    return wrong


def lost_record(year: Year, night: int, dice: random.Random) -> list[str]:
    """Ledger, anchor and copies of some nights ago: a witness tells. What nobody knows costs all that was left."""
    ledger = Ledger.open(locate())
    head = ledger.head()
    witness = [Witness("a trailer", head.ledger_id, head.count, head.head)]
    year.restore()
    shutil.rmtree(year.field.anchor)
    year.field.anchor.mkdir()
    place = Chain.connect(locate())
    place.write_anchor(place.records())
    try:
        check_witnesses(Ledger.open(locate()).records(), witness)
        return ["the witness was not missed"]
    except LikenessError as error:
        wrong = [] if "likeness ledger recover" in str(error) else [f"no remedy: {error}"]
    recover(locate(), {"asked_by": "a person"}, witness)
    budget = Ledger.open(locate()).budget(year.plan.identity)
    wrong += ["the cap has room"] if budget is None or budget.remaining_rho > 1e-6 * budget.cap_rho else []
    return [*wrong, "(a person is asked)"]


FAULTS: dict[str, Fault] = {
    "kill -9": killed(signal.SIGKILL),
    "SIGTERM": killed(signal.SIGTERM),
    "full disk": full_disk,
    "cut connection": cut_connection,
    "clock back": clock_back,
    "clock years ahead": clock_ahead,
    "clock months ahead": clock_ahead_for_months,
    "restored backup": restored_backup,
}
WEIGHTS = (5, 1, 3, 4, 1, 1, 1, 2)


@contextlib.contextmanager
def _day(night: int, shift: int = 0) -> Iterator[None]:
    """The clock of this process and its children at a night of the year."""
    real, day = records_of._now, (FIRST + datetime.timedelta(night + shift)).isoformat()
    records_of._now = lambda: day
    try:
        yield
    finally:
        records_of._now = real


def _refusal(ended: Ended, words: str) -> list[str]:
    """What is wrong with how a night ended that may be refused in words."""
    if ended.code == 0:
        return ["not refused"] if words else ["(had room)"]
    return ["(refused)"] if ended.clear and words in ended.output else [f"not clear: {ended.output.strip()[:300]}"]


def night_of(year: Year, night: int, place: str) -> tuple[str, list[str]]:
    """One night, hurt or not, and what must be true after it."""
    dice = random.Random(f"{place} {night}")
    names = [name for name in FAULTS if year.postgres or name != "cut connection"]
    weights = [weight for name, weight in zip(FAULTS, WEIGHTS, strict=True) if name in names]
    fault = dice.choices(names, weights)[0] if dice.random() < HURT else ""
    with _day(night):
        if night % BACKUP == 0 or not year.backup:
            year.save()
        started = time.monotonic()
        if night == NIGHTS:
            return "lost record", [*lost_record(year, night, dice), *year.field.broken_rules(CAP_RHO)]
        told = FAULTS[fault](year, night, dice) if fault else []
        try:
            first = year.run(night)  # the next run, by itself
            count = len(Ledger.open(locate()).records())
            if year.run(night) != first or len(Ledger.open(locate()).records()) != count:
                told.append("the run after gave other bytes, or was charged")
        except LikenessError as error:
            told.append(f"the next run failed: {str(error)[:300]}")
        if not fault:
            year.seconds = max(0.02, (time.monotonic() - started) / 2)
        return fault, told + (year.field.broken_rules(CAP_RHO) if fault else [])


def campaign(known: Results, nights: int) -> None:
    """Run what is missing."""
    retry.PAUSES = (0.1, 0.5, 2)  # type: ignore[assignment]
    for place in PLACES:
        missing = [night for night in range(1, nights + 1) if known.of(place, night).empty]
        if missing:
            with database(place) as folder:
                with _day(missing[0]):
                    year = Year(folder / "year")
                for night in missing:
                    started = time.monotonic()
                    fault, told = night_of(year, night, place)
                    broken = "; ".join(text for text in told if not text.startswith("("))
                    note = ", ".join(text.strip("()") for text in told if text.startswith("("))
                    seconds = time.monotonic() - started
                    known.add([place, night], {"fault": fault, "broken": broken, "note": note, "seconds": seconds})


@contextlib.contextmanager
def database(place: str) -> Iterator[Path]:
    """A folder, and the database of a place in the environment."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        os.environ.pop("LIKENESS_LEDGER_URL", None)
        if "PostgreSQL" in place:
            socket = held.enter_context(server())
            os.environ["LIKENESS_LEDGER_URL"] = f"postgresql+psycopg://owner@/postgres?host={socket}"
        yield Path(folder)


def summary(rows: pd.DataFrame) -> str:
    """One line a fault, in Markdown."""
    lines = []
    for (place, fault), part in rows.fillna({"fault": "none"}).groupby(["place", "fault"], sort=False):
        notes = ", ".join(f"{count} {note}" for note, count in part["note"].dropna().value_counts().items())
        lines.append((place, fault, len(part), part["broken"].notna().sum(), notes))
    return markdown(["where", "fault", "nights:", "broken promises:", "notes"], lines)


def promises(nights: pd.DataFrame, faults: pd.DataFrame) -> str:
    """Each promise, how often it was tried after a fault, and how often it broke, in Markdown."""
    hurt = nights[nights["fault"].notna()]
    broken = pd.concat([hurt["broken"], faults["broken"]]).dropna().astype(str)
    asked, trials = int(hurt["note"].fillna("").str.contains("a person is asked").sum()), len(hurt) + len(faults)
    rows = [
        ("no release lacks its entry, stands twice or exceeds the cap", trials),
        ("the next run succeeds by itself, or its message names the one command that helps", trials),
        ("the run after it gives the same bytes for nothing", trials),
    ]
    words = ("twice|without an? entry|without its entry|spent rho", "next run|remedy|clear", "run after")
    return markdown(
        ["promise", "faults:", "broken:", "a person was asked:"],
        [(*row, int(broken.str.contains(word).sum()), asked) for row, word in zip(rows, words, strict=True)],
    )


def main() -> int:
    """Run what is missing, print the table; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    preload()
    known = Results(arguments.results, ["place", "night"])
    campaign(known, arguments.nights)
    print(summary(known.rows))
    print(promises(known.rows, pd.read_csv(FAULTS_RESULTS)))
    return int(known.rows["broken"].notna().any())


if __name__ == "__main__":
    raise SystemExit(main())
