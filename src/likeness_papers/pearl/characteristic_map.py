"""Empirical characteristic function at public frequencies (PEARL)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.features.base import convert_once
from likeness.features.frequencies import FrequencyMap

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class CharacteristicFunction(FrequencyMap):
    r"""Real and imaginary parts of :math:`e^{i t_j^\top x}` at k frequencies.

    .. math:: \phi(x) = [\cos(Tx), \sin(Tx)], \qquad T_{j\cdot} \sim N(0, \sigma_0^2 I)

    The mean of φ over a sample is its empirical characteristic function. Norm: exactly :math:`\sqrt{k}`, since each
    frequency adds cos² + sin² = 1. Any two features lie within :math:`2\sqrt{k}`.
    Sources: Liew, Takahashi and Ueno (2022), PEARL; Heathcote (1972).

    Attributes:
        num_frequencies: k.
        dimension: d.
        scale: σ₀, the standard deviation of the base distribution ω₀, in 1 / units of x.
        seed: public.
        digest: of the frequencies; empty to compute it.
    """

    name: ClassVar[str] = "characteristic"
    num_frequencies: int
    dimension: int
    scale: float
    seed: int
    digest: str = ""

    def __post_init__(self) -> None:
        """Draw the frequencies once."""
        self._draw(self.num_frequencies, self.dimension, self.scale)

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One signed part with squared norm k, by the identity in the class docstring."""
        return (Part(2 * self.num_frequencies, Fraction(self.num_frequencies)),)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d) to features (n, 2k): all cosines, then all sines."""
        from likeness_papers.networks.trigonometric import cosine_sine

        return cosine_sine(self.angles(x))

    def means(self, x: "Tensor", counts: list[int]) -> "Tensor":
        """Mean features of consecutive groups of rows, shape (groups, 2k), without vectors of rows."""
        from likeness_papers.networks.trigonometric import mean_cosine_sine

        return mean_cosine_sine(self.angles(x), counts)

    def log_density_ratio(self, log_scale: "Tensor") -> "Tensor":
        """``log ω(t_j) − log ω₀(t_j)`` for ω = N(0, diag(exp(log_scale))²), shape (k,).

        Scales of shape (m, d) give (m, k), in one product.
        """
        squares = convert_once(self, "squares", log_scale, lambda: self.frequencies.square())
        base = convert_once(self, "base", log_scale, self._log_base)
        density = -0.5 * (-2 * log_scale).exp() @ squares.T - log_scale.sum(dim=-1, keepdim=True)
        return density - base

    def _log_base(self) -> "Tensor":
        """``log ω₀(t_j)`` up to the constant of both densities, shape (k,)."""
        return -0.5 * self.frequencies.square().sum(dim=1) / self.scale**2 - self.dimension * math.log(self.scale)
