"""Exact counts of cells, by part and group. A count is private until the door has added noise."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement

import numpy as np

from likeness.core.errors import ReleaseError
from likeness.features.cells import Cells, columns_of_tables, placed_columns
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.clipping import blocks

try:
    from likeness.features.cell_counts import count_cells as compiled
except ImportError:  # no compiler was there
    compiled = None  # type: ignore[assignment]

_ROWS, _CELLS_AT_ONCE = 1 << 14, 1 << 22  # least rows of a block, and cells of its rows in all columns
_SMALL = 1 << 16  # cells that fit two bytes
_JOINT, _ALL_JOINT = 1 << 16, 1 << 22  # most cells of a table that several parts are counted in, and of all such tables
Table = tuple[int, ...]


def count_cells(
    query: Query,
    sizes: Sequence[int],
    tables: Sequence[Table],
    steps: Sequence[int],
    cells_of: Callable[[Records], Sequence[np.ndarray]],
    records: Iterable[Records],
) -> list[np.ndarray]:
    """Steps of all contributions in each cell of each part.

    A contribution adds the steps of a part, divided among the rows that share it and rounded down, to one cell of that
    part. Rows whose group is none of the query count nowhere. Parts with columns in common are counted in one table of
    all of these columns, whose sums are their counts.

    Args:
        query: the query.
        sizes: cells of each column.
        tables: the columns of each part, whose cells are those of a table; the cells of the last one are side by side.
        steps: of a contribution, for each part.
        cells_of: of a block of contributions the cell in each column, shapes (n,), int64, from 0 to less than its size.
        records: the rows.

    Returns:
        int64 arrays of shapes (num_groups, cells of the part).
    """
    groups = query.num_groups
    joint = _joint_tables(sizes, tables, 0 if query.is_per_person else _JOINT // groups)
    totals, held = (
        [np.zeros(groups * math.prod(sizes[column] for column in table), np.int64) for table in every]
        for every in (tables, [table for table, _ in joint])
    )
    held = [
        totals[parts[0]] if table == tables[parts[0]] else counts
        for counts, (table, parts) in zip(held, joint, strict=True)
    ]
    are_small = compiled is not None and max(groups, *sizes, 0) <= _SMALL and max(map(len, held), default=0) < 2**32
    for block in blocks(query, records, max(_ROWS, _CELLS_AT_ONCE // max(1, len(sizes)))):
        labels, cells, shared_by = block.labels, cells_of(block), block.shared_by
        if query.is_per_person != (shared_by is not None):
            raise ReleaseError(f"{query.name}: rows share a contribution where a query is about people, and only there")
        inside = (labels >= 0) & (labels < groups)
        if not inside.all():
            labels, cells = labels[inside], [column[inside] for column in cells]
            shared_by = None if shared_by is None else shared_by[inside]
        if are_small and shared_by is None:
            columns = [np.ascontiguousarray(column, np.uint16) for column in (*cells, labels)]
            for counts, (table, _) in zip(held, joint, strict=True):
                shape = (groups, *(sizes[column] for column in table))
                compiled(tuple(columns[column] for column in (-1, *table)), shape, counts)
            continue
        for counts, (table, parts) in zip(held, joint, strict=True):
            number = labels
            for column in table:
                number = number * np.int64(sizes[column]) + cells[column]
            if shared_by is None:
                counts += np.bincount(number, minlength=len(counts))
                continue
            for share in np.unique(shared_by).tolist():
                counts += np.bincount(number[shared_by == share], minlength=len(counts)) * (steps[parts[0]] // share)
    for counts, (table, parts) in zip(held, joint, strict=True):
        whole = counts.reshape(groups, *(sizes[column] for column in table))
        for part in parts:
            if counts is not totals[part]:
                others = tuple(axis for axis, column in enumerate(table, 1) if column not in tables[part])
                remaining = [column for column in table if column in tables[part]]
                order = [0, *(remaining.index(column) + 1 for column in tables[part])]
                totals[part] = whole.sum(axis=others).transpose(order).ravel()
    weights = [1 if query.is_per_person else step for step in steps]
    return [total.reshape(groups, -1) * weight for total, weight in zip(totals, weights, strict=True)]


def count_tables(
    query: Query, axes: Sequence[Sequence[Cells]], steps: Sequence[int], records: Iterable[Records]
) -> list[np.ndarray]:
    """The same of parts that are tables of columns, which the door places itself.

    Raises:
        ReleaseError: a row is in no cell of a column.
    """
    columns, tables = columns_of_tables(axes)
    sizes = [column.size for column in columns]
    return count_cells(query, sizes, tables, steps, lambda block: placed_columns(columns, block.x), records)


def _joint_tables(sizes: Sequence[int], tables: Sequence[Table], most: int) -> list[tuple[Table, list[int]]]:
    """Tables of at most ``most`` cells that together have the columns of each part, with the parts that each gives.

    A table begins with a part, and takes the column that brings the most parts of one or two columns, while there is
    one. Without such cells each part has its own.
    """
    pairs = {(min(table), max(table)): part for part, table in enumerate(tables) if 0 < len({*table}) == len(table) < 3}
    brings = np.zeros((len(sizes), len(sizes)), np.int64)  # whether a part of these columns waits; diagonal: of one
    for first, second in pairs if most else ():
        brings[first, second] = brings[second, first] = 1
    joint, left, every = [], _ALL_JOINT, np.array(sizes, np.int64)
    for part, table in enumerate(tables):
        if not (table and most and pairs.get((min(table), max(table))) == part):
            joint.append((table, [part]))
        elif brings[table[0], table[-1]]:
            columns, size = list(table), math.prod(sizes[column] for column in table)
            while True:
                gains = brings[columns].sum(axis=0) + brings.diagonal()
                gains[columns] = 0
                gains[every * size > min(most, left)] = 0
                best = int(gains.argmax())
                if not gains[best]:
                    break
                columns.append(best)
                size *= sizes[best]
            parts = [pair for pair in combinations_with_replacement(sorted(columns), 2) if brings[pair]]
            brings[np.ix_(columns, columns)] = 0
            left -= size
            joint.append((tuple(columns), [pairs[pair] for pair in parts]))
    return joint
