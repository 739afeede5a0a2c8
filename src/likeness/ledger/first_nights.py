"""The first nights of people: a private file in the ledger's folder, which no clone and no branch can split.

A line holds a night and a keyed hash of a name. Lines are only added, for people whom no night has named. Each
reservation of a night names a digest of the lines until then. So a file that was lost, restored from an older copy or
edited is noticed: with it a person could be in two cohorts, of which the ledger counts one.
"""

import hmac
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from likeness.core.errors import LedgerError
from likeness.core.files import make_private_folder, write_durably
from likeness.core.hashing import sha256_bytes
from likeness.ledger.chain import Chain, locked
from likeness.ledger.home import Home
from likeness.ledger.records import base_attempt, moment
from likeness.ledger.reservation import sealed
from likeness.ledger.series import Series

_DIGITS = 5  # of a night, so that lines sort by night


class Tonight(NamedTuple):
    """Whom a night asks about.

    Attributes:
        group: the cohort, as a composition group.
        first_nights: digest of the first nights until then.
        members: names of the people of the cohort. Private.
    """

    group: str
    first_nights: str
    members: frozenset[str]


def people_of_tonight(ledger: Chain, population: str, attempt: str, names: Iterable[str]) -> Tonight:
    """Give each new person a first night, and say whom tonight asks about.

    The first night of a person depends on the nights that name this person, and on nobody else: see
    :mod:`likeness.privacy.cohorts`. Which night it is follows from the records and the day. It does not depend on
    whether a row changed.

    Args:
        ledger: whose key hashes the names, and whose folder holds the file.
        population: name of the people.
        attempt: of the settings, which names the series.
        names: of all people of the source, in any order.

    Raises:
        LedgerError: the file is not that of the newest night; or the ledger is a team's, whose machines share no file.
    """
    if ledger.home.url is not None:
        raise LedgerError(
            "privacy.series: growing needs a ledger in a folder, because the first nights of people lie beside it. Set "
            "ledger.url: null. Or set privacy.series: none."
        )
    with locked(ledger.home):  # as each reservation, whose digest is that of the file
        file, records = _file(ledger.home, population, attempt), ledger.records()
        series = Series.on_record(records, population, attempt)
        night, last = series.night, 0 if series.night is None else series.night.cohort.last
        if night is not None:
            seal = sealed(first_nights_until(ledger.home, population, attempt, last), ledger.key, night.salt)
            if seal != night.seal:
                raise LedgerError(
                    f"{file} does not hold the first nights of people that night {last} of the series had. It was "
                    "lost, edited or restored from an older copy. Restore the newest copy. Without one give "
                    "ledger.attempt a new value: a new series begins, and costs beside this one."
                )
        first = {line[_DIGITS + 1 :]: int(line[:_DIGITS]) for line in _lines(file)}
        hashes = {name: _hash(ledger.key, population, name) for name in names}
        new = {one for one in hashes.values() if one not in first}
        if new:  # a night on record is complete: whoever comes later that day belongs to the next one
            first |= dict.fromkeys(new, last + 1)
            make_private_folder(file.parent)
            write_durably(file, "".join(sorted(f"{f:0{_DIGITS}} {one}\n" for one, f in first.items())).encode())
        cohort = series.next(moment(records))
    members = frozenset(name for name, one in hashes.items() if cohort.first <= first[one] <= cohort.last)
    return Tonight(str(cohort), first_nights_until(ledger.home, population, attempt, cohort.last), members)


def first_nights_until(home: Home, population: str, attempt: str, last: int) -> str:
    """Digest of the first nights on file until a night.

    Args:
        home: the ledger's folders.
        population: name of the people.
        attempt: of the settings.
        last: the night.
    """
    until = [line for line in _lines(_file(home, population, attempt)) if int(line[:_DIGITS]) <= last]
    return sha256_bytes("\n".join(until).encode())


def _file(home: Home, population: str, attempt: str) -> Path:
    return home.path / "first_nights" / sha256_bytes(f"{population}\n{base_attempt(attempt)}".encode())[:16]


def _lines(file: Path) -> list[str]:
    """Night and hash of each person; nobody where there is no file."""
    return file.read_text(encoding="ascii").splitlines() if file.exists() else []


def _hash(key: bytes, population: str, name: str) -> str:
    """128 bits of a name's keyed hash: nobody without the key can try names."""
    return hmac.digest(key, f"first night\n{population}\n{name}".encode(), "sha256").hex()[:32]
