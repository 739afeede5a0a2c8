"""Counts of cells on an executor, by the functions of a local run."""

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from likeness.core.errors import DataError
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.source.cells import apply_released
from likeness.features.cells import columns_of_tables
from likeness.pipeline.private_rows import encoded_chunks
from likeness.release.records import AllRecords, EachRecord, Records
from likeness.release.sums.counts import count_cells
from likeness_spark.executor import NAME, Pass


def count_tables(work: Pass, chunks: Iterator[pd.DataFrame]) -> list[np.ndarray]:
    """Count training rows in the tables of a pass.

    Args:
        work: the pass.
        chunks: typed rows.

    Returns:
        for each table int64 counts, shape (groups, cells).
    """
    axes, tables = columns_of_tables(work.tables)
    query: Any = SimpleNamespace(
        name=NAME,
        num_groups=work.groups,
        is_per_person=False,
        contributions=EachRecord() if work.by_class else AllRecords(),
    )
    weights, cells_of = [1] * len(tables), partial(_cells_of, axes)
    return count_cells(query, [axis.size for axis in axes], tables, weights, cells_of, _records(work, chunks))


def _records(work: Pass, chunks: Iterator[pd.DataFrame]) -> Iterator[Records]:
    schema = work.written
    for rows in chunks:
        typed = forward_transform(apply_released(rows, schema, schema), schema)
        yield from encoded_chunks(typed, schema.model_schema)


def _cells_of(axes: Sequence[Any], records: Records) -> list[np.ndarray]:
    """The cell of each record on each axis, which is inside of it."""
    cells = [axis.cell_indices(records.x) for axis in axes]
    if any(
        len(every) and not 0 <= every.min() <= every.max() < axis.size for axis, every in zip(axes, cells, strict=True)
    ):
        raise DataError(f"{NAME}: a row is in no cell of a column. Run: likeness run")
    return cells
