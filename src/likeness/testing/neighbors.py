"""Neighboring tables: what every way of summing has to show of its sensitivity."""

from collections.abc import Callable

import numpy as np

from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum


def distance_squared(first: np.ndarray, second: np.ndarray) -> int:
    """In exact integers."""
    return sum(int(value) ** 2 for value in (first - second).ravel())


def check_neighbors(query: Query, table: Callable[[int, int], Records], n: int, seed: int, place: int) -> None:
    """Without one of n records, or with another in its place, the sum moves no farther than the query says.

    Args:
        query: about single records.
        table: records by their number and a seed.
        n: their number.
        seed: of the table.
        place: of the record.

    Raises:
        AssertionError: it moves farther.
    """
    records = table(n, seed)
    whole = lattice_sum(query, [records])
    removed = Records(np.delete(records.x, place, axis=0), np.delete(records.labels, place))
    moved = distance_squared(whole, lattice_sum(query, [removed]))
    assert moved <= query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
    other = table(1, seed + 1)
    x, labels = np.array(records.x), records.labels.copy()
    x[place], labels[place] = other.x[0], other.labels[0]
    moved = distance_squared(whole, lattice_sum(query, [Records(x, labels)]))
    assert moved <= query.sensitivity_squared(Adjacency.REPLACE_ONE)
