"""One record of the chain, and the record that follows it."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from likeness.core.errors import LedgerError
from likeness.core.hashing import canonical_json, plain_json, sha256_bytes
from likeness.core.messages import LOG
from likeness.core.rng import secret_bytes

START = "0" * 64
"""Digest before the first record."""

SALT = "salt"
"""Key of the secret in a body that hides it. Releases of one run share it, with their commits."""
OPENING = "population_salt"
"""Key of the hash of a record's salt that opens its population alone."""

DAY = "day"
"""Kind of a record by which a person confirms its day. The days before may be later, or much earlier."""
FEWER = "fewer"
"""Kind of a record by which a person says that the source of its day rightly lacks most people of the nights before."""
RECOVERED = "recovered"
"""Kind of a record with the cost of records that an older copy of the ledger lost."""
SPENDING = {"reserve", RECOVERED}
REDRAW = "~"
"""Stands between an attempt and the number of its draw, where a lost release was drawn again."""
OF_ALL = {"genesis", DAY}
"""Kinds of records that are about nobody. Every reader of the chain sees them."""
_MOST_AHEAD = 400  # days: a ledger may rest for a year
MOST_BACK = 2
"""Days by which the clocks of a team may differ, or the records of a night follow its rows."""

_NUMBERS = ("delta_keys", "dimension", "noise_scale", "reserve_seq", "rho")
_ALONE = {key: f'"{key}":' for key in (SALT, "digest", "group", "identity", "key", "sha256", "slot", *_NUMBERS)}
_VALUE = json.JSONDecoder().raw_decode


class Body(Mapping[str, Any]):
    """Content of a record on the chain. A ledger of years has too many to read all of each.

    A key of ``_ALONE`` that stands once in the text is one of the body itself. No reservation lacks one that is asked
    of it, and no other record has objects with keys of a method. Quotes in a string are escaped.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _content(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    def __getitem__(self, key: str) -> Any:
        mark = _ALONE.get(key)
        if mark is not None:
            at = self.text.rfind(mark)
            if at >= 0 and self.text.find(mark) == at:
                return _VALUE(self.text, at + len(mark))[0]
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


class Record(NamedTuple):
    """One line of the ledger.

    Attributes:
        seq: number of the record, from 1. It gives the order.
        time: a day in UTC, which goes back to that of a :data:`DAY` only.
        kind: genesis, cap, reserve, commit, lost, published, recovered, day or fewer.
        body: content of the record.
        previous: digest of the record before.
        digest: see :func:`digest_of`.
    """

    seq: int
    time: str
    kind: str
    body: Mapping[str, Any]
    previous: str
    digest: str

    @property
    def text(self) -> str:
        """The body as canonical JSON."""
        return self.body.text if type(self.body) is Body else plain_json(self.body)


def base_attempt(attempt: str) -> str:
    """The attempt of params.yaml, without the number of the draw."""
    return attempt.partition(REDRAW)[0]


def append(records: list[Record], kind: str, body: dict[str, Any], time: str | None = None) -> Record:
    """Add a record to the list that :meth:`likeness.ledger.chain.Chain.appending` yields.

    Args:
        records: all records so far.
        kind: see :class:`Record`.
        body: its content. A record about people names their ``identity``.
        time: the day; None: today.
    """
    body = {SALT: secret_bytes(16).hex(), **body}
    previous = records[-1].digest if records else START
    draft = Record(len(records) + 1, time or moment(records), kind, Body(canonical_json(body)), previous, "")
    record = draft._replace(digest=digest_of(draft))
    records.append(record)
    return record


def moment(records: list[Record]) -> str:
    """Today in UTC, or the last record's day if that is later.

    A day, because a bundle shows whole records: seconds would tell how long the door read private rows.

    Raises:
        LedgerError: today is far after the last record's day, by a clock that nobody has confirmed.
    """
    now = _now()
    if not records:
        return now
    ahead = days_between(records[-1].time, now)
    days = f"the clock says {now}, and the ledger's last record is of {records[-1].time}."
    if ahead > _MOST_AHEAD:
        raise LedgerError(f"{days} Set the clock. If it is right, run: likeness ledger day {now}")
    if ahead < -MOST_BACK:
        LOG.warning(f"{days} If that day was wrong, run: likeness ledger day {now}")
    return max(now, records[-1].time)


def days_between(first: str, last: str) -> int:
    """Number of days from one to another, as ISO writes them."""
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


def _now() -> str:
    return datetime.now(UTC).date().isoformat()


def digest_of(record: Record) -> str:
    """SHA-256 of a record's place, the record before it, and the hash of its content, which has secret bits of its own.

    So that hash shows a record of other people: a reader can check the chain and learns nothing else.
    """
    return next_digest(record.seq, record.previous, hash_of(opening_of(record)))


def next_digest(seq: int, previous: str, hashed: str) -> str:
    """The digest of a record of this number, after one of this digest, whose :func:`hash_of` is given."""
    return sha256_bytes(f'[{_text(seq)},{_text(previous)},"{hashed}"]'.encode())


def opening_of(record: Record) -> dict[str, Any]:
    """Give what shows whom a record is about, and nothing more.

    The salt hides the content. Its hash with the number hides the population in the same way. Nobody finds the salt
    from that hash, so a reader who sees it cannot find a cap by trial. Records of one run have one salt and look
    unrelated.
    """
    body = record.body
    return {
        "identity": body.get("identity", ""),
        OPENING: sha256_bytes(f"[{_text(body[SALT])},{_text(record.seq)}]".encode()),
        "content": sha256_bytes(f"[{_text(record.time)},{_text(record.kind)},{record.text}]".encode()),
    }


def hash_of(parts: Mapping[str, Any]) -> str:
    """Hash of a record by what :func:`opening_of` shows. It is fixed: nobody finds another population with it."""
    population = sha256_bytes(f"[{_text(parts[OPENING])},{_text(parts['identity'])}]".encode())
    return sha256_bytes(f"[{_text(population)},{_text(parts['content'])}]".encode())


def row(record: Record) -> dict[str, Any]:
    """A record as a row of the database."""
    return {**record._asdict(), "body": record.text}


def _text(part: Any) -> str:
    """Write as :func:`likeness.core.hashing.canonical_json` does, but quickly: an old ledger has tens of thousands."""
    return encode_basestring(part) if type(part) is str else canonical_json(part)
