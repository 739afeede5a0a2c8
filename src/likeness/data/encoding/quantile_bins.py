"""Bins of about equal content from noisy counts of fine cells: exact integers, the same on every machine."""

import math
from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

_BITS = 30  # of all counts together: the sum of their squares then fits an int64


def quantile_bins(counts: NDArray[np.int64], noise_scale: float, alone: Set[int], bins: int) -> tuple[int, ...] | None:
    r"""The first cell of each bin, ascending from 0; None where the noise hides the quantiles.

    Of all ways to join consecutive cells into ``bins`` bins, the one with the smallest :math:`\sum_b m_b^2`, the first
    of several: bins of equal content if there are such, and a cell with more than that alone in its bin. Found by
    dynamic programming, as V-optimal histograms are (Jagadish et al. 1998). A cell's content :math:`m` is its count
    after the nearest non-negative ones with the same total (noise that is cut off at 0 is taken from the others alike,
    so that cumulative shares ascend and stay unbiased in the middle), plus one standard deviation of its noise: cells
    that cannot be told from empty ones are shared out by their number, not by their noise.

    The number of records below an edge is a sum of up to all n cells, whose noise has standard deviation
    :math:`\sigma \sqrt n / 2` in the middle, where the total is known. None is returned where that is more than half of
    what an average bin holds, or where the total is not positive.

    Args:
        counts: noisy sums of each cell, shape (n,), in any unit. noise_scale: σ in that unit; 0 if there is no noise.
        alone: cells that are bins of their own. bins: how many, between those that ``alone`` forces and n.
    """
    cells, total, noise = len(counts), int(counts.sum()), math.ceil(noise_scale)
    if total <= 0 or total**2 < cells * (bins * noise) ** 2:
        return None
    content = [own + noise for own in _nonnegative([int(count) for count in counts], total)]
    step = 1 + (sum(content) >> _BITS)
    below = np.concatenate([[0], np.cumsum([own // step for own in content])]).astype(np.int64)
    return _partition(below, alone, bins)


def _nonnegative(counts: list[int], total: int) -> list[int]:
    """Nearest non-negative counts with at most the same total, to the last unit: all are lowered alike, then cut."""
    low, high = -1, max(counts)  # lowering by ``high`` leaves nothing, and by -1 too much
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
    inside = np.cumsum(singles)  # how many cells below an edge must be alone
    # costs[i, j]: of one bin from edge i to edge j.
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
