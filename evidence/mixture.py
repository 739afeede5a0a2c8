r"""The papers' mixture of 25 Gaussians in the plane as a table. Its density is known, so rows can be judged by it.

Run: ``python -m evidence.mixture [--out data/raw/mixture.parquet]``, then ``cp examples/mixture/params.yaml . && dvc
repro``, or ``python -m evidence.papers --data mixture``, which makes the file by itself.

25 Gaussians of standard deviation 0.2 stand on the points (r, c) of a 5 x 5 grid. Their classes go round with a shift
of two from row to row, class(r, c) = (2 r + c) mod 5, so that every class has one Gaussian in each row and column.

.. math:: p(x, y) = \sum_{j \in C_y} \tfrac{1}{25}\, \mathcal N(x \mid \mu_j, \sigma^2 I_2), \qquad
    \mathrm{NLL} = -\sum_i \log p(x_i, y_i)

Smaller is better, but not below that of true rows: rows in the middle of the Gaussians alone would have less.

Source: Harder et al. (DP-MERF, 2021) and Vinaroz et al. (DP-HP, ICML 2022), section 5.1, with their published code:
4,000 rows of each Gaussian, a tenth held out, which leaves 90,000. That code normalizes each Gaussian as if it had one
dimension, which adds :math:`-\log(\sqrt{2\pi}\sigma) = 0.69` a row: hence their 3.1e5 for 90,000 true rows, where the
formula above gives 2.55e5. ``as_published`` repeats it.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.rng import public

Array = NDArray[Any]
ROWS_EACH, SEED, TRAINING = 4000, 0, 90_000
_FAR = 3.0  # standard deviations: beyond it lie exp(-4.5) = 1.1 % of true rows, and what fell between the Gaussians


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
        stream = public(seed, "evaluation.gaussian_grid")
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


def build(out: Path) -> None:
    """Draw the rows, 100,000 in random order, the last tenth for tests; the same file every time."""
    x, labels = GaussianGrid().sample(ROWS_EACH, SEED)
    split = np.where(np.arange(len(x)) < TRAINING, "train", "test")
    out.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "class": labels.astype(str), "split": split}).to_parquet(out)


def score(table: pd.DataFrame) -> dict[str, float]:
    """How likely the rows are in the true mixture, scaled to the papers' 90,000 rows.

    Returns:
        ``nll``: negative log-likelihood; ``nll_as_published``: with the papers' normalization, for their numbers.
        ``far``: share of rows more than three standard deviations from every Gaussian of their class. ``modes``:
        Gaussians, of 25, that hold at least half of the rows they should: few far rows alone are easily had.
    """
    grid = GaussianGrid()
    x, labels = table[["x", "y"]].to_numpy(float), table["class"].astype(int).to_numpy()
    squared = ((x[:, None] - grid.centers[None]) ** 2).sum(axis=2)
    squared = np.where(grid.center_classes[None] == labels[:, None], squared, np.inf)
    near = np.sqrt(squared.min(axis=1)) <= _FAR * grid.sigma
    held = np.bincount(squared.argmin(axis=1)[near], minlength=len(grid.centers))
    scale = TRAINING / len(table)
    return {
        "nll": scale * grid.negative_log_likelihood(x, labels),
        "nll_as_published": scale * grid.negative_log_likelihood(x, labels, as_published=True),
        "far": float(1 - near.mean()),
        "modes": float((held >= len(table) / len(grid.centers) / 2).sum()),
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("data/raw/mixture.parquet"))
    out = parser.parse_args().out
    build(out)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
