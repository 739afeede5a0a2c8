"""The first nights of people: a private table in the ledger's database, which no clone and no branch can split.

A row holds a series, a keyed hash of a name, and a night. Rows are only added, for people whom no night has named. Each
reservation of a night names a digest of the rows until then. So a table that was lost, restored from an older copy or
edited is noticed: with it a person could be in two cohorts, of which the ledger counts one. Copies of the rows lie
beside the anchor, as those of the records do.

The table says how many people came in which night. So whoever may read a team's database sees these numbers. The key of
the hashes never enters it.
"""

import hmac
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from likeness.core.errors import DataError, LedgerError
from likeness.core.files import append_durably
from likeness.core.hashing import sha256_bytes
from likeness.ledger.chain import Chain, copies_path, lock_chain
from likeness.ledger.database import FIRST_NIGHTS, database_errors, lock_database
from likeness.ledger.home import Home
from likeness.ledger.records import SALT, base_attempt, moment
from likeness.ledger.reservation import seal_digest
from likeness.ledger.series import Series

_LINE = re.compile("[0-9a-f]{16} [0-9a-f]{32} [0-9]{1,9}")
"""A copy: series, person and night."""


class CohortNight(NamedTuple):
    """The cohort that a night asks about.

    Attributes:
        group: the cohort, as a composition group.
        first_nights: digest of the first nights until then.
        members: names of the people of the cohort. Private.
        day: on which the rows were read, in UTC.
    """

    group: str
    first_nights: str
    members: frozenset[str]
    day: str


def cohort_members(chain: Chain, population: str, attempt: str, names: Iterable[str]) -> CohortNight:
    """Give each new person a first night, and say whom the night asks about.

    The first night of a person depends on the nights that name this person, and on nobody else: see
    :mod:`likeness.privacy.cohorts`. Which night it is follows from the records and the day. It does not depend on
    whether a row changed.

    Args:
        chain: whose key hashes the names, and whose database holds the nights.
        population: name of the people.
        attempt: of the settings, which names the series.
        names: of all people of the source, in any order.

    Raises:
        LedgerError: the first nights are not those of the newest night, or the clock cannot be believed.
        DataError: the source has fewer than half of the people of the nights on record.
    """
    name = _series(population, attempt)
    with lock_chain(chain.home), database_errors(chain.home):
        with chain.engine.begin() as connection:
            lock_database(connection)  # as each reservation, whose digest is that of the table
            records, first = chain.read(connection), _series_first_nights(connection, name)
            series = Series.from_records(records, population, attempt)
            day, last = series.day_of_night(records), 0 if series.night is None else series.night.cohort.last
            if not _is_sealed(chain, series, first):
                raise LedgerError(_loss_message(chain.home, population, series))
            # 128 bits of each name's keyed hash: nobody without the key can try names.
            texts = {person: f"first night\n{population}\n{person}".encode() for person in names}
            hashes = {person: hmac.digest(chain.key, text, "sha256").hex()[:32] for person, text in texts.items()}
            earlier = [person for person, night in first.items() if night <= last]
            if 2 * len({*earlier} & {*hashes.values()}) < len(earlier) and series.fewer != day:
                raise DataError(
                    "ingest.source has fewer than half of the people whom earlier nights of the series had. Nothing "
                    "was spent. Give the whole source. If it is whole, a person says so for this day: likeness ledger "
                    f"day {moment([])} --fewer '{population}'"
                )
            new = sorted({*hashes.values()} - first.keys())
            if new:  # a night on record is complete: whoever comes later that day belongs to the next one
                first |= dict.fromkeys(new, last + 1)
                rows = [{"series": name, "person": person, "night": last + 1} for person in new]
                connection.execute(insert(FIRST_NIGHTS), rows)
        _copy_first_nights(chain)
    cohort = series.next_cohort(day)
    members = frozenset(person for person, hashed in hashes.items() if cohort.first <= first[hashed] <= cohort.last)
    return CohortNight(str(cohort), _digest(first, cohort.last), members, day)


