"""One record of the chain, and the one that follows it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from likeness.canonical import canonical_json, sha256_json

START = "0" * 64
"""What the first record follows."""


@dataclass(frozen=True)
class Record:
    """One line of the ledger.

    ``kind`` is genesis, cap, limit, reserve, commit or lost. The order is that of ``seq``; the time never goes back,
    and no rule depends on it but a cap by month.
    """

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    digest: str


def append(records: list[Record], kind: str, body: dict[str, Any]) -> Record:
    """Add a record to the list that :meth:`Chain.appending` yielded."""
    record = _make_record(len(records) + 1, kind, body, records[-1].digest, moment(records))
    records.append(record)
    return record


def moment(records: list[Record]) -> str:
    """Now, in UTC to the second, but never before the last record: a clock that is set back opens no month again."""
    now = _now()
    return max(now, records[-1].time) if records else now


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def first(body: dict[str, Any]) -> Record:
    """The first record of a chain."""
    return _make_record(1, "genesis", body, START)


def _make_record(seq: int, kind: str, body: dict[str, Any], previous: str, time: str | None = None) -> Record:
    body = json.loads(canonical_json(body))  # what is chained is what will be read back
    draft = Record(seq, time or _now(), kind, body, previous, "")
    return Record(seq, draft.time, kind, body, previous, digest_of(draft))


def digest_of(record: Record) -> str:
    """SHA-256 over all of a record but the digest itself."""
    return sha256_json([record.seq, record.time, record.kind, record.body, record.previous])


def row(record: Record) -> dict[str, Any]:
    """A record as the database keeps it."""
    return {**record.__dict__, "body": canonical_json(record.body)}
