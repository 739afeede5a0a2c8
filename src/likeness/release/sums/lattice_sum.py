"""Exact integer sums of clipped features. A sum is private until the door has added noise."""

from collections.abc import Iterable

import numpy as np

from likeness.core.errors import ReleaseError
from likeness.features.base import CellMap, OuterMap, PairedMap, evaluate
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.blocks import BLOCK, blocks, padded
from likeness.release.sums.clipping import to_lattice
from likeness.release.sums.products import outer_sum, paired_sum

_WIDE = 1 << 21  # coordinates evaluated at once: a wide map has a smaller block, fixed by its width alone
_CELLS_AT_ONCE = 1 << 21  # places held in memory at once


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
    if query.by_person:
        raise ReleaseError(f"{query.name}: only a map of cells can share the contribution of a person")
    if isinstance(query.feature, OuterMap):
        return outer_sum(query, query.feature, records)
    if isinstance(query.feature, PairedMap) and query.feature.pairs:
        return paired_sum(query, query.feature, records)
    total = np.zeros((query.num_groups, query.width), dtype=np.int64)
    for block in blocks(query, records, block_rows(query)):
        lattice = to_lattice(_evaluate(query, block.x), query.parts, query.lattice_bits)
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
    """
    parts = query.parts
    widths = np.array([part.width for part in parts], dtype=np.int64)
    steps = np.array([part.steps(query.lattice_bits) for part in parts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    total = np.zeros((query.num_groups, query.width), dtype=np.int64)
    # Counting costs the whole width a block, so a block has at least as many places.
    for block in blocks(query, records, max(1, max(_CELLS_AT_ONCE, total.size) // len(parts))):
        places = np.asarray(feature.places(block.x))
        if places.shape != (len(block.x), len(parts)) or places.dtype != np.int64:
            raise ReleaseError(f"{query.name}: the feature map must return one int64 place a part")
        inside = (places >= 0) & (places < widths)
        inside &= ((block.labels >= 0) & (block.labels < query.num_groups))[:, None]
        cells = block.labels[:, None] * query.width + starts + places
        shares = np.ones(len(block.x), dtype=np.int64) if block.shared_by is None else block.shared_by
        for share in np.unique(shares):
            counts = np.bincount(cells[inside & (shares == share)[:, None]], minlength=total.size)
            total += counts.reshape(total.shape) * np.repeat(steps // share, widths)
    return total


def _evaluate(query: Query, x: np.ndarray) -> np.ndarray:
    """Features of one block of at most :func:`block_rows` rows, padded to the fixed shape."""
    rows = block_rows(query)
    features: np.ndarray = evaluate(query.feature, query.feature, padded(x, rows))
    if features.shape != (rows, query.width):
        raise ReleaseError(f"{query.name}: the feature map must return the width that it declares")
    return features[: len(x)]
