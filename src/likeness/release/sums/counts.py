"""Exact counts of cells, by part and group. A count is private until the door has added noise."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.clipping import blocks

_CELLS_AT_ONCE = 1 << 21  # numbers of cells in a block, of all parts


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
