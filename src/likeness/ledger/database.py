"""The database under the chain: an SQLite file on this machine, or PostgreSQL for a team."""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.pool import NullPool

from likeness.core.errors import LedgerError
from likeness.core.files import file_lock
from likeness.core.hashing import sha256_bytes
from likeness.core.retry import transient
from likeness.ledger.home import Home

METADATA = MetaData()


def _table(name: str, keys: Mapping[str, Any], values: Mapping[str, Any]) -> Table:
    """A table of this database, from the types of its columns: those of the primary key, and the others."""
    key_columns = [Column(key, kind, primary_key=True, autoincrement=False) for key, kind in keys.items()]
    return Table(name, METADATA, *key_columns, *(Column(key, kind, nullable=False) for key, kind in values.items()))


RECORDS = _table("records", {"seq": Integer}, dict.fromkeys(("time", "kind", "body", "previous", "digest"), Text))
VERSIONS = _table("versions", {"version": Integer}, {"time": Text})
FIRST_NIGHTS = _table("first_nights", {"series": Text, "person": Text}, {"night": Integer})
"""Private: when each person of a series came. See :mod:`likeness.ledger.first_nights`."""
# In PostgreSQL only: with SQLite released bytes are files beside the database.
RELEASES = _table("releases", {"key": Text}, {"data": LargeBinary})
_PATIENCE = 60  # seconds; an append takes milliseconds, and a writer that holds the lock for a minute hangs
_APPEND_ONLY = "the ledger is append-only"
VERSION = 1
"""Version of tables and records. A ledger says which one wrote it; no other version is read."""


def make_engine(home: Home, file: Path | None = None) -> Engine:
    """Connect lazily to the ledger's database.

    Args:
        home: the ledger's folders.
        file: an SQLite file to open instead of the ledger's.

    Raises:
        LedgerError: the PostgreSQL driver is not installed.
    """
    if home.url is None:
        engine = create_engine(f"sqlite:///{file or home.database}", connect_args={"timeout": _PATIENCE})
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return engine
    try:
        # No pool: a pooled connection would hold a slot of the server while a stage trains.
        # No parameters in errors: a row stands in them.
        of_driver = {"connect_timeout": 10, "application_name": "likeness"}
        return create_engine(home.url, poolclass=NullPool, hide_parameters=True, connect_args=of_driver)
    except ImportError:
        remedy = "Run: pip install 'likeness-dp[postgres]'"
        raise LedgerError(f"ledger.url: the ledger at {home.location} needs psycopg. {remedy}") from None


def is_postgres(connection: Connection) -> bool:
    """Tell whether this is a team's database."""
    return connection.dialect.name == "postgresql"


def lock_database(connection: Connection) -> None:
    """Hold off other writers of the team until the transaction ends. With SQLite the file lock has done that.

    It is an advisory lock, which needs no right but to connect. The triggers refuse a writer that takes none.
    """
    if is_postgres(connection):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_number('ledger')})")


@contextlib.contextmanager
def holding(home: Home, name: str, seconds: float = -1) -> Iterator[None]:
    """Hold a lock of the ledger: a file's on this machine, and among the machines of a team one of its database.

    It ends with this process: the system drops the one, and PostgreSQL the other with its connection.

    Args:
        home: the ledger's folders.
        name: of the lock.
        seconds: to wait for another process; -1 waits for ever.

    Raises:
        TimeoutError: others still hold it; it names them.
        LedgerError: the team's database cannot be used, or a connection pooler stands before it.
    """
    with file_lock(home.locks / f"{name}.lock", seconds), contextlib.ExitStack() as connected:
        if home.url is not None:
            with database_errors(home):  # errors of the caller pass as they are
                connection = connected.enter_context(make_engine(home).connect())
                _refuse_pooler(connection, home)
                try:
                    # A machine that lost its power does not close its connections.
                    connection.exec_driver_sql("SET tcp_keepalives_idle = 60")
                    milliseconds = max(1, round(1000 * seconds)) if seconds >= 0 else 0
                    connection.exec_driver_sql(f"SET lock_timeout = {milliseconds}")
                    connection.exec_driver_sql(f"SELECT pg_advisory_lock({_number(name)})")
                except OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) == "55P03":
                        connection.rollback()
                        raise TimeoutError(_backends_with(connection, _number(name))) from None
                    raise
                connection.commit()  # the lock stays with the connection, and no transaction with it
        yield


