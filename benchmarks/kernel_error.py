"""How well Hermite features and random Fourier features approximate a Gaussian kernel, by their number.

Run: ``python -m benchmarks.kernel_error``. Needs no data: 100 points drawn uniformly from [0, 1], the range of every
encoded number, and the Gaussian kernel of their median distance. For Fourier features the mean of 100 draws. The error
is the mean absolute difference over all pairs. Source: Vinaroz et al. (DP-HP, ICML 2022), figure 1, on points of ours.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from likeness.core.rng import public
from likeness.report.style import BLUE, ORANGE, draw

RESULTS, PICTURE = Path("benchmarks/results/kernel_error.csv"), Path("docs/img/kernel_error.png")
COUNTS = (2, 4, 6, 8, 10, 14, 20, 30, 50, 100, 200, 500, 1000)
Array = NDArray[Any]


def hermite(x: Array, count: int, rho: float) -> Array:
    """First ``count`` Mehler features (n, count) of points (n,), by recursion: k! is never formed."""
    features = np.zeros((len(x), count))
    features[:, 0] = (1 - rho**2) ** 0.25 * np.exp(-rho * x**2 / (1 + rho))
    if count > 1:
        features[:, 1] = math.sqrt(2 * rho) * x * features[:, 0]
    for k in range(1, count - 1):
        features[:, k + 1] = (
            math.sqrt(2 * rho / (k + 1)) * x * features[:, k] - rho * math.sqrt(k / (k + 1)) * features[:, k - 1]
        )
    return features


def fourier(x: Array, count: int, scale: float, draw: int) -> Array:
    """Cosines and sines (n, count) at ``count`` / 2 frequencies drawn from N(0, 1 / scale²)."""
    frequencies = public(draw, "benchmarks.kernel_error").normal(0, 1 / scale, count // 2)
    angles = x[:, None] * frequencies
    return math.sqrt(2 / count) * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def main() -> None:
    """Measure, write the table and the picture."""
    x = public(0, "benchmarks.kernel_error.points").uniform(size=100)
    distances = abs(x[:, None] - x[None])
    scale = float(np.median(distances[np.triu_indices(len(x), 1)]))
    kernel = np.exp(-(distances**2) / (2 * scale**2))
    # 1 / (2 l²) = ρ / (1 - ρ²), solved for ρ in (0, 1)
    rho = -(scale**2) + math.sqrt(scale**4 + 1)

    def error(features: Array) -> float:
        return float(abs(features @ features.T - kernel).mean())

    rows = [
        (count, error(hermite(x, count, rho)), np.mean([error(fourier(x, count, scale, d)) for d in range(100)]))
        for count in COUNTS
    ]
    table = pd.DataFrame(rows, columns=["features", "hermite", "fourier"])
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(RESULTS, index=False, float_format="%.4g")
    print(f"length scale {scale:.3f}, rho {rho:.3f}", table.to_string(index=False), sep="\n")

    def paint(figure: Figure) -> None:
        panel = figure.subplots()
        panel.plot(table["features"], table["fourier"], "o-", color=ORANGE, label="random Fourier, mean of 100 draws")
        panel.plot(table["features"], table["hermite"], "s-", color=BLUE, label="Hermite (Mehler)")
        panel.set_xscale("log")
        panel.set_yscale("log")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_xlabel("number of features")
        panel.set_ylabel("mean absolute error of the kernel")
        panel.legend()

    PICTURE.write_bytes(draw(7, 4, paint, secret=False))


if __name__ == "__main__":
    main()
