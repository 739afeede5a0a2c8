"""An append-only chain of records in SQLite, anchored in another folder.

Each record carries the SHA-256 of the one before; triggers refuse updates and deletions; the anchor keeps length and
head. A truncated, edited, rewritten, deleted or restored chain is refused when it is opened. What no local scheme can
notice is the loss of chain and anchor together; receipts and tracking runs carry the head as outside witnesses.
"""

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, create_engine, event, insert, select, text
from sqlalchemy.exc import DatabaseError

from likeness.canonical import canonical_json, sha256_bytes, sha256_json
from likeness.errors import LedgerError
from likeness.privacy.anchor import Anchor, read_anchor, write_anchor, write_durably
from likeness.privacy.home import Home, make_private_folder
from likeness.rng import secret_bytes

_METADATA = MetaData()
_RECORDS = Table(
    "records",
    _METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
)
_TRIGGERS = tuple(
    f"CREATE TRIGGER records_no_{verb.lower()} BEFORE {verb} ON records "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
_START = "0" * 64


@dataclass(frozen=True)
class Record:
    """One line of the ledger. ``kind`` is genesis, cap, reserve or commit. The time is told, no rule depends on it."""

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    digest: str


class Chain:
    """An open chain. Use :meth:`create` once, then :meth:`open`."""

    def __init__(self, home: Home, engine: Engine, key: bytes) -> None:
        """Not for direct use: does not verify anything."""
        self.home = home
        self.key = key
        self._engine = engine

    @classmethod
    def create(cls, home: Home) -> "Chain":
        """Start a chain where there is none.

        Raises:
            LedgerError: a ledger, or the anchor of a lost one, is already there.
        """
        _make_folders(home)
        with _locked(home):
            if read_anchor(home.anchor, home.path) is not None:
                raise LedgerError(
                    f"{home.anchor} holds the anchor of a ledger at {home.path}. "
                    "It exists already, or was lost: restore it from a backup instead of starting anew."
                )
            if home.database.exists():
                chain = cls._connect(home)
                if len(chain.records()) != 1:  # a crash between the first record and its anchor leaves exactly one
                    raise LedgerError(_anchor_missing(home))
            else:
                chain = cls._write_genesis(home)
            write_anchor(home.anchor, home.path, chain.head(chain.records()))
        return chain

    @classmethod
    def open(cls, home: Home) -> "Chain":
        """Open a chain and verify all of it.

        Raises:
            LedgerError: it is missing, damaged, truncated, rewritten, or older than its anchor.
        """
        if not home.database.exists():
            anchor = read_anchor(home.anchor, home.path)
            if anchor is not None:
                raise LedgerError(
                    f"{home.database} is gone, but its anchor remembers {anchor.count} records. "
                    "Restore the folder from a backup: budget that was spent stays spent."
                )
            raise LedgerError(f"there is no ledger at {home.path}. Run: likeness ledger init")
        _make_folders(home)
        with _locked(home):
            chain = cls._connect(home)
            chain.check_anchor(chain.records())
        return chain

    @classmethod
    def _connect(cls, home: Home) -> "Chain":
        if not home.key_file.exists():
            raise LedgerError(f"{home.key_file} is missing. Restore it: without it no release can be recognized.")
        chain = cls(home, _engine(home.database), home.key_file.read_bytes())
        if chain.records()[0].body["key_sha256"] != sha256_bytes(chain.key):
            raise LedgerError(f"{home.key_file} is not the key of this ledger. Restore the right one.")
        return chain

    @classmethod
    def _write_genesis(cls, home: Home) -> "Chain":
        if not home.key_file.exists():
            write_durably(home.key_file, secret_bytes(32))
        temporary = home.path / f".ledger.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        engine = _engine(temporary)
        body = {
            "format": 1,
            "ledger_id": secret_bytes(8).hex(),
            "key_sha256": sha256_bytes(home.key_file.read_bytes()),
        }
        with engine.begin() as connection:
            _METADATA.create_all(connection)
            for trigger in _TRIGGERS:
                connection.execute(text(trigger))
            connection.execute(insert(_RECORDS), _row(_make_record(1, "genesis", body, _START)))
        engine.dispose()
        temporary.chmod(0o600)
        temporary.replace(home.database)
        return cls._connect(home)

    def records(self) -> list[Record]:
        """All records, after checking the chain.

        Raises:
            LedgerError: a record was edited, removed from the middle, or is not readable.
        """
        try:
            with self._engine.connect() as connection:
                rows = connection.execute(select(_RECORDS).order_by(_RECORDS.c.seq)).all()
            records = [Record(r.seq, r.time, r.kind, json.loads(r.body), r.previous, r.digest) for r in rows]
        except (DatabaseError, ValueError) as error:
            raise LedgerError(f"{self.home.database}: not a readable ledger. Restore it from a backup.") from error
        if not records:
            raise LedgerError(f"{self.home.database}: the ledger is empty. Restore it from a backup.")
        previous = _START
        for position, record in enumerate(records, start=1):
            if record.seq != position or record.previous != previous or record.digest != _digest(record):
                raise LedgerError(
                    f"{self.home.database}: the chain is broken at record {position}: it was edited or removed. "
                    "Restore the ledger from a backup."
                )
            previous = record.digest
        return records

    def head(self, records: list[Record]) -> Anchor:
        """Length and last digest of the chain, as the anchor keeps them."""
        return Anchor(str(records[0].body["ledger_id"]), str(self.home.path), len(records), records[-1].digest)

    def check_anchor(self, records: list[Record]) -> None:
        """Compare with the anchor; an anchor exactly one append behind is the trace of a crash, and is healed."""
        anchor = read_anchor(self.home.anchor, self.home.path)
        if anchor is None:
            raise LedgerError(_anchor_missing(self.home))
        head = self.head(records)
        if anchor == head:
            return
        one_behind = len(records) == anchor.count + 1 and records[-1].previous == anchor.head
        if anchor.ledger_id == head.ledger_id and one_behind:
            write_anchor(self.home.anchor, self.home.path, head)
            return
        raise LedgerError(
            f"the ledger at {self.home.path} has {len(records)} records, its anchor remembers {anchor.count} with "
            "another head: it was truncated, rewritten, or restored from an older copy. Restore the newest copy."
        )

    @contextlib.contextmanager
    def appending(self) -> Iterator[list[Record]]:
        """Hold the chain, verify it, let the caller :func:`append` one record to the list, then write it durably.

        One record a time: the anchor may lag by one only. An exception in the body writes nothing.
        """
        with _locked(self.home):
            records = self.records()
            self.check_anchor(records)
            known = len(records)
            yield records
            if len(records) > known:
                assert len(records) == known + 1
                with self._engine.begin() as connection:
                    connection.execute(insert(_RECORDS), _row(records[-1]))
                write_anchor(self.home.anchor, self.home.path, self.head(records))

    @classmethod
    def reanchor(cls, home: Home, head: str) -> None:
        """Write a lost anchor anew, for a person who knows the head from an outside witness.

        Raises:
            LedgerError: the chain's head is another one, or there is an anchor.
        """
        if not home.database.exists():
            raise LedgerError(f"there is no ledger at {home.path}")
        _make_folders(home)
        with _locked(home):
            if read_anchor(home.anchor, home.path) is not None:
                raise LedgerError("there is an anchor already; nothing to do")
            chain = cls._connect(home)
            current = chain.head(chain.records())
            if current.head != head:
                raise LedgerError("the ledger's head is not the one given: this ledger is not the newest copy")
            write_anchor(home.anchor, home.path, current)


def append(records: list[Record], kind: str, body: dict[str, Any]) -> Record:
    """Add a record to the list that :meth:`Chain.appending` yielded."""
    record = _make_record(len(records) + 1, kind, body, records[-1].digest)
    records.append(record)
    return record


def _make_record(seq: int, kind: str, body: dict[str, Any], previous: str) -> Record:
    body = json.loads(canonical_json(body))  # what is chained is what will be read back
    draft = Record(seq, datetime.now(UTC).isoformat(timespec="seconds"), kind, body, previous, "")
    return Record(seq, draft.time, kind, body, previous, _digest(draft))


def _digest(record: Record) -> str:
    return sha256_json([record.seq, record.time, record.kind, record.body, record.previous])


def _row(record: Record) -> dict[str, Any]:
    return {**record.__dict__, "body": canonical_json(record.body)}


def _anchor_missing(home: Home) -> str:
    return (
        f"the anchor of the ledger at {home.path} is missing from {home.anchor}. Restore it; or, if a receipt or a "
        "tracking run tells you the ledger's newest head: likeness ledger reanchor HEAD"
    )


def _make_folders(home: Home) -> None:
    """The folders of a ledger; a backup may have left out the empty ones."""
    for folder in (home.path, home.releases, home.staging, home.locks):
        make_private_folder(folder)


@contextlib.contextmanager
def _locked(home: Home) -> Iterator[None]:
    """One process at a time touches the chain and its anchor."""
    with file_lock(home.locks / "ledger.lock"):
        yield


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """An exclusive lock that the operating system drops when its holder dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA busy_timeout = 60000")

    return engine
