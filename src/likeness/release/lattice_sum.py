"""Exact integer sums of clipped features. What is summed here is private until the door has added noise."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch

from likeness.bounds import Part
from likeness.errors import DataError, ReleaseError
from likeness.release.query import MAX_TERMS, Query
from likeness.release.terms import Records

_BLOCK = 1024  # rows evaluated at once: a fixed shape, so that chunking cannot change a bit of the result
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
    total = np.zeros((query.num_groups, query.width), dtype=np.int64)
    count = 0
    for terms in _blocks(query.terms.stream(records)):
        count += len(terms.x)
        if count > MAX_TERMS:
            raise DataError(f"{query.name}: more than {MAX_TERMS} terms do not fit a 64-bit sum; split the table")
        lattice = to_lattice(_evaluate(query, terms.x), query.feature.parts, query.lattice_bits)
        for group in range(query.num_groups):
            total[group] += lattice[terms.labels == group].sum(axis=0)
    return total


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
    """Features of one block, padded to the fixed shape."""
    padded = torch.zeros(_BLOCK, x.shape[1], dtype=torch.float64)
    padded[: len(x)] = torch.from_numpy(x)
    with torch.no_grad():
        features: np.ndarray = query.feature(padded).numpy()
    if features.shape != (_BLOCK, query.width):
        raise ReleaseError(f"{query.name}: the feature map does not return the width that it declares")
    return features[: len(x)]


def _blocks(stream: Iterable[Records]) -> Iterator[Records]:
    """Cut a stream into blocks of at most ``_BLOCK`` rows."""
    for records in stream:
        for start in range(0, len(records.x), _BLOCK):
            yield Records(records.x[start : start + _BLOCK], records.labels[start : start + _BLOCK])
