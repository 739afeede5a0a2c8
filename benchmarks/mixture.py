"""The papers' mixture of 25 Gaussians in the plane as a table, and what rows like it are worth.

Run: ``python -m benchmarks.mixture [--out data/raw/mixture.parquet]``, then ``cp examples/mixture/params.yaml . && dvc
repro``, or ``python -m benchmarks.papers --data mixture``, which makes the file by itself. Source: Harder et al.
(DP-MERF, 2021) and Vinaroz et al. (DP-HP, ICML 2022), section 5.1: 4,000 rows of each Gaussian, a tenth held out, which
leaves 90,000.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.gaussian_grid import GaussianGrid

ROWS_EACH, SEED, TRAINING = 4000, 0, 90_000
_FAR = 3.0  # standard deviations: beyond it lie exp(-4.5) = 1.1 % of true rows, and what fell between the Gaussians


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
