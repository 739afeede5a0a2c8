"""Pair swapping: rows of one component swap values, until pairs of columns are as frequent as the model says.

Rows that are drawn one by one scatter around the model. With as many rows as records, that adds an error to noise and
fit. When two rows of one component, of any class, swap their values in a column, their joint probability and every
one-way count stay. A swap stays if it brings the pairs of columns by class nearer to their expected counts. This is
combinatorial optimization of synthetic populations (Williamson, Birkin and Rees 1998).

It reads only the model and public randomness. All counts are integers, so every machine makes equal swaps: a different
swap would change many rows.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_STEPS = 16  # of one row: expected counts are rounded to as many
_MOST_LOOKUPS = 10**9  # one to three minutes; tables so large that it is reached scatter little
_MOST_CELLS = 2**25  # of all pairs in all classes: 256 MiB


def swap_pairs(
    chosen: Integers,
    labels: Integers,
    components: Integers,
    probabilities: Sequence[Floats],
    weights: Floats,
    rounds: int,
    random: np.random.Generator,
) -> Integers:
    """Rows with their values swapped within columns and components, so that pairs are as frequent as expected.

    A round takes every column once and pairs the rows of each component at random. A few pairs at a time swap their
    values if that lowers the squared distance of the counts, of all pairs of columns by class. A round without gain
    is undone and is the last.

    Args:
        chosen: cell of each column, shape (n, columns).
        labels: of each row, shape (n,).
        components: of each row, shape (n,).
        probabilities: of the cells of each column in each component, shape (components, cells) each.
        weights: of components by class, shape (classes, components), rows sum to 1.
        rounds: most rounds; fewer if rows times squared columns would take too long, none if all pairs have too many
            cells for memory.
        random: public randomness.

    Returns:
        cells, shape (n, columns).
    """
    n, columns = chosen.shape
    sizes = [shares.shape[1] for shares in probabilities]
    cells = len(weights) * (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    rounds = min(rounds, _MOST_LOOKUPS // max(1, 2 * n * columns * (columns - 1)))
    if rounds < 1 or columns < 2 or cells > _MOST_CELLS:
        return chosen
    if len(np.unique(components)) == n:  # no row has a partner
        for _ in random.permutation(columns):
            _pairs(components, random)  # as much randomness as in a round: later draws stay
        return chosen
    with threadpool_limits(1):
        excess = _Excess(chosen, labels, probabilities, weights)
    chosen, distance, at_once = chosen.copy(), excess.distance(), math.isqrt(n) + 1
    for _ in range(rounds):
        before = chosen.copy()
        for column in random.permutation(columns).tolist():
            # So few at once that they seldom undo each other: counts scatter by the root of n.
            pairs = _pairs(components, random)
            for start in range(0, len(pairs), at_once):
                excess.swap(chosen, labels, column, pairs[start : start + at_once])
        reached = excess.distance()
        if reached >= distance:
            return before
        distance = reached
    return chosen


class _Excess:
    """How much more often each pair of cells occurs in each class than expected, in steps of 1/16 of a row.

    The cells of a column with those of all columns behind it form a matrix. A class holds the matrices of its columns
    in order.
    """

    def __init__(self, chosen: Integers, labels: Integers, probabilities: Sequence[Floats], weights: Floats) -> None:
        self._sizes = np.array([cells.shape[1] for cells in probabilities])
        self._ends = self._sizes.cumsum()
        self._behind = self._ends[-1] - self._ends  # cells of all columns behind each one
        areas = self._sizes * self._behind
        self._starts = areas.cumsum() - areas
        self._width = int(areas.sum())
        records = np.bincount(labels, minlength=len(weights))
        everything = np.concatenate(probabilities, axis=1)
        matrices = []
        for column, cells in enumerate(probabilities[:-1]):
            end, behind = int(self._ends[column]), int(self._behind[column])
            shares = [((cells * weight[:, None]).T @ everything[:, end:]).reshape(-1) for weight in weights]
            expected = np.rint(_STEPS * records[:, None] * np.stack(shares)).astype(np.int64)
            others = chosen[:, column + 1 :] + (self._ends - self._sizes)[column + 1 :] - end
            at = (labels * expected.shape[1] + chosen[:, column] * behind)[:, None] + others
            counts = np.bincount(at.reshape(-1), minlength=expected.size).reshape(expected.shape)
            matrices.append(_STEPS * counts - expected)
        self._values = np.concatenate(matrices, axis=1).reshape(-1)

    def distance(self) -> float:
        """Sum of squares over all cells."""
        values = self._values.astype(np.float64)
        return float((values * values).sum())

    def swap(self, chosen: Integers, labels: Integers, column: int, pairs: Integers) -> None:
        """Swap the values of a column between two rows, in place, if that alone makes the distance smaller.

        ``pairs`` (pairs, 2) are rows of one component, no row twice.
        """
        others, starts, own_steps, other_steps = self._places(column)
        a, b = pairs[chosen[pairs[:, 0], column] != chosen[pairs[:, 1], column]].T
        base_a, base_b = ((labels[rows] * self._width)[:, None] + starts for rows in (a, b))
        own_a, own_b = (chosen[rows, column][:, None] * own_steps for rows in (a, b))
        other_a, other_b = (chosen[rows][:, others] * other_steps for rows in (a, b))
        base_a += other_a
        base_b += other_b
        left, entered = (base_a + own_a, base_b + own_b), (base_a + own_b, base_b + own_a)
        # (r + 1)^2 - r^2 = 2r + 1: half of what the squares of four cells grow by, 0 where the rows only change places.
        differ = (other_a != other_b) | (labels[a] != labels[b])[:, None]
        values = self._values
        growth = values.take(entered[0])
        growth += values.take(entered[1])
        growth -= values.take(left[0])
        growth -= values.take(left[1])
        growth += 2 * _STEPS
        better = np.einsum("po,po->p", growth, differ) < 0
        moved = differ & better[:, None]
        for cells, step in ((left, -_STEPS), (entered, _STEPS)):
            for at in cells:
                np.add.at(values, at[moved], step)
        a, b = a[better], b[better]
        chosen[a, column], chosen[b, column] = chosen[b, column], chosen[a, column]

    def _places(self, column: int) -> tuple[Integers, Integers, Integers, Integers]:
        """The other columns, where the matrix with each begins, and its steps to the next cell of either column."""
        others = np.delete(np.arange(len(self._sizes)), column)
        before, begins = others < column, self._ends - self._sizes
        starts = np.where(
            before,
            self._starts[others] + begins[column] - self._ends[others],
            self._starts[column] + begins[others] - self._ends[column],
        )
        own_steps = np.where(before, 1, self._behind[column])
        other_steps = np.where(before, self._behind[others], 1)
        return others, starts, own_steps, other_steps


def _pairs(groups: Integers, random: np.random.Generator) -> Integers:
    """Random pairs of rows of one group, in random order, shape (pairs, 2); of an odd group one row is left."""
    order = random.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    group = groups[order]
    counts = np.bincount(groups)
    place = np.arange(len(groups)) - (np.cumsum(counts) - counts)[group]
    first = np.flatnonzero((place[:-1] % 2 == 0) & (group[1:] == group[:-1]))
    pairs = np.stack([order[first], order[first + 1]], axis=1)
    return pairs[random.permutation(len(pairs))]
