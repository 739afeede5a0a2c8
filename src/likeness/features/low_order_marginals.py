"""Cells of single columns and of all pairs of columns, side by side."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OneHotMap
from likeness.features.cells import Cells, cells_of


@dataclass(frozen=True)
class LowOrderMarginals(OneHotMap):
    r"""The one-hot cell of each of m columns, then that of each of their pairs.

    :math:`\phi(x) = \bigl( (e_{c_i(x)})_i,\; (e_{c_i(x)} \otimes e_{c_j(x)})_{i < j} \bigr)` with :math:`c_i(x)` the
    cell of column i.

    Bound: a record lies in exactly one cell of each column and of each pair, so every part has norm 1, and
    :math:`\|\phi(x)\|^2 = m + m(m-1)/2`; nothing is negative. Reached by every record.

    Attributes:
        columns: cells of each column, one column at least.

    Raises:
        ReleaseError: no columns, or no cells.
    """

    name: ClassVar[str] = "low_order_marginals"
    columns: tuple[Cells, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", cells_of(self.columns, self.name))
        if not self.columns:
            raise ReleaseError(f"{self.name} needs at least one column")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part a column, then one a pair, in the order of ``itertools.combinations``."""
        sizes = [column.size for column in self.columns]
        widths = [*sizes, *(first * second for first, second in combinations(sizes, 2))]
        return tuple(Part(width, Fraction(1), nonnegative=True) for width in widths)

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each column and of each pair that a row stands in, shape (n, parts)."""
        cells = [column.places(x) for column in self.columns]
        pairs = combinations(range(len(cells)), 2)
        return np.stack([*cells, *(cells[i] * self.columns[j].size + cells[j] for i, j in pairs)], axis=1)
