"""Clipping on the lattice: in integers, no record exceeds its declared bound, whatever a map returns."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from likeness.core.bounds import Part
from likeness.core.errors import DataError, ReleaseError
from likeness.features.cells import Inputs
from likeness.features.frequencies import INPUT_BITS
from likeness.release.query import MAX_SUMMED, Query
from likeness.release.records import Records

_HUGE = 2.0**20
_SHRINK = 1 - 2.0**-40  # relative step by which a vector that is still too long is shortened
_SHRINK_FACTOR = 1 - 2.0**-20  # for a factor, whose lattice is coarser


def to_lattice(features: np.ndarray, parts: tuple[Part, ...], bits: int) -> np.ndarray:
    """Clip every part of every feature vector to its declared bound, and truncate to integers.

    After this no row exceeds ``part.lattice_bound_squared(bits)`` in any part, whatever the map returned: this is the
    fact that the sensitivity rests on. Truncation toward zero lets no coordinate grow. A value that is not a number
    or is infinite counts as 0, and so does a negative one where the part is declared non-negative.

    Args:
        features: shape (n, width), float64.
        parts: declared bounds, in the order of the coordinates.
        bits: one unit of a feature is ``2**bits`` lattice steps.

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


def outer_lattice(
    factors: Sequence[tuple[np.ndarray, np.ndarray]], bound_squared: int, bits: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Clip the factors of every contribution, and truncate them to integers whose products obey the bound.

    After this, ``Σ_blocks |left|² |right|²``, the squared norm of its lattice vector, is at most
    ``bound_squared``, whatever the map returned: it is computed in integers, which cannot overflow, as each factor
    obeys a bound of its own (left factors norm 1, right ones that of the part). Truncation toward zero lets no entry
    grow. A value that is not a number or is infinite counts as 0. Lengths are those of integers, so that what happens
    to a row does not depend on its place.

    Args:
        factors: left and right ones of each block, shapes (n, a) and (n, b), float64.
        bound_squared: of the lattice vector.
        bits: one unit of the feature is ``2**bits`` lattice steps.

    Returns:
        the same shapes: integers, as float64.
    """
    left_bits = bits // 2
    left_squared = 4**left_bits
    lefts = [_shorten_rows((left * 2.0**left_bits,), (1,), left_squared)[0] for left, _ in factors]
    rights = [
        _shorten_rows((right * 2.0 ** (bits - left_bits),), (1,), bound_squared // left_squared)[0]
        for _, right in factors
    ]
    rights = _shorten_rows(rights, [_squares(left) for left in lefts], bound_squared)
    return list(zip(lefts, rights, strict=True))


def paired_lattice(columns: Sequence[np.ndarray], nonnegative: Sequence[bool], bound_squared: int) -> np.ndarray:
    r"""Clip the features of every column, and round them to integers whose products of two columns obey the bound.

    With :math:`q = \lfloor \sqrt L \rfloor`, L the bound, the squared norm of every column's integers is at most q. It
    is computed in integers, whatever the map returned; the squared norm of an outer product is the product of both, so
    at most :math:`q^2 \le L`. A value that is not a number or is infinite counts as 0, and so does a negative one of a
    non-negative column. One unit of a column is :math:`\sqrt q` steps, so one of a product is q, the root of L.
    Rounding is to the nearest, which over many records adds up to less than truncation; what is then too long is
    shortened.

    Args:
        columns: features, shapes (n, b), float64, of norm at most 1.
        nonnegative: whether a column has no negative feature, for each column.
        bound_squared: L, of the lattice vector of each product.

    Returns:
        all columns beside each other, shape (n, sum of b): integers, as float64.
    """
    most = math.isqrt(bound_squared)
    lattice = []
    for values, positive in zip(columns, nonnegative, strict=True):
        scaled = np.where(np.isfinite(values), values, 0.0) * math.sqrt(most)
        np.clip(scaled, 0 if positive else -math.isqrt(most), math.isqrt(most), out=scaled)
        nearest = np.rint(scaled)
        too_long = (_squares(nearest) > most)[:, 0]
        nearest[too_long] = _shorten_rows((scaled[too_long],), (1,), most)[0]
        lattice.append(nearest)
    return np.concatenate(lattice, axis=1)


def _shorten_rows(
    vectors: Sequence[np.ndarray], weights: Sequence[np.ndarray | int], bound_squared: int
) -> list[np.ndarray]:
    """Integers toward zero, rows shortened until the weighted sum of squared norms is at most the bound, exactly."""
    limit = math.isqrt(bound_squared)
    # No honest value exceeds the limit; this only keeps a dishonest one from overflowing.
    scaled = [np.clip(np.where(np.isfinite(values), values, 0.0), -limit, limit) for values in vectors]
    lattice = [np.trunc(values) for values in scaled]
    while True:
        norms = np.zeros((len(lattice[0]), 1), dtype=np.int64)
        for values, weight in zip(lattice, weights, strict=True):
            norms += _squares(values) * weight
        too_long = (norms > bound_squared)[:, 0]
        if not too_long.any():
            return lattice
        shrink = _SHRINK_FACTOR * np.sqrt(bound_squared / norms[too_long])
        for values, integers in zip(scaled, lattice, strict=True):
            values[too_long] *= shrink
            integers[too_long] = np.trunc(values[too_long])


def _squares(integers: np.ndarray) -> np.ndarray:
    """Squared norms of integer rows, shape (n, 1), int64."""
    whole = integers.astype(np.int64)
    squares: np.ndarray = np.einsum("ij,ij->i", whole, whole)[:, None]
    return squares


BLOCK = 1024  # most rows evaluated at once: a fixed shape, so that chunking cannot change a bit of the result


def pad_inputs(x: Inputs, rows: int) -> np.ndarray:
    """Inputs in the unit cube, rounded to its grid, and rows of zeros.

    See :func:`likeness.features.frequencies.draw_frequencies` for the reason of the rounding.
    """
    dense = np.asarray(x)
    inputs = np.zeros((rows, dense.shape[1]))
    inputs[: len(x)] = np.rint(np.clip(dense, 0, 1) * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS
    return inputs


def blocks(query: Query, records: Iterable[Records], rows: int) -> Iterator[Records]:
    """Cut the contributions into blocks of at most ``rows`` rows, and count them."""
    count = 0
    for chunk in query.contributions.stream(records):
        count += len(chunk.x)
        if chunk.labels.shape != (len(chunk.x),) or chunk.labels.dtype != np.int64:
            raise ReleaseError(f"{query.name}: labels must be one int64 a contribution; others could overflow")
        if count > MAX_SUMMED:
            raise DataError(f"{query.name}: over {MAX_SUMMED} contributions overflow a 64-bit sum. Split the table.")
        for start in range(0, len(chunk.x), rows):
            yield chunk[start : start + rows]