def _refuse_pooler(connection: Connection, home: Home) -> None:
    """Refuse a pooler: it may give a session's locks to others. It greets without knowing which process will serve."""
    driver: Any = connection.connection.driver_connection
    if driver.info.backend_pid != connection.exec_driver_sql("SELECT pg_backend_pid()").scalar():
        raise LedgerError(
            f"a connection pooler, such as pgbouncer, stands before the ledger at {home.location}. Two machines would "
            "hold one lock there. Nothing was spent. Give ledger.url host and port of the PostgreSQL server itself."
        )


def _backends_with(connection: Connection, number: int) -> str:
    """Name the sessions of the server that hold an advisory lock, and how their owner ends them."""
    sessions = "SELECT pid, client_addr FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' "
    held = "AND granted AND (classid::bigint << 32) + objid::bigint = %s"
    rows = connection.exec_driver_sql(sessions + held, (number,)).all()
    names = [f"the session of {address or 'a socket'}: SELECT pg_terminate_backend({pid})" for pid, address in rows]
    return ", ".join(names) or "its process"


@contextlib.contextmanager
def database_errors(home: Home) -> Iterator[None]:
    """Turn errors of the database into errors for a person, without statements and parameters.

    Raises:
        LedgerError: naming database and remedy, by the code of the error.
    """
    try:
        yield
    except UnicodeDecodeError:  # Python's own, where a damaged file puts other bytes into SQLite's message
        raise LedgerError(f"{home.database} {_DAMAGED}") from None
    except DBAPIError as error:
        inner: Any = error.orig
        if home.url is None:
            code = getattr(inner, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # the rest of it is a detail
            raise LedgerError(f"{home.database} {_OF_SQLITE.get(code, _DAMAGED)}") from error
        reason = (str(inner).strip().splitlines() or [type(inner).__name__])[0]
        remedy = _OF_POSTGRES.get(getattr(inner, "sqlstate", None) or "")
        if isinstance(error, IntegrityError) or "append-only" in reason:
            remedy = _UNLOCKED
        elif remedy is None and isinstance(error, OperationalError):
            remedy = "Is the server running, and are host, user and password (PGPASSWORD, ~/.pgpass) right?"
        elif remedy is None:
            remedy = "The role needs SELECT and INSERT on the ledger's tables. Their owner runs: likeness ledger init"
        refusal = LedgerError(f"the ledger at {home.location} cannot be used: {reason}. {remedy}")
        raise transient(refusal, inner) from None


_DAMAGED = "is not a readable ledger. Restore it from a backup. Or move it away, and run: likeness ledger recover"
_UNLOCKED = "Another program wrote without the ledger's lock. Run the command again."
_BUSY = "is locked by another program, such as a backup or a shell of SQLite. End it, and run the command again."
_REFUSED = (
    "cannot be opened to read and write. The ledger is as it was. Give this user both rights to the file and its "
    "folder, or mount the disk to write. Then run the command again."
)
_FULL = "Make room, and run the command again."
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: f"cannot grow: the disk is full. The ledger is as it was. {_FULL}",
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY), _REFUSED),
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk failed. Mount or repair it, and run the command again.",
    sqlite3.SQLITE_CONSTRAINT: f"was changed meanwhile. {_UNLOCKED}",
}
_OF_POSTGRES = {
    "25006": "This is a replica, or the database is read-only. Name the primary server in ledger.url.",
    "53100": f"The disk of the server is full. {_FULL}",
    "53300": "All connections of the server are taken. Run the command again, or raise max_connections.",
    "55P03": "Another program holds the ledger's lock. End it, and run the command again.",
}


