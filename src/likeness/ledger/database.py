"""The database under the chain: an SQLite file on this machine, or PostgreSQL for a team. The same tables in both."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, Integer, LargeBinary, MetaData, Table, Text, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.pool import NullPool

from likeness.core.errors import LedgerError
from likeness.core.hashing import sha256_bytes
from likeness.ledger.home import Home

METADATA = MetaData()
RECORDS = Table(
    "records",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
)
VERSIONS = Table(
    "versions",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
)
# In PostgreSQL only: with SQLite released bytes are files beside the database.
RELEASES = Table(
    "releases",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)
_PATIENCE = "60s"  # an append takes milliseconds; whoever holds the lock for a minute hangs


def make_engine(home: Home, file: Path | None = None) -> Engine:
    """Connect lazily to the ledger's database; ``file`` is another SQLite file than the ledger's own.

    Raises:
        LedgerError: the PostgreSQL driver is not installed.
    """
    if home.url is None:
        engine = create_engine(f"sqlite:///{file or home.database}")
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        # No pool: a connection that is kept would hold a server's slot while a stage trains. No parameters in errors.
        return create_engine(
            home.url,
            poolclass=NullPool,
            hide_parameters=True,
            connect_args={"connect_timeout": 10, "application_name": "likeness"},
        )
    except ImportError:
        raise LedgerError(
            f"the ledger is at {home.place}, and the PostgreSQL driver is not installed. Run: pip install "
            "'likeness[postgres]'"
        ) from None


def is_postgres(connection: Connection) -> bool:
    """Whether this is a team's database."""
    return connection.dialect.name == "postgresql"


def lock_database(connection: Connection) -> None:
    """One writer at a time, in all of the team, until the transaction ends. SQLite's file lock has done that already.

    An advisory lock, because it needs no right but to connect; the triggers would refuse a writer that takes none.
    """
    if is_postgres(connection):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_number('ledger')})")


@contextlib.contextmanager
def release_lock(engine: Engine, key: str) -> Iterator[None]:
    """In PostgreSQL: one machine at a time draws the release of that key; dropped with the connection."""
    if engine.dialect.name != "postgresql":
        yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({_number(key)})")
        try:
            yield
        finally:
            with contextlib.suppress(DBAPIError):  # a connection that died has dropped it
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({_number(key)})")


@contextlib.contextmanager
def told_plainly(home: Home) -> Iterator[None]:
    """Turn what the database says into an error for a person; statements and parameters are never quoted.

    Raises:
        LedgerError: saying which database, and what to do.
    """
    try:
        yield
    except UnicodeDecodeError:  # Python's own, where a damaged file puts other bytes into SQLite's message
        raise LedgerError(f"{home.database}: not a readable ledger. Restore it from a backup.") from None
    except DBAPIError as error:
        if home.url is None:
            raise LedgerError(f"{home.database}: not a readable ledger. Restore it from a backup.") from error
        said = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        if isinstance(error, IntegrityError) or "append-only" in said:
            remedy = "Another writer came first without the ledger's lock. Run the command again."
        elif isinstance(error, OperationalError):
            remedy = "Is the server running, and are host, user and password (PGPASSWORD, ~/.pgpass) right?"
        else:
            remedy = "The role needs SELECT and INSERT on the ledger's tables; its owner runs: likeness ledger init"
        raise LedgerError(f"the ledger at {home.place} cannot be used: {said}. {remedy}") from None


def _number(name: str) -> int:
    """A PostgreSQL advisory lock's 64-bit number."""
    return int.from_bytes(bytes.fromhex(sha256_bytes(f"likeness/{name}".encode()))[:8], "big", signed=True)


def _configure_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # Python's own would not begin before CREATE: a migration is one transaction
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA busy_timeout = 60000")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
