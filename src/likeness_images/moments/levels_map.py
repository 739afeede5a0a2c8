"""Pixels of an image above each of a few levels: how many, and in low frequencies where."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import Map
from likeness.features.frequencies import INPUT_BITS
from likeness_images.moments.cosine_map import OneCell, check_cosine, cosine_basis, round_inputs


def thresholds(levels: int) -> list[float]:
    """0, 1/J, ..., (J - 1)/J, rounded to the grid of inputs, so that a byte of j/J is not above it."""
    return [round(level / levels * 2**INPUT_BITS) * 2.0**-INPUT_BITS for level in range(levels)]


def even_shares(levels: int) -> list[float]:
    """Compute how often a pixel is above each of J levels where every brightness is as frequent: 1, ..., 1/J."""
    return [1 - level / levels for level in range(levels)]


def _check(name: str, levels: int) -> None:
    if type(levels) is not int or levels < 1:
        raise ReleaseError(f"{name} needs at least one level")


@dataclass(frozen=True)
class LevelCounts(OneCell):
    r"""The one-hot cell that an image's mean share of pixels above J levels lies in, or its distance from gray.

    The share is the number of pairs of a pixel and a level among 0, 1/J, ..., (J - 1)/J below it, divided by dJ, for d
    pixels. In color, each of a pixel's three colors counts as one. Cells
    are of equal width from 0 to 1 (a white image, which counts in the last one).

    With gray, a pair above level j/J counts :math:`(j/J)^2` in place of 1, and another :math:`(1 - j/J)^2` in place of
    0: squared distances from the share :math:`1 - j/J` of :func:`even_shares`. None is above 1.

    Bound: an image lies in exactly one cell, so the norm is 1; nothing is negative. Reached by every image. Its cell
    does not depend on other images: pixels are rounded to the door's grid here, each is compared alone, and the cell is
    computed in whole numbers.

    Attributes:
        shape: height and width in pixels, and 3 in color.
        levels: J.
        cells: their number.
        gray: whether pairs count squared distances.

    Raises:
        ReleaseError: sizes that make no sense.
    """

    name: ClassVar[str] = "level_counts"
    shape: tuple[int, ...]
    levels: int
    cells: int
    gray: bool = False

    def __post_init__(self) -> None:
        """Check sizes."""
        check_cosine(self.name, self.shape, 1)
        _check(self.name, self.levels)
        self._check()

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each image, shape (n, 1)."""
        x = round_inputs(x)
        above = [np.count_nonzero(x > level, axis=1) for level in thresholds(self.levels)]
        values, levels = math.prod(self.shape), self.levels
        counts, all_of_them = np.asarray(sum(above)), values * levels
        if self.gray:  # times J², so that numbers are whole
            counts = np.asarray(
                sum(count * j**2 + (values - count) * (levels - j) ** 2 for j, count in enumerate(above))
            )
            all_of_them *= levels**2
        cells: NDArray[np.int64] = np.minimum(counts * self.cells // all_of_them, self.cells - 1)
        return cells.astype(np.int64)[:, None]


@dataclass(frozen=True)
class CosineLevels(Map):
    r"""Low-frequency cosine coefficients of the sets of pixels brighter than 0, 1/J, ..., (J - 1)/J.

    .. math:: \phi(x) = \frac{1}{\sqrt{dJ \max(s, S)}} \, [B 1_{x > 0},\; B 1_{x > 1/J},\; \dots,\; B 1_{x > (J-1)/J}]

    with d pixels, B the K rows of :func:`likeness_images.moments.cosine_map.cosine_basis`, and s the mean share of
    pixels above the levels (:class:`LevelCounts`). Summed by class, these are smooth maps of how often each pixel is
    brighter than each level: the distribution of every pixel, up to its place between levels. Only images with s above
    S are dimmed. With gray, :math:`1_{x > j/J} - (1 - j/J)` stands in place of each indicator.

    Bound: the squared norms of the J indicators, or of their distances, sum to dJs. Orthonormal rows make none longer.
    (The door clips what the rounding of their entries adds.) So :math:`\|\phi\|^2 \le s / \max(s, S) \le 1`; reached
    by a white image, or a black one with gray, whose sets are all constant. Signed, so two images lie within 2 of each
    other.

    Each pixel is compared with public levels alone; s is a function of whole numbers; coefficients are sums of
    multiples of ``2**-20``, exact in float64, and the public even shares are subtracted after them. So a row does not
    depend on other rows. Comparison has no gradient.

    Sources: distribution functions as means of indicators; the transform, Ahmed, Natarajan and Rao (1974).

    Attributes:
        shape: height and width in pixels, and 3 in color.
        num_coefficients: K.
        levels: J.
        share: S, above 0 and at most 1.
        gray: whether indicators are distances from the even shares.

    Raises:
        ReleaseError: sizes that make no sense.
    """

    name: ClassVar[str] = "cosine_levels"
    takes_tensors: ClassVar[bool] = False
    shape: tuple[int, ...]
    num_coefficients: int
    levels: int
    share: float
    gray: bool = False

    def __post_init__(self) -> None:
        """Check sizes."""
        check_cosine(self.name, self.shape, self.num_coefficients)
        _check(self.name, self.levels)
        if not (type(self.share) is float and 0 < self.share <= 1):
            raise ReleaseError("cosine_levels: share must be a number above 0 and at most 1")

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One signed part of norm 1, as the class docstring proves."""
        return (Part(self.levels * self.num_coefficients, Fraction(1)),)

    @property
    def scale(self) -> float:
        """Factor of the coefficients of an image that is not dimmed."""
        return 1 / math.sqrt(self._pairs * self.share)

    @property
    def _pairs(self) -> int:
        """Number of pairs of a pixel and a level."""
        return math.prod(self.shape) * self.levels

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map images (n, pixels) to features (n, J · K), level by level."""
        basis = cosine_basis(self.shape, self.num_coefficients)
        white, values = basis.sum(axis=1), math.prod(self.shape)
        pairs, features = np.zeros(len(x)), []
        # One level after the other: for a large image, all at once take much memory.
        for level, even in zip(thresholds(self.levels), even_shares(self.levels), strict=True):
            above = (x > level).astype(np.float64)
            count = above.sum(axis=1)
            pairs += count * (1 - even) ** 2 + (values - count) * even**2 if self.gray else count
            features.append(above @ basis.T - (even * white if self.gray else 0.0))
        scale = 1 / np.sqrt(np.maximum(pairs, self._pairs * self.share))
        return np.hstack(features) * scale[:, None]
