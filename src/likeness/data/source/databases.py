"""Databases as sources: one query, read only, in chunks, each cell typed by itself.

A database has no order of rows, so their content decides it: equal rows always give equal releases. No setting holds a
password. Messages quote a driver only while connecting, where no row can be in its text.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import numpy as np
import pandas as pd
from sqlalchemy import Connection, CursorResult, NullPool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from likeness.core.errors import DataError, LikenessError
from likeness.core.paths import ProjectPaths
from likeness.core.retry import transient
from likeness.core.text import normal_text
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import cells_of, texts_of, type_table
from likeness.data.source.contribution_bounding import people_of
from likeness.data.source.row_digests import SourceDigest, leading, row_hashes

_ROWS = 16_384  # rows of a chunk
_SINGLE = ("float", "700")  # float32, as DuckDB names it, and its number in PostgreSQL
_TABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)
# Read only, and with the meaning of texts and numbers in SQL that PostgreSQL has by default. Its compiler takes minutes
# for a long statement.
_SESSION = "-c default_transaction_read_only=on -c standard_conforming_strings=on -c extra_float_digits=1 -c jit=off"
_STATES = {"42703": "column", "42P01": "table"}
_UNKNOWN = {  # in the words of SQLite and DuckDB
    "column": r'^no such column: (.+)|^Binder Error: Referenced column "([^"]+)" not found',
    "table": r"^no such table: (.+)|^Catalog Error: Table with name (\S+) does not exist",
}
_ROLE = "Run the query there, with a role that may only read."
T = TypeVar("T")


class _DuckConnection:
    """A DuckDB file, read only, as the few words of SQLAlchemy that a database needs here. No other file is read.

    Attributes:
        cursor: has the ``description`` of the answer: of each column its name and type.
    """

    def __init__(self, path: Path) -> None:
        import duckdb

        private = ProjectPaths.private if ProjectPaths.private.is_dir() else None
        self._spilled = TemporaryDirectory(dir=private)  # DuckDB lets everybody read rows that it spills
        config: Any = {"enable_external_access": "false", "temp_directory": self._spilled.name}
        self.cursor = duckdb.connect(str(path), read_only=True, config=config)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.cursor.close()
        self._spilled.cleanup()

    def exec_driver_sql(self, statement: str) -> Any:
        """Ask a statement."""
        self.cursor.execute(statement)
        return self

    def execution_options(self, **_: object) -> Any:
        """Nothing is to be set."""
        return self

    def keys(self) -> list[str]:
        """Names of the columns of the answer."""
        return [column[0] for column in self.cursor.description]

    def partitions(self, count: int) -> Iterator[list[tuple[Any, ...]]]:
        """All rows, by so many."""
        while rows := self.cursor.fetchmany(count):
            yield rows


@dataclass(frozen=True)
class Database:
    """A database and a query.

    Attributes:
        url: ``sqlite:///people.db`` or ``postgresql+psycopg://user@host/database``; never with a password.
        query: one ``SELECT``, or the name of a table.
        key: of params.yaml where the query stands.
    """

    url: str
    query: str
    key: str = "ingest.query"

    @property
    def name(self) -> str:
        """Name for messages, without user and host."""
        return Path(urlsplit(self.url).path).name

    @property
    def dialect(self) -> str:
        """The name of the database's SQL: ``postgres``, ``duckdb`` or ``sqlite``."""
        return "postgres" if self.url.startswith("postgres") else self.url.partition(":")[0]

    @property
    def statement(self) -> str:
        """The query as SQL."""
        query = self.query.strip()
        # No injection: the author of params.yaml may write any query, and the session reads only.
        return f"SELECT * FROM {query}" if _TABLE.fullmatch(query) else query  # noqa: S608

    def columns(self) -> list[str]:
        """Names of the columns, without fetching a row.

        Raises:
            DataError: the database cannot be reached, or refuses the query.
        """
        return self._describe_answer(_names)

    def read_first_rows(self, count: int) -> list[tuple[Any, ...]]:
        """The first ``count`` rows of the answer.

        Raises:
            DataError: as :meth:`columns`.
        """
        return self._answer(lambda result: list(zip(*next(_columns(result, count), ()), strict=True)))

    def read(
        self,
        schema: Schema,
        split_column: str | None = None,
        person_column: str | None = None,
        source: SourceDigest | None = None,
    ) -> "tuple[pd.DataFrame, pd.Series[str] | None, pd.Series[str] | None]":
        """The typed table, and the columns of split and person as text where they are named.

        Rows are in the order of a hash of their content, then of split and person. ``source`` takes all columns.

        Raises:
            DataError: a column is missing, a value breaks the schema's rule for its column, or the database refuses.
        """
        others = [name for name in (split_column, person_column) if name is not None]
        wanted = list(dict.fromkeys([*schema.names, *others]))

        def chunk(raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
            extra = pd.DataFrame(index=raw.index)
            if split_column is not None:
                extra[split_column] = texts_of(raw[split_column])
            if person_column is not None:
                extra[person_column] = people_of(raw[person_column], self.name)
            return type_table(raw, schema, self.name), extra

        chunks = self._answer(lambda result: [chunk(raw) for raw in self._chunks(result, wanted, source)])
        table, extra = (pd.concat(parts, ignore_index=True) for parts in zip(*chunks, strict=True))
        order = np.arange(len(table)) if not others else extra.sort_values(others, kind="stable").index.to_numpy()
        order = order[np.argsort(leading(row_hashes(table, schema))[order], kind="stable")]
        table, extra = table.loc[order].reset_index(drop=True), extra.loc[order].reset_index(drop=True)
        split, people = (None if name is None else extra[name] for name in (split_column, person_column))
        return table, split, people

    def fingerprint(self, key: bytes) -> str:
        """Keyed hash of the rows in any order, with all columns of single values; empty without rows.

        Args:
            key: 32 secret bytes of the ledger.

        Raises:
            DataError: as :meth:`columns`.
        """
        source = SourceDigest()

        def add_rows(result: CursorResult[Any]) -> None:
            for _ in self._chunks(result, [], source):
                pass

        self._answer(add_rows)
        return source.digest(key)

    def answers(self, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """The whole answer of each statement. With PostgreSQL all of them see the rows of one moment.

        Raises:
            DataError: as :meth:`columns`.
        """

        def run_all(connection: Connection) -> list[list[tuple[Any, ...]]]:
            if self.dialect == "postgres":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            connection = connection.execution_options(no_parameters=True)
            return [[tuple(row) for row in connection.exec_driver_sql(sql).fetchall()] for sql in statements]

        return self._use_connection(run_all)

    def types(self) -> dict[str, tuple[str, str]]:
        """Each column's name and type as the database has them, by the normal form of the name.

        Raises:
            DataError: as :meth:`columns`.
        """

        def name_types(result: CursorResult[Any]) -> dict[str, tuple[str, str]]:
            described = result.cursor.description if result.cursor is not None else ()
            codes = [str(column[1]) for column in described]
            if self.dialect == "postgres":
                from psycopg import postgres

                types = [postgres.types.get(int(str(column[1]))) for column in described]
                codes = [
                    kind.name if kind is not None and kind.oid == column[1] else ""  # that of a list names its elements
                    for kind, column in zip(types, described, strict=True)
                ]
            return {
                name: (str(key), code) for name, key, code in zip(_names(result), result.keys(), codes, strict=True)
            }

        return self._describe_answer(name_types)

    def _describe_answer(self, use: Callable[[CursorResult[Any]], T]) -> T:
        """Apply a function to the answer without its rows: PostgreSQL would send the first one with the names."""
        # No injection: it is the query of params.yaml.
        empty = f"SELECT * FROM (\n{self.statement}\n) AS likeness_source LIMIT 0"  # noqa: S608
        return self._answer(use, empty if self.dialect == "postgres" else "")

    def _answer(self, use: Callable[[CursorResult[Any]], T], statement: str = "") -> T:
        """Apply a function to the answer of the query, or of another statement."""

        def execute(connection: Connection) -> T:
            options = {"stream_results": True, "max_row_buffer": _ROWS, "no_parameters": True}
            return use(connection.execution_options(**options).exec_driver_sql(statement or self.statement))

        return self._use_connection(execute)

    def _use_connection(self, use: Callable[[Connection], T]) -> T:
        """Apply a function to a connection; a driver's error becomes a DataError without values."""
        with self._open_connection() as connection:
            try:
                return use(connection)
            except (LikenessError, MemoryError):
                raise
            except Exception as error:  # each driver has errors of its own
                cause = getattr(error, "orig", None) or error
                refusal = DataError(
                    f"{self.name}: the database refuses {self.key}, or a row of its answer ({type(cause).__name__}). "
                    f"{_reason(cause, self.query) or _ROLE}"
                )
                transient(refusal, cause)
        # Raised outside the except block: the driver's error may quote a row, and must not be its cause.
        raise refusal

    @contextmanager
    def _open_connection(self) -> Iterator[Connection]:
        connection: Connection | None = None
        fault, cause = "", None
        try:
            connection = self._connection()
        except ImportError:
            extra = "duckdb" if self.dialect == "duckdb" else "postgres"
            fault = f"the database's driver is not installed. Run: pip install 'likeness-dp[{extra}]'"
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None)
            reason = (str(cause or "").strip().splitlines() or [type(error).__name__])[0]
            remedy = "Check the server, and host, user and password (PGPASSWORD, ~/.pgpass, PGSERVICE)."
            fault = f"cannot be reached: {reason}. {remedy}"
        if connection is None:
            raise transient(DataError(f"{self.name}: {fault}"), cause)
        with connection:
            yield connection

    def _connection(self) -> Any:
        return _DuckConnection(self._file()) if self.dialect == "duckdb" else self._engine().connect()

    def _file(self) -> Path:
        path = Path(self.url.partition(":///")[2])
        if not path.is_file():
            raise DataError(f"{path.name}: no such file. Give the path of the database in params.yaml, ingest.source.")
        return path

    def _engine(self) -> Any:
        if self.dialect == "sqlite":
            # Read only: else SQLite would make a missing database, and a query could write.
            address = f"file:{quote(str(self._file().resolve()))}?mode=ro"

            def connect() -> sqlite3.Connection:
                connection = sqlite3.connect(address, uri=True)
                connection.execute("PRAGMA temp_store = MEMORY")  # else rows that it sorts lie in a file
                return connection

            return create_engine("sqlite://", creator=connect, poolclass=NullPool)
        options = f"{os.environ.get('PGOPTIONS', '')} {_SESSION}".strip()  # of one key the last value counts
        read_only = {"options": options, "connect_timeout": 10, "client_encoding": "utf8"}
        return create_engine(self.url, poolclass=NullPool, hide_parameters=True, connect_args=read_only)

    def _chunks(
        self, result: CursorResult[Any], wanted: Sequence[str], source: SourceDigest | None
    ) -> Iterator[pd.DataFrame]:
        """Wanted columns as raw cells; one empty chunk without rows."""
        names, empty = _names(result), True
        for cells in _columns(result, _ROWS):
            empty = False
            yield cells_of(names, cells, wanted, self.name, source, self.key)
        if empty:
            yield cells_of(names, [[] for _ in names], wanted, self.name, key=self.key)


def _reason(cause: Any, query: str) -> str:
    """Say what a driver's error means, with the remedy; empty for most. It quotes a name of the query only."""
    state = getattr(cause, "sqlstate", None)
    if state == "57014":
        return (
            "The server ended the query: by its statement_timeout, or a person did. Raise it for this role, or set "
            "PGOPTIONS='-c statement_timeout=0'."
        )
    if state is None:
        matches = {kind: re.search(pattern, str(cause)) for kind, pattern in _UNKNOWN.items()}
    elif state in _STATES and cause.diag.statement_position:  # else a function asked, and the name may be a value
        matches = {_STATES[state]: re.search(r'["»]([^"«]+)["«]|(\w+\.\w+)', cause.diag.message_primary or "")}
    else:
        return ""
    for kind, match in matches.items():
        name = (match[1] or match[2]) if match else ""
        if name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE):
            return f"It has no {kind} '{name}'. Correct the query."
    return ""


def _columns(result: CursorResult[Any], count: int) -> Iterator[list[Sequence[Any]]]:
    """The columns of so many rows at a time. A number of 32 bits stays one: its text has fewer digits."""
    described = result.cursor.description if result.cursor is not None else ()
    short = [str(column[1]).lower() in _SINGLE for column in described]
    for rows in result.partitions(count):
        yield [
            [cell if cell is None else np.float32(cell) for cell in column] if is_short else column
            for is_short, column in zip(short, zip(*rows, strict=True), strict=True)
        ]


def _names(result: CursorResult[Any]) -> list[str]:
    return [normal_text(str(name)) for name in result.keys()]  # noqa: SIM118 (it is no mapping)
