"""Pair swapping: rows of one component swap values, until pairs of columns are as frequent as the model says.

Rows that are drawn one by one scatter around the model. With as many rows as records, that adds an error to noise and
fit. When two rows of one component, of any class, swap their values in a column, their joint probability and every
one-way count stay. A swap stays if it brings the pairs of columns by class nearer to their expected counts. This is
combinatorial optimization of synthetic populations (Williamson, Birkin and Rees 1998).

It reads only the model and public randomness. All counts are integers, so every machine makes equal swaps: a different
swap would change many rows.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_STEPS = 16  # of one row: expected counts are rounded to as many
_MOST_LOOKUPS = 10**9  # one to three minutes; tables so large that it is reached scatter little
_MOST_CELLS = 2**25  # of all pairs in all classes: 256 MiB


def swap_pairs(
    chosen: Tensor,
    labels: Tensor,
    components: Tensor,
    probabilities: Sequence[Tensor],
    weights: Tensor,
    rounds: int,
    generator: torch.Generator,
) -> Tensor:
    """Rows with their values swapped within columns and components, so that pairs are as frequent as expected.

    A round takes every column once and pairs the rows of each component at random. A few pairs at a time swap their
    values if that lowers the squared distance of the counts, of all pairs of columns by class. A round without gain
    is undone and is the last.

    Args:
        chosen: cell of each column, shape (n, columns), int64.
        labels: of each row, shape (n,).
        components: of each row, shape (n,).
        probabilities: of the cells of each column in each component, float64, shape (components, cells) each.
        weights: of components by class, float64, shape (classes, components), rows sum to 1.
        rounds: most rounds; fewer if rows times squared columns would take too long, none if all pairs have too many
            cells for memory.
        generator: public randomness.

    Returns:
        cells, shape (n, columns).
    """
    n, columns = chosen.shape
    sizes = [shares.shape[1] for shares in probabilities]
    cells = len(weights) * (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    rounds = min(rounds, _MOST_LOOKUPS // max(1, 2 * n * columns * (columns - 1)))
    if rounds < 1 or columns < 2 or cells > _MOST_CELLS:
        return chosen
    with _one_thread():
        excess = _Excess(chosen, labels, probabilities, weights)
        chosen, distance = chosen.clone(), excess.distance()
        for _ in range(rounds):
            before = chosen.clone()
            for column in torch.randperm(columns, generator=generator).tolist():
                # So few at once that they seldom undo each other: counts scatter by the root of n.
                for pairs in torch.split(_pairs(components, generator), math.isqrt(n) + 1):
                    excess.swap(chosen, labels, column, pairs)
            reached = excess.distance()
            if reached >= distance:
                return before
            distance = reached
    return chosen


@contextmanager
def _one_thread() -> Iterator[None]:
    """Each step is too small to be shared: two threads take two to three times as long as one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Excess:
    """How much more often each pair of cells occurs in each class than expected, in steps of 1/16 of a row.

    The cells of a column with those of all columns behind it form a matrix. A class holds the matrices of its columns
    in order.
    """

    def __init__(self, chosen: Tensor, labels: Tensor, probabilities: Sequence[Tensor], weights: Tensor) -> None:
        self._sizes = torch.tensor([cells.shape[1] for cells in probabilities])
        self._ends = self._sizes.cumsum(0)
        self._behind = self._ends[-1] - self._ends  # cells of all columns behind each one
        areas = self._sizes * self._behind
        self._starts = areas.cumsum(0) - areas
        self._width = int(areas.sum())
        records = torch.bincount(labels, minlength=len(weights)).double()
        everything = torch.cat(list(probabilities), dim=1)
        matrices = []
        for column, cells in enumerate(probabilities[:-1]):
            end, behind = int(self._ends[column]), int(self._behind[column])
            shares = [((cells * weight[:, None]).T @ everything[:, end:]).reshape(-1) for weight in weights]
            expected = torch.round(_STEPS * records[:, None] * torch.stack(shares))
            others = chosen[:, column + 1 :] + (self._ends - self._sizes)[column + 1 :] - end
            at = (labels * expected.shape[1] + chosen[:, column] * behind)[:, None] + others
            counts = torch.bincount(at.reshape(-1), minlength=expected.numel()).reshape(expected.shape)
            matrices.append((_STEPS * counts - expected).to(torch.int64))
        self._values = torch.cat(matrices, dim=1).reshape(-1)

    def distance(self) -> float:
        """Sum of squares over all cells."""
        return float(self._values.double().square().sum())

    def swap(self, chosen: Tensor, labels: Tensor, column: int, pairs: Tensor) -> None:
        """Swap the values of a column between two rows, in place, if that alone makes the distance smaller.

        ``pairs`` (pairs, 2) are rows of one component, no row twice.
        """
        others, starts, own_steps, other_steps = self._places(column)
        a, b = pairs[chosen[pairs[:, 0], column] != chosen[pairs[:, 1], column]].T
        base_a, base_b = ((labels[rows] * self._width)[:, None] + starts for rows in (a, b))
        own_a, own_b = (chosen[rows, column][:, None] * own_steps for rows in (a, b))
        other_a, other_b = (chosen[rows][:, others] * other_steps for rows in (a, b))
        left = base_a + own_a + other_a, base_b + own_b + other_b
        entered = base_a + own_b + other_a, base_b + own_a + other_b
        # (r + 1)^2 - r^2 = 2r + 1: half of what the squares of four cells grow by, 0 where the rows only change places.
        differ = (other_a != other_b) | (labels[a] != labels[b])[:, None]
        growth = sum(self._values[at] for at in entered) - sum(self._values[at] for at in left) + 2 * _STEPS
        better = (growth * differ).sum(dim=1) < 0
        moved = differ & better[:, None]
        for cells, step in ((left, -_STEPS), (entered, _STEPS)):
            for at in cells:
                places = at[moved]
                self._values.index_add_(0, places, torch.full(places.shape, step, dtype=torch.int64))
        a, b = a[better], b[better]
        chosen[a, column], chosen[b, column] = chosen[b, column], chosen[a, column]

    def _places(self, column: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The other columns, where the matrix with each begins, and its steps to the next cell of either column."""
        others = torch.cat([torch.arange(column), torch.arange(column + 1, len(self._sizes))])
        before, begins = others < column, self._ends - self._sizes
        starts = torch.where(
            before,
            self._starts[others] + begins[column] - self._ends[others],
            self._starts[column] + begins[others] - self._ends[column],
        )
        own_steps = torch.where(before, 1, self._behind[column])
        other_steps = torch.where(before, self._behind[others], 1)
        return others, starts, own_steps, other_steps


def _pairs(groups: Tensor, generator: torch.Generator) -> Tensor:
    """Random pairs of rows of one group, in random order, shape (pairs, 2); of an odd group one row is left."""
    order = torch.randperm(len(groups), generator=generator)
    order = order[torch.argsort(groups[order], stable=True)]
    group = groups[order]
    counts = torch.bincount(groups)
    place = torch.arange(len(groups)) - (torch.cumsum(counts, 0) - counts)[group]
    first = ((place[:-1] % 2 == 0) & (group[1:] == group[:-1])).nonzero()[:, 0]
    pairs = torch.stack([order[first], order[first + 1]], dim=1)
    return pairs[torch.randperm(len(pairs), generator=generator)]
