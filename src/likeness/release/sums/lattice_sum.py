"""Exact integer sums of clipped features. A sum is private until the door has added noise."""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from likeness.core.errors import ReleaseError
from likeness.features.base import CellMap, OuterMap, PairedMap, TablesMap, evaluate
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.clipping import BLOCK, blocks, pad_inputs, to_lattice
from likeness.release.sums.counts import count_cells, count_tables
from likeness.release.sums.products import outer_sum, paired_sum

_WIDE = 1 << 21  # coordinates evaluated at once: a wide map has a smaller block, fixed by its width alone


def lattice_sum(query: Query, records: Iterable[Records]) -> np.ndarray:
    """Sum the clipped, truncated features of all contributions by class.

    Integers are exact, so the order of rows, the size of chunks and the number of workers cannot change the sum.

    Returns:
        int64 array of shape (num_groups, width).

    Raises:
        DataError: more than 2**32 contributions, where the sum might not fit 64 bits.
    """
    if isinstance(query.feature, CellMap):
        return cell_sum(query, query.feature, records)
    if query.is_per_person:
        raise ReleaseError(f"{query.name}: only a map of cells can share the contribution of a person")
    if isinstance(query.feature, OuterMap):
        return outer_sum(query, query.feature, records)
    if isinstance(query.feature, PairedMap) and query.feature.pairs:
        return paired_sum(query, query.feature, records)
    total = np.zeros((query.num_groups, query.width), dtype=np.int64)
    for block in blocks(query, records, block_rows(query)):
        lattice = to_lattice(_evaluate(query, np.asarray(block.x)), query.bounded_parts, query.lattice_bits)
        for group in range(query.num_groups):
            total[group] += lattice[block.labels == group].sum(axis=0)
    return total


def block_rows(query: Query) -> int:
    """Rows evaluated at once: a power of two, fixed by public facts, so that wide maps fit in memory."""
    return min(BLOCK, 1 << max(3, (_WIDE // query.width).bit_length() - 1))


def cell_sum(query: Query, feature: CellMap, records: Iterable[Records]) -> np.ndarray:
    """The sum of a map with one cell a part, by counting.

    A contribution adds to part p one coordinate of ``isqrt(L_p)`` steps, L_p the part's bound on the lattice: the
    largest integer whose square obeys it. The map only says where, and a place outside its part counts nothing, so the
    fact that the sensitivity rests on holds whatever the map returns: no contribution exceeds L_p in any part.
    Rows that share a contribution (:class:`likeness.release.records.EachPerson`) divide the steps, rounded down.
    Of a map of tables the door itself places each column. A record lies in one cell of each column, so in one of each
    table, and :func:`likeness.features.cells.placed_columns` refuses a row that is in none.
    """
    steps = [part.steps(query.lattice_bits) for part in query.bounded_parts]
    widths = [part.width for part in query.bounded_parts]
    if not isinstance(feature, TablesMap):
        # A place outside its part is that of a last cell, which is dropped.
        tables = [(part,) for part in range(len(widths))]
        sizes, cells_of = [width + 1 for width in widths], partial(_cells_of_parts, query)
        counts = count_cells(query, sizes, tables, steps, cells_of, records)
        return np.concatenate([count[:, :-1] for count in counts], axis=1)
    if widths != [math.prod(cells.size for cells in table) for table in feature.axes]:
        raise ReleaseError(f"{query.name}: the parts of the feature map must be as wide as its tables")
    return np.concatenate(count_tables(query, feature.axes, steps, records), axis=1)


def _cells_of_parts(query: Query, block: Records) -> list[np.ndarray]:
    """Give for each part the index of each contribution; the width for an index outside the part."""
    feature: Any = query.feature
    x: Any = block.x if getattr(feature, "takes_codes", False) else np.asarray(block.x)
    indices = np.asarray(feature.cell_indices(x))
    if indices.shape != (len(block.x), len(query.bounded_parts)) or indices.dtype != np.int64:
        raise ReleaseError(f"{query.name}: the feature map must return one int64 place a part")
    widths = [part.width for part in query.bounded_parts]
    return [
        np.where(index < 0, width, np.minimum(index, width)) for index, width in zip(indices.T, widths, strict=True)
    ]


def _evaluate(query: Query, x: np.ndarray) -> np.ndarray:
    """Features of one block of at most :func:`block_rows` rows, padded to the fixed shape."""
    rows = block_rows(query)
    features: np.ndarray = evaluate(query.feature, query.feature, pad_inputs(x, rows))
    if features.shape != (rows, query.width):
        raise ReleaseError(f"{query.name}: the feature map must return the width that it declares")
    return features[: len(x)]
