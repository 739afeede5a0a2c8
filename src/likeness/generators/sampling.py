"""Sampling with little chance: each category is drawn about as often as expected, in random order."""

import torch
from torch import Tensor


def systematic(probabilities: Tensor, groups: Tensor, generator: torch.Generator) -> Tensor:
    """One category a row, by systematic sampling within groups of rows that share their probabilities.

    In each row a category has exactly its probability. Together, the rows of a group hold each category as often as
    expected, give or take one (Madow 1949). Synthetic marginals scatter less than by independent draws.

    Args:
        probabilities: of each group, shape (num_groups, categories), rows sum to 1.
        groups: group of each row, shape (n,), int64.
        generator: public randomness.

    Returns:
        category of each row, shape (n,), int64.
    """
    points = places_within(len(probabilities), groups, generator)
    ends = probabilities.double().cumsum(dim=1)
    ends = ends / ends[:, -1:]
    chosen = torch.empty(len(groups), dtype=torch.int64)
    for start in range(0, len(groups), _ROWS):
        block = slice(start, start + _ROWS)
        chosen[block] = (points[block, None] >= ends[groups[block], :-1]).sum(dim=1)
    return chosen


def places_within(num_groups: int, groups: Tensor, generator: torch.Generator) -> Tensor:
    """Places of rows in [0, 1), float64: those of a group are evenly spaced from a random start, in random order."""
    order = torch.argsort(torch.rand(len(groups), generator=generator))  # who comes first, within a group, is chance
    order = order[torch.argsort(groups[order], stable=True)]
    counts = torch.bincount(groups, minlength=num_groups)
    starts = torch.cumsum(counts, 0) - counts
    group = groups[order]
    place = torch.arange(len(groups)) - starts[group]
    offset = torch.rand(num_groups, generator=generator, dtype=torch.float64)
    points = torch.empty(len(groups), dtype=torch.float64)
    points[order] = ((place + offset[group]) / counts[group]).clamp(max=_BELOW_ONE)
    return points


_ROWS = 8192  # rows compared at once
_BELOW_ONE = 1 - 2.0**-53  # a point that rounds to 1 would fall behind the last category of positive probability
