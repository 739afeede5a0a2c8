"""Random Fourier features of the Gaussian kernel, with one-hot columns beside them (DP-MERF)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from likeness.bounds import Part
from likeness.features.frequencies import check_digest, draw_frequencies, frequencies_digest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MixedFourierFeatures:
    r"""Paired cosines and sines of the numeric columns, and the scaled one-hot columns: a sum of two kernels.

    .. math:: \phi(x) = [m^{-1/2} \cos(W x_{num}),\; m^{-1/2} \sin(W x_{num}),\; x_{cat} / \sqrt{d_{cat}}],
              \qquad W_{jk} \sim N(0, \ell^{-2})

    Norm of the Fourier part: exactly 1, since each of the m frequencies adds (cos² + sin²)/m. The phase-shifted form
    √2·cos(Wx + b) is bounded by √2 only, so it is not offered. Norm of the categorical part: exactly
    :math:`\sqrt{n_{cat}/d_{cat}}`, one 1 in each of n_cat blocks of d_cat columns in all; it is non-negative. The
    paper bounds both by 1. Sources: Rahimi and Recht (2007); Harder, Adamczewski and Park (2021), section 4.2.

    Attributes:
        num_frequencies: m. lengthscale: ℓ, in units of the unit cube. seed: public.
        numeric: indices of the numeric columns of x. categorical: indices of its one-hot columns.
        num_categorical: n_cat, number of one-hot blocks.
        digest: of the frequencies; empty to compute it.
    """

    num_frequencies: int
    lengthscale: float
    seed: int
    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    num_categorical: int
    digest: str = ""

    def __post_init__(self) -> None:
        """Draw the frequencies once."""
        drawn = draw_frequencies(
            self.num_frequencies, len(self.numeric), 1 / self.lengthscale, self.seed, "mixed_fourier"
        )
        if self.digest:
            check_digest(drawn, self.digest, "mixed_fourier")
        object.__setattr__(self, "digest", frequencies_digest(drawn))
        object.__setattr__(self, "_frequencies", drawn)

    @property
    def frequencies(self) -> "Tensor":
        """W, shape (m, number of numeric columns), float64."""
        drawn: Tensor = self._frequencies  # type: ignore[attr-defined]
        return drawn

    @property
    def parts(self) -> tuple[Part, ...]:
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
        import torch

        from likeness.features.trigonometric import cosine_sine

        features = []
        if self.numeric:
            angles = x[:, list(self.numeric)] @ self.frequencies.to(x).T
            features.append(cosine_sine(angles) / math.sqrt(self.num_frequencies))
        if self.categorical:
            features.append(x[:, list(self.categorical)] / math.sqrt(len(self.categorical)))
        return torch.cat(features, dim=1)

    def spec(self) -> dict[str, Any]:
        """Public specification."""
        return {
            "map": "mixed_fourier",
            "num_frequencies": self.num_frequencies,
            "lengthscale": self.lengthscale,
            "seed": self.seed,
            "numeric": list(self.numeric),
            "categorical": list(self.categorical),
            "num_categorical": self.num_categorical,
            "digest": self.digest,
        }