def restore_first_nights(chain: Chain) -> list[str]:
    """Bring back first nights that an older copy of the database lacks, from their copies beside the anchor.

    The caller holds the lock of the chain.

    Returns:
        names of people of whom a series cannot go on, because neither table nor copies are those of its newest night.
    """
    copies, lost = _copies(chain.home), []
    with database_errors(chain.home), chain.engine.begin() as connection:
        lock_database(connection)
        for population, name, series, first in _broken_series(chain, connection):
            new = {person: night for (of, person), night in copies.items() if of == name and person not in first}
            if new and _is_sealed(chain, series, first | new):
                rows = [{"series": name, "person": person, "night": night} for person, night in new.items()]
                connection.execute(insert(FIRST_NIGHTS), rows)
            else:
                lost.append(population)
    return lost


def check_series(chain: Chain) -> None:
    """Refuse a ledger that lacks first nights of a series.

    Raises:
        LedgerError: they were lost, edited or restored from an older copy.
    """
    with database_errors(chain.home), chain.engine.connect() as connection:
        if broken := _broken_series(chain, connection):
            population, _, series, _ = broken[0]
            raise LedgerError(_loss_message(chain.home, population, series))


def _broken_series(chain: Chain, connection: Connection) -> list[tuple[str, str, Series, dict[str, int]]]:
    """Each series whose first nights are not those of its newest night: people, name, nights, and the first nights."""
    records = chain.read(connection)
    bodies = [record.body for record in records if record.kind == "reserve" and record.body["group"]]
    broken = []
    for population, attempt in dict.fromkeys((str(body["identity"]), base_attempt(body["slot"])) for body in bodies):
        name, series = _series(population, attempt), Series.from_records(records, population, attempt)
        first = _series_first_nights(connection, name)
        if not _is_sealed(chain, series, first):
            broken.append((population, name, series, first))
    return broken


def _loss_message(home: Home, population: str, series: Series) -> str:
    last = 0 if series.night is None else series.night.cohort.last
    return (
        f"the ledger at {home.location} does not hold the first nights of people of '{population}' that night {last} "
        "of the series had. They were lost, edited or restored from an older copy. Run: likeness ledger recover. "
        "Without a copy give ledger.attempt a new value: a new series begins, and costs beside this one."
    )


def _is_sealed(chain: Chain, series: Series, first: Mapping[str, int]) -> bool:
    """Tell whether first nights are those that the newest night of a series named; a series without one names none."""
    night = series.night
    last = "" if night is None else seal_digest(_digest(first, night.cohort.last), chain.key, night.entry[SALT])
    return night is None or last == night.entry["first_nights"]


def _copies_path(home: Home) -> Path:
    return copies_path(home).with_suffix(".nights")


def _copies(home: Home) -> dict[tuple[str, str], int]:
    """The copied first nights, by series and person. A line that a crash cut is none."""
    path = _copies_path(home)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(line[:16], line[17:49]): int(line[50:]) for line in lines if _LINE.fullmatch(line)}


def _copy_first_nights(chain: Chain) -> None:
    """Bring the copies beside the anchor up to date: no clone, bundle or witness has them."""
    columns = select(FIRST_NIGHTS.c.series, FIRST_NIGHTS.c.person, FIRST_NIGHTS.c.night)
    with chain.engine.connect() as connection:
        rows = {(series, person): night for series, person, night in connection.execute(columns)}
    copies = _copies(chain.home)
    new = (key for key, night in rows.items() if copies.get(key) != night)
    append_durably(_copies_path(chain.home), (f"{series} {person} {rows[series, person]}" for series, person in new))


def first_nights_until(chain: Chain, population: str, attempt: str, last: int) -> str:
    """Digest of the first nights on record until a night.

    Args:
        chain: that holds them.
        population: name of the people.
        attempt: of the settings.
        last: the night.
    """
    with database_errors(chain.home), chain.engine.connect() as connection:
        return _digest(_series_first_nights(connection, _series(population, attempt)), last)


def _series(population: str, attempt: str) -> str:
    """The name of a series in the table."""
    return sha256_bytes(f"{population}\n{base_attempt(attempt)}".encode())[:16]


def _series_first_nights(connection: Connection, series: str) -> dict[str, int]:
    """The first night of each person of a series, by the hash of the name."""
    columns = select(FIRST_NIGHTS.c.person, FIRST_NIGHTS.c.night).where(FIRST_NIGHTS.c.series == series)
    return {person: night for person, night in connection.execute(columns)}


def _digest(first: Mapping[str, int], last: int) -> str:
    """Digest of the first nights until a night."""
    return sha256_bytes("\n".join(sorted(f"{night} {name}" for name, night in first.items() if night <= last)).encode())
