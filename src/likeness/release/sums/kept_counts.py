"""Counts of cells that stay in memory during a run, so that a later query about the same columns reads no row.

They are private, and never written. A query gets the sum of its rows, to the last bit
(:func:`likeness.release.sums.backends.counted_sum`). Counts are by class. A column of few values is counted by value,
and all later cells of it follow. Cells of pairs are counted once, and single columns follow from them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeness.core.engine import Engine
from likeness.core.errors import ReleaseError
from likeness.features.base import ProductsMap
from likeness.features.cells import Cells, CodedRows, Inputs, Place
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachRecord, Records
from likeness.release.sums.counts import count_tables

Counts = NDArray[np.int64]
_ROWS = 1 << 18  # of a step: fewer would count in tables that have left the fast memory
_MOST_VALUES, _MOST_CELLS = 1 << 16, 1 << 21  # of a column that is counted by value, and of a query, by class
_MOST_COLUMNS = 32  # of products: for more, products of matrices take less time than counts of all pairs


@runtime_checkable
class KeptRows(Protocol):
    """Rows whose counts may be kept.

    Attributes:
        kept: counts of shape (classes, cells), by the columns of a table; and the values of columns, by their place.
            None: nothing is kept.
    """

    kept: dict[Any, Any] | None

    @property
    def num_classes(self) -> int:
        """Number of classes, at least 1."""

    def __call__(self, most_rows: int | None = None) -> Iterable[Records]:
        """All rows, in order. ``most_rows`` is for who needs no dense rows: of a step."""

    def split(self, most: int) -> "Sequence[KeptRows]":
        """Give at most ``most`` parts, which together name every row once, in order, and hold none."""


@dataclass(frozen=True)
class _Values:
    """A column, each of whose values is a cell.

    Attributes:
        place: of the column in the dense row.
        size: number of values.
    """

    place: Place
    size: int

    def small_indices(self, x: Inputs) -> NDArray[Any]:
        """The place of each row's value in the list of values, shape (n,)."""
        assert isinstance(x, CodedRows)
        column: Any = x.columns[self.place]
        return column[0] if isinstance(column, tuple) else column  # type: ignore[no-any-return]


def can_keep(query: Query, read: Any) -> bool:
    """Tell whether the sum of a query follows from counts of few cells by class, which are kept."""
    terms, feature = type(query.contributions), query.feature
    if not (isinstance(read, KeptRows) and read.kept is not None and terms in (EachRecord, AllRecords)):
        return False
    tables = getattr(feature, "counted_tables", None) or getattr(feature, "axes", None)
    if not tables or any(type(column) is not Cells for table in tables for column in table):
        return False
    groups = read.num_classes if terms is EachRecord else 1
    is_wide = isinstance(feature, ProductsMap) and len(feature.columns) > _MOST_COLUMNS
    cells = sum(np.prod([column.size for column in table], dtype=float) for table in tables)
    return query.num_groups == groups and not is_wide and cells * read.num_classes <= _MOST_CELLS


class KeptCounts:
    """Counts of rows: those that are kept, and those that a pass over the rows adds."""

    max_rows, is_per_person = 0, False

    def __init__(self, query: Query, rows: KeptRows, engine: Engine, most_parts: int) -> None:
        """Take what :func:`can_keep` knows, who reads the rows, and in how many parts."""
        assert rows.kept is not None
        self._query = replace(query, contributions=EachRecord(), num_groups=rows.num_classes)
        self._rows, self._kept, self._engine, self._most_parts = rows, rows.kept, engine, most_parts

    def counts(
        self, tables: Sequence[Sequence[Cells]], num_groups: int, by_class: bool
    ) -> tuple[list[NDArray[np.int64]], int]:
        """The counts, as :meth:`likeness.release.sums.backends.CountReader.counts`.

        Raises:
            ArtifactError: the rows are other ones by now.
            ReleaseError: the rows carry people, whom nobody has counted.
        """
        first = next(iter(self._rows(_ROWS)), None)
        missing = [table for table in map(tuple, tables) if self._of_table(table) is None]
        if missing or () not in self._kept:
            values = _values_of(first, self._query.num_groups) if any(len(table) == 1 for table in missing) else {}
            new = {place: value for place, value in values.items() if place not in self._kept}
            rest = [table for table in missing if table and not (len(table) == 1 and _place(table[0]) in values)]
            self._count([(), *rest, *((column,) for column, _ in new.values())])
            self._kept.update(new)
        groups, counts = num_groups if by_class else 1, list[Counts]()
        for each in map(self._of_table, map(tuple, tables)):
            assert each is not None
            counts.append(each.reshape(groups, -1, each.shape[1]).sum(axis=1))
        return counts, int(self._kept[()].sum())

    def _count(self, tables: Sequence[Any]) -> None:
        """Count tables in one pass."""
        parts = self._rows.split(self._most_parts) if self._engine.workers > 1 else [self._rows]
        totals: Any = [0] * len(tables)
        for counts in self._engine.stream(partial(_count_part, self._query, tables), parts):
            totals = [total + each for total, each in zip(totals, counts, strict=True)]
        self._kept.update(zip(tables, totals, strict=True))

    def _of_table(self, table: tuple[Cells, ...]) -> Counts | None:
        """The counts of a table, as far as they are kept or follow."""
        if table in self._kept or len(table) != 1:
            return self._kept.get(table)
        (column,) = table
        values, units = self._kept.get(_place(column), (None, None))
        if values is not None:
            counts: Counts = self._kept[values,]
            if units is None:
                return counts
            cells = column.cells_of_units(units)
            # A sum of floats is exact here: there are at most 2**32 records.
            return np.array([np.bincount(cells, each, column.size) for each in counts]).astype(np.int64)
        for other, counts in self._kept.items():
            if len(other) == 2 and column in other:
                pair = counts.reshape(len(counts), other[0].size, other[1].size)
                return pair.sum(axis=2 - other.index(column))  # type: ignore[no-any-return]
        return None


def _place(column: Cells) -> Place:
    return column.start, 0 if column.edges is not None else column.size, column.missing


def _values_of(rows: Records | None, classes: int) -> dict[Place, tuple[_Values, Any]]:
    """The columns of few values by their place, each with its values on the unit scale; None of categories."""
    values: dict[Place, tuple[_Values, Any]] = {}
    left = _MOST_CELLS
    columns = rows.x.columns if rows is not None and isinstance(rows.x, CodedRows) else {}
    for place in columns:
        column: Any = columns[place]
        size, units = (len(column[1]), column[1]) if isinstance(column, tuple) else (place[1], None)
        if 0 < size <= _MOST_VALUES and size * classes <= left:
            values[place] = _Values(place, size), units
            left -= size * classes
    return values


def _count_part(query: Query, tables: Sequence[Any], rows: KeptRows) -> Iterator[list[Counts]]:
    """The counts of a part."""
    yield count_tables(query, tables, [1] * len(tables), map(refuse_people, rows(_ROWS)))


def refuse_people(rows: Records) -> Records:
    """Give rows back.

    Raises:
        ReleaseError: they carry people, whom nobody has counted.
    """
    if rows.persons is not None:
        raise ReleaseError(
            "the rows belong to people with several rows, plan.json protects single rows. Run: likeness run"
        )
    return rows
