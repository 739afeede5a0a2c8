"""An append-only chain of records in a database, anchored in another folder.

Each record carries the SHA-256 of the one before; triggers refuse updates and deletions; the anchor keeps length and
head. A truncated, edited, rewritten, deleted or restored chain is refused when it is opened. What no local scheme can
notice is the loss of chain and anchor together: see :mod:`likeness.ledger.witness`.

The database is an SQLite file, or PostgreSQL for a team. There every machine has an anchor of its own, which remembers
how far that machine has seen: others may have appended since, but what was seen must still be there.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock
from sqlalchemy import Connection, Engine, insert, select

from likeness.core.errors import LedgerError
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import make_private_folder
from likeness.core.rng import secret_bytes
from likeness.ledger.anchor import Anchor, read_anchor, write_anchor, write_durably
from likeness.ledger.database import RECORDS, RELEASES, lock_database, make_engine, release_lock, told_plainly
from likeness.ledger.home import Home
from likeness.ledger.migrations import migrate, version_of
from likeness.ledger.records import START, Record, append, digest_of, first, row

__all__ = ["Chain", "Record", "append", "file_lock"]


class Chain:
    """An open chain. Use :meth:`create` once, then :meth:`open`."""

    def __init__(self, home: Home, engine: Engine, key: bytes) -> None:
        """Not for direct use: does not verify anything."""
        self.home = home
        self.key = key
        self._engine = engine

    @staticmethod
    def exists(home: Home) -> bool:
        """Whether there is a chain, sound or not.

        Raises:
            LedgerError: the team's database cannot be reached.
        """
        if home.url is None:
            return home.database.exists()
        with told_plainly(home), make_engine(home).connect() as connection:
            return version_of(connection) > 0

    @classmethod
    def create(cls, home: Home) -> "Chain":
        """Start a chain where there is none.

        Raises:
            LedgerError: a ledger, or the anchor of a lost one, is already there.
        """
        _make_folders(home)
        with _locked(home):
            if read_anchor(home.anchor, home.place) is not None:
                raise LedgerError(
                    f"{home.anchor} holds the anchor of a ledger at {home.place}. "
                    "It exists already, or was lost: restore it from a backup instead of starting anew."
                )
            if home.url is not None and home.database.exists():
                raise LedgerError(
                    f"{home.database} is a ledger already; one at {home.place} would forget what it spent. Unset "
                    "ledger.url, or choose another LIKENESS_HOME if that ledger is about other people."
                )
            if cls.exists(home):
                chain = cls._connect(home)
                if len(chain.records()) != 1:  # a crash between the first record and its anchor leaves exactly one
                    raise LedgerError(_anchor_missing(home))
            else:
                chain = cls._write_genesis(home)
            write_anchor(home.anchor, home.place, chain.head(chain.records()))
        return chain

    @classmethod
    def open(cls, home: Home) -> "Chain":
        """Open a chain, bring its tables to this version, and verify all of it.

        Raises:
            LedgerError: it is missing, damaged, truncated, rewritten, older than its anchor, or of a newer version.
        """
        if not cls.exists(home):
            anchor = read_anchor(home.anchor, home.place)
            if anchor is not None:
                raise LedgerError(
                    f"{home.database if home.url is None else home.place} is gone, but its anchor remembers "
                    f"{anchor.count} records. Restore it from a backup: budget that was spent stays spent."
                )
            raise LedgerError(f"there is no ledger at {home.place}. Run: likeness ledger init")
        _make_folders(home)
        with _locked(home):
            chain = cls._connect(home)
            chain.check_anchor(chain.records())
        return chain

    @classmethod
    def _connect(cls, home: Home) -> "Chain":
        if not home.key_file.exists():
            whence = "Restore it" if home.url is None else "Copy it from another machine of the team, by a safe way"
            raise LedgerError(f"{home.key_file} is missing. {whence}: without it no release can be recognized.")
        chain = cls(home, make_engine(home), home.key_file.read_bytes())
        with told_plainly(home), chain._engine.begin() as connection:
            lock_database(connection)
            migrate(connection, home.place)
        body = chain.records()[0].body
        if not isinstance(body, dict) or body.get("key_sha256") != sha256_bytes(chain.key):
            raise LedgerError(f"{home.key_file} is not the key of this ledger. Restore the right one.")
        return chain

    @classmethod
    def _write_genesis(cls, home: Home) -> "Chain":
        if not home.key_file.exists():
            write_durably(home.key_file, secret_bytes(32))
        body = {
            "format": 1,
            "ledger_id": secret_bytes(8).hex(),
            "key_sha256": sha256_bytes(home.key_file.read_bytes()),
        }
        temporary = home.path / f".ledger.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        engine = make_engine(home, temporary)
        with told_plainly(home), engine.begin() as connection:
            lock_database(connection)
            if version_of(connection) == 0:  # or another machine of the team came first
                migrate(connection, home.place)
                connection.execute(insert(RECORDS), row(first(body)))
        engine.dispose()
        if home.url is None:  # SQLite: the file is there whole or not at all
            temporary.chmod(0o600)
            temporary.replace(home.database)
        return cls._connect(home)

    def records(self) -> list[Record]:
        """All records, after checking the chain.

        Raises:
            LedgerError: a record was edited, removed from the middle, or is not readable.
        """
        with told_plainly(self.home), self._engine.connect() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> list[Record]:
        place = self.home.database if self.home.url is None else self.home.place
        rows = connection.execute(select(RECORDS).order_by(RECORDS.c.seq)).all()
        try:
            records = [Record(r.seq, r.time, r.kind, json.loads(r.body), r.previous, r.digest) for r in rows]
        except (TypeError, ValueError) as error:  # SQLite's columns hold any type, and so does a damaged file
            raise LedgerError(f"{place}: not a readable ledger. Restore it from a backup.") from error
        if not records:
            raise LedgerError(f"{place}: the ledger is empty. Restore it from a backup.")
        previous = START
        for position, record in enumerate(records, start=1):
            if record.seq != position or record.previous != previous or record.digest != digest_of(record):
                raise LedgerError(
                    f"{place}: the chain is broken at record {position}: it was edited or removed. "
                    "Restore the ledger from a backup."
                )
            previous = record.digest
        return records

    def head(self, records: list[Record]) -> Anchor:
        """Length and last digest of the chain, as the anchor keeps them."""
        return Anchor(str(records[0].body["ledger_id"]), self.home.place, len(records), records[-1].digest)

    def check_anchor(self, records: list[Record]) -> None:
        """Compare with the anchor, and bring it up to date.

        An anchor exactly one append behind is the trace of a crash. A team's may be further behind.
        """
        anchor = read_anchor(self.home.anchor, self.home.place)
        if anchor is None:
            raise LedgerError(_anchor_missing(self.home))
        head = self.head(records)
        if anchor == head:
            return
        behind = len(records) - anchor.count
        seen = 0 < anchor.count <= len(records) and records[anchor.count - 1].digest == anchor.head
        if anchor.ledger_id == head.ledger_id and seen and (behind == 1 or self.home.url is not None):
            write_anchor(self.home.anchor, self.home.place, head)
            return
        raise LedgerError(
            f"the ledger at {self.home.place} has {len(records)} records, its anchor remembers {anchor.count} with "
            "another head: it was truncated, rewritten, or restored from an older copy. Restore the newest copy."
        )

    @contextlib.contextmanager
    def appending(self, released: tuple[str, bytes] | None = None) -> Iterator[list[Record]]:
        """Hold the chain, verify it, let the caller :func:`append` one record to the list, then write it durably.

        One record a time: the anchor may lag by one only. An exception in the body writes nothing.

        Args:
            released: key and bytes that a team's database keeps, written with the record or not at all.
        """
        with _locked(self.home), told_plainly(self.home):
            with self._engine.begin() as connection:
                lock_database(connection)
                records = self._read(connection)
                self.check_anchor(records)
                known = len(records)
                yield records
                if len(records) > known:
                    assert len(records) == known + 1
                    connection.execute(insert(RECORDS), row(records[-1]))
                    if released is not None:
                        connection.execute(insert(RELEASES), {"key": released[0], "data": released[1]})
            if len(records) > known:
                write_anchor(self.home.anchor, self.home.place, self.head(records))

    @contextlib.contextmanager
    def drawing(self, key: str) -> Iterator[None]:
        """One process draws the release of that key at a time, on all machines that share the chain."""
        with file_lock(self.home.locks / f"{key}.lock"), contextlib.ExitStack() as held:
            with told_plainly(self.home):  # not the caller's own errors
                held.enter_context(release_lock(self._engine, key))
            yield

    def released(self, key: str) -> bytes | None:
        """Bytes that a team's database keeps; None if it has none of that key."""
        with told_plainly(self.home), self._engine.connect() as connection:
            return connection.execute(select(RELEASES.c.data).where(RELEASES.c.key == key)).scalar_one_or_none()

    def keep(self, key: str, data: bytes) -> None:
        """Put bytes that were lost back into a team's database."""
        with told_plainly(self.home), self._engine.begin() as connection:
            connection.execute(insert(RELEASES), {"key": key, "data": data})

    @classmethod
    def reanchor(cls, home: Home, head: str) -> None:
        """Write a lost anchor anew, for a person who knows the head from an outside witness.

        On a team's database this is how a machine joins: others may have appended since the head was told.

        Raises:
            LedgerError: the chain's head is another one, or there is an anchor.
        """
        if not cls.exists(home):
            raise LedgerError(f"there is no ledger at {home.place}")
        _make_folders(home)
        with _locked(home):
            if read_anchor(home.anchor, home.place) is not None:
                raise LedgerError("there is an anchor already; nothing to do")
            chain = cls._connect(home)
            records = chain.records()
            told = {record.digest for record in records} if home.url is not None else {records[-1].digest}
            if head not in told:
                raise LedgerError("the ledger's head is not the one given: this ledger is not the newest copy")
            write_anchor(home.anchor, home.place, chain.head(records))


