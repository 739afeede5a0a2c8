"""Released counts of pairs and of tables of columns by class, and what they say about single columns."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Block = tuple[int, int, NDArray[np.float64]]
"""Places i and j of two columns, and counts of shape (num_classes, cells of i, cells of j)."""
Table = tuple[tuple[int, ...], NDArray[np.float64]]
"""Places of columns, and counts of shape (num_classes, cells of each of them)."""


def one_way_marginals(
    blocks: Iterable[Block], sizes: Sequence[int], squared_weights: Iterable[float]
) -> NDArray[np.float64]:
    """One-way marginals of all columns from the noisy pairs: shape (num_classes, W), sum 1 in each column.

    Each pair gives one estimate, whose variance is the other column's number of cells over the squared weight. They are
    averaged by inverse variance and projected on the simplex. Post-processing.
    """
    sums: list[NDArray[np.float64] | float] = [0.0] * len(sizes)
    for (i, j, counts), weight in zip(blocks, squared_weights, strict=True):
        sums[i] = sums[i] + counts.sum(axis=2) * weight / sizes[j]
        sums[j] = sums[j] + counts.sum(axis=1) * weight / sizes[i]
    # A column's estimates add up to the number of records times the sum of their weights, which cancels.
    return np.concatenate([_on_simplex(np.asarray(estimate)) for estimate in sums], axis=1)


def _on_simplex(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest distribution of each row, in Euclidean distance, after scaling to sum 1; uniform where nothing is left.

    What is cut off at 0 is taken equally from the other cells, so small cells do not grow (Held et al. 1974).
    """
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, counts / np.where(totals > 0, totals, 1), 1 / counts.shape[1])
    descending = -np.sort(-shares, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (descending > excess).sum(axis=1, keepdims=True) - 1
    projected: NDArray[np.float64] = np.maximum(shares - np.take_along_axis(excess, last, axis=1), 0)
    return projected
