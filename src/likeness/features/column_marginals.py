"""Histograms of single columns as one mean embedding: one-hot cells, side by side."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OneHotMap, blocks_of
from likeness.features.cells import Cells, cells_of, table_places


@dataclass(frozen=True)
class ColumnMarginals(OneHotMap):
    r"""The one-hot cell of each of m columns.

    :math:`\phi(x) = (e_{c_i(x)})_i` with :math:`c_i(x)` the cell of column i.

    Bound: a record lies in exactly one cell of each column, so every part has norm 1 and :math:`\|\phi(x)\|^2 = m`;
    nothing is negative. Reached by every record. Replacing a record moves it from one cell to another in each column,
    :math:`\Delta^2 = 2m`, reached where all of them change.

    Source: histograms under one Gaussian, Dwork et al. (2006).

    Attributes:
        columns: cells of each column, one column at least.

    Raises:
        ReleaseError: no columns, or no cells.
    """

    name: ClassVar[str] = "column_marginals"
    columns: tuple[Cells, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", cells_of(self.columns, self.name))
        if not self.columns:
            raise ReleaseError(f"{self.name} needs at least one column")

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part for each of the :attr:`axes`."""
        widths = (math.prod(column.size for column in columns) for columns in self.axes)
        return tuple(Part(width, 1, nonnegative=True) for width in widths)

    @property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """One column a part."""
        return tuple((column,) for column in self.columns)

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each part that a row stands in, shape (n, parts)."""
        return np.stack(list(table_places(self.axes, x)), axis=1)

    def blocks(self, values: NDArray[Any]) -> Iterator[tuple[Cells, NDArray[Any]]]:
        """Cells and counts (num_groups, size) of each column, from released sums (num_groups, width)."""
        for column, (_, counts) in zip(self.columns, blocks_of(self.bounded_parts, values), strict=True):
            yield column, counts


@dataclass(frozen=True)
class Constant(OneHotMap):
    """``φ(x) = 1``. Norm exactly 1; non-negative. Its sum by class is the vector of class counts."""

    name: ClassVar[str] = "constant"

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One coordinate in [0, 1]."""
        return (Part(1, 1, nonnegative=True),)

    @property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """A table of no column."""
        return ((),)

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The only cell, shape (n, 1): counting needs no vectors."""
        return np.zeros((len(x), 1), dtype=np.int64)
