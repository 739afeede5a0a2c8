"""Two-way marginals in parts that are each measured once: interactions of pairs, single columns, and the records."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import blocks_of, without_means
from likeness.features.cells import Cells
from likeness.methods.marginals.pair_map import PairMarginals

_RECORDS = Fraction(1, 10)  # of what pairs give the number of records, which class counts measure too
_STEP = 1000  # ρ is a whole number of thousandths
_PAYS = Fraction(9, 10)


class PairContrasts(PairMarginals):
    r"""The products of :class:`PairMarginals` without their means, then single columns and a constant.

    With :math:`\bar e_c = e_c - 1/n`, the product of a pair is
    :math:`\bar e_a \otimes \bar e_b + \bar e_a \otimes 1/n_j + 1/n_i \otimes \bar e_b + 1/(n_i n_j)`. These parts are
    orthogonal. All pairs together measure a column once in each of its pairs. This map has each part once:

    .. math:: \phi(x) = \bigl( (w_{ij}\, \bar e_{c_i(x)} \otimes \bar e_{c_j(x)})_{(i, j) \in P},\;
        (v\, \bigotimes_{i \in t} e_{c_i(x)})_{t \in T},\; (u_i\, \bar e_{c_i(x)})_i,\; u_0 \bigr)

    with :math:`u_i^2 = \rho \sum_j w_{ij}^2 / n_j` and :math:`u_0^2 = T / 10`, :math:`T = \sum_P w_{ij}^2 / (n_i n_j)`.
    Pairs have these sums without the factors. With :math:`S = \sum_P w_{ij}^2 (1 - 1/n_i)(1 - 1/n_j)` and
    :math:`\rho = (S + T / 10) / (S + T)`, rounded up, :math:`\|\phi\|^2` is ρ times that of the pairs. So at one budget
    columns have the noise that pairs give them, and interactions have the variance times ρ: .55 for binary columns.

    Bound: :math:`\|\bar e_c\|^2 = 1 - 1/n` for every cell c. So every record has
    :math:`\|\phi(x)\|^2 = \sum_P w_{ij}^2 (1 - 1/n_i)(1 - 1/n_j) + |T| v^2 + \sum_i u_i^2 (1 - 1/n_i) + u_0^2`.
    This is :math:`\Delta^2` where a record is added or removed. Where one is replaced, contrasts move by at most twice
    their norm (:attr:`likeness.core.bounds.Part.replacement_factor`); columns of two cells reach that. Rounding is in
    the steps of a part alone: the door counts in integers, :math:`n \bar e_c` is a vector of integers, and steps are
    rounded down.

    Source: ResidualPlanner, Xiao et al. (NeurIPS 2023).

    Raises:
        ReleaseError: a column has one cell, or as for pairs.
    """

    name: ClassVar[str] = "pair_contrasts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(column.size for column in self.columns) < 2:
            raise ReleaseError("pair_contrasts needs two cells or more of each column")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part a pair, one a table, one a column, and one for the records."""
        pairs = tuple(_part(sizes, Fraction(w)) for sizes, w in zip(self.sizes, self.weights, strict=True))
        columns = [_part((column.size,), w) for column, w in zip(self.columns, self._apart[0], strict=True)]
        return (*pairs, *self.table_parts, *columns, Part(1, self._apart[1], nonnegative=True))

    @cached_property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """The columns of each pair, of each table, each column, and none."""
        places = (*self.column_pairs, *self.tables, *((place,) for place in range(len(self.columns))), ())
        return tuple(tuple(self.columns[place] for place in part) for part in places)

    @cached_property
    def _apart(self) -> tuple[list[Fraction], Fraction]:
        """Squared weights of columns and of the records."""
        columns, records = [Fraction(0)] * len(self.columns), Fraction(0)
        for (i, j), (a, b), weight in zip(self.column_pairs, self.sizes, self.weights, strict=True):
            columns[i] += Fraction(weight, b)
            columns[j] += Fraction(weight, a)
            records += Fraction(weight, a * b)
        return [self.factor * weight for weight in columns], _RECORDS * records

    @cached_property
    def factor(self) -> Fraction:
        """ρ."""
        parts = [
            (Fraction(weight * (a - 1) * (b - 1), a * b), Fraction(weight, a * b))
            for (a, b), weight in zip(self.sizes, self.weights, strict=True)
        ]
        pairs, records = (sum(numbers, Fraction(0)) for numbers in zip(*parts, strict=True))
        return Fraction(math.ceil(_STEP * (pairs + _RECORDS * records) / (pairs + records)), _STEP)

    @property
    def pays(self) -> bool:
        """Whether interactions gain a tenth of their variance or more, where records are added or removed."""
        return self.factor < _PAYS

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The coordinate of each part that a row stands in, shape (n, parts)."""
        columns = [column.places(x) for column in self.columns]
        return np.column_stack([super().places(x), *columns, np.zeros(len(x), dtype=np.int64)])

    def blocks(self, values: NDArray[np.float64]) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Counts of each pair: the sum of its parts."""
        counts = [without_means(block, part.contrasts) / part.unit for part, block in blocks_of(self.parts, values)]
        (*columns, records), groups = counts[-len(self.columns) - 1 :], len(values)
        for (i, j), (a, b), pair in zip(self.column_pairs, self.sizes, counts[: len(self.sizes)], strict=True):
            first, second = columns[i][:, :, None] / b, columns[j][:, None, :] / a
            yield i, j, pair.reshape(groups, a, b) + first + second + records[:, :, None] / (a * b)

    def variances(self, earlier: float = 0.0) -> tuple[list[float], list[float]]:
        """As for pairs; what a first look adds is left out."""
        sizes, records = [column.size for column in self.columns], 1 / float(self._apart[1])
        alone = [(1 - 1 / n) / float(weight) for n, weight in zip(sizes, self._apart[0], strict=True)]
        pairs = [
            (1 - 1 / a) * (1 - 1 / b) / w + alone[i] / b**2 + alone[j] / a**2 + records / (a * b) ** 2
            for (i, j), (a, b), w in zip(self.column_pairs, self.sizes, self.weights, strict=True)
        ]
        return pairs, [one + records / n**2 for n, one in zip(sizes, alone, strict=True)]


def _part(sizes: tuple[int, ...], weight: Fraction) -> Part:
    """The part of a table without means."""
    width, norm = 1, weight
    for size in sizes:
        width, norm = width * size, norm * Fraction(size - 1, size)
    return Part(width, norm, contrasts=sizes)
