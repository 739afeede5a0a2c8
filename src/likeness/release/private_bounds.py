"""Bounds of numbers that nobody knows publicly, from one released histogram of each column on a public grid.

The grid follows from kind and decimals alone: sign and size of a number, or the year of a date
(:meth:`likeness.data.schema.kinds.kind.Kind.grid`). Typed cells, split and digests use the widest bounds, so they do
not depend on the answer. All here after the release is post-processing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ArtifactError, SchemaError
from likeness.core.extras import pd
from likeness.data.encoding.layout import Layout
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.privacy.plan import QueryShare
from likeness.release.partition_selection import STAGE, complete_categories
from likeness.release.query import Query
from likeness.release.released import Released

BOUNDS = "bounds"
"""The name of the query."""
_SHARE = 0.05  # of ρ: bounds need the size of a number, and the rest of the budget its distribution
_FROM_ZERO = 10.0  # parts of its upper bound below which a positive number may as well begin at 0
_LONG_TAIL = 10.0  # parts of the range below which the middle number says that its logarithm is spread better


def bounds_share(schema: Schema) -> list[QueryShare]:
    """The part of the plan for the private bounds of a schema; nothing without such columns."""
    return [QueryShare(BOUNDS, STAGE, _SHARE)] if schema.unbounded_columns else []


def grid_schema(schema: Schema) -> Schema:
    """A schema of the unbounded columns, whose categories are the places of their cells."""
    columns = [
        Column(column.name, "categorical", categories=_labels(column), nullable=column.nullable)
        for column in schema.unbounded_columns
    ]
    return Schema(schema.name, schema.source, "none", None, tuple(columns))


def grid_rows(table: "pd.DataFrame", schema: Schema) -> "pd.DataFrame":
    """Typed rows of :func:`grid_schema`, from typed rows: each cell by itself."""
    grids, cells = grid_schema(schema), {}
    for column in schema.unbounded_columns:
        numbers = column.numbers(table[column.name])
        indices = np.searchsorted(column.type.grid(column), numbers, side="right").astype(np.float64)
        cells[column.name] = grids.column(column.name).to_typed(np.where(np.isnan(numbers), np.nan, indices))
    return pd.DataFrame(cells)


def bounds_query(schema: Schema) -> Query:
    """The histograms of all m unbounded columns: one cell a column and record, as :class:`ColumnMarginals` proves.

    So Δ² is m when a record is added or removed, 2m when one is replaced, and k² times that for a person of k records.
    """
    blocks = Layout.from_schema(grid_schema(schema)).blocks
    return Query(BOUNDS, STAGE, ColumnMarginals(tuple(Cells(block.start, block.width) for block in blocks)))


def complete_schema(schema: Schema, released: Sequence[Released]) -> Schema:
    """A schema with the released categories and bounds of its columns. This is post-processing.

    Raises:
        ArtifactError: the releases are not those of this schema.
    """
    bounds = [release for release in released if release.receipt.query == BOUNDS]
    schema = complete_categories(schema, [release for release in released if release.receipt.query != BOUNDS])
    if not schema.unbounded_columns and not bounds:
        return schema
    query = bounds_query(schema) if schema.unbounded_columns else None
    if query is None or len(bounds) != 1 or bounds[0].receipt.feature != query.spec():
        raise ArtifactError("data/released/categories does not answer this schema. Run: likeness run")
    feature = query.feature
    assert isinstance(feature, ColumnMarginals)
    counts = [numbers[0] for _, numbers in feature.blocks(bounds[0].values)]
    noise = bounds[0].noise_std
    pairs = zip(schema.unbounded_columns, counts, strict=True)
    try:
        return schema.with_bounds({column.name: _bounds(column, numbers, noise) for column, numbers in pairs})
    except SchemaError as error:
        raise ArtifactError(f"data/released/categories does not fit the schema: {error}") from None


def _labels(column: Column) -> tuple[str, ...]:
    """The names of the cells of a column."""
    return tuple(map(str, range(len(column.type.grid(column)) + 1)))


def _bounds(column: Column, counts: NDArray[np.float64], noise: float) -> tuple[float, float, str]:
    """Lower and upper bound and transform of a column, from the noisy counts of its cells."""
    ends = np.array([column.bounds[0], *column.type.grid(column), column.bounds[1]])
    counts = counts[: len(ends) - 1]  # missing is the last one
    first, last = _occupied_cells(counts, noise)
    step = 1.0 if column.is_integral else 0.0
    lower = min([float(ends[first]), *column.spikes])
    upper = max([float(ends[last + 1]) - step * (last + 2 < len(ends)), *column.spikes])
    if column.type.numeric_source:
        if 0 < lower <= upper / _FROM_ZERO:
            lower = 0.0
        if 0 > upper >= lower / _FROM_ZERO:
            upper = 0.0
    upper = max(upper, lower + step)
    middle = _median(ends[first : last + 2], counts[first : last + 1])
    spreads = "transform" in column.type.keys and middle - lower < (upper - lower) / _LONG_TAIL
    return lower, upper, "log1p" if spreads else column.transform


def _occupied_cells(counts: NDArray[np.float64], noise: float) -> tuple[int, int]:
    """The first and the last of the consecutive cells that hold the records: those with the largest sum.

    Each cell costs a standard deviation of the noise. So a cell of noise alone seldom joins, and a far one that joins
    must hold more than all cells between cost.
    """
    sums = np.append(0.0, np.cumsum(counts - noise))
    before = np.minimum.accumulate(sums[:-1])  # the least sum before each cell
    last = int(np.argmax(sums[1:] - before))
    return int(np.flatnonzero(sums[: last + 1] == sums[: last + 1].min())[-1]), last


def _median(ends: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    """The middle of the cell that holds the middle record."""
    sums = np.maximum(counts, 0).cumsum()
    cell = int(np.searchsorted(sums, sums[-1] / 2))
    return float(ends[cell : cell + 2].mean())
