r"""The papers' mixture in the plane: a grid of Gaussians whose true density is known, so that rows can be judged by it.

25 Gaussians of standard deviation 0.2 stand on the points (r, c) of a 5 x 5 grid. Their classes go round with a shift
of two from row to row, class(r, c) = (2 r + c) mod 5, so that every class has one Gaussian in each row and column.

.. math:: p(x, y) = \sum_{j \in C_y} \tfrac{1}{25}\, \mathcal N(x \mid \mu_j, \sigma^2 I_2), \qquad
    \mathrm{NLL} = -\sum_i \log p(x_i, y_i)

Smaller is better, but not below that of true rows: rows in the middle of the Gaussians alone would have less.

Source: Harder et al. (DP-MERF, 2021) and Vinaroz et al. (DP-HP, ICML 2022), section 5.1, with their published code.
That code normalizes each Gaussian as if it had one dimension, which adds :math:`-\log(\sqrt{2\pi}\sigma) = 0.69` a row:
hence their 3.1e5 for 90,000 true rows, where the formula above gives 2.55e5. ``as_published`` repeats it.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError

Array = NDArray[Any]


@dataclass(frozen=True)
class GaussianGrid:
    """The mixture.

    Attributes:
        side: points of the grid along each axis, one unit apart, from 0.
        classes: number of classes; divides ``side`` so that a row holds each class equally often.
        sigma: standard deviation of each Gaussian, in units of the grid.
    """

    side: int = 5
    classes: int = 5
    sigma: float = 0.2

    def __post_init__(self) -> None:
        if self.side % self.classes or not self.sigma > 0:
            raise DataError(
                f"grid: side {self.side} is no multiple of classes {self.classes}, or sigma is not above 0."
            )

    @property
    def centers(self) -> NDArray[np.float64]:
        """Means (side², 2), by rows of the grid."""
        return np.stack(np.divmod(np.arange(self.side**2), self.side), axis=1).astype(np.float64)

    @property
    def center_classes(self) -> NDArray[np.int64]:
        """Class of each mean, (side²,)."""
        row, column = np.divmod(np.arange(self.side**2), self.side)
        return (row * (self.classes // 2) + column) % self.classes

    def sample(self, rows_each: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Equally many rows of every Gaussian, in random order: x (side² · rows_each, 2) and class.

        The papers draw 4,000 of each and hold a tenth out, which leaves 90,000.
        """
        stream = rng.public(seed, "evaluation.gaussian_grid")
        center = stream.permutation(np.repeat(np.arange(self.side**2), rows_each))
        x = self.centers[center] + self.sigma * stream.standard_normal((len(center), 2))
        return x, self.center_classes[center]

    def log_density(self, x: Array, labels: Array) -> NDArray[np.float64]:
        """log p(x, y) of each row: x (n, 2), labels (n,)."""
        squared = ((x[:, None, :] - self.centers[None]) ** 2).sum(axis=2)
        exponent = np.where(
            self.center_classes[None] == np.asarray(labels)[:, None], -squared / (2 * self.sigma**2), -np.inf
        )
        largest = exponent.max(axis=1)
        total = np.log(np.exp(exponent - largest[:, None]).sum(axis=1)) + largest
        result: NDArray[np.float64] = total - math.log(self.side**2 * 2 * math.pi * self.sigma**2)
        return result

    def negative_log_likelihood(self, x: Array, labels: Array, *, as_published: bool = False) -> float:
        """NLL of all rows together, in nats.

        Args:
            x: rows (n, 2).
            labels: their classes (n,).
            as_published: with the normalization of the papers' code, to compare with their tables.
        """
        shift = -len(x) * math.log(math.sqrt(2 * math.pi) * self.sigma) if as_published else 0.0
        return float(shift - self.log_density(x, labels).sum())
