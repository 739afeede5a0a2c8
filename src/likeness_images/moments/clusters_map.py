"""Clusters within a class: on which sides of a few planes the low frequencies of an image lie."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OneHotMap
from likeness_images.moments.cosine_map import check_cosine, round_inputs, squared_coefficients
from likeness_images.moments.estimates import Moments
from likeness_images.moments.settings import MOST_SPLITS

Float64 = NDArray[np.float64]
_UNIT = 127  # of an entry of a direction, which is a whole number
_CENTER_BITS = 16  # of a center, and of a coefficient


@dataclass(frozen=True)
class ClassHalves(OneHotMap):
    r"""The cluster of an image in each class: the signs along J directions of its class, read as a binary number.

    .. math:: k_y(x) = \sum_j 2^j \, 1\{ v_{yj} \cdot u > t_{yj} \}, \qquad u = c(x) / \max(\|c(x)\|, C)

    with c the coefficients of :func:`~likeness_images.moments.cosine_map.cosine_basis`, maybe from gray. A direction
    of zeros splits nothing. Directions and centers are public: settings, or read off an earlier release.

    Bound: an image lies in exactly one of the :math:`2^J` cells of each part, so each part's norm is 1. Nothing is
    negative. :class:`~likeness.release.records.EachCluster` uses only the part of the image's own class.

    The cell does not depend on other images: pixels are rounded to the door's grid here. Coefficients are rounded again
    and directions are whole numbers, so their product is exact in any order. Instead of dividing, both sides are
    compared times :math:`\max(\|c\|, C)`, one root and one product a plane.

    Attributes:
        shape: height and width in pixels, and 3 in color.
        num_coefficients: K.
        bound: C, in units where a white pixel is 1.
        splits: J.
        directions: v times 127, whole numbers from -127 to 127, class by class, J directions of K each.
        centers: t times 127, class by class.
        gray: whether c are those of the distance from gray.

    Raises:
        ReleaseError: sizes or numbers that make no sense.
    """

    name: ClassVar[str] = "class_halves"
    shape: tuple[int, ...]
    num_coefficients: int
    bound: float
    splits: int
    directions: tuple[int, ...]
    centers: tuple[float, ...]
    gray: bool = False

    def __post_init__(self) -> None:
        """Check sizes and numbers."""
        check_cosine(self.name, self.shape, self.num_coefficients)
        whole = all(type(entry) is int and -_UNIT <= entry <= _UNIT for entry in self.directions)
        numbers = all(type(number) is float and math.isfinite(number) for number in (self.bound, *self.centers))
        if not (type(self.splits) is int and 1 <= self.splits <= MOST_SPLITS and whole and numbers and self.bound > 0):
            raise ReleaseError(f"{self.name}: splits are 1 to {MOST_SPLITS}, directions small whole numbers")
        if not self.centers or len(self.centers) % self.splits:
            raise ReleaseError(f"{self.name}: each class needs a center for each split")
        if len(self.directions) != len(self.centers) * self.num_coefficients:
            raise ReleaseError(f"{self.name}: each center needs a direction of all coefficients")

    @property
    def num_classes(self) -> int:
        """Number of parts."""
        return len(self.centers) // self.splits

    @property
    def active(self) -> list[int]:
        """Clusters of each class that records can lie in: those of directions that are not zeros."""
        planes = np.array(self.directions).reshape(self.num_classes, self.splits, -1)
        return [2 ** int(count) for count in planes.any(axis=2).sum(axis=1)]

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part of a 1 for each class."""
        return (Part(2**self.splits, Fraction(1), nonnegative=True),) * self.num_classes

    def cell_indices(self, x: Float64) -> NDArray[np.int64]:
        """The cluster of each image as each class sees it, shape (n, classes)."""
        coefficients, squares = squared_coefficients(round_inputs(x), self.shape, self.num_coefficients, self.gray)
        coefficients = np.rint(coefficients * 2.0**_CENTER_BITS) * 2.0**-_CENTER_BITS
        planes = np.array(self.directions, dtype=np.float64).reshape(len(self.centers), -1)
        lengths = np.sqrt(np.maximum(squares, self.bound**2))
        above = coefficients @ planes.T > lengths * np.array(self.centers)
        bits: NDArray[np.int64] = above.reshape(len(x), self.num_classes, self.splits).astype(np.int64)
        return bits @ (1 << np.arange(self.splits))


def halves(
    looked: Moments, shape: tuple[int, ...], bound: float, splits: int, edges: Float64, least: float
) -> ClassHalves:
    r"""Planes through the mean of each class, across its strongest directions: post-processing of a first look.

    A split doubles the noise beside what a cluster has. So class y is split j times only if its j-th variance is above
    ``least`` times :math:`e_y`, the edge of the noise without a split. A class of few records is not split, and loses
    nothing. Directions are rounded, so the last bits of another machine's eigenvectors do not show. Of both signs, the
    one whose largest entry is positive counts.

    Args:
        looked: estimates of the first look.
        shape: of images.
        bound: C.
        splits: most splits, J.
        edges: e of each class, as the later release has it without splits.
        least: part of the edge.
    """
    directions, centers = [], []
    for mean, factor, noise in zip(looked.means, looked.factors, edges, strict=True):
        for split in range(splits):
            strength = float(np.linalg.norm(factor[:, split])) if split < len(mean) else 0.0
            seen = strength**2 > least * noise and strength > 0
            plane = factor[:, split] / strength if seen else np.zeros(len(mean))
            plane = plane if plane[np.abs(plane).argmax()] >= 0 else -plane
            whole = np.rint(_UNIT * plane)
            directions += [int(entry) for entry in whole]
            centers.append(round(float(whole @ mean) * 2**_CENTER_BITS) * 2.0**-_CENTER_BITS)
    return ClassHalves(shape, looked.means.shape[1], bound, splits, tuple(directions), tuple(centers))
