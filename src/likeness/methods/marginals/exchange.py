"""Drawn rows exchange values until pairs of columns are about as frequent as the mixture says.

Rows that are drawn one by one scatter around the model, which adds an error to noise and fit. When two rows of one
component, of any class, exchange their values in a column, their joint probability and every single column stay. This
is combinatorial optimization of synthetic populations (Williamson, Birkin and Rees 1998). It reads only the model and
public randomness. Counts are integers, so every machine makes equal exchanges.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_STEPS = 16  # of one row, to which expected counts are rounded
_MOST_WORK = 2 * 10**8  # rows times squared columns: so many rows scatter little
_MOST_CELLS = 2**24  # of a column with all others by class: 128 MiB


def exchange_cells(
    chosen: Integers,
    labels: Integers,
    components: Integers,
    parts: Sequence[Floats],
    weights: Floats,
    random: np.random.Generator,
) -> Integers:
    """Cells (n, columns) after every column has been exchanged once between random pairs of rows of one component.

    An exchange stays if it alone brings the counts of the column with all others, by class, nearer to those expected.

    Args:
        chosen: cell of each column, shape (n, columns).
        labels: of each row, shape (n,).
        components: of each row, shape (n,).
        parts: probabilities of each column's cells, shapes (components, cells).
        weights: of components by class, shape (classes, components).
        random: public.
    """
    (n, columns), sizes, everything = chosen.shape, [part.shape[1] for part in parts], np.concatenate(parts, axis=1)
    width, starts = everything.shape[1], np.cumsum([0, *sizes[:-1]])
    if n * columns**2 > _MOST_WORK or len(weights) * max(sizes) * width > _MOST_CELLS:
        return chosen
    cells, expected = chosen + starts, np.bincount(labels, minlength=len(weights))[:, None] * weights
    for column in random.permutation(columns):
        others, size = np.delete(np.arange(columns), column), sizes[column]
        shares = np.stack([(parts[column] * row[:, None]).T @ everything for row in expected])
        at = (labels * size + chosen[:, column]) * width
        excess = _STEPS * np.bincount((at[:, None] + cells[:, others]).ravel(), minlength=shares.size)
        excess -= np.rint(_STEPS * shares).astype(np.int64).ravel()
        order = random.permutation(n)
        order = order[np.argsort(components[order], kind="stable")]
        pairs = np.stack([order[: n // 2 * 2 : 2], order[1::2]], axis=1)
        pairs = random.permutation(pairs[components[pairs[:, 0]] == components[pairs[:, 1]]])
        # So few at once that they seldom undo each other: counts scatter by the root of n.
        for a, b in (part.T for part in np.array_split(pairs, max(1, len(pairs) // (math.isqrt(n) + 1)))):
            move = (cells[b, column] - cells[a, column])[:, None] * width
            other_a, other_b = cells[a][:, others], cells[b][:, others]
            at_a, at_b = ((labels[rows] * size + cells[rows, column] - starts[column]) * width for rows in (a, b))
            left = (at_a[:, None] + other_a, at_b[:, None] + other_b)
            entered = (left[0] + move, left[1] - move)
            # (r + 1)^2 - r^2 = 2r + 1: half of what four squares grow by, 0 where the rows only change places.
            differ = (other_a != other_b) | (labels[a] != labels[b])[:, None]
            growth = excess[entered[0]] + excess[entered[1]] - excess[left[0]] - excess[left[1]] + 2 * _STEPS
            better = (growth * differ).sum(axis=1) < 0
            for counted, step in ((left, -_STEPS), (entered, _STEPS)):
                for indices in counted:
                    np.add.at(excess, indices[better][differ[better]], step)
            a, b = a[better], b[better]
            cells[a, column], cells[b, column] = cells[b, column], cells[a, column]
    exchanged: Integers = cells - starts
    return exchanged
