"""Distance within a pair of records, beside a count of pairs (PEARL's auxiliary statistic)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.features.base import Map

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PairDistance(Map):
    r"""Euclidean distance of two encoded records over the diameter of the domain, and the constant 1.

    .. math:: \phi(x, x') = [\|x - x'\| / \mathrm{diam},\; 1]

    Both coordinates lie in [0, 1]: no two encoded records are farther apart than the diameter,
    :math:`\sqrt{d_{num} + 2 n_{cat}}` (unit columns differ by at most 1, two different one-hot blocks by √2). The
    ratio of the two released sums, times the diameter, estimates the mean pairwise distance whether the number of
    pairs is public or not. Source: Liew, Takahashi and Ueno (2022), section 4.2, whose bound √d does not cover
    one-hot columns.

    Attributes:
        diameter_squared: square of the diameter, an integer.
    """

    name: ClassVar[str] = "pair_distance"
    diameter_squared: int

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Two parts of one coordinate in [0, 1] each."""
        return (Part(1, Fraction(1), nonnegative=True), Part(1, Fraction(1), nonnegative=True))

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map pairs (n, 2d), the two records side by side, to features (n, 2)."""
        first, second = x.chunk(2, dim=1)
        distance = (first - second).norm(dim=1, keepdim=True) / math.sqrt(self.diameter_squared)
        features = x.new_ones(len(x), 2)
        features[:, :1] = distance
        return features
