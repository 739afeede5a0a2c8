"""Modes of one number: a Gaussian mixture with public parameters, and where a value stands within a mode."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likeness.core.errors import ReleaseError
from likeness.core.typed import build

if TYPE_CHECKING:
    from torch import Tensor

_WINDOW = 8.0  # standard deviations: four on either side of the mean, as in CTGAN


@dataclass(frozen=True)
class Modes:
    r"""A Gaussian mixture of one unit coordinate of the encoded row, from public or released numbers.

    The *window* of mode k is four standard deviations to either side of its mean, scaled to [0, 1]:

    .. math:: u_k(x) = \mathrm{clip}\left(\tfrac12 + \frac{x - \mu_k}{8 \sigma_k},\; 0,\; 1\right)

    It is mode-specific normalization (Xu et al. 2019), rescaled from [-1, 1].

    Attributes:
        place: coordinate of the number.
        missing: whether its indicator stands right after it.
        weights: :math:`w_k > 0`.
        means: :math:`\mu_k`, in units of the column.
        deviations: :math:`\sigma_k > 0`, in units of the column.

    Raises:
        ReleaseError: the numbers are no mixture.
    """

    place: int
    missing: bool
    weights: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def __post_init__(self) -> None:
        numbers = (*self.weights, *self.means, *self.deviations)
        same = len(self.weights) == len(self.means) == len(self.deviations) >= 1
        if not same or self.place < 0 or not all(map(math.isfinite, numbers)):
            raise ReleaseError("modes need a place, and as many finite weights as means and deviations, at least one")
        if min(*self.weights, *self.deviations) <= 0:
            raise ReleaseError("modes need weights and deviations above 0")

    @property
    def size(self) -> int:
        """K, the number of modes."""
        return len(self.weights)

    def log_joint(self, values: "Tensor") -> "Tensor":
        r""":math:`\log w_k N(x; \mu_k, \sigma_k^2)` up to a constant, from values (n,) to (n, K).

        It uses sums and products of single numbers only. Every processor rounds these alike in any row, so the largest
        does not depend on the row's place. Values with an exponential would.
        """
        scores = [math.log(w / s) for w, s in zip(self.weights, self.deviations, strict=True)]
        precisions = [0.5 / s**2 for s in self.deviations]
        distances = values[:, None] - values.new_tensor(self.means)
        return values.new_tensor(scores) - distances.square() * values.new_tensor(precisions)

    def windows(self, values: "Tensor") -> "Tensor":
        """Places within every mode's window, from values (n,) to (n, K) in [0, 1]."""
        slopes = [1 / (_WINDOW * s) for s in self.deviations]
        offsets = (values[:, None] - values.new_tensor(self.means)) * values.new_tensor(slopes)
        return (offsets + 0.5).clamp(0, 1)

    def values(self, modes: "Tensor", windows: "Tensor") -> "Tensor":
        """Numbers in [0, 1] from modes (n,) and places within their windows (n,): the inverse, up to clipping."""
        means, deviations = windows.new_tensor(self.means)[modes], windows.new_tensor(self.deviations)[modes]
        return (means + _WINDOW * deviations * (windows - 0.5)).clamp(0, 1)

    def shift(self, means: "list[float]", variances: "list[float]", weights: "list[float]", least: float) -> "Modes":
        """The mixture with means and variances of places in the windows of this one, and weights of any positive sum.

        ``least`` is the smallest deviation, in units of the column. Means lie in [0, 1]. All numbers have six decimals,
        since they stand in specifications.
        """
        total = math.fsum(weights)
        columns = zip(self.means, self.deviations, means, variances, strict=True)
        moments = [(m + _WINDOW * s * (u - 0.5), _WINDOW * s * math.sqrt(v)) for m, s, u, v in columns]
        return Modes(
            self.place,
            self.missing,
            tuple(max(_STEP, round(w / total, _DECIMALS)) for w in weights),
            tuple(round(min(1.0, max(0.0, m)), _DECIMALS) for m, _ in moments),
            tuple(round(min(1.0, max(least, s)), _DECIMALS) for _, s in moments),
        )


def modes_of(columns: "tuple[Modes | Mapping[str, Any], ...]", name: str) -> tuple[Modes, ...]:
    """Modes of several columns, given as modes or as JSON.

    Raises:
        ReleaseError: there are none, or they are not in the order of their places.
    """
    modes = tuple(column if isinstance(column, Modes) else build(Modes, column, "modes") for column in columns)
    positions = [column.place for column in modes]
    if not positions or positions != sorted(set(positions)):
        raise ReleaseError(f"{name} needs the modes of at least one column, in the order of their places")
    return modes


_DECIMALS = 6
_STEP = 10.0**-_DECIMALS
