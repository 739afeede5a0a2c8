"""Rows in Spark as the driver sees them: integers of its executors, added here, and never a row."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.hashing import json_value, sha256_json
from likeness.core.text import normal_text
from likeness.data.encoding.layout import encoding_digest
from likeness.data.source.cells import check_names
from likeness.data.source.databases import Database
from likeness.data.source.row_digests import TypedDigest
from likeness.pipeline.counts import ANSWERS
from likeness_spark.executor import LIMBS, NAME, OWNER, CountTables, Pass, count, no_tables, spread, versions

if TYPE_CHECKING:
    from likeness.features.cells import Cells
    from likeness.release.partition_selection import PartitionQuery
    from likeness.release.query import Query

_ANSWER = "part int, cells binary, fault string"
# The page and the event logs show numbers of rows of each step, and messages may quote a cell. Files between two steps
# hold rows.
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.io.encryption.enabled": "true",
}
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # of Python, which quote a cell
_ENCRYPTED = "spark.io.encryption.enabled"
_ON_A_NETWORK = ("spark.authenticate", "spark.network.crypto.enabled")
_ONE_PROCESS = re.compile(r"local(\[[^\]]*\])?")  # not local-cluster, whose processes use the network
_FATES = (
    "Nothing more was spent on this query",
    "Nothing was released, and the cost of this query stays on record",
)


@contextmanager
def _silence() -> Iterator[None]:
    """Let what starts meanwhile write to nowhere: Java's process keeps the streams that it starts with."""
    held = [os.dup(stream) for stream in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        yield
    finally:
        for stream, before in zip((1, 2), held, strict=True):
            os.dup2(before, stream)
            os.close(before)
        os.close(nowhere)


def session_of(url: str) -> Any:
    """The running session, or a new one of the cluster at a URL ``spark://host:port``.

    Raises:
        DataError: Spark does not start, or would write or send rows without encryption.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise DataError(f"{NAME}: Spark Connect cannot be checked for encryption. Set ingest.source: spark://host:port")
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    session = SparkSession.getActiveSession()
    if session is None:
        builder: Any = SparkSession.builder
        for key, value in _QUIET.items():
            builder = builder.config(key, value)
        try:
            with _silence():
                session = (builder.master(url) if url.partition("://")[2] else builder).getOrCreate()
        except Exception:  # its text may name whatever a configuration holds
            session = None
    if session is None:
        raise DataError(f"{NAME}: does not start. Check Java (17 or newer), and host and port in ingest.source.")
    check_encrypted(session.sparkContext)
    session.sparkContext.setLogLevel("OFF")
    return session


def check_encrypted(context: Any) -> None:
    """Refuse a Spark that writes or sends rows as they are. One process of mode ``local`` has no network.

    Raises:
        DataError: which names the settings.
    """
    needed = (_ENCRYPTED,) if _ONE_PROCESS.fullmatch(context.master) else (_ENCRYPTED, *_ON_A_NETWORK)
    settings = context.getConf()
    if off := [key for key in needed if settings.get(key, "false").strip().lower() != "true"]:
        raise DataError(
            f"{NAME}: {' and '.join(off)} must be true, and is not: rows lie on its disks, or cross its network. "
            "Set that in spark-defaults.conf, with spark.authenticate.secret, and start Spark again."
        )


@dataclass(frozen=True)
class Sums:
    """Some rows, as a number and a sum of their hashes. Private."""

    count: int
    total: int


@dataclass(frozen=True)
class SparkRows:
    """The rows of a query, which stay in Spark.

    Attributes:
        database: URL and query.
        work: the pass, without tables.
    """

    database: Database
    work: Pass

    def frame(self) -> Any:
        """The columns that are read. No row is read yet.

        Raises:
            DataError: Spark refuses the query, or a column is missing.
        """
        session = session_of(self.database.url)
        frame = _or_refused(lambda: session.sql(self.database.statement))
        names = [normal_text(name) for name in frame.columns]
        check_names(names, self.work.column_names, NAME, f"{self.database.key} must give")
        return frame.toDF(*names).select(*("`" + name.replace("`", "``") + "`" for name in self.work.column_names))

    def zoned_columns(self) -> list[str]:
        """The columns of moments whose text depends on the zone of a session."""
        return [name for name, kind in self.frame().dtypes if kind == "timestamp"]

    def sums(
        self,
        count_tables: CountTables = no_tables,
        tables: "Sequence[Sequence[Cells]]" = (),
        groups: int = 1,
        by_class: bool = False,
    ) -> Any:
        """The training rows and the test rows, and the counts of the training rows in some tables.

        Raises:
            DataError: a cell breaks a rule of the schema, an executor fails or has another version, or Spark refuses.
        """
        frame, work = self.frame(), replace(self.work, tables=tables, groups=groups, by_class=by_class)
        if work.is_spread:
            wide = deepcopy(frame.schema).add(OWNER, "binary")
            partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
            # With a number of partitions no plan of Spark takes a person apart.
            frame = frame.mapInArrow(partial(spread, work), wide).repartition(partitions, OWNER)
        answer = _or_refused(lambda: frame.mapInArrow(partial(count, work, count_tables), _ANSWER).collect())
        if faults := sorted({row.fault for row in answer if row.fault}):
            raise DataError("\n".join(faults))
        sizes = [int(np.prod([axis.size for axis in table], dtype=np.int64)) for table in tables]
        counts = [np.zeros((groups, size), np.int64) for size in sizes]
        numbers = [[0] * (1 + LIMBS), [0] * (1 + LIMBS)]
        for row in answer:
            if row.part:
                counts[row.part - 1] += np.frombuffer(row.cells, "<i8").reshape(groups, -1)
                continue
            for held, more in zip(numbers, np.frombuffer(row.cells, "<u8").reshape(2, -1).tolist(), strict=True):
                held[:] = [left + right for left, right in zip(held, more, strict=True)]
        return (*(Sums(held[0], _total(held[1:])) for held in numbers), counts)

    def digest(self, key: bytes, *sums: Sums) -> str:
        """The keyed digest of rows in any order."""
        digest = TypedDigest(self.work.written, ordered=False)
        for some in sums:
            digest.put(some.total, some.count)
        return digest.digest(key)

    def digest_of_pass(self, tables: "Sequence[Sequence[Cells]]", by_class: bool) -> str:
        """SHA-256 of all that decides what is counted."""
        ingest, schema = json_value(self.work.params.ingest), encoding_digest(self.work.written)
        return sha256_json([ingest, schema, versions(), [json_value(list(axes)) for axes in tables], by_class])


def _or_refused(ask: Callable[[], Any]) -> Any:
    """The answer of Spark. An error of Spark may quote a cell, so its type alone goes on."""
    try:
        return ask()
    except Exception as error:
        kind = type(error).__name__
    remedy = "Check the query there, and that all executors have this version of Likeness."
    raise DataError(f"{NAME}: refuses the pass over ingest.query ({kind}). {remedy}")


def _total(limbs: Sequence[int]) -> int:
    """The sum of hashes from the sums of their numbers of 32 bits."""
    return sum(limb << (32 * index) for index, limb in enumerate(reversed(limbs)))


def _not_counted(column: str) -> DataError:
    return DataError(f"{NAME}: column '{column}': private categories are not counted there. List them in the schema.")


@dataclass(frozen=True)
class SparkReader:
    """The training rows in Spark, for the door: a :class:`likeness.release.sums.backends.CountReader`.

    Attributes:
        rows: in Spark.
        expected: digest of the rows that the cost is for.
        key: of the ledger.
    """

    rows: SparkRows
    expected: str
    key: bytes
    is_per_person = False

    @property
    def max_rows(self) -> int:
        """The most rows of a person that are counted; 0: a row is a person."""
        unit = self.rows.work.params.ingest.unit
        return 0 if unit is None else unit.max_rows

    def counts(
        self, tables: "Sequence[Sequence[Cells]]", num_groups: int, by_class: bool
    ) -> "tuple[list[NDArray[np.int64]], int]":
        """The counts, if the same pass saw the rows that the cost is for.

        Nothing is asked if this process has the answer.

        Raises:
            DataError: the rows are others, or Spark refuses.
        """
        return self._counts(tables, num_groups, by_class, _FATES[1])

    def _counts(
        self, tables: "Sequence[Sequence[Cells]]", num_groups: int, by_class: bool, fate: str
    ) -> "tuple[list[NDArray[np.int64]], int]":
        from likeness_spark.tables import count_tables  # here: fingerprint and ingest count no cells

        question = self, tuple(map(tuple, tables)), num_groups, by_class
        for question_before, answer in ANSWERS:
            if question_before == question:
                counts, records = answer
                return counts, records
        train, _, counts = self.rows.sums(count_tables, tables, num_groups, by_class)
        if self.rows.digest(self.key, train) != self.expected:
            raise DataError(
                f"{NAME}: the rows changed since they were ingested. {fate}. Name a table that nobody writes to during "
                "a run, such as a snapshot, in ingest.query. Then run: likeness run"
            )
        ANSWERS.append((question, (counts, train.count)))
        return counts, train.count

    def texts(self, column: str) -> tuple[dict[str, int], int]:
        """Refuse: the backend says before that private categories have to come."""
        raise _not_counted(column)

    def texts_of(self, column: str, hashes: Sequence[str]) -> dict[str, str]:
        """Refuse, as :meth:`texts`."""
        raise _not_counted(column)

    def check(self, query: "Query | PartitionQuery") -> None:
        """Refuse rows that changed, before their cost is on record. The same pass counts for the query.

        Raises:
            DataError: they changed, or Spark refuses.
        """
        from likeness.release.partition_selection import PartitionQuery  # here: fingerprint asks nothing
        from likeness.release.sums.backends import question_of

        if isinstance(query, PartitionQuery):
            raise _not_counted(query.column)
        self._counts(*question_of(query, self), _FATES[0])

    def backend(self, tables: "Sequence[Sequence[Cells]]", by_class: bool) -> str:
        """Spark, and SHA-256 of the pass."""
        return f"spark {self.rows.digest_of_pass(tables, by_class)}"

    def backend_of_texts(self, column: str) -> str:
        """Refuse, as :meth:`texts`."""
        raise _not_counted(column)
