"""What an executor does: it types, hashes, splits, encodes and counts its rows by the functions of a local run.

It gives integers. An error of a library may quote a cell, and Spark logs errors. So its type and place alone go on.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from likeness import __version__
from likeness.config.params import Params
from likeness.core.errors import DataError, LikenessError
from likeness.data.schema.column import SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import check_texts
from likeness.data.source.files import typed_chunk
from likeness.data.source.parquet_files import arrow_cells
from likeness.data.source.row_digests import Hashes, hashes_of, row_hashes
from likeness.data.table_columns import with_columns
from likeness.pipeline.ingest import split_of, used_rows

if TYPE_CHECKING:
    from likeness.features.cells import Cells

OWNER = "likeness_owner"
"""The column by which Spark brings rows of a person, or equal rows, to one executor: a hash."""
NAME = "Spark"
LIMBS = 8
"""Numbers of 32 bits in a hash."""
Versions = tuple[str, str, str]


def versions() -> Versions:
    """The versions of Likeness, NumPy and pandas: with others a cell may become another code."""
    return __version__, np.__version__, pd.__version__


@dataclass(frozen=True)
class Pass:
    """One pass over the rows. Public facts only.

    Attributes:
        params: the settings.
        written: the schema, without open columns.
        versions: of the driver.
        tables: axes of the tables that are counted.
        groups: number of classes.
        by_class: whether classes are counted apart.
    """

    params: Params
    written: Schema
    versions: Versions
    tables: "Sequence[Sequence[Cells]]" = ()
    groups: int = 1
    by_class: bool = False

    @property
    def split_column(self) -> str | None:
        """The column that splits."""
        return self.params.ingest.split.column

    @property
    def person_column(self) -> str | None:
        """The column that names people; None: a row is a person."""
        unit = self.params.ingest.unit
        return None if unit is None else unit.column

    @property
    def column_names(self) -> list[str]:
        """The columns that are read, each once."""
        others = [name for name in (self.split_column, self.person_column) if name is not None]
        return list(dict.fromkeys([*self.written.names, *others]))

    @property
    def is_spread(self) -> bool:
        """Tell whether rows depend on others of their person, or on equal rows: these must come to one executor."""
        split = self.params.ingest.split
        return self.person_column is not None or (split.column is None and split.test_fraction > 0)


CountTables = Callable[[Pass, Iterator[pd.DataFrame]], list[np.ndarray]]


def spread(work: Pass, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add to each row the hash of its owner. A refused row gets an empty one, so that :func:`count` says why."""
    for batch in batches:
        owners = [b""] * len(batch)
        try:
            _check_versions(work)
            if work.person_column is not None:
                people = typed_chunk(_raw([batch], work), NAME, work.written, None, work.person_column)[2]
                assert people is not None
                hashes = hashes_of(name.encode() for name in people)
            else:
                hashes = row_hashes(typed_chunk(_raw([batch], work), NAME, work.written)[0], work.written)
            owners = [row.tobytes()[:16] for row in hashes]
        except Exception:
            pass
        yield batch.append_column(OWNER, pa.array(owners, pa.binary()))


def no_tables(_: Pass, chunks: Iterator[pd.DataFrame]) -> list[np.ndarray]:
    """Count nothing but the rows."""
    deque(chunks, maxlen=0)
    return []


def count(work: Pass, count_tables: CountTables, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sum a part of the rows.

    Args:
        work: the pass.
        count_tables: counts the training rows in its tables: :func:`no_tables`, or that of a round.
        batches: the part.

    Returns:
        one row of integers for the number of rows and their hashes, of both parts of the split, and one a table. Or a
        row with the reason why there are none.
    """
    try:
        _check_versions(work)
        sums, tables = _sums(work, count_tables, batches)
        rows: list[tuple[int, bytes, str]] = [(0, sums.tobytes(), "")]
        rows += [(index, table.astype("<i8").tobytes(), "") for index, table in enumerate(tables, start=1)]
    except LikenessError as error:  # it names a column and a rule
        rows = [(-1, b"", str(error))]
    except Exception as error:
        rows = [(-1, b"", f"{NAME}: an executor failed ({type(error).__name__} at {_line_of(error)}).")]
    parts, values, faults = zip(*rows, strict=True)
    arrays = [pa.array(parts, pa.int32()), pa.array(values, pa.binary()), pa.array(faults, pa.string())]
    yield pa.RecordBatch.from_arrays(arrays, names=["part", "cells", "fault"])


def _line_of(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def _check_versions(work: Pass) -> None:
    if work.versions != versions():
        pairs = zip(("likeness-dp", "numpy", "pandas"), work.versions, versions(), strict=True)
        others = "; ".join(
            f"{name} {executor} in place of {driver}" for name, driver, executor in pairs if driver != executor
        )
        raise DataError(f"{NAME}: an executor has {others}. Install the versions of the driver on all executors.")


def _raw(batches: Sequence[pa.RecordBatch], work: Pass) -> pd.DataFrame:
    """Raw cells, as those of a Parquet file."""
    table = pa.Table.from_batches(batches)
    cells = arrow_cells({name: table.column(name) for name in work.column_names})
    check_texts(cells, work.column_names, NAME, "CAST them in ingest.query")
    return pd.DataFrame(cells)


def _type_rows(work: Pass, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pd.DataFrame, Hashes]]:
    """The used rows of a part with their split, and their hashes."""
    if work.person_column is not None:
        if held := list(batches):
            chunk = typed_chunk(_raw(held, work), NAME, work.written, work.split_column, work.person_column)
            _check_owners(work, held)
            yield used_rows(work.params, work.written, *chunk)
        return
    parts_of = split_of(work.params, 0)
    for batch in batches:
        table, column, _ = typed_chunk(_raw([batch], work), NAME, work.written, work.split_column)
        _check_owners(work, [batch])
        hashes = row_hashes(table, work.written)
        yield with_columns(table, {SPLIT_COLUMN: parts_of(hashes, column)}), hashes


def _check_owners(work: Pass, batches: Sequence[pa.RecordBatch]) -> None:
    """Refuse rows that are good here, and had no owner before the shuffle: others of their person are elsewhere."""
    if work.is_spread and any(pc.any(pc.equal(batch[OWNER], b"")).as_py() for batch in batches):
        raise DataError(f"{NAME}: an executor cannot hash rows. Install the versions of the driver on all executors.")


def _sums(
    work: Pass, count_tables: CountTables, batches: Iterator[pa.RecordBatch]
) -> "tuple[np.ndarray, list[np.ndarray]]":
    """Numbers of rows and limbs of their hashes, shape (2, 1 + LIMBS), and the counts of the training rows."""
    sums = np.zeros((2, 1 + LIMBS), "<u8")

    def train_rows() -> Iterator[pd.DataFrame]:
        for table, hashes in _type_rows(work, batches):
            trains = (table[SPLIT_COLUMN] == "train").to_numpy()
            for index, chosen in enumerate((trains, ~trains)):
                sums[index, 0] += np.uint64(chosen.sum())
                sums[index, 1:] += np.ascontiguousarray(hashes[chosen]).view(">u4").sum(axis=0, dtype=np.uint64)
            yield table.loc[trains, work.written.names].reset_index(drop=True)

    return sums, count_tables(work, train_rows())
