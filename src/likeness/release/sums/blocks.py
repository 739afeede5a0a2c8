"""Contributions in blocks of a fixed shape, so that chunks and memory change no bit of a sum."""

from collections.abc import Iterable, Iterator

import numpy as np

from likeness.core.errors import DataError, ReleaseError
from likeness.features.coded_rows import Inputs
from likeness.features.frequencies import INPUT_BITS
from likeness.release.query import MAX_SUMMED, Query
from likeness.release.records import Records

BLOCK = 1024  # most rows evaluated at once: a fixed shape, so that chunking cannot change a bit of the result


def padded(x: Inputs, rows: int) -> np.ndarray:
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
