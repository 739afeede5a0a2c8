"""Random Fourier features of the Gaussian kernel, with one-hot columns beside them (DP-MERF)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.core.extras import torch
from likeness.features.base import columns_of, convert_once
from likeness.features.frequencies import FrequencyMap

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MixedFourierFeatures(FrequencyMap):
    r"""Paired cosines and sines of the numeric columns, and the scaled one-hot columns: a sum of two kernels.

    .. math:: \phi(x) = [m^{-1/2} \cos(W x_{num}),\; m^{-1/2} \sin(W x_{num}),\; x_{cat} / \sqrt{d_{cat}}],
              \qquad W_{jk} \sim N(0, \ell^{-2})

    With J length scales, scale j has :math:`m_j` frequencies, about m/J, of factor :math:`(J m_j)^{-1/2}`. Then the
    kernel is :math:`\sum_j \exp(-\|x - x'\|^2 / 2 \ell_j^2) / J`, in one vector with one bound.

    Norm of the Fourier part: exactly 1, since each of the m frequencies adds (cos² + sin²)/m, and those of scale j add
    1/J. (The phase-shifted form √2·cos(Wx + b) has the larger bound √2.) Norm of the categorical part: exactly
    :math:`\sqrt{n_{cat}/d_{cat}}`, one 1 in each of n_cat blocks of d_cat columns in all; it is non-negative. The paper
    bounds both by 1. Sources: Rahimi and Recht (2007); Harder, Adamczewski and Park (2021).

    Attributes:
        num_frequencies: m.
        lengthscale: ℓ, in units of the unit cube; one, or several that share the frequencies in order. One that stands
            twice counts twice.
        seed: public.
        numeric: indices of the numeric columns of x.
        categorical: indices of its one-hot columns.
        num_categorical: n_cat, number of one-hot blocks.
        digest: of the frequencies; empty to compute it.

    Raises:
        ReleaseError: fewer frequencies than length scales.
    """

    name: ClassVar[str] = "mixed_fourier"
    num_frequencies: int
    lengthscale: float | tuple[float, ...]
    seed: int
    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    num_categorical: int
    digest: str = ""

    def __post_init__(self) -> None:
        """Draw the frequencies once."""
        self._draw(self.num_frequencies, len(self.numeric), self._scales())

    def _scales(self) -> "float | NDArray[np.float64]":
        """Standard deviation of the frequencies: of all, or of each, shape (m, 1)."""
        if not isinstance(self.lengthscale, tuple):
            return 1 / self.lengthscale
        if not 0 < len(self.lengthscale) <= self.num_frequencies:
            raise ReleaseError("mixed_fourier needs at least one frequency for each length scale")
        return np.repeat(1 / np.array(self.lengthscale), self._counts)[:, None]

    @property
    def _counts(self) -> list[int]:
        """Frequencies of each length scale: m/J, and one more for the first ones where that is not whole."""
        scales = len(self.lengthscale) if isinstance(self.lengthscale, tuple) else 1
        each, left = divmod(self.num_frequencies, scales)
        return [each + (scale < left) for scale in range(scales)]

    def _weight(self, features: "Tensor") -> "Tensor":
        """Cosines and sines with the factors of their length scales."""
        if not isinstance(self.lengthscale, tuple):
            return features / math.sqrt(self.num_frequencies)
        return features * convert_once(self, "factors", features, self._factors)

    def _factors(self) -> NDArray[np.float64]:
        shares = np.repeat([1 / len(self._counts) / count for count in self._counts], self._counts)
        factors: NDArray[np.float64] = np.sqrt(np.tile(shares, 2))
        return factors

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """A signed part of norm 1 and a non-negative part of squared norm n_cat/d_cat, where there are such columns."""
        parts = []
        if self.numeric:
            parts.append(Part(2 * self.num_frequencies, Fraction(1)))
        if self.categorical:
            bound = Fraction(self.num_categorical, len(self.categorical))
            parts.append(Part(len(self.categorical), bound, nonnegative=True))
        return tuple(parts)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d) to features (n, 2m + d_cat)."""
        from likeness_papers.networks.trigonometric import cosine_sine

        features = []
        if self.numeric:
            angles = self.angles(columns_of(x, self.numeric))
            features.append(self._weight(cosine_sine(angles)))
        if self.categorical:
            features.append(columns_of(x, self.categorical) / math.sqrt(len(self.categorical)))
        return torch.cat(features, dim=1)

    def means(self, x: "Tensor", counts: list[int]) -> "Tensor":
        """Mean features of consecutive groups of rows, shape (groups, 2m + d_cat), without vectors of rows."""
        from likeness_papers.networks.trigonometric import mean_cosine_sine

        means = []
        if self.numeric:
            angles = self.angles(columns_of(x, self.numeric))
            means.append(self._weight(mean_cosine_sine(angles, counts)))
        if self.categorical:
            groups = torch.split(columns_of(x, self.categorical) / math.sqrt(len(self.categorical)), counts)
            means.append(torch.stack([group.mean(dim=0) for group in groups]))
        return torch.cat(means, dim=1)
