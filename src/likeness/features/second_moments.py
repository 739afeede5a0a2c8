"""First and second moments of a vector in the unit ball."""

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import Map


class SecondMoments(Map):
    r"""A map :math:`\phi(x) = u \, [\sqrt{a},\; \sqrt{1-a}\, u^\top]` of a vector u = v / max(‖v‖, C) of size K.

    Sums by class give the mean and the second moments of each class, and so its covariance. Only a v longer than C is
    shortened: dividing each v by its norm would lose its length.

    Bound: an outer product of u and :math:`[\sqrt a, \sqrt{1-a} u]`, so
    :math:`\|\phi\|^2 = \|u\|^2 (a + (1-a) \|u\|^2) \le 1` as :math:`\|u\| \le 1`; reached wherever
    :math:`\|v\| \ge C`. Signed, so two lie within 2 of each other. The matrix is symmetric and released whole: each
    entry off the diagonal twice with separate noise. Their mean has the noise of one copy of weight √2.

    Sources: low-order moments as a kernel mean embedding with a polynomial kernel; second moments under Gaussian noise,
    Dwork, Talwar, Thakurta and Zhang (2014).

    Attributes:
        bound: C.
        first_share: a, the first moments' part of the squared norm, between 0 and 1.
    """

    bound: float
    first_share: float

    def _check_numbers(self) -> None:
        """Refuse a size, a bound or a share that makes no sense."""
        numbers = type(self.size) is int and type(self.bound) is float and type(self.first_share) is float
        if not (numbers and self.size > 0 and 0 < self.bound < math.inf and 0 < self.first_share < 1):
            raise ReleaseError(f"{self.name}: the bound is positive, as is the size, and first_share between 0 and 1")

    @property
    @abstractmethod
    def size(self) -> int:
        """K."""

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """One block: u by the constant and u."""
        return ((self.size, 1 + self.size),)

    @property
    def parts(self) -> tuple[Part, ...]:
        """One signed part of norm 1, as the class docstring proves."""
        return (Part(self.size * (1 + self.size), Fraction(1)),)

    @abstractmethod
    def factors(self, x: Any) -> tuple[tuple[Any, Any], ...]:
        """u, shape (n, K), and ``[√a, √(1 − a) u]``, shape (n, 1 + K)."""

    def differences(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Differences across the diagonal of the matrix of second moments, which is symmetric."""
        second = values.reshape(-1, self.size, 1 + self.size)[:, :, 1:]
        above = np.triu_indices(self.size, 1)
        return (second - second.transpose(0, 2, 1))[:, above[0], above[1]]
