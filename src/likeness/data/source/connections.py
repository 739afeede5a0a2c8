"""DuckDB and Spark as the few words of SQLAlchemy that a database needs here. Both read only.

Where Spark runs is part of its own configuration: ``SPARK_REMOTE``, or ``spark.master`` in ``spark-defaults.conf``.
Else it runs in this computer.
"""

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from likeness.core.errors import DataError

# Its page at port 4040 and its event logs show how many rows each step has, and its messages may quote a cell. Its
# files between two steps hold rows, and everybody may read them.
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.io.encryption.enabled": "true",
}
# In this computer alone nobody else may connect: whoever does can fetch parts of rows.
_ADDRESSES, _HERE = ("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1"
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # of Python, which quote a cell that has no number
_PARTS = 64  # of an answer at most: each gives a sum as wide as a release, and this process holds all of them
# What texts, numbers, names and times in SQL mean: also where a configuration says otherwise.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
}


_SENT = {"string": "VALIDATE_UTF8({0})", "timestamp": "CAST({0} AS TIMESTAMP_NTZ)"}
"""How cells of a type are sent. Else Python would show a moment in its own zone, and other letters for bad bytes."""


class _Connection(ABC):
    """A connection with one answer at a time.

    Attributes:
        cursor: has the ``description`` of the answer: of each column its name and type.
    """

    cursor: Any

    def __enter__(self) -> Any:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Close what is open."""

    @abstractmethod
    def _ask(self, statement: str) -> None:
        """Ask a statement."""

    @abstractmethod
    def _all(self) -> Sequence[Sequence[Any]]:
        """All rows of the answer."""

    @abstractmethod
    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        """The next rows of the answer."""

    def exec_driver_sql(self, statement: str) -> Any:
        """Ask a statement."""
        self._ask(statement)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the answer."""
        return [tuple(row) for row in self._all()]

    def execution_options(self, **_: object) -> Any:
        """Nothing is to be set."""
        return self

    def keys(self) -> list[str]:
        """Names of the columns of the answer."""
        return [column[0] for column in self.cursor.description]

    def partitions(self, count: int) -> Iterator[list[tuple[Any, ...]]]:
        """All rows, by so many."""
        while rows := [tuple(row) for row in self._next(count)]:
            yield rows


class DuckConnection(_Connection):
    """A DuckDB file. No other file is read."""

    def __init__(self, path: Path) -> None:
        import duckdb

        self.cursor = duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"})

    def __exit__(self, *_: object) -> None:
        self.cursor.close()

    def _ask(self, statement: str) -> None:
        self.cursor.execute(statement)

    def _all(self) -> Sequence[Sequence[Any]]:
        return list(self.cursor.fetchall())

    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        return list(self.cursor.fetchmany(count))


class SparkConnection(_Connection):
    """A session of Spark. Spark itself goes on until the process ends, because it takes seconds to start.

    Raises:
        DataError: Java is not installed, or Spark does not start.
        ImportError: pyspark is not installed.
    """

    def __init__(self) -> None:
        self._session = _spark()
        for key, value in _MEANING.items():
            self._session.conf.set(key, value)

    def __exit__(self, *_: object) -> None:
        pass

    def _ask(self, statement: str) -> None:
        # In parentheses a statement can only be a query, which writes nothing.
        self._answer = self._session.sql(f"SELECT * FROM (\n{statement}\n)")  # noqa: S608
        fields = [(field.name, field.dataType.simpleString()) for field in self._answer.schema.fields]
        self.cursor = SimpleNamespace(description=fields)
        self._rows: Iterator[Any] | None = None

    def _all(self) -> Sequence[Sequence[Any]]:
        return list(self._answer.collect())

    def in_parts(self, statement: str, work: Any, fields: str) -> list[tuple[Any, ...]]:
        """What a function makes of each part of an answer, in Python beside the executors.

        Args:
            statement: the statement.
            work: from batches of Arrow to batches of Arrow. Spark sends it by cloudpickle.
            fields: names and types of what it gives, in Spark's words.
        """
        self._ask(statement)
        return [tuple(row) for row in self._answer.coalesce(_PARTS).mapInArrow(work, fields).collect()]

    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        if self._rows is None:
            kinds = [kind for _, kind in self.cursor.description]
            answer = self._answer.toDF(*(f"c{place}" for place in range(len(kinds))))
            answer = answer.selectExpr(
                *(_SENT.get(kind.split()[0], "{0}").format(f"c{place}") for place, kind in enumerate(kinds))
            )
            zoned = [kind == "timestamp" for kind in kinds]
            self._rows = (
                [cell.replace(tzinfo=UTC) if moment and cell else cell for moment, cell in zip(zoned, row, strict=True)]
                for row in answer.toLocalIterator()
            )
        return list(islice(self._rows, count))


def _spark() -> Any:
    """A session that nobody else changes."""
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    remote = "SPARK_REMOTE" in os.environ
    if not (remote or "JAVA_HOME" in os.environ or shutil.which("java")):
        raise DataError("Spark: Java is not installed. Install Java 17 or newer, or set JAVA_HOME.")
    try:
        if (active := SparkSession.getActiveSession()) is not None:
            return active if remote else active.newSession()
        builder = SparkSession.builder.appName("likeness")
        for key, value in ({} if remote else _QUIET).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        if not remote and session.sparkContext.master.startswith("local"):  # it is known only now
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            if any(session.conf.get(key, "") != _HERE for key in _ADDRESSES):
                session.stop()
                for key in _ADDRESSES:
                    builder = builder.config(key, _HERE)
                session = builder.getOrCreate()
            session.sparkContext.pythonExec = os.environ["PYSPARK_PYTHON"]
        return session
    except Exception as error:  # of Java, of the network, of a configuration
        fault = type(error).__name__
    raise DataError(
        f"Spark: it does not start ({fault}). Check JAVA_HOME, SPARK_HOME, SPARK_REMOTE and spark-defaults.conf."
    )
