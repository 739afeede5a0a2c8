r"""Confidence intervals of a ratio of two noisy counts.

A value θ belongs to the interval if the data do not reject it: :math:`(x - \theta y)^2 \le z^2\, v(\theta)`, with
:math:`v(\theta)` the variance of :math:`x - \theta y`. That is Fieller's interval (1954): its coverage is exact where
the noise is Gaussian, however noisy y is. With the binomial variance of a sample in :math:`v(\theta)` it is also
Wilson's (1927). Both are one quadratic inequality.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOBODY = 1e-6  # of a record: more than the rounding of a sum that is 0


@dataclass(frozen=True)
class Ratio:
    r"""Estimates of numerators and denominators, cell by cell, and what is random in them.

    Attributes:
        x: numerators.
        y: denominators.
        noise: variance of x, covariance of both, variance of y, from the noise.
        sampling: :math:`(c_0, c_1, c_2)`: a sample of rows adds :math:`y (c_0 + c_1 θ + c_2 θ^2)` to v.
    """

    x: Floats
    y: Floats
    noise: tuple[Floats, Floats, Floats]
    sampling: tuple[Any, Any, Any] = (0.0, 0.0, 0.0)

    @property
    def estimate(self) -> Floats:
        """The ratio x / y; NaN where y is not positive."""
        estimate: Floats = np.divide(self.x, self.y, out=np.full_like(self.x, math.nan), where=self.y > NOBODY)
        return estimate

    @property
    def noise_error(self) -> Floats:
        """Standard error from the noise, by the delta method."""
        (xx, xy, yy), theta = self.noise, self.estimate
        error: Floats = np.sqrt(np.maximum(xx - 2 * theta * xy + theta**2 * yy, 0)) / self.y
        return error

    @property
    def sampling_error(self) -> Floats:
        """Standard error of a sample of as many rows as y counts."""
        (constant, linear, square), theta = self.sampling, self.estimate
        error: Floats = np.sqrt(np.maximum(constant + linear * theta + square * theta**2, 0) / self.y)
        return error

    def interval(self, z: float) -> tuple[Floats, Floats]:
        """Both ends of the interval; infinite where the data exclude no value, because the denominator may be 0.

        Args:
            z: quantile of the normal distribution.
        """
        low, high = self._roots(z, self.sampling)
        # A negative estimate has no binomial variance. What is left of its interval is that of the noise.
        noise_low, noise_high = self._roots(z, (0.0, 0.0, 0.0))
        low, high = np.where(np.isnan(low), noise_low, low), np.where(np.isnan(high), noise_high, high)
        return np.where(np.isnan(low), -math.inf, low), np.where(np.isnan(high), math.inf, high)

    def _roots(self, z: float, sampling: tuple[Any, Any, Any]) -> tuple[Floats, Floats]:
        """Solve for the ends where both sides are equal; NaN without such an interval."""
        (xx, xy, yy), (constant, linear, square), rows = self.noise, sampling, np.maximum(self.y, 0)
        a = self.y**2 - z**2 * (yy + rows * square)
        b = -2 * self.x * self.y + z**2 * (2 * xy - rows * linear)
        c = self.x**2 - z**2 * (xx + rows * constant)
        inside = b**2 - 4 * a * c
        bounded = (a > 0) & (self.y > 0) & (inside >= -1e-9 * b**2)
        root = np.sqrt(np.maximum(inside, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = (-b - root) / (2 * a), (-b + root) / (2 * a)
        return np.where(bounded, ends[0], math.nan), np.where(bounded, ends[1], math.nan)


def nearest_distribution(values: Floats, total: float) -> Floats:
    """The nearest numbers that are at least 0 and have this sum, in each column.

    One number is taken off all of them, and negative ones become 0. It is the projection onto a simplex (Duchi and
    others 2008), which keeps the order of the cells.

    Args:
        values: shape (cells, groups); NaN stays NaN.
        total: 0 or more.
    """
    descending = -np.sort(-values, axis=0)
    levels = (np.cumsum(descending, axis=0) - total) / np.arange(1, len(values) + 1)[:, None]
    last = np.maximum((descending > levels).sum(axis=0), 1) - 1
    nearest: Floats = np.maximum(values - np.take_along_axis(levels, last[None], axis=0), 0.0)
    return nearest
