r"""Why PEARL has a critic: power of a test by characteristic functions, by dimension, for weighted frequencies.

Run: ``python -m benchmarks.critic_power``. Needs no data. Resumable: a dimension that is in the CSV is not run again.

1,000 rows of N(0, I) and 1,000 of N((1, 0, ..., 0), I) in d dimensions; 20 frequencies; statistic
:math:`\sum_j w_j |\hat\Phi_P(t_j) - \hat\Phi_Q(t_j)|^2`, rejected at 5 % by 200 permutations; 3 times
100 trials (the paper: 5).

- *normal*: frequencies from N(0, I), equal weights. *unoptimized*: all but one have a first coordinate of 0, where the
  two do not differ. *optimized*: of these the one alone, which is told and not found. These are the paper's (Liew,
  Takahashi and Ueno 2022, section 4.3 and appendix C; its test is not named, nor its level).
- *critic*: the frequencies of *normal*, and weights by the critic as it is here: it ascends on the deviations of the
  frequencies' distribution, each kept within a factor of 1.05 (as shipped) or of 2. It learns on half of the rows, and
  the test is made on the other half: weights may not have seen what they are tested on. *half* is the test of equal
  weights on that half.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.common import keep, read_results
from likeness.core.rng import public
from likeness.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, draw

RESULTS, PICTURE = Path("benchmarks/results/critic_power.csv"), Path("docs/img/critic_power.png")
KEYS = ["dimension", "repeat"]
DIMENSIONS, REPEATS, TRIALS, ROWS, FREQUENCIES = (1, 2, 4, 6, 8, 12, 20), 3, 100, 1000, 20
LEVEL, PERMUTATIONS, STEPS, RATE = 0.05, 200, 100, 0.01
SETS = ("normal", "unoptimized", "optimized", "half", "critic_1.05", "critic_2")


def rates(dimension: int, repeat: int) -> dict[str, float]:
    """Rejection rate of each set over ``TRIALS`` trials, all drawn from one public stream."""
    stream = public(repeat, f"benchmarks.critic_power.{dimension}")
    p, q = stream.standard_normal((2, TRIALS, ROWS, dimension))
    q[:, :, 0] += 1
    normal = stream.standard_normal((TRIALS, FREQUENCIES, dimension))
    unoptimized = normal.copy()
    unoptimized[:, 1:, 0] = 0
    half, equal = ROWS // 2, np.ones((TRIALS, FREQUENCIES))
    whole_orders, half_orders = _orders(ROWS, stream), _orders(half, stream)

    def rate(frequencies: np.ndarray, weights: np.ndarray, start: int, orders: np.ndarray) -> float:
        trials = zip(p[:, start:], q[:, start:], frequencies, weights, strict=True)
        return float(np.mean([_differ(*trial, orders) for trial in trials]))

    learned = {factor: ascend(p[:, :half], q[:, :half], normal, factor) for factor in (1.05, 2.0)}
    return {
        "normal": rate(normal, equal, 0, whole_orders),
        "unoptimized": rate(unoptimized, equal, 0, whole_orders),
        "optimized": rate(unoptimized[:, :1], equal[:, :1], 0, whole_orders),
        "half": rate(normal, equal, half, half_orders),
        "critic_1.05": rate(normal, learned[1.05], half, half_orders),
        "critic_2": rate(normal, learned[2.0], half, half_orders),
    }


def _orders(rows: int, stream: np.random.Generator) -> np.ndarray:
    """Signs of who belongs to which sample, the true ones first; permutations that no row has a say in."""
    signs = np.repeat([1.0, -1.0], rows) / rows
    return np.stack([signs, *(stream.permutation(signs) for _ in range(PERMUTATIONS))])


def features(rows: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Cosines and sines, shape (n, 2k)."""
    angles = rows @ frequencies.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def _differ(p: np.ndarray, q: np.ndarray, frequencies: np.ndarray, weights: np.ndarray, orders: np.ndarray) -> bool:
    """Whether the rows are told apart: the statistic's rank among those of permuted rows."""
    squares = (orders @ features(np.concatenate([p, q]), frequencies)) ** 2
    statistics = squares @ np.concatenate([weights, weights])
    return bool((statistics[1:] >= statistics[0]).sum() + 1 <= LEVEL * (PERMUTATIONS + 1))


def ascend(p: np.ndarray, q: np.ndarray, frequencies: np.ndarray, factor: float) -> np.ndarray:
    """Weights ω/ω₀ of mean 1, as of :class:`likeness.methods.pearl.critic.FrequencyCritic`, for many trials at once.

    Args:
        p, q: shape (trials, n, d). frequencies: from N(0, I), (trials, k, d). factor: largest ratio of deviations.

    Returns:
        shape (trials, k).
    """
    pairs = zip(p, q, frequencies, strict=True)
    squares = np.stack([(features(a, t).mean(axis=0) - features(b, t).mean(axis=0)) ** 2 for a, b, t in pairs])
    count = frequencies.shape[1]
    residuals, t = torch.from_numpy(squares[:, :count] + squares[:, count:]), torch.from_numpy(frequencies).square()
    log_scale = torch.zeros(len(p), frequencies.shape[2], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([log_scale], lr=RATE, maximize=True)  # each coordinate by itself: trials do not meet

    def weights() -> Tensor:
        exponent = (t * (1 - torch.exp(-2 * log_scale))[:, None]).sum(dim=2) / 2  # the determinant is the same for all
        return torch.softmax(exponent, dim=1) * count

    for _ in range(STEPS):
        optimizer.zero_grad()
        (weights() * residuals).sum().backward()
        optimizer.step()
        with torch.no_grad():
            log_scale.clamp_(-math.log(factor), math.log(factor))
    return weights().detach().numpy()


def paint(table: pd.DataFrame, figure: Figure) -> None:
    """Rejection rates by dimension, mean and deviation over repeats."""
    panel = figure.subplots()
    means, spreads = (getattr(table.groupby("dimension"), word)() for word in ("mean", "std"))
    looks = zip(SETS, (BLUE, GREY, GREEN, "#56B4E9", ORANGE, PURPLE), "os^.Dv", strict=True)
    labels = {
        "half": "normal, half of the rows",
        "critic_1.05": "critic, factor 1.05 (as shipped)",
        "critic_2": "critic, factor 2",
    }
    for name, color, marker in looks:
        panel.errorbar(means.index, means[name], spreads[name].fillna(0), color=color, marker=marker, markersize=4,
                       capsize=2, label=labels.get(name, name))  # fmt: skip
    panel.axhline(LEVEL, color="black", linewidth=0.8, linestyle=":", label="level of the test")
    panel.set_xlabel("dimension")
    panel.set_ylabel("rejection rate")
    panel.legend()


def main() -> None:
    """Run what is missing, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for repeat in range(1, REPEATS + 1):
        for dimension in DIMENSIONS:
            rows = read_results(RESULTS, KEYS)
            if not (rows[KEYS] == [dimension, repeat]).all(axis=1).any():
                keep(RESULTS, {"dimension": dimension, "repeat": repeat, **rates(dimension, repeat)}, KEYS)
    table = read_results(RESULTS, KEYS)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_bytes(draw(7, 4, lambda figure: paint(table.drop(columns="repeat"), figure), secret=False))


if __name__ == "__main__":
    main()
