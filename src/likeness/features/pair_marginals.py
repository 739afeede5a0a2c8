"""All two-way marginals as one mean embedding: an order-2 polynomial kernel on one-hot cells."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.bounds import Part
from likeness.errors import ReleaseError
from likeness.features.cells import Cells, cells_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PairMarginals:
    r"""For every pair of columns, the one-hot product of their cells, times a public weight.

    :math:`\phi(x) = (w_{ij}\, e_{c_i(x)} \otimes e_{c_j(x)})_{i<j}` with :math:`c_i(x)` the cell of column i.

    Bound: a record lies in exactly one cell of each pair, so part (i, j) has norm :math:`w_{ij}` and
    :math:`\|\phi(x)\|^2 = \sum_{i<j} w_{ij}^2`; nothing is negative. Reached by every record. Summed by class, this is
    the set of all three-way marginals of two columns and the label, for the sensitivity of the pairs alone.

    Sources: workloads of marginals under one Gaussian, Li et al. (2010); as a kernel, this project.

    Attributes:
        columns: cells of each column, two columns at least.
        squared_weights: :math:`w_{ij}^2` in the order of ``itertools.combinations``, positive integers; empty: all 1.

    Raises:
        ReleaseError: fewer than two columns, or weights that do not fit.
    """

    columns: tuple[Cells, ...]
    squared_weights: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        columns = cells_of(self.columns, "pair_marginals")
        object.__setattr__(self, "columns", columns)
        count = len(columns) * (len(columns) - 1) // 2
        if count < 1:
            raise ReleaseError("pair_marginals needs at least two columns")
        weights = tuple(int(weight) for weight in self.squared_weights)
        object.__setattr__(self, "squared_weights", weights)
        if weights and (len(weights) != count or min(weights) < 1):
            raise ReleaseError(f"pair_marginals needs {count} positive squared weights, or none")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part a pair."""
        weights = self.squared_weights or (1,) * len(self.sizes)
        return tuple(Part(a * b, Fraction(w), nonnegative=True) for (a, b), w in zip(self.sizes, weights, strict=True))

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Cells of either column, pair by pair."""
        return tuple((a.size, b.size) for a, b in combinations(self.columns, 2))

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The coordinate of each part that a row stands in, shape (n, pairs)."""
        cells = [column.places(x) for column in self.columns]
        found = np.empty((len(x), len(self.sizes)), dtype=np.int64)
        for part, (i, j) in enumerate(combinations(range(len(cells)), 2)):
            found[:, part] = cells[i] * self.columns[j].size + cells[j]
        return found

    def __call__(self, x: "Tensor") -> "Tensor":
        """Dense features, shape (n, width): for small tables and for tests of the sparse path."""
        import torch

        places = self.places(x.detach().cpu().double().numpy())
        result = torch.zeros(len(x), sum(part.width for part in self.parts), dtype=x.dtype)
        start = 0
        for part, place in zip(self.parts, places.T, strict=True):
            result[torch.arange(len(x)), torch.from_numpy(start + place)] = math.sqrt(part.norm_bound_squared)
            start += part.width
        return result

    def blocks(self, values: NDArray[np.float64]) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Counts by pair from released sums: (i, j, counts of shape (num_groups, cells of i, cells of j)).

        Args:
            values: released sums, shape (num_groups, width).
        """
        start = 0
        for (i, j), part in zip(combinations(range(len(self.columns)), 2), self.parts, strict=True):
            block = values[:, start : start + part.width] / math.sqrt(part.norm_bound_squared)
            yield i, j, block.reshape(len(values), self.columns[i].size, self.columns[j].size)
            start += part.width

    def spec(self) -> dict[str, Any]:
        """Public specification."""
        columns = [column.to_dict() for column in self.columns]
        return {"map": "pair_marginals", "columns": columns, "squared_weights": list(self.squared_weights)}
