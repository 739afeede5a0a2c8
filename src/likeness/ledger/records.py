"""One record of the chain, and the one that follows it."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from likeness.core.hashing import canonical_json, sha256_json
from likeness.core.rng import secret_bytes

START = "0" * 64
"""What the first record follows."""

SALT = "population_salt"
"""The secret in a body that hides its population. A body without it is of an earlier version."""


@dataclass(frozen=True)
class Record:
    """One line of the ledger.

    ``kind`` is genesis, cap, limit, reserve, commit, lost or published. The order is that of ``seq``. The time is a
    day in UTC and never goes back. No rule depends on it but a cap by month. Records of earlier versions tell seconds.
    """

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    digest: str


def append(records: list[Record], kind: str, body: dict[str, Any], time: str | None = None) -> Record:
    """Add a record to the list that :meth:`Chain.appending` yielded.

    Args:
        records: all records so far.
        kind: see :class:`Record`.
        body: its content. A record about people names their ``identity``.
        time: the day; None: today.
    """
    body = {**body, SALT: secret_bytes(16).hex(), "content_salt": secret_bytes(16).hex()}
    body = json.loads(canonical_json(body))  # what is chained is what will be read back
    previous = records[-1].digest if records else START
    draft = Record(len(records) + 1, time or moment(records), kind, body, previous, "")
    record = replace(draft, digest=digest_of(draft))
    records.append(record)
    return record


def first(body: dict[str, Any]) -> Record:
    """The first record of a chain."""
    return append([], "genesis", body)


def moment(records: list[Record]) -> str:
    """Today in UTC, but never before the last record: a clock that is set back opens no month again.

    A day, because a bundle shows records whole: with seconds they would tell how long the door read private rows.
    As text, a day comes before every second of itself, so that a record of an earlier version keeps its place.
    """
    now = _now()
    return max(now, records[-1].time) if records else now


def _now() -> str:
    return datetime.now(UTC).date().isoformat()


def digest_of(record: Record) -> str:
    """What names a record: SHA-256 of its place, the record before it, its population and its content.

    Population and content are digests of their own. So a record of other people can be shown as {seq, previous,
    digest, population, content}: the chain is checked, and nothing of the record is told. Whoever has the identity and
    the population's salt can show later whom that record is about, and no more than that.

    A record of an earlier version has no salt. Its digest is over all of it at once, and stays valid. No record is
    both: the two formulas hash lists of different lengths.
    """
    if isinstance(record.body, dict) and SALT in record.body:
        return sha256_json([record.seq, record.previous, population_of(record.body), content_of(record)])
    return sha256_json([record.seq, record.time, record.kind, record.body, record.previous])


def population_of(body: dict[str, Any]) -> str:
    """Whom a record is about, hidden and fixed: SHA-256 of the salt and the identity (of the first record: none).

    Hidden, because identities can be guessed and 128 secret bits cannot. Fixed, because nobody finds another identity
    and salt of the same SHA-256. Two records of the same people have different salts and look unrelated.
    """
    return sha256_json([body[SALT], body.get("identity", "")])


def content_of(record: Record) -> str:
    """All of a record but its place.

    The body has a salt of its own for this: whoever opens the population alone shows its salt, and a cap that can be
    guessed must not be found by trying.
    """
    return sha256_json([record.time, record.kind, record.body])


def row(record: Record) -> dict[str, Any]:
    """A record as the database keeps it."""
    return {**record.__dict__, "body": canonical_json(record.body)}
