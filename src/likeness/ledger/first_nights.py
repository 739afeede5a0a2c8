"""The first nights of people: a private table in the ledger's database, which no clone and no branch can split.

A row holds a series, a keyed hash of a name, and a night. Rows are only added, for people whom no night has named. Each
reservation of a night names a digest of the rows until then. So a table that was lost, restored from an older copy or
edited is noticed: with it a person could be in two cohorts, of which the ledger counts one.

The table says how many people came in which night. So whoever may read a team's database sees these numbers. The key of
the hashes never enters it.
"""

import hmac
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from likeness.core.errors import LedgerError
from likeness.core.hashing import sha256_bytes
from likeness.ledger.chain import Chain, lock_chain
from likeness.ledger.database import FIRST_NIGHTS, database_errors, lock_database
from likeness.ledger.records import base_attempt, moment
from likeness.ledger.reservation import seal_digest
from likeness.ledger.series import Series


class CohortNight(NamedTuple):
    """The cohort that a night asks about.

    Attributes:
        group: the cohort, as a composition group.
        first_nights: digest of the first nights until then.
        members: names of the people of the cohort. Private.
    """

    group: str
    first_nights: str
    members: frozenset[str]


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
        LedgerError: the first nights are not those of the newest night.
    """
    name = _series(population, attempt)
    with lock_chain(chain.home), database_errors(chain.home), chain.engine.begin() as connection:
        lock_database(connection)  # as each reservation, whose digest is that of the table
        records, first = chain.read(connection), _series_first_nights(connection, name)
        series = Series.from_records(records, population, attempt)
        night, last = series.night, 0 if series.night is None else series.night.cohort.last
        if night is not None and seal_digest(_digest(first, last), chain.key, night.salt) != night.seal:
            raise LedgerError(
                f"the ledger at {chain.home.location} does not hold the first nights of people that night {last} of "
                "the series had. They were lost, edited or restored from an older copy. Restore the newest copy. "
                "Without one give ledger.attempt a new value: a new series begins, and costs beside this one."
            )
        # 128 bits of each name's keyed hash: nobody without the key can try names.
        texts = {person: f"first night\n{population}\n{person}".encode() for person in names}
        hashes = {person: hmac.digest(chain.key, text, "sha256").hex()[:32] for person, text in texts.items()}
        new = sorted({*hashes.values()} - first.keys())
        if new:  # a night on record is complete: whoever comes later that day belongs to the next one
            first |= dict.fromkeys(new, last + 1)
            rows = [{"series": name, "person": person, "night": last + 1} for person in new]
            connection.execute(insert(FIRST_NIGHTS), rows)
        cohort = series.next_cohort(moment(records))
    members = frozenset(person for person, hashed in hashes.items() if cohort.first <= first[hashed] <= cohort.last)
    return CohortNight(str(cohort), _digest(first, cohort.last), members)


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
