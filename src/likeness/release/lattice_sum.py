"""Exact integer sums of clipped features. What is summed here is private until the door has added noise."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch

from likeness.bounds import Part
from likeness.errors import DataError, ReleaseError
from likeness.features import CellMap
from likeness.features.frequencies import INPUT_BITS
from likeness.release.query import MAX_TERMS, Query
from likeness.release.terms import Records

_BLOCK = 1024  # rows evaluated at once: a fixed shape, so that chunking cannot change a bit of the result
_WIDE = 1 << 21  # coordinates evaluated at once: a wide map has a smaller block, fixed by its width alone
_CELLS_AT_ONCE = 1 << 21  # places held in memory at once
_HUGE = 2.0**20
_SHRINK = 1 - 2.0**-40  # relative step by which a vector that is still too long is shortened


def lattice_sum(query: Query, records: Iterable[Records]) -> np.ndarray:
    """Sum the clipped, truncated features of all terms by class.

    Integers are exact, so the order of rows, the size of chunks and the number of workers cannot change the sum.

    Returns:
        int64 array of shape (num_groups, width).

    Raises:
        DataError: more than 2**32 terms, where the sum might not fit 64 bits.
    """
    if isinstance(query.feature, CellMap):
        return _cell_sum(query, query.feature, records)
    total = np.zeros((query.num_groups, query.width), dtype=np.int64)
    for terms in _blocks(query, records, block_rows(query)):
        lattice = to_lattice(_evaluate(query, terms.x), query.parts, query.lattice_bits)
        for group in range(query.num_groups):
            total[group] += lattice[terms.labels == group].sum(axis=0)
    return total


def block_rows(query: Query) -> int:
    """Rows evaluated at once: a power of two, fixed by public facts, so that wide maps fit in memory."""
    return min(_BLOCK, 1 << max(3, (_WIDE // query.width).bit_length() - 1))


def _cell_sum(query: Query, feature: CellMap, records: Iterable[Records]) -> np.ndarray:
    """The sum of a map with one nonzero coordinate a part, by counting.

    What a term adds to part p is one coordinate of ``isqrt(L_p)`` steps, L_p the part's bound on the lattice: the
    largest integer whose square obeys it. The map only says where, and a place outside its part counts nothing, so the
    fact that the sensitivity rests on holds whatever the map returns: no term exceeds L_p in any part.
    """
    parts = query.parts
    widths = np.array([part.width for part in parts], dtype=np.int64)
    steps = np.array([math.isqrt(part.lattice_bound_squared(query.lattice_bits)) for part in parts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    counts = np.zeros(query.num_groups * query.width, dtype=np.int64)
    # Counting costs the whole width a block, so a block has at least as many places.
    for terms in _blocks(query, records, max(1, max(_CELLS_AT_ONCE, len(counts)) // len(parts))):
        places = np.asarray(feature.places(terms.x))
        if places.shape != (len(terms.x), len(parts)) or places.dtype != np.int64:
            raise ReleaseError(f"{query.name}: the feature map does not return one place a part")
        inside = (places >= 0) & (places < widths)
        inside &= ((terms.labels >= 0) & (terms.labels < query.num_groups))[:, None]
        found = terms.labels[:, None] * query.width + starts + places
        counts += np.bincount(found[inside], minlength=len(counts))
    return counts.reshape(query.num_groups, query.width) * np.repeat(steps, widths)


def to_lattice(features: np.ndarray, parts: tuple[Part, ...], bits: int) -> np.ndarray:
    """Clip every part of every feature vector to its declared bound, and truncate to integers.

    After this no row exceeds ``part.lattice_bound_squared(bits)`` in any part, whatever the map returned: this is the
    fact that the sensitivity rests on. Truncation toward zero lets no coordinate grow. A value that is not a number
    or is infinite counts as 0, and so does a negative one where the part is declared non-negative.

    Args:
        features: shape (n, width), float64.

    Returns:
        int64 array of the same shape.
    """
    result = np.empty(features.shape, dtype=np.int64)
    start = 0
    for part in parts:
        block = features[:, start : start + part.width]
        block = np.where(np.isfinite(block), block, 0)
        # No honest coordinate exceeds the bound; this only keeps a dishonest one from overflowing below.
        limit = _HUGE * np.sqrt(float(part.norm_bound_squared))
        block = np.clip(block, 0 if part.nonnegative else -limit, limit)
        result[:, start : start + part.width] = _clip(block * 2.0**bits, part.lattice_bound_squared(bits))
        start += part.width
    return result


def _clip(scaled: np.ndarray, bound_squared: int) -> np.ndarray:
    """Shorten rows to the bound, truncate, and shorten again until the integers obey it exactly."""
    bound = np.sqrt(float(bound_squared))
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled = scaled * np.minimum(1.0, bound / np.maximum(norms, 1.0))
    lattice: np.ndarray = np.trunc(scaled).astype(np.int64)
    while (too_long := (lattice * lattice).sum(axis=1) > bound_squared).any():
        scaled[too_long] *= _SHRINK
        lattice[too_long] = np.trunc(scaled[too_long]).astype(np.int64)
    return lattice


def _evaluate(query: Query, x: np.ndarray) -> np.ndarray:
    """Features of one block, padded to the fixed shape, from inputs in the unit cube rounded to its grid.

    See :func:`likeness.features.frequencies.draw_frequencies` for what the rounding is for.
    """
    rows = block_rows(query)
    padded = torch.zeros(rows, x.shape[1], dtype=torch.float64)
    padded[: len(x)] = torch.from_numpy(np.rint(np.clip(x, 0, 1) * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS)
    with torch.no_grad():
        features: np.ndarray = query.feature(padded).numpy()
    if features.shape != (rows, query.width):
        raise ReleaseError(f"{query.name}: the feature map does not return the width that it declares")
    return features[: len(x)]


def _blocks(query: Query, records: Iterable[Records], rows: int) -> Iterator[Records]:
    """Cut the terms into blocks of at most ``rows`` rows, and count them."""
    count = 0
    for terms in query.terms.stream(records):
        count += len(terms.x)
        if terms.labels.shape != (len(terms.x),) or terms.labels.dtype != np.int64:
            raise ReleaseError(f"{query.name}: labels must be one int64 a term; a narrower type could overflow")
        if count > MAX_TERMS:
            raise DataError(f"{query.name}: more than {MAX_TERMS} terms do not fit a 64-bit sum; split the table")
        for start in range(0, len(terms.x), rows):
            yield Records(terms.x[start : start + rows], terms.labels[start : start + rows])
