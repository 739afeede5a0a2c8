"""Sufficient statistics of one step of expectation-maximization for Gaussian mixtures of single columns (DP-EM)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.core.extras import torch
from likeness.features.base import Map
from likeness_papers.pearl.mode import Modes, modes_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ModeStatistics(Map):
    r"""Responsibilities of a column's modes, times moments of the value's place within each mode's window.

    .. math:: \phi(x) = \left[ r_k u_k,\; r_k (1 - u_k),\; \sqrt 8\, r_k u_k (1 - u_k) \right]_k

    with :math:`r_k` the probability of mode k given the value, and :math:`u_k \in [0, 1]` its place in the window
    (:class:`likeness_papers.pearl.mode.Modes`). The first two sum to :math:`r_k`; together they span
    :math:`r_k (1, u_k, u_k^2)`, the sufficient statistics of the maximization step. A missing number adds nothing.

    Bound of a column: with :math:`v = u (1 - u) \in [0, 1/4]` the squared norm of
    :math:`(u, 1 - u, \sqrt 8\, v)` is :math:`u^2 + (1 - u)^2 + 8 v^2 = 1 - 2 v + 8 v^2 = 1 - 2 v (1 - 4 v) \le 1`. The
    responsibilities are non-negative and sum to 1 or, for a missing number, 0, so
    :math:`\|\phi\|^2 \le \sum_k r_k^2 \le \sum_k r_k \le 1`; nothing is negative. Reached where one mode is certain and
    the value at its mean or at an end of its window. (The moments :math:`r (1, x, x^2)` would have a bound of 3, and
    equal noise for narrow and broad modes.)

    Source: Park et al. (2017), DP-EM: noisy moments in every step; the basis, and the windows, this project.

    Attributes:
        columns: current modes of each column, in the order of their places.
    """

    name: ClassVar[str] = "mode_statistics"
    columns: tuple[Modes, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", modes_of(self.columns, "mode_statistics"))

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One non-negative part of norm 1 a column."""
        return tuple(Part(3 * column.size, Fraction(1), nonnegative=True) for column in self.columns)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d) to features (n, Σ 3K): of each column first all r u, then r (1 − u), then the rest."""
        features = []
        for column in self.columns:
            values = x[:, column.place]
            shares = torch.softmax(column.log_joint(values), dim=1)
            if column.missing:
                shares = shares * (x[:, column.place + 1] <= 0.5).to(x)[:, None]
            windows = column.windows(values)
            above, below = shares * windows, shares * (1 - windows)
            features += [above, below, SCALE * above * (1 - windows)]
        return torch.cat(features, dim=1)


SCALE = math.sqrt(8)
"""Factor of the third statistic: the largest that leaves the bound at 1."""
