"""Terms in blocks of a fixed shape, so that neither chunks nor a machine's memory change a bit of a sum."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from likeness.core.errors import DataError, ReleaseError
from likeness.features.frequencies import INPUT_BITS
from likeness.release.query import MAX_TERMS, Query
from likeness.release.records import Records

if TYPE_CHECKING:
    import torch

BLOCK = 1024  # most rows evaluated at once: a fixed shape, so that chunking cannot change a bit of the result


def padded(x: np.ndarray, rows: int) -> "torch.Tensor":
    """Inputs in the unit cube, rounded to its grid, and rows of zeros.

    See :func:`likeness.features.frequencies.draw_frequencies` for what the rounding is for.
    """
    import torch

    found = torch.zeros(rows, x.shape[1], dtype=torch.float64)
    found[: len(x)] = torch.from_numpy(np.rint(np.clip(x, 0, 1) * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS)
    return found


def blocks(query: Query, records: Iterable[Records], rows: int) -> Iterator[Records]:
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
