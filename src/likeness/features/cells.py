"""Public cells of a column of the dense encoded row: one cell a category, one a bin, one for missing."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.typed import build

try:
    from likeness.features.cell_counts import find_cells
except ImportError:  # no compiler was there
    find_cells = None  # type: ignore[assignment]

Floats = NDArray[np.float64]
Place = tuple[int, int, bool]
"""Where a column begins in the dense row, the width of its one-hot block, or 0, and whether a number may be missing."""


class Columns(Mapping[Place, Any]):
    """Columns that are made when they are asked for, once."""

    def __init__(self, makers: Mapping[Place, Callable[[], Any]]) -> None:
        """Take what makes each column."""
        self._makers, self._made = makers, dict[Place, Any]()

    def __getitem__(self, key: Place) -> Any:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __iter__(self) -> Iterator[Place]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class CodedRows:
    """Rows of the dense form, shape (n, d), that are made when they are asked for.

    Attributes:
        columns: of each column, shape (n,), by :data:`Place`. Of categories the place in the one-hot block, int64. Of a
            number its value on the unit scale, float64, NaN where it is missing. Or its place in a list of values,
            and this list.
    """

    def __init__(self, columns: Mapping[Place, NDArray[Any]], count: int, expand: Callable[[], Floats]) -> None:
        """Take the columns, the number of rows, and what makes the dense rows."""
        self.columns, self._count, self._expand = columns, count, expand

    def __len__(self) -> int:
        return self._count

    @cached_property
    def dense(self) -> Floats:
        """The dense rows, shape (n, d)."""
        return self._expand()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.dense, dtype) if copy else np.asarray(self.dense, dtype)

    def __getitem__(self, rows: Any) -> Any:
        """Consecutive rows as such rows; anything else of the dense form."""
        if not isinstance(rows, slice):
            return self.dense[rows]
        columns = Columns({key: lambda key=key: _rows(self.columns[key], rows) for key in self.columns})  # type: ignore[misc]
        return CodedRows(columns, len(range(*rows.indices(self._count))), lambda: self.dense[rows])


def _rows(column: Any, rows: slice) -> Any:
    return (column[0][rows], column[1]) if isinstance(column, tuple) else column[rows]


Inputs = Floats | CodedRows
"""Encoded rows, shape (n, d)."""


def number_of(x: Inputs, start: int, missing: bool) -> tuple[Floats, NDArray[np.bool_] | None]:
    """A number of each row on its unit scale, shape (n,), and where it is missing; None: nowhere.

    Args:
        x: rows.
        start: coordinate of the number in the dense row.
        missing: whether the next coordinate says that the number is missing.
    """
    if isinstance(x, CodedRows) and (start, 0, missing) in x.columns:
        values: Any = x.columns[start, 0, missing]
        values = values[1][values[0]] if isinstance(values, tuple) else values
        return values, np.isnan(values) if missing else None
    return x[:, start], x[:, start + 1] > 0.5 if missing else None


_INTERVALS = 1 << 12
_SMALL = 1 << 16  # cells that fit two bytes
_MANY = 8  # edges of an interval, from which on a search by halves is faster


@dataclass(frozen=True)
class Cells:
    """The division of one column into cells, from public numbers alone.

    Attributes:
        start: first coordinate of the column in the dense row.
        size: number of cells.
        edges: inner edges of a number's bins on its unit scale, ascending; a value on an edge belongs to the bin above.
            None: the column is one-hot, and a cell is a coordinate.
        missing: whether the last cell of a number is for missing; its indicator stands right after the number.

    Raises:
        ValueError: the numbers contradict each other.
    """

    start: int
    size: int
    edges: tuple[float, ...] | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        if self.start < 0 or self.size < 1:
            raise ValueError("cells need a start of at least 0 and a size of at least 1")
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(self.edges))  # counts are kept by cells
            if self.size != len(self.edges) + 1 + int(self.missing):
                raise ValueError("cells: size is one more than the inner edges, and one more for missing")
            if any(not low < high for low, high in zip(self.edges, self.edges[1:], strict=False)):
                raise ValueError("cells: edges must ascend")
        elif self.missing:
            raise ValueError("cells: a one-hot column has its place for missing among its coordinates")

    @property
    def stop(self) -> int:
        """One past the last coordinate."""
        return self.start + (self.size if self.edges is None else 1 + int(self.missing))

    def cell_indices(self, x: Inputs) -> NDArray[np.int64]:
        """Cell of each row, shape (n,), from rows (n, d). Row by row; always within 0 ... size - 1."""
        return self.small_indices(x).astype(np.int64, copy=False)

    def small_indices(self, x: Inputs) -> NDArray[np.integer[Any]]:
        """The same in whole numbers of some size. Cells of a list of values are found once."""
        key = self.start, 0 if self.edges is not None else self.size, self.missing
        column: Any = x.columns.get(key) if isinstance(x, CodedRows) else None
        if self.edges is None:
            column = x[:, self.start : self.start + self.size].argmax(axis=1) if column is None else column
        elif not isinstance(column, tuple):
            column = self._cells_of(*number_of(x, self.start, self.missing))
        else:
            codes, units = column
            listed_units, cells = vars(self).get("_listed", (None, None))
            if listed_units is not units:
                cells = self.cells_of_units(units)
                vars(self)["_listed"] = units, cells
            column = cells.take(codes)
        return column  # type: ignore[no-any-return]

    def cells_of_units(self, units: Floats) -> NDArray[np.integer[Any]]:
        """The cell of each of some values on the unit scale, shape (n,); NaN is missing."""
        return self._cells_of(units, np.isnan(units))

    def _cells_of(self, values: Floats, missing: NDArray[np.bool_] | None) -> NDArray[np.integer[Any]]:
        cells = self._bins(values)
        if missing is not None and missing.any():
            cells[missing] = self.size - 1
        return cells

    def _bins(self, values: NDArray[np.float64]) -> NDArray[np.integer[Any]]:
        """Count the edges that are at most each value, as ``searchsorted`` on the right, in less time.

        A table says how many edges are at most the lower end of each of many equal intervals of [0, 1]; that of the
        first interval, which also takes what is below 0, is minus infinity. A value's interval is exact, because their
        number is a power of two. So no bin of the table is too high, and later edges are compared one by one, unless an
        interval has many.
        """
        firsts, edges, are_many = self._table
        if are_many:
            return np.searchsorted(edges[:-1], values, side="right")
        if find_cells is not None and self.size <= _SMALL:
            cells = find_cells(np.ascontiguousarray(values, np.float64), edges, firsts)
            return np.frombuffer(bytearray(cells), np.uint16)
        with np.errstate(invalid="ignore"):  # a missing number is in any bin
            bins = firsts.take((values * _INTERVALS).astype(np.int64), mode="clip")
        later = np.flatnonzero(values >= edges.take(bins))
        while len(later):
            bins[later] += 1
            later = later[values[later] >= edges.take(bins[later])]
        return bins

    @cached_property
    def _table(self) -> tuple[NDArray[np.int64], NDArray[np.float64], bool]:
        """The number of edges at most the lower end of each interval; the edges, and one that no value reaches.

        The last value tells whether an interval has many.
        """
        edges = np.array(self.edges, np.float64)
        ends = np.arange(_INTERVALS) / _INTERVALS
        ends[0] = -np.inf
        firsts = np.searchsorted(edges, ends, side="right").astype(np.int64)
        return firsts, np.append(edges, np.nan), bool(np.diff(firsts, append=len(edges)).max() > _MANY)


def placed_columns(columns: Iterable[Cells], x: Inputs) -> list[NDArray[np.integer[Any]]]:
    """The cell of each row in each column, shapes (n,).

    Raises:
        ReleaseError: a row is in no cell of a column, so it could count as one of another group.
    """
    cells = []
    for column in columns:
        cells.append(column.small_indices(x))
        if len(x) and not (cells[-1].min() >= 0 and cells[-1].max() < column.size):
            raise ReleaseError("a row is in no cell of a column. Run: likeness run")
    return cells


def columns_of_tables(axes: Iterable[Iterable[Cells]]) -> tuple[list[Cells], list[tuple[int, ...]]]:
    """The different columns of some tables, and the numbers of those of each table among them."""
    columns = {id(column): column for column in chain.from_iterable(axes)}
    numbers = {key: number for number, key in enumerate(columns)}
    return list(columns.values()), [tuple(numbers[id(column)] for column in table) for table in axes]


def table_places(axes: Sequence[Sequence[Cells]], x: Inputs) -> Iterator[NDArray[np.int64]]:
    """Give for each table of some columns the cell of each row as one number, shape (n,). Each column is placed once.

    Args:
        axes: the columns of each table; the cells of the last one are side by side. No columns make one cell.
        x: rows, shape (n, d).
    """
    columns, tables = columns_of_tables(axes)
    cells = placed_columns(columns, x)
    for table in tables:
        number = np.zeros(len(x), np.int64)
        for column in table:
            number = number * columns[column].size + cells[column]
        yield number


def cells_of(columns: Iterable[Cells | Mapping[str, Any]], name: str) -> tuple[Cells, ...]:
    """Cells of several columns, given as cells or as JSON; ``name`` is the map's, for the error.

    Raises:
        ReleaseError: they are not cells.
    """
    try:
        return tuple(column if isinstance(column, Cells) else build(Cells, column, "cells") for column in columns)
    except (ParamsError, TypeError) as error:
        raise ReleaseError(f"{name}: columns are not cells ({error})") from None
