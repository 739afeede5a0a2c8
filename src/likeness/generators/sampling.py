"""Sampling with little chance: each category is drawn about as often as expected, in random order."""

import numpy as np
from numpy.typing import NDArray

_ROWS = 8192  # rows compared at once
_BELOW_ONE = 1 - 2.0**-53  # a point that rounds to 1 would fall behind the last category of positive probability


def systematic(
    probabilities: NDArray[np.float64], groups: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """One category a row, by systematic sampling within groups of rows that share their probabilities.

    In each row a category has exactly its probability. Together, the rows of a group hold each category as often as
    expected, give or take one (Madow 1949). Synthetic marginals scatter less than by independent draws.

    Args:
        probabilities: of each group, shape (num_groups, categories), rows sum to 1.
        groups: group of each row, shape (n,), int64.
        random: public randomness.

    Returns:
        category of each row, shape (n,), int64.
    """
    points = places_within(len(probabilities), groups, random)
    ends = probabilities.cumsum(axis=1)
    ends /= np.maximum(ends[:, -1:], np.finfo(np.float64).tiny)  # a group without probability has no rows
    chosen = np.empty(len(groups), dtype=np.int64)
    for start in range(0, len(groups), _ROWS):
        block = slice(start, start + _ROWS)
        chosen[block] = (points[block, None] >= ends[groups[block], :-1]).sum(axis=1)
    return chosen


def places_within(num_groups: int, groups: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
    """Places of rows in [0, 1): those of a group are evenly spaced from a random start, in random order."""
    order = random.permutation(len(groups))  # who comes first, within a group, is chance
    order = order[np.argsort(groups[order], kind="stable")]
    counts = np.bincount(groups, minlength=num_groups)
    starts = np.cumsum(counts) - counts
    group = groups[order]
    place = np.arange(len(groups)) - starts[group]
    points = np.empty(len(groups))
    points[order] = np.minimum((place + random.random(num_groups)[group]) / counts[group], _BELOW_ONE)
    return points