def _number(name: str) -> int:
    """A PostgreSQL advisory lock's 64-bit number."""
    return int.from_bytes(bytes.fromhex(sha256_bytes(f"likeness/{name}".encode()))[:8], "big", signed=True)


def _configure_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # Python's own would not begin before CREATE: all tables are one transaction
    connection.execute("PRAGMA synchronous = EXTRA")


def version_of(connection: Connection) -> int:
    """Version of the tables; 0 without a ledger.

    Raises:
        LedgerError: the tables state none.
    """
    tables = set(inspect(connection).get_table_names())
    if RECORDS.name not in tables:
        return 0
    version = connection.execute(select(func.max(VERSIONS.c.version))).scalar() if VERSIONS.name in tables else None
    if not isinstance(version, int):
        raise LedgerError("the ledger's table of versions is damaged. Restore the ledger from a backup.")
    return version


def copy_of(connection: Connection) -> str:
    """Name this copy of a team's database; SQLite: empty. A dump makes all anew, and a backup another timeline."""
    if not is_postgres(connection):
        return ""
    made = "SELECT d.oid, r.tableoid, r.xmin, t.timeline_id, s.system_identifier FROM pg_database d, records r, "
    functions = "pg_control_checkpoint() t, pg_control_system() s WHERE d.datname = current_database() AND r.seq = 1"
    return " ".join(map(str, connection.exec_driver_sql(made + functions).one()))


def check_version(connection: Connection, location: str) -> None:
    """Refuse tables of another version.

    Raises:
        LedgerError: another version of Likeness wrote them.
    """
    version = version_of(connection)
    if version != VERSION:
        other = f"has tables of version {version}, not {VERSION}. Use the Likeness that wrote it."
        raise LedgerError(f"the ledger at {location} {other if version else _DAMAGED}")


def create_tables(connection: Connection) -> None:
    """Make the tables of a new ledger: no updates, no deletions, and each record follows the last one.

    SQLite's INSERT OR REPLACE deletes without the trigger for deletions; the order refuses it. Of two writers that read
    one head it refuses the second. So the chain cannot fork, with or without a lock.
    """
    for table in (RECORDS, VERSIONS, FIRST_NIGHTS):
        table.create(connection)
    if is_postgres(connection):
        RELEASES.create(connection)
        connection.exec_driver_sql(
            "CREATE FUNCTION likeness_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_APPEND_ONLY}'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE FUNCTION likeness_in_order() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "DECLARE last_seq integer; last_digest text; BEGIN "
            "SELECT seq, digest INTO last_seq, last_digest FROM records ORDER BY seq DESC LIMIT 1; "
            "IF NEW.seq <> COALESCE(last_seq, 0) + 1 OR NEW.previous <> COALESCE(last_digest, repeat('0', 64)) "
            "THEN RAISE EXCEPTION 'the ledger is append-only: not the next record'; END IF; RETURN NEW; END $$"
        )
        each_row = "CREATE TRIGGER records_in_order BEFORE INSERT ON records FOR EACH ROW"
        connection.exec_driver_sql(f"{each_row} EXECUTE FUNCTION likeness_in_order()")
        connection.exec_driver_sql("ALTER TABLE records ENABLE ALWAYS TRIGGER records_in_order")
        _append_only(connection, RELEASES.name)
    else:
        connection.exec_driver_sql(
            "CREATE TRIGGER records_in_order BEFORE INSERT ON records "
            "WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records) OR NEW.previous <> "
            "coalesce((SELECT digest FROM records ORDER BY seq DESC LIMIT 1), printf('%064d', 0)) "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: not the next record'); END"
        )
    for table in (RECORDS, VERSIONS, FIRST_NIGHTS):
        _append_only(connection, table.name)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    connection.execute(insert(VERSIONS), {"version": VERSION, "time": now})


def _append_only(connection: Connection, table: str) -> None:
    if is_postgres(connection):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION likeness_append_only()"
        )
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only")
        return
    refuse = f"BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END"
    for verb in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {refuse}")
