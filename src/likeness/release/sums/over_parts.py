"""The exact sum of a query over rows that may lie in parts. A sum is private until noise is added."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

from likeness.core.engine import LOCAL, Engine
from likeness.core.errors import DataError, ReleaseError
from likeness.features.base import ProductsMap
from likeness.release.query import MAX_SUMMED, Query
from likeness.release.records import Records
from likeness.release.sums.backends import CountReader, counted_sum
from likeness.release.sums.kept_counts import KeptCounts, KeptRows, can_keep, refuse_people
from likeness.release.sums.lattice_sum import lattice_sum

Read = Callable[[], Iterable[Records]]
_PARTS_A_WORKER = 8  # a worker that dies loses one; a part that is slow keeps the others waiting for it alone


@runtime_checkable
class InParts(Protocol):
    """Rows that other processes can open, part by part."""

    def __call__(self) -> Iterable[Records]:
        """All of them, in order."""

    def split(self, most: int) -> Sequence[Read]:
        """Give at most ``most`` parts, which together name every row once, in order, and hold none."""


@dataclass(frozen=True)
class Partial:
    """The sum over a part. Private.

    Attributes:
        total: int64, shape (num_groups, width).
        records: number of records.
    """

    total: np.ndarray
    records: int


def exact_sum(query: Query, read: Read | CountReader, engine: Engine = LOCAL) -> Partial:
    """The lattice sum of all rows, and their number. Rows that are counted where they are do not come.

    The engine's workers share the rows where the contributions of a table are those of its parts together
    (``contributions.splits``). Then the sum of the partial sums is the sum: integers add up to the same in every order,
    and a row's features do not depend on the rows beside it. Where contributions join records, as pairs do, all rows
    are read here, one after the other.

    Raises:
        DataError: more than 2**32 records, where the sum might not fit 64 bits.
        ReleaseError: the rows carry people, whom nobody has counted.
    """
    if isinstance(read, CountReader):
        return Partial(*counted_sum(query, read))
    if can_keep(query, read):
        counts = KeptCounts(query, cast(KeptRows, read), engine, _PARTS_A_WORKER * engine.workers)
        return Partial(*counted_sum(query, cast(CountReader, counts)))
    splits = getattr(query.contributions, "splits", False)
    parts: Sequence[Read] = [read]
    if engine.workers > 1 and splits and isinstance(read, InParts):
        parts = read.split(_PARTS_A_WORKER * engine.workers)
    # Products of a block are done before a second thread of the library has woken up.
    with threadpool_limits(1) if isinstance(query.feature, ProductsMap) else nullcontext():
        if len(parts) == 1:
            return next(partial_sum((query, read)))
        return _add_partials(query, engine.stream(partial_sum, [(query, part) for part in parts]))


def _add_partials(query: Query, partials: Iterable[Partial]) -> Partial:
    """The sum of partial sums."""
    total, records = np.zeros((query.num_groups, query.width), dtype=np.int64), 0
    for partial in partials:
        if partial.total.shape != total.shape or partial.total.dtype != np.int64 or partial.records < 0:
            raise ReleaseError(f"{query.name}: a partial sum has another shape than the sum")
        records += partial.records
        if records > MAX_SUMMED:
            raise DataError(f"{query.name}: over {MAX_SUMMED} contributions overflow a 64-bit sum. Split the table.")
        total += partial.total
    return Partial(total, records)


def partial_sum(job: tuple[Query, Read]) -> Iterator[Partial]:
    """The lattice sum of one part, which one worker computes once."""
    query, read = job
    count = 0

    def count_rows() -> Iterator[Records]:
        nonlocal count
        for chunk in read():
            # The door takes them off where it has counted them, but where contributions count them.
            if not query.is_per_person:
                refuse_people(chunk)
            count += len(chunk.x)
            yield chunk

    total = lattice_sum(query, count_rows())
    yield Partial(total, count)
