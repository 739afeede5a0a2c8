"""Exact counts of cells, by part and group. A count is private until the door has added noise."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import prod

import numpy as np

from likeness.features.cells import Cells, table_places
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.clipping import blocks

_CELLS_AT_ONCE = 1 << 21  # numbers of cells in a block, of all parts
_JOINT_CELLS, _MOST_COLUMNS = 1 << 15, 4  # of tables that are counted together: counts that fit a fast memory
_ALL_CELLS = 1 << 22  # of as many such tables as there are tables


def count_cells(
    query: Query,
    widths: Sequence[int],
    steps: Sequence[int],
    numbers: Callable[[Records], Iterator[np.ndarray]],
    records: Iterable[Records],
) -> np.ndarray:
    """Steps of all contributions in each cell, part by part.

    A contribution adds the steps of a part, divided among the rows that share it and rounded down, to one cell of that
    part, or to none: a number of ``numbers`` is one bin of a count, and numbers that are none of the part, or rows
    whose group is none of the query, fall into a last bin that is dropped.

    Args:
        query: the query.
        widths: cells of each part.
        steps: of a contribution, for each part.
        numbers: of a block of contributions, for each part: group · width + cell, shape (n,), int64.
        records: the rows.

    Returns:
        int64 array of shape (num_groups, sum of widths).
    """
    total = np.zeros((query.num_groups, sum(widths)), dtype=np.int64)
    ends = np.cumsum(widths).tolist()
    # Counting costs the whole width a block, so a block has at least as many places.
    for block in blocks(query, records, max(1, max(_CELLS_AT_ONCE, total.size) // len(widths))):
        outside = (block.labels < 0) | (block.labels >= query.num_groups)
        anybody_outside = bool(outside.any())
        every = [(1, slice(None))] if block.shared_by is None else _rows_by_share(block.shared_by)
        for width, end, step, number in zip(widths, ends, steps, numbers(block), strict=True):
            size = query.num_groups * width
            if anybody_outside or (len(number) and (number.min() < 0 or number.max() >= size)):
                number = np.where(outside | (number < 0) | (number >= size), size, number)
            for share, rows in every:
                counts = np.bincount(number[rows], minlength=size + 1)[:size]
                total[:, end - width : end] += counts.reshape(-1, width) * (step // share)
    return total


def _rows_by_share(shared_by: np.ndarray) -> list[tuple[int, slice | np.ndarray]]:
    return [(int(share), shared_by == share) for share in np.unique(shared_by)]


def table_counts(
    query: Query, axes: Sequence[Sequence[Cells]], steps: Sequence[int], records: Iterable[Records]
) -> np.ndarray:
    """Steps of all contributions in each cell of tables of some columns, as :func:`count_cells`.

    A record lies in one cell of each column, so in one of each table, and :func:`table_places` refuses a row that is in
    none. The number of a cell is then one of its table and group alone. The sum is that of the map's vectors: a part
    holds its steps at the record's cell and 0 elsewhere.

    Where nobody shares a contribution, tables are counted together, as :func:`joint_tables`: the count of a cell is the
    sum over the cells of the other columns.

    Args:
        query: the query.
        axes: the columns of each table.
        steps: of a contribution, for each table.
        records: the rows.

    Raises:
        ReleaseError: a row is in no cell of a column.
    """
    if query.is_per_person:
        return _counted_tables(query, axes, steps, records)
    joint = joint_tables(axes, min(_JOINT_CELLS, _ALL_CELLS // max(1, len(axes))) // query.num_groups)
    counts = _counted_tables(query, joint, [1] * len(joint), records)
    shapes = [[column.size for column in table] for table in joint]
    ends = np.cumsum([prod(shape) for shape in shapes])
    whole = [part.reshape(-1, *shape) for part, shape in zip(np.split(counts, ends[:-1], axis=1), shapes, strict=True)]
    indices = {frozenset(map(id, part)): at for at, table in enumerate(joint) for part in _parts_of(table)}
    total = []
    for table, step in zip(axes, steps, strict=True):
        at = indices[frozenset(map(id, table))]
        order = [1 + [id(column) for column in joint[at]].index(id(column)) for column in table]
        others = tuple({*range(1, whole[at].ndim)} - {*order})
        # Without the other columns, those that are left move up.
        cells = whole[at].sum(axis=others).transpose(0, *(1 + np.argsort(np.argsort(order))))
        total.append(cells.reshape(query.num_groups, -1) * step)
    return np.concatenate(total, axis=1)


def _counted_tables(
    query: Query, axes: Sequence[Sequence[Cells]], steps: Sequence[int], records: Iterable[Records]
) -> np.ndarray:
    widths = [prod(column.size for column in table) for table in axes]
    return count_cells(query, widths, steps, lambda block: table_places(axes, block.x, block.labels), records)


def joint_tables(axes: Sequence[Sequence[Cells]], most: int) -> list[tuple[Cells, ...]]:
    """Few tables such that the columns of each given one are columns of one of them, each of at most ``most`` cells.

    A given table may be larger, and then stands alone. Each begins with a table that no other holds, the widest first.
    It takes in columns, each that with which most further pairs are held. So 105 pairs of 15 columns are 30 tables.
    """
    columns = list({id(column): column for table in axes for column in table}.values())
    indices = {id(column): index for index, column in enumerate(columns)}
    sizes = np.array([column.size for column in columns], dtype=np.int64)
    sought = [frozenset(indices[id(column)] for column in table) for table in sorted(axes, key=len, reverse=True)]
    left, pairs = set(sought), np.zeros((len(columns), len(columns)), dtype=bool)
    for i, j in (table for table in left if len(table) == 2):
        pairs[i, j] = pairs[j, i] = True
    joint = []
    for table in sought:
        if table not in left:
            continue
        held = sorted(table)
        while 0 < len(held) < _MOST_COLUMNS:
            gains = pairs[held].sum(axis=0) * (prod(sizes[held].tolist()) * sizes <= most)
            gains[held] = 0
            best = int(gains.argmax())
            if not gains[best]:
                break
            held.append(best)
        joint.append(tuple(columns[index] for index in held))
        pairs[np.ix_(held, held)] = False
        left.difference_update(frozenset(part) for count in range(len(held) + 1) for part in combinations(held, count))
    return joint


def _parts_of(table: Sequence[Cells]) -> Iterator[tuple[Cells, ...]]:
    return (part for count in range(len(table) + 1) for part in combinations(table, count))
