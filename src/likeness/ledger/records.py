"""One record of the chain, and the record that follows it."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from likeness.core.hashing import canonical_json, sha256_json
from likeness.core.rng import secret_bytes

START = "0" * 64
"""Digest before the first record."""

SALT = "population_salt"
"""Key of the secret in a body that hides its population."""


@dataclass(frozen=True)
class Record:
    """One line of the ledger.

    Attributes:
        seq: number of the record, from 1. It gives the order.
        time: a day in UTC, which never goes back.
        kind: genesis, cap, reserve, commit, lost or published.
        body: content of the record.
        previous: digest of the record before.
        digest: see :func:`digest_of`.
    """

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    digest: str


def append(records: list[Record], kind: str, body: dict[str, Any], time: str | None = None) -> Record:
    """Add a record to the list that :meth:`likeness.ledger.chain.Chain.appending` yields.

    Args:
        records: all records so far.
        kind: see :class:`Record`.
        body: its content. A record about people names their ``identity``.
        time: the day; None: today.
    """
    body = {**body, SALT: secret_bytes(16).hex(), "content_salt": secret_bytes(16).hex()}
    body = json.loads(canonical_json(body))  # the chain holds what a reader gets back
    previous = records[-1].digest if records else START
    draft = Record(len(records) + 1, time or moment(records), kind, body, previous, "")
    record = replace(draft, digest=digest_of(draft))
    records.append(record)
    return record


def moment(records: list[Record]) -> str:
    """Today in UTC, or the last record's day if that is later.

    A day, because a bundle shows whole records: seconds would tell how long the door read private rows.
    """
    now = _now()
    return max(now, records[-1].time) if records else now


def _now() -> str:
    return datetime.now(UTC).date().isoformat()


def digest_of(record: Record) -> str:
    """SHA-256 of a record's place, the record before it, its population and its content.

    Population and content have digests of their own. So {seq, previous, digest, population, content} shows a record of
    other people: a reader can check the chain and learns nothing else. The identity and the population's salt together
    show later whom that record is about, and nothing more.
    """
    return sha256_json([record.seq, record.previous, population_of(record.body), content_of(record)])


def population_of(body: dict[str, Any]) -> str:
    """Hidden and fixed name of a record's population: SHA-256 of salt and identity (of the first record: no identity).

    It is hidden because nobody can guess 128 secret bits. It is fixed because nobody can find another identity and salt
    with that SHA-256. Two records of one population have different salts and look unrelated.
    """
    return sha256_json([body[SALT], body.get("identity", "")])


def content_of(record: Record) -> str:
    """SHA-256 of all of a record but its place.

    The body has a second salt for it. Opening the population shows the first salt, and must not let a reader find a
    cap by trial.
    """
    return sha256_json([record.time, record.kind, record.body])


def row(record: Record) -> dict[str, Any]:
    """A record as a row of the database."""
    return {**record.__dict__, "body": canonical_json(record.body)}