def _anchor_missing(home: Home) -> str:
    if home.url is not None:
        return (
            f"this machine has no anchor of the ledger at {home.place}. If it is new to the team, take a head that "
            "`likeness ledger verify` tells on another machine, and run: likeness ledger reanchor HEAD"
        )
    return (
        f"the anchor of the ledger at {home.path} is missing from {home.anchor}. Restore it; or, if a receipt or a "
        "tracking run tells you the ledger's newest head: likeness ledger reanchor HEAD"
    )


def _make_folders(home: Home) -> None:
    """The folders of a ledger; a backup may have left out the empty ones."""
    for folder in (home.path, home.releases, home.staging, home.locks):
        make_private_folder(folder)


def _locked(home: Home) -> BaseFileLock:
    """One process at a time touches the chain and its anchor."""
    return file_lock(home.locks / "ledger.lock")


def file_lock(path: Path, seconds: float = -1) -> BaseFileLock:
    """An exclusive lock on a file. The operating system drops it when its holder dies.

    Args:
        path: the lock file. Only its owner may read it.
        seconds: how long to wait before ``filelock.Timeout`` is raised; -1 waits for ever.
    """
    # Where a disk has no such locks, a file that stands for one would outlive a killed process: that is refused.
    return FileLock(path, timeout=seconds, mode=0o600, fallback_to_soft=False)
