"""Low-frequency cosine coefficients of images: the histogram of their norms, and their first and second moments."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import Map, OneHotMap, width
from likeness.features.frequencies import FLOAT_BITS, INPUT_BITS, fitting_bits


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
    def bounded_parts(self) -> tuple[Part, ...]:
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


_BASIS_BITS = 20
_GRAY = 0.5
CENTER_UNIT = 64  # of a coefficient
_LONGEST = 8  # times the norm of a white image: no entry of a center is larger


@lru_cache(maxsize=8)
def cosine_basis(shape: tuple[int, ...], count: int) -> NDArray[np.float64]:
    """The ``count`` lowest frequencies of the orthonormal discrete cosine transform (DCT-II) of images.

    Lowest first, as :func:`lowest_frequencies` orders them. In color, the transform runs over the three colors too. Its
    three directions are brightness, red against blue, and green against both (Ohta, Kanade and Sakai 1980).

    Entries are rounded to multiples of ``2**-20``. So products with inputs on the door's grid are exact in float64 in
    any order, as in :func:`likeness.features.frequencies.draw_frequencies`. The rows are orthonormal to about 1e-5.
    A product of orthonormal transforms is orthonormal. So no coefficients are longer than the image, gray or in color.
    Source: Ahmed, Natarajan and Rao (1974).

    Returns:
        shape (count, values), float64. It is shared: do not write to it.
    """
    transforms = [cosine_transform(size) for size in shape]
    rows = np.stack(
        [
            reduce(np.multiply.outer, [matrix[at] for matrix, at in zip(transforms, frequency, strict=True)]).ravel()
            for frequency in lowest_frequencies(shape)[:count]
        ]
    )
    largest = max(1.0, float(np.abs(rows).sum(axis=1).max()) + math.prod(shape) * 2.0**-_BASIS_BITS)
    bits = min(_BASIS_BITS, FLOAT_BITS - INPUT_BITS - math.ceil(math.log2(largest)))
    basis: NDArray[np.float64] = np.rint(rows * 2.0**bits) * 2.0**-bits
    return basis


def lowest_frequencies(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All places (u, v) of the transform of images, lowest ``(u / height)² + (v / width)²`` first.

    In color, places are (u, v, direction). The frequencies of the two directions that are not brightness count
    double: as in JPEG, they need half the resolution.
    """
    height, width = shape[:2]

    def order(index: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return ((index[0] * width) ** 2 + (index[1] * height) ** 2) * (4 if any(index[2:]) else 1), index

    return sorted(product(*map(range, shape)), key=order)


def mirrored_signs(shape: tuple[int, ...], count: int) -> NDArray[np.bool_]:
    """Tell which of the lowest frequencies change sign in a mirror image, left for right: shape (count,)."""
    return np.array([frequency[1] % 2 == 1 for frequency in lowest_frequencies(shape)[:count]])


def cosine_transform(size: int) -> NDArray[np.float64]:
    """The orthonormal DCT-II of vectors, shape (size, size)."""
    frequency, position = np.arange(size)[:, None], np.arange(size)[None]
    matrix: NDArray[np.float64] = np.cos(np.pi / size * (position + 0.5) * frequency) * math.sqrt(2 / size)
    matrix[0] /= math.sqrt(2)
    return matrix


def squared_coefficients(
    x: NDArray[np.float64], shape: tuple[int, ...], count: int, gray: bool = False, centers: tuple[int, ...] = ()
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients (n, count) of images (n, pixels), and their squared norms (n, 1); or of distances of images.

    With ``gray`` these are distances from gray. With ``centers`` they are distances from the center of the image's
    class, whose one-hot code follows the pixels (:class:`~likeness.release.records.WithClass`). Centers are multiples
    of 1/64. A difference depends on its image alone.

    Squares are rounded to a grid on which float64 adds them exactly: no sum depends on the order of additions.
    """
    basis = cosine_basis(shape, count)
    pixels, center = x[:, : basis.shape[1]], np.array(centers, dtype=np.float64).reshape(-1, count) / CENTER_UNIT
    most = np.abs(basis).sum(axis=1) + np.abs(center).max(axis=0, initial=0)
    bits = fitting_bits(float((most**2).sum()), FLOAT_BITS)
    coefficients = (pixels - _GRAY if gray else pixels) @ basis.T
    if centers:
        coefficients -= x[:, basis.shape[1] :] @ center
    squares = np.rint(coefficients**2 * 2.0**bits) * 2.0**-bits
    return coefficients, squares.sum(axis=1, keepdims=True)


def check_cosine(name: str, shape: tuple[int, ...], count: int, centers: tuple[int, ...] = ()) -> None:
    """Refuse sizes that cannot hold ``count`` coefficients of an image, and centers that no images have.

    Raises:
        ReleaseError: naming the map.
    """
    whole = all(type(size) is int for size in (*shape, count))
    sized = whole and len(shape) in (2, 3) and shape[2:] in ((), (3,)) and min(shape) >= 1
    if not sized or not 1 <= count <= math.prod(shape):
        raise ReleaseError(
            f"{name}: the shape must be (height, width) or (height, width, 3), with 1 to as many coefficients as values"
        )
    most = CENTER_UNIT * _LONGEST * math.isqrt(math.prod(shape) + 1)
    if len(centers) % count or not all(type(entry) is int and abs(entry) <= most for entry in centers):
        raise ReleaseError(f"{name}: each class needs a center of {count} whole numbers, no longer than images")


class OneCell(OneHotMap):
    """A map of one part, whose places are the cells of one histogram.

    Bound: a record lies in exactly one cell, so the norm is 1; nothing is negative. Reached by every record.
    """

    cells: int

    def _check(self) -> None:
        if type(self.cells) is not int or self.cells < 1:
            raise ReleaseError(f"{self.name} needs at least one cell")

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part, of one 1."""
        return (Part(self.cells, Fraction(1), nonnegative=True),)


def round_inputs(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs on the door's grid: the door does not round them for maps of cells."""
    values: NDArray[np.float64] = np.rint(np.clip(x, 0, 1) * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS
    return values


@dataclass(frozen=True)
class CosineNorms(OneCell):
    r"""The one-hot cell that the norm of an image's low-frequency cosine coefficients lies in.

    Cells are of equal width from 0 to :math:`\sqrt{d}`, the norm of a white image of d values, or to half of it from
    gray. The transform is orthonormal, so no norm is larger. (A norm that is larger, by rounding or from a center
    beyond all images, counts in the last cell.)

    Bound: an image lies in exactly one cell, so the norm is 1; nothing is negative. Reached by every image. Its cell
    does not depend on other images. Pixels are rounded to the door's grid here, so coefficients are exact; the door
    gives a map of cells its rows as they are, in blocks of any size. Squares are rounded before they are added, and
    their sum is compared with squared borders, without a root.

    Attributes:
        shape: height and width in pixels, and 3 in color.
        num_coefficients: K.
        cells: their number.
        gray: whether norms are distances from gray.
        centers: the center of each class times 64, class by class; then inputs end with the class.

    Raises:
        ReleaseError: sizes that make no sense.
    """

    name: ClassVar[str] = "cosine_norms"
    shape: tuple[int, ...]
    num_coefficients: int
    cells: int
    gray: bool = False
    centers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check sizes."""
        check_cosine(self.name, self.shape, self.num_coefficients, self.centers)
        self._check()

    @property
    def cell_width(self) -> float:
        """The width of a cell in units of a norm, where a white pixel is 1."""
        return math.sqrt(math.prod(self.shape)) / self.cells * (_GRAY if self.gray else 1)

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each image, shape (n, 1)."""
        _, squares = squared_coefficients(round_inputs(x), self.shape, self.num_coefficients, self.gray, self.centers)
        longest = math.prod(self.shape) * (_GRAY**2 if self.gray else 1)
        borders = np.arange(1, self.cells) ** 2 * (longest / self.cells**2)
        cells: NDArray[np.int64] = np.searchsorted(borders, squares, side="right").astype(np.int64)
        return cells


@dataclass(frozen=True)
class CosineMoments(SecondMoments):
    r"""First and second moments of an image's K low-frequency cosine coefficients, clipped to a ball.

    .. math:: \phi(x) = u \, [\sqrt{a},\; \sqrt{1-a}\, u^\top], \qquad u = c(x) / \max(\|c(x)\|, C)

    with c the coefficients of :func:`cosine_basis`, of an image or of its distance from gray or from a center of its
    class. The bound is 1, whatever c is: :class:`~likeness_images.moments.cosine_map`.
    Source of the transform: Ahmed, Natarajan and Rao (1974).

    Attributes:
        shape: height and width in pixels, and 3 in color.
        num_coefficients: K.
        bound: C, in units where a white pixel is 1.
        first_share: a, the first moments' part of the squared norm, between 0 and 1.
        gray: whether c are those of the distance from gray.
        centers: the center of each class times 64, class by class; then inputs end with the class.

    Raises:
        ReleaseError: sizes that make no sense.
    """

    name: ClassVar[str] = "cosine_moments"
    takes_tensors: ClassVar[bool] = False
    shape: tuple[int, ...]
    num_coefficients: int
    bound: float
    first_share: float
    gray: bool = False
    centers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check sizes."""
        check_cosine(self.name, self.shape, self.num_coefficients, self.centers)
        self._check_numbers()

    @property
    def size(self) -> int:
        """K."""
        return self.num_coefficients

    def factors(self, x: NDArray[np.float64]) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
        """u, shape (n, K), and ``[√a, √(1 − a) u]``, shape (n, 1 + K)."""
        sizes = self.shape, self.num_coefficients
        coefficients, squares = squared_coefficients(x, *sizes, self.gray, self.centers)
        u = coefficients * (1 / np.sqrt(np.maximum(squares, self.bound**2)))
        first = np.full_like(squares, math.sqrt(self.first_share))
        return ((u, np.hstack([first, math.sqrt(1 - self.first_share) * u])),)

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map images (n, pixels) to features (n, K · (1 + K)), row by row of the outer product."""
        ((left, right),) = self.factors(x)
        return (left[:, :, None] * right[:, None, :]).reshape(len(x), width(self))
