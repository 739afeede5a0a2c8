"""Histograms of single columns as one mean embedding: one-hot cells, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.cells import Cells, cells_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ColumnMarginals:
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

    columns: tuple[Cells, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", cells_of(self.columns, "column_marginals"))
        if not self.columns:
            raise ReleaseError("column_marginals needs at least one column")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part a column."""
        return tuple(Part(column.size, Fraction(1), nonnegative=True) for column in self.columns)

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each column that a row stands in, shape (n, columns)."""
        return np.stack([column.places(x) for column in self.columns], axis=1)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Dense features, shape (n, width): for tests of the sparse path."""
        import torch

        places = torch.from_numpy(self.places(x.detach().cpu().double().numpy()))
        parts = [
            torch.nn.functional.one_hot(place, column.size).to(x.dtype)
            for column, place in zip(self.columns, places.T, strict=True)
        ]
        return torch.cat(parts, dim=1)

    def blocks(self, values: NDArray[Any]) -> Iterator[tuple[Cells, NDArray[Any]]]:
        """Counts by column from released sums: (cells, counts of shape (num_groups, size)).

        Args:
            values: released sums, shape (num_groups, width).
        """
        start = 0
        for column in self.columns:
            yield column, values[:, start : start + column.size]
            start += column.size

    def spec(self) -> dict[str, Any]:
        """Public specification."""
        return {"map": "column_marginals", "columns": [column.to_dict() for column in self.columns]}
