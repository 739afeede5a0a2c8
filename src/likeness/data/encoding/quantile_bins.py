"""Bins of about equal content from noisy counts of fine cells: exact integers, equal on all machines."""

import math
from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

_BITS = 30  # bits of all counts together: the sum of their squares then fits an int64


def quantile_bins(counts: NDArray[np.int64], noise_scale: float, alone: Set[int], bins: int) -> tuple[int, ...] | None:
    r"""The first cell of each bin, ascending from 0; None where the noise hides the quantiles.

    Consecutive cells join into ``bins`` bins with the smallest :math:`\sum_b m_b^2`, and the first solution counts.
    Bins have equal content where they can, and a cell with more than that is alone in its bin. Dynamic programming
    gives the solution, as for V-optimal histograms (Jagadish et al. 1998).

    The content :math:`m` of a cell has two parts. The first is its count among the nearest non-negative counts with the
    same total. Noise that is cut off at 0 is taken from all other counts equally, so cumulative shares ascend and stay
    unbiased in the middle. The second is one standard deviation of the noise: cells that look empty are divided by
    their number, and not by their noise.

    The number of records below an edge is a sum of up to all n cells. With a given total its noise has standard
    deviation :math:`\sigma \sqrt n / 2` in the middle. The result is None where that is more than half of an average
    bin, or where the total is not positive.

    Args:
        counts: noisy sums of each cell, shape (n,), in any unit.
        noise_scale: σ in that unit; 0 without noise.
        alone: cells that must be alone in their bins.
        bins: number of bins, between the number that ``alone`` forces and n.
    """
    cells, total, noise = len(counts), int(counts.sum()), math.ceil(noise_scale)
    if total <= 0 or total**2 < cells * (bins * noise) ** 2:
        return None
    content = [count + noise for count in _nonnegative([int(count) for count in counts], total)]
    step = 1 + (sum(content) >> _BITS)
    below = np.concatenate([[0], np.cumsum([count // step for count in content])]).astype(np.int64)
    return _partition(below, alone, bins)


def _nonnegative(counts: list[int], total: int) -> list[int]:
    """Nearest non-negative integers with at most the same total: all counts are lowered equally, then cut at 0."""
    low, high = -1, max(counts)  # lowering by high leaves nothing, and by -1 too much
    while high - low > 1:
        middle = (low + high) // 2
        left = sum(max(0, count - middle) for count in counts)
        low, high = (low, middle) if left <= total else (middle, high)
    return [max(0, count - high) for count in counts]


def _partition(below: NDArray[np.int64], alone: Set[int], bins: int) -> tuple[int, ...]:
    """The partition of cells that :func:`quantile_bins` describes, from the content below each edge, shape (n + 1,)."""
    edges = np.arange(len(below))
    singles = np.zeros(len(below), dtype=np.int64)
    singles[[place + 1 for place in alone]] = 1
    inside = np.cumsum(singles)  # number of cells below an edge that must be alone
    # costs[i, j] is the cost of one bin from edge i to edge j.
    costs = (below[None, :] - below[:, None]) ** 2
    forbidden = edges[None, :] <= edges[:, None]
    forbidden |= (inside[None, :] > inside[:, None]) & (edges[None, :] > edges[:, None] + 1)
    costs[forbidden] = _NEVER
    best = costs[0]
    choices = []
    for _ in range(1, bins):
        options = best[:, None] + costs
        choice = options.argmin(axis=0)
        best = np.minimum(options[choice, edges], _NEVER)
        choices.append(choice)
    place, firsts = len(below) - 1, []
    for choice in reversed(choices):
        place = int(choice[place])
        firsts.append(place)
    return (0, *reversed(firsts))


_NEVER = np.int64(1) << 61  # more than any sum of squares; twice it fits an int64
