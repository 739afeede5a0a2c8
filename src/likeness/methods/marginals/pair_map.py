"""Two-way marginals, all or some, and tables of one column or of more, as one mean embedding of one-hot cells."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OneHotMap, blocks_of
from likeness.features.cells import Cells, cells_of, table_places


@dataclass(frozen=True)
class PairMarginals(OneHotMap):
    r"""The one-hot products of the cells of pairs of columns, and of every named table, times public weights.

    :math:`\phi(x) = \bigl( (w_{ij}\, e_{c_i(x)} \otimes e_{c_j(x)})_{(i, j) \in P},\;
    (v\, \bigotimes_{i \in t} e_{c_i(x)})_{t \in T} \bigr)` with :math:`c_i(x)` the cell of column i, and P all pairs
    :math:`i < j` unless some are named.

    Bound: a record lies in exactly one cell of each pair and of each table, so part (i, j) has norm :math:`w_{ij}`, a
    table's part v, and :math:`\|\phi(x)\|^2 = \sum_{(i, j) \in P} w_{ij}^2 + |T|\, v^2`; nothing is negative. Reached
    by every record. Summed by class, the pairs are all three-way marginals of two columns and the label, for the
    sensitivity of the pairs alone.

    Sources: workloads of marginals under one Gaussian, Li et al. (2010); as a kernel, this project.

    Attributes:
        columns: cells of each column, at least two columns.
        squared_weights: :math:`w_{ij}^2`, pair by pair, positive integers; empty: all 1.
        tables: T, each the index of one column, or indices of three or more, ascending.
        squared_table_weight: :math:`v^2`, of a table of weight 1.
        table_weights: by which it is multiplied, table by table, positive integers; empty: all 1.
        pairs: P, indices of two columns each, ascending. Empty: all, in the order of
            ``itertools.combinations``. A list of all becomes empty: one question has one specification.

    Raises:
        ReleaseError: fewer than two columns, pairs or tables that are none, or weights that do not fit.
    """

    name: ClassVar[str] = "pair_marginals"
    columns: tuple[Cells, ...]
    squared_weights: tuple[int, ...] = ()
    tables: tuple[tuple[int, ...], ...] = ()
    squared_table_weight: float = 1.0
    pairs: tuple[tuple[int, int], ...] = ()
    table_weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        columns = cells_of(self.columns, "pair_marginals")
        object.__setattr__(self, "columns", columns)
        count = math.comb(len(columns), 2)
        if not count:
            raise ReleaseError("pair_marginals needs at least two columns")
        pairs = _tuples(self.pairs, "pairs are lists of places of two columns")
        if pairs and not (_ascend(pairs) and min(chain(*pairs)) >= 0 and max(chain(*pairs)) < len(columns)):
            raise ReleaseError("pair_marginals: pairs have two columns each, ascending, and stand in order")
        object.__setattr__(self, "pairs", () if len(pairs) == count else pairs)
        count = len(pairs) or count
        (weights,) = _tuples([self.squared_weights], "squared weights are a list of whole numbers")
        object.__setattr__(self, "squared_weights", weights)
        if weights and not (len(weights) == count and all(type(weight) is int and weight > 0 for weight in weights)):
            raise ReleaseError(f"pair_marginals needs {count} positive whole squared weights, or none")
        tables = _tuples(self.tables, "tables are lists of places of columns")
        object.__setattr__(self, "tables", tables)
        if not all(_is_table(table, len(columns)) for table in tables) or len(set(tables)) < len(tables):
            raise ReleaseError(
                "pair_marginals: a table, named once, has one column, or three or more, each once and in order"
            )
        (table_weights,) = _tuples([self.table_weights], "weights of tables are a list of whole numbers")
        object.__setattr__(self, "table_weights", table_weights if set(table_weights) != {1} else ())
        whole = all(type(weight) is int and 0 < weight < _LARGEST_WEIGHT for weight in table_weights)
        if table_weights and not (whole and len(table_weights) == len(tables)):
            raise ReleaseError(f"pair_marginals needs {len(tables)} positive whole weights of tables, or none")
        weight = self.squared_table_weight
        if type(weight) not in (int, float) or not 0 < weight < _LARGEST_WEIGHT:
            raise ReleaseError("pair_marginals: the squared weight of a table is a positive number")

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part a pair, then one a table."""
        pairs = (Part(a * b, weight, True) for (a, b), weight in zip(self.sizes, self.weights, strict=True))
        return (*pairs, *self.table_parts)

    @property
    def table_parts(self) -> tuple[Part, ...]:
        """One part a table."""
        bounds = (Fraction(self.squared_table_weight) * weight for weight in self._table_weights)
        sizes = (math.prod(self._shape(table)) for table in self.tables)
        return tuple(Part(size, bound, nonnegative=True) for size, bound in zip(sizes, bounds, strict=True))

    @property
    def squared_table_weights(self) -> list[float]:
        """Squared weight of each table."""
        return [self.squared_table_weight * weight for weight in self._table_weights]

    @property
    def _table_weights(self) -> tuple[int, ...]:
        return self.table_weights or (1,) * len(self.tables)

    @property
    def weights(self) -> tuple[int, ...]:
        """Squared weight of each pair."""
        return self.squared_weights or (1,) * len(self.sizes)

    @cached_property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """The columns of each pair, then of each table."""
        return tuple(tuple(self.columns[index] for index in indices) for indices in (*self.column_pairs, *self.tables))

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Cells of either column, pair by pair."""
        return tuple((self.columns[i].size, self.columns[j].size) for i, j in self.column_pairs)

    @cached_property
    def column_pairs(self) -> tuple[tuple[int, int], ...]:
        """Indices of either column, pair by pair."""
        return self.pairs or tuple(combinations(range(len(self.columns)), 2))

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The coordinate of each part that a row stands in, shape (n, pairs + tables)."""
        return np.stack(list(table_places(self.axes, x)), axis=1)

    def blocks(self, values: NDArray[np.float64]) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """(i, j, counts (num_groups, cells of i, cells of j)) of each pair, from released sums (num_groups, width)."""
        parts = blocks_of(self.bounded_parts[: len(self.sizes)], values)
        for (i, j), (part, block) in zip(self.column_pairs, parts, strict=True):
            counts = block / math.sqrt(part.norm_bound_squared)
            yield i, j, counts.reshape(len(values), self.columns[i].size, self.columns[j].size)

    def table_counts(self, values: NDArray[np.float64]) -> Iterator[tuple[tuple[int, ...], NDArray[np.float64]]]:
        """Counts by table from released sums: (indices, counts of shape (num_groups, cells of each of its columns)).

        Args:
            values: released sums, shape (num_groups, width).
        """
        start = sum(a * b for a, b in self.sizes)
        for table, (part, block) in zip(self.tables, blocks_of(self.table_parts, values[:, start:]), strict=True):
            yield table, (block / math.sqrt(part.norm_bound_squared)).reshape(len(values), *self._shape(table))

    def _shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.columns[index].size for index in table)

    def spec(self) -> dict[str, Any]:
        """Public specification. Pairs and tables stand in it where some are named."""
        spec = super().spec()
        named: dict[str, tuple[Any, ...]] = {"pairs": self.pairs, "tables": self.tables}
        left_out = {**named, "squared_table_weight": self.tables, "table_weights": self.table_weights}
        return {key: value for key, value in spec.items() if left_out.get(key, True)}


_LARGEST_WEIGHT = 1e15  # of a table, squared: a part's norm has to fit the lattice


def _tuples(lists: Any, rule: str) -> tuple[tuple[Any, ...], ...]:
    try:
        return tuple(tuple(numbers) for numbers in lists)
    except TypeError:
        raise ReleaseError(f"pair_marginals: {rule}") from None


def _ascend(pairs: tuple[tuple[Any, ...], ...]) -> bool:
    """Tell whether these are pairs of two whole numbers each, ascending and in order, none of them twice."""
    whole = all(len(pair) == 2 and type(pair[0]) is type(pair[1]) is int for pair in pairs)
    return whole and all(a < b for a, b in pairs) and all(a < b for a, b in pairwise(pairs))


def _is_table(indices: tuple[Any, ...], count: int) -> bool:
    """Tell whether this is the index of one column, or of three or more, ascending."""
    whole = len(indices) not in (0, 2) and all(type(index) is int for index in indices)
    return whole and indices[0] >= 0 and indices[-1] < count and all(a < b for a, b in pairwise(indices))
