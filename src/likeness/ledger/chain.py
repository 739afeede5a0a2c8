"""An append-only chain of records in a database, anchored in another folder.

Each record carries the SHA-256 of the one before. Triggers refuse updates and deletions. The anchor keeps length and
head, and beside it lie copies of all records. Opening refuses a chain that was truncated, edited, rewritten, deleted or
restored. :meth:`likeness.ledger.ledger.recover` appends what it lacks. No local scheme notices the loss of chain
and anchor together: see :mod:`likeness.ledger.witness`.

The database is an SQLite file, or PostgreSQL for a team. Each machine of a team has its anchor, which says how far that
machine has read. Others may append more, but what was read must still be there.
"""

import contextlib
import gc
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine, insert, select

from likeness.core.errors import LedgerError
from likeness.core.files import append_durably, file_lock, make_private_folder, write_durably
from likeness.core.format import FORMAT, check_known
from likeness.core.hashing import sha256_bytes
from likeness.core.rng import secret_bytes
from likeness.ledger.database import (
    RECORDS,
    RELEASES,
    VERSION,
    check_version,
    copy_of,
    create_tables,
    database_errors,
    lock_database,
    make_engine,
    version_of,
)
from likeness.ledger.home import Home
from likeness.ledger.records import START, Body, Record, append, digest_of, row


@dataclass(frozen=True)
class Anchor:
    """State of the ledger after its last append, in another place; of a team's database also its copy."""

    ledger_id: str
    home: str
    count: int
    head: str
    database: str = ""


def anchor_path(folder: Path, location: str) -> Path:
    """The anchor's file. Its name comes from the ledger's location, so that a deleted ledger is noticed."""
    return folder / f"{hashlib.sha256(location.encode()).hexdigest()[:16]}.json"


