"""Rows that stay in Spark, and are summed there: each executor sums its part by the door's own function.

Python beside the executors types, encodes and sums the rows of its part as this process would. Exact integers come
back, with the number of rows and the sums of the limbs of their hashes. Spark sends the function, with the query and
the public schema, by cloudpickle. No file of ours is one.
"""

import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from likeness import __version__
from likeness.core.errors import DataError, ReleaseError
from likeness.core.format import RECIPE
from likeness.core.hashing import sha256_bytes
from likeness.data.schema.schema import Schema
from likeness.data.warehouse.statements import LIMBS
from likeness.pipeline.counted_rows import CHARGED, UNSPENT, CountedRows
from likeness.pipeline.private_rows import encoded_chunks
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.over_parts import Partial, check_splits

if TYPE_CHECKING:
    from likeness.release.sums.over_parts import Read

_SOFTWARE = ("numpy", "pandas", "pyarrow", "scipy", "torch")
_OTHER, _FAILED = 1, 2
_FAULTS = {
    _OTHER: f"an executor has another version of Python, Likeness, {', '.join(_SOFTWARE)}. Install the same",
    _FAILED: "the Python of an executor cannot encode and sum its rows. Give it memory, and what is installed here",
}


@dataclass(frozen=True)
class SummedRows(CountedRows):
    """The training rows in Spark, for the door: a :class:`likeness.release.sums.over_parts.SumBackend`."""

    def partials(self, query: Query, work: "Callable[[tuple[Query, Read]], Iterator[Partial]]") -> list[Partial]:
        """The sums of the parts, if they are about the rows that the cost is for.

        Raises:
            DataError: the rows are others, Spark refuses, or an executor cannot sum.
        """
        shape = query.num_groups, query.width
        parts = self._of_parts(query, work, CHARGED)
        return [Partial(np.frombuffer(made, "<i8").astype(np.int64).reshape(shape), count) for count, made in parts]

    def check(self) -> None:
        """Refuse rows that changed, and executors that could not encode them, before a cost is on record.

        Raises:
            DataError: as :meth:`partials`.
        """
        self._of_parts(None, None, UNSPENT)

    def backend_of_sums(self, query: Query) -> str:
        """Spark, and SHA-256 of the statement that gives the rows to the function.

        Raises:
            ReleaseError: the contributions join rows, or people may have several.
        """
        check_splits(query)
        if self.max_rows:
            raise ReleaseError(
                f"{query.name}: executors do not sum rows of people with several. Set ingest.rows: come."
            )
        return f"{self.rows.database.dialect} {sha256_bytes(self.rows.statement_of_rows().encode())}"

    def _of_parts(self, query: Query | None, work: Any, fate: str) -> list[tuple[int, bytes]]:
        schema, known = (self.rows.complete or self.rows.schema).modeled, _software()

        def summed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield sums_of(batches, schema, known, query, work)

        parts, sums = self.rows.parts(summed)
        if fault := max((fault for fault, _, _ in parts), default=0):
            raise DataError(f"{self.rows.database.name}: {_FAULTS[fault]}. {fate}.")
        self._compare(sums, fate)
        return [(count, made) for _, count, made in parts]


def sums_of(
    batches: Iterable[pa.RecordBatch], schema: Schema, known: tuple[str, ...], query: Query | None, work: Any
) -> pa.RecordBatch:
    """What comes from one part of the rows. It runs beside an executor.

    An error there would travel with its message, and be logged by executor and driver, and the message may quote a
    cell. So only a number says that there was one.

    Args:
        batches: the rows of :meth:`likeness.data.warehouse.spark.SparkStatements.rows`.
        schema: of the modeled columns.
        known: versions of the software that asked.
        query: the query; None: rows are encoded, and not summed.
        work: sums them.
    """
    if _software() != known:
        return _answer(_OTHER)
    try:
        with warnings.catch_warnings(action="ignore"):  # they go to the log of the executor
            return _summed(batches, schema, query, work)
    except Exception:  # whatever it is
        return _answer(_FAILED)


def _summed(batches: Iterable[pa.RecordBatch], schema: Schema, query: Query | None, work: Any) -> pa.RecordBatch:
    count, limbs = 0, np.zeros(LIMBS, np.int64)

    def rows() -> Iterator[Records]:
        nonlocal count, limbs
        for batch in batches:
            numbers = [column.to_numpy(zero_copy_only=False) for column in batch.columns[: len(schema.columns)]]
            parts = [column.to_numpy(zero_copy_only=False) for column in batch.columns[len(schema.columns) :]]
            count, limbs = count + len(batch), limbs + [part.sum(dtype=np.int64) for part in parts]
            table = {one.name: one.typed(cells) for one, cells in zip(schema.columns, numbers, strict=True)}
            yield from encoded_chunks(pd.DataFrame(table), schema)

    if query is None:
        for chunk in rows():
            np.asarray(chunk.x[:1])
        return _answer(0, count, limbs.tolist())
    (partial,) = work((query, rows))
    if partial.records != count:
        return _answer(_FAILED)
    return _answer(0, count, limbs.tolist(), partial.total.astype("<i8").tobytes())


def _answer(fault: int, count: int = 0, limbs: Sequence[int] = (0,) * LIMBS, made: bytes = b"") -> pa.RecordBatch:
    """A batch of one row of :data:`likeness.data.warehouse.rows.FIELDS`."""
    columns = [pa.array([fault], pa.int32()), pa.array([count], pa.int64())]
    columns += [pa.array([list(limbs)], pa.list_(pa.int64())), pa.array([made], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["fault", "records", "limbs", "made"])


def _software() -> tuple[str, ...]:
    """Versions of what decides a sum. Another library may round features otherwise."""
    return __version__, str(RECIPE), platform.python_version(), sys.byteorder, *map(_version, _SOFTWARE)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
