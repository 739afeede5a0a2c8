"""What the door holds at once: chunks, and rows that wait for a partner, but not the table. No clock, no machine."""

import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from toy_maps import Outer, Products, Trigonometric

from likeness.core.bounds import PrivacyUnit
from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import Constant
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.release.door import _check_rows_per_person, _partitions_counted
from likeness.release.partition_selection import PartitionQuery, Partitions, count_partitions
from likeness.release.query import Query
from likeness.release.records import AllRecords, BucketPairs, Contributions, EachRecord, PositionPairs, Records
from likeness.release.sums.over_parts import exact_sum

WIDTH, ROWS, CHUNKS = 6, 3_000, 6
PEOPLE = PrivacyUnit("pid", ROWS * CHUNKS)
PRODUCTS = Products(((0, None), (1, None), (2, None)), (), 2, ((0, 1), (1, 2), (0, 2)), 0.5)
QUERIES: dict[str, tuple[FeatureMap, Contributions]] = {
    "each row": (Trigonometric(16, WIDTH, 1.5, seed=0), EachRecord()),
    "all classes": (Constant(), AllRecords()),
    "cells": (PairMarginals((Cells(0, 4, (0.2, 0.5, 0.7)), Cells(1, 3, (0.3, 0.6)))), EachRecord()),
    "outer products": (Outer(((8, 6), (1, 8)), WIDTH, seed=0), EachRecord()),
    "products of pairs": (PRODUCTS, EachRecord()),
    "bucket pairs": (Trigonometric(4, 2 * WIDTH, 1.5, seed=0), BucketPairs(16)),
    "position pairs": (Trigonometric(4, 2 * WIDTH, 1.5, seed=0), PositionPairs(16, 0)),
}


class Texts(list[str | None]):
    """A list that can be watched."""


def watched(made: Callable[[], tuple[object, object]], most: list[int]) -> Iterator[object]:
    """Chunks, as ``made`` gives them with what of them is to be watched; how many were alive when one was made."""
    alive: list[weakref.ref[object]] = []
    for _ in range(CHUNKS):
        chunk, inside = made()
        alive.append(weakref.ref(inside))
        most.append(sum(ref() is not None for ref in alive))
        del inside
        yield chunk
        del chunk


def records(people: bool = False) -> tuple[Records, np.ndarray]:
    x = np.full((ROWS, WIDTH), 0.5)
    return Records(x, np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int64) if people else None), x


@pytest.mark.parametrize("name", QUERIES)
def test_a_chunk_is_gone_when_the_next_but_one_is_made(name: str) -> None:
    """Two at most: the one that is made, and the one that is summed."""
    feature, terms = QUERIES[name]
    most: list[int] = []
    assert exact_sum(Query("q", "privatize", feature, contributions=terms), lambda: watched(records, most)).records
    assert len(most) == CHUNKS and max(most) <= 2


def test_counting_the_rows_of_people_keeps_no_chunk() -> None:
    most: list[int] = []
    for _ in _check_rows_per_person(watched(lambda: records(people=True), most), PEOPLE):
        pass
    assert len(most) == CHUNKS and max(most) <= 2


def test_counting_keys_keeps_no_chunk() -> None:
    most: list[int] = []

    def keys() -> tuple[Partitions, Texts]:
        texts = Texts(["a", None] * 10)
        return Partitions(texts, np.zeros(20, dtype=np.int64)), texts

    counts, rows = count_partitions(
        PartitionQuery("q", "c", "else", 5, 1e-6), _partitions_counted(watched(keys, most), PEOPLE)
    )
    assert counts == {"a": 10 * CHUNKS} and rows == 20 * CHUNKS
    assert len(most) == CHUNKS and max(most) <= 2


@pytest.mark.long
@pytest.mark.parametrize("terms", [BucketPairs(64), PositionPairs(64, 0)], ids=["buckets", "positions"])
def test_rows_that_wait_for_a_partner_are_two_a_bucket_or_one_a_room(terms: BucketPairs | PositionPairs) -> None:
    """Eight times the table takes the same memory, to less than a chunk: all buckets and rooms are full after one."""
    chunk = 8 * ROWS * WIDTH

    def peak(chunks: int) -> int:
        gc.collect()
        tracemalloc.start()
        for _ in terms.stream(records()[0] for _ in range(chunks)):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)  # imports, and what is made once
    assert min(peak(48), peak(48)) < peak(6) + chunk  # what another thread does meanwhile only adds