def read_anchor(home: Home) -> Anchor | None:
    """Read the anchor of a ledger; None if there is none."""
    path = anchor_path(home.anchor, home.location)
    if not path.exists():
        return None
    try:
        return Anchor(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise LedgerError(f"{path}: the ledger's anchor is damaged. {_reanchor(home)}") from error


def anchors(folder: Path) -> Iterator[tuple[Path, Anchor]]:
    """All anchors of a machine, with their files. A damaged one names an unknown ledger."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield path, Anchor(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            yield path, Anchor("unknown", str(path), 0, "")


def copies_path(home: Home) -> Path:
    """The file beside the anchor with copies of all records, one JSON a line."""
    return anchor_path(home.anchor, home.location).with_suffix(".jsonl")


def copies_of(home: Home, head: str) -> list[Record]:
    """The copies from the first record to that of a head; what is not linked to it is left out."""
    by_digest, records = {}, list[Record]()
    for line in copies_path(home).read_text(encoding="utf-8").splitlines() if copies_path(home).exists() else []:
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # a line that a crash cut
            value = json.loads(line)
            record = Record(**{**value, "body": Body(value["body"])})
            by_digest[digest_of(record)] = record
    while head in by_digest:
        records.append(by_digest[head])
        head = by_digest[head].previous
    return records[::-1] if head == START else []


def _is_copied(home: Home, head: str) -> bool:
    """Tell whether the copies end with the record of a head; a file that is lost or cut does not."""
    path, end = copies_path(home), f'"digest": "{head}"}}'.encode()
    if not path.exists() or path.stat().st_size < len(end):
        return False
    with path.open("rb") as file:  # its end alone: five years are 30 MB
        file.seek(-len(end), os.SEEK_END)
        return file.read() == end


@contextlib.contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """No search for cycles among objects: the records of years have none, and would start searches through all else."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Chain:
    """An open chain. Use :meth:`create` once, then :meth:`open`."""

    def __init__(self, home: Home, engine: Engine, key: bytes) -> None:
        """Verifies nothing; not for direct use."""
        self.home, self.key, self.engine = home, key, engine
        self._verified: list[Record] = []

    @staticmethod
    def exists(home: Home) -> bool:
        """Tell whether there is a chain, sound or not.

        Raises:
            LedgerError: the team's database cannot be reached.
        """
        if home.url is None:
            return home.database.exists() and home.database.stat().st_size > 0
        with database_errors(home), make_engine(home).connect() as connection:
            return version_of(connection) > 0

    @classmethod
    def create(cls, home: Home) -> Self:
        """Start a chain.

        Raises:
            LedgerError: a ledger, or the anchor of a lost one, is already there.
        """
        make_folders(home)
        with lock_chain(home):
            if read_anchor(home) is not None:
                text = f"{home.anchor} holds the anchor of a ledger at {home.location}."
                if cls.exists(home):
                    raise LedgerError(f"{text} It is there: nothing is to be done. See it: likeness ledger budget")
                raise LedgerError(f"{text} It was lost. Restore it from a backup.")
            if home.url is not None and home.database.exists():
                raise LedgerError(
                    f"{home.database} is a ledger already. A new one at {home.location} would forget what it spent. "
                    "Remove ledger.url, or set another LIKENESS_HOME if that ledger is about other people."
                )
            if cls.exists(home):
                chain = cls.connect(home)
                if len(chain.records()) != 1:  # a crash before the first anchor leaves exactly one record
                    raise LedgerError(anchor_missing(home))
            else:
                chain = cls.write_first(home)
            chain.write_anchor(chain.records())
        return chain

    @classmethod
    def open(cls, home: Home) -> Self:
        """Open a chain, and verify all of it.

        Raises:
            LedgerError: it is missing, damaged, truncated, rewritten, older than its anchor, or of another version.
        """
        if not cls.exists(home):
            anchor = read_anchor(home)
            if anchor is not None:
                raise LedgerError(
                    f"{home.database if home.url is None else home.location} is missing, but its anchor counts "
                    f"{anchor.count} records. Run: likeness ledger recover. Or restore the ledger from a backup: spent "
                    "budget stays spent."
                )
            raise LedgerError(_missing(home))
        make_folders(home)
        with lock_chain(home):
            chain = cls.connect(home)
            chain.check_anchor(chain.records())
        return chain

    @classmethod
    def connect(cls, home: Home) -> Self:
        """Open a chain without its anchor, which the caller checks or writes. The caller holds the lock.

        Raises:
            LedgerError: its key is missing or another one, or the database is of another version.
        """
        if not home.key_file.exists():
            remedy = "Restore it" if home.url is None else "Copy it from another machine of the team, in a safe way"
            raise LedgerError(f"{home.key_file} is missing. {remedy}: without it no release can be recognized.")
        chain = cls(home, make_engine(home), home.key_file.read_bytes())
        with database_errors(home), chain.engine.connect() as connection:
            check_version(connection, home.location)
        body = chain.records()[0].body
        check_known(body, ("format",), f"the ledger at {home.location}", LedgerError)
        if body.get("key_sha256") != sha256_bytes(chain.key):
            raise LedgerError(f"{home.key_file} is not the key of this ledger. Restore the right key.")
        return chain

    @classmethod
    def write_first(cls, home: Home, records: Sequence[Record] = ()) -> Self:
        """Make the database, with these records or a first one."""
        if not records:
            if not home.key_file.exists():
                write_durably(home.key_file, secret_bytes(32))
            key = sha256_bytes(home.key_file.read_bytes())
            records = [append([], "genesis", {"format": FORMAT, "ledger_id": secret_bytes(8).hex(), "key_sha256": key})]
        temporary = home.path / f".ledger.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        engine = make_engine(home, temporary)
        with database_errors(home), engine.begin() as connection:
            lock_database(connection)
            if version_of(connection) == 0:  # else another machine of the team was first
                create_tables(connection)
                connection.execute(insert(RECORDS), [row(record) for record in records])
        engine.dispose()
        if home.url is None:  # the SQLite file is there whole or not at all
            temporary.chmod(0o600)
            temporary.replace(home.database)
        return cls.connect(home)

    @property
    def ledger_id(self) -> str:
        """Random name of the ledger, from its first record."""
        return str((self._verified or self.records())[0].body["ledger_id"])

    @cached_property
    def _database(self) -> str:
        with database_errors(self.home), self.engine.connect() as connection:
            return copy_of(connection)

    def is_of_this_version(self) -> bool:
        """Tell whether this version of Likeness wrote the tables."""
        with database_errors(self.home), self.engine.connect() as connection:
            return version_of(connection) == VERSION

    def records(self) -> list[Record]:
        """All records, in a new list. A process verifies the chain once, and then what follows the last record it read.

        Raises:
            LedgerError: a record was edited, was removed from the middle, or is not readable.
        """
        with database_errors(self.home), self.engine.connect() as connection:
            return self.read(connection)

    @_pause_garbage_collection()
    def read(self, connection: Connection) -> list[Record]:
        """All records, as :meth:`records`, by an open connection."""
        location = self.home.database if self.home.url is None else self.home.location
        records = self._verified
        following = select(RECORDS).where(RECORDS.c.seq >= len(records)).order_by(RECORDS.c.seq)
        rows = connection.execute(following).yield_per(1000)
        if records:
            last = rows.fetchone()
            if last is None or (last.seq, last.digest) != (len(records), records[-1].digest):
                self._verified = []  # another chain is there
                return self.read(connection)
        for position, (seq, time, kind, text, previous, digest) in enumerate(rows, start=len(records) + 1):
            record = Record(seq, time, kind, Body(text), previous, digest)
            head = records[-1].digest if records else START
            try:  # SQLite's columns hold any type, and so does a damaged file
                linked = (seq, previous, digest) == (position, head, digest_of(record))
            except (AttributeError, KeyError, TypeError, ValueError):
                linked = False
            if not linked:
                fault = f"the chain is broken at record {position}. A record was edited or removed"
                raise LedgerError(f"{location}: {fault}. Restore the ledger from a backup.")
            records.append(record)
        if not records:
            raise LedgerError(f"{location}: the ledger is empty. Restore it from a backup.")
        return list(records)

    def head(self, records: list[Record] | None = None) -> Anchor:
        """Length and last digest of the chain, for the anchor and outside witnesses.

        Args:
            records: all records; None: read them.
        """
        records = self.records() if records is None else records
        ledger_id = str(records[0].body["ledger_id"])
        return Anchor(ledger_id, self.home.location, len(records), records[-1].digest, self._database)

    def check_anchor(self, records: list[Record]) -> None:
        """Compare with the anchor, and bring it up to date.

        A crash leaves an anchor exactly one append behind. A team's anchor may be further behind.
        """
        anchor = read_anchor(self.home)
        if anchor is None:
            raise LedgerError(_moved_from(self.home, self.head(records)) or anchor_missing(self.home))
        head = self.head(records)
        if anchor == head:
            return
        behind = len(records) - anchor.count
        seen = self.has(records, anchor.count, anchor.head)
        if anchor.database not in ("", head.database):
            raise LedgerError(
                f"the ledger at {self.home.location} is another copy of the database than this machine read: of a "
                "dump, a moved server or a replica. Others may have read more than it has. First run `likeness ledger "
                "recover` on the machine that ran last, and then here. Nothing was spent."
            )
        if anchor.ledger_id == head.ledger_id and seen and (behind == 1 or self.home.url is not None):
            self.write_anchor(records)
            return
        raise LedgerError(
            f"the ledger at {self.home.location} has {len(records)} records. Its anchor counts {anchor.count}, "
            "with another head. The ledger was truncated, rewritten, or restored from an older copy. Run: likeness "
            "ledger recover. Or restore the newest copy."
        )

    @staticmethod
    def has(records: Sequence[Record], count: int, head: str) -> bool:
        """Tell whether a chain has a record of this number and digest."""
        return 0 < count <= len(records) and records[count - 1].digest == head

    def write_anchor(self, records: list[Record]) -> None:
        """Replace the anchor, durably, once copies of all records lie beside it."""
        self.home.anchor.mkdir(parents=True, exist_ok=True)
        before, last = read_anchor(self.home), 0
        if before is not None and self.has(records, before.count, before.head) and _is_copied(self.home, before.head):
            last = before.count
        append_durably(copies_path(self.home), (json.dumps(row(record)) for record in records[last:]))
        head = json.dumps(asdict(self.head(records)), indent=1)
        write_durably(anchor_path(self.home.anchor, self.home.location), head.encode())

    @contextlib.contextmanager
    def appending(self, released: tuple[str, bytes] | None = None) -> Iterator[list[Record]]:
        """Lock and verify the chain, let the caller append one record to the list, then write it durably.

        One record at a time: the anchor may lag by one only. An exception in the body writes nothing.

        Args:
            released: key and bytes for a team's database, written with the record or not at all.
        """
        with lock_chain(self.home), database_errors(self.home):
            with self.engine.begin() as connection:
                lock_database(connection)
                records = self.read(connection)
                self.check_anchor(records)
                before = len(records)
                yield records
                if len(records) > before:
                    if len(records) > before + 1:
                        raise LedgerError("a change of the ledger is one record. Nothing was written.")
                    connection.execute(insert(RECORDS), row(records[-1]))
                    if released is not None:
                        connection.execute(insert(RELEASES), {"key": released[0], "data": released[1]})
            if len(records) > before:
                self.write_anchor(records)

    def released_bytes(self, key: str) -> bytes | None:
        """Released bytes from a team's database; None if it has none of that key."""
        with database_errors(self.home), self.engine.connect() as connection:
            return connection.execute(select(RELEASES.c.data).where(RELEASES.c.key == key)).scalar_one_or_none()

    def keep(self, key: str, data: bytes) -> None:
        """Put lost bytes back into a team's database. The caller has checked them."""
        with database_errors(self.home), self.engine.begin() as connection:
            connection.execute(insert(RELEASES), {"key": key, "data": data})

    @classmethod
    def reanchor(cls, home: Home, head: str) -> None:
        """Write a lost anchor again, for a person who has the head from an outside witness.

        So a new machine joins a team: the head may be that of any record on the chain.

        Raises:
            LedgerError: the chain has another head, or there is an anchor.
        """
        if not cls.exists(home):
            raise LedgerError(_missing(home))
        make_folders(home)
        with lock_chain(home):
            path = anchor_path(home.anchor, home.location)
            if any(other == path and anchor.count for other, anchor in anchors(home.anchor)):
                raise LedgerError(f"{home.anchor} has the anchor of this ledger already. Nothing was changed.")
            chain = cls.connect(home)
            records = chain.records()
            if len(copies := copies_of(home, head)) > len(records) and copies[:1] == records[:1]:
                records = copies  # the database is older, and `recover` brings the rest back
            # A crash leaves copies, as an anchor, exactly one append behind.
            elif head not in {record.digest for record in (records if home.url is not None else records[-2:])}:
                fault = f"the head of the ledger at {home.location} is not the one given"
                raise LedgerError(f"{fault}. This ledger is not the newest copy. Restore that one.")
            path.unlink(missing_ok=True)  # a damaged one
            chain.write_anchor(records)


def _missing(home: Home) -> str:
    remedy = "likeness ledger init (in Python: likeness.Ledger.start())"
    return f"there is no ledger at {home.location}. Run: {remedy}"


def _moved_from(home: Home, head: Anchor) -> str | None:
    """The message about a ledger whose anchor is there under another place; None if there is no such anchor."""
    for _, anchor in anchors(home.anchor):
        if anchor.ledger_id == head.ledger_id and anchor.head == head.head and home.url is None:
            return (
                f"the ledger at {home.path} was at {anchor.home} when it was last written. If you moved the folder, "
                f"run: likeness ledger reanchor {head.head}. If this is a copy, use the first: set LIKENESS_HOME or "
                f"ledger.home to {anchor.home}. Two copies would each forget what the other spends."
            )
    return None


def anchor_missing(home: Home) -> str:
    """The message about a ledger without an anchor."""
    if home.url is not None:
        return (
            f"this machine has no anchor of the ledger at {home.location}. If it is new to the team, run `likeness "
            f"ledger verify` on another machine, which prints a HEAD. {_reanchor(home)}"
        )
    return (
        f"the anchor of the ledger at {home.path} is missing from {home.anchor}. If your home folder moved, set "
        f"LIKENESS_ANCHOR to the old folder of anchors, or move its files here. Else restore it. {_reanchor(home)}"
    )


def _reanchor(home: Home) -> str:
    """The command that writes an anchor again; the copies beside it end with its head."""
    lines = copies_path(home).read_text(encoding="utf-8").splitlines() if copies_path(home).exists() else []
    for line in reversed(lines):
        with contextlib.suppress(TypeError, ValueError, KeyError):  # a line that a crash cut
            return f"Run: likeness ledger reanchor {json.loads(line)['digest']}"
    return "Or take the newest HEAD from a git trailer or a tracking run, and run: likeness ledger reanchor HEAD"


def make_folders(home: Home) -> None:
    """Make the folders of a ledger; a backup may leave out empty ones."""
    for folder in (home.path, home.releases, home.staging, home.locks):
        make_private_folder(folder)


def lock_chain(home: Home, seconds: float = -1) -> contextlib.AbstractContextManager[None]:
    """Let one process at a time touch the chain and its anchor. ``TimeoutError`` after so many seconds; -1: never."""
    return file_lock(home.locks / "ledger.lock", seconds)
