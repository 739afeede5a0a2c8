"""Cells of single columns and of all pairs of columns, side by side."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals


@dataclass(frozen=True)
class LowOrderMarginals(ColumnMarginals):
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

    @property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """Each column alone, then each pair, in the order of ``itertools.combinations``."""
        return (*super().axes, *combinations(self.columns, 2))
