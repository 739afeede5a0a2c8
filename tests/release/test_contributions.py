"""Stability: how many terms one record can touch, by search over neighboring tables."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_maps import Trigonometric

from likeness.core.errors import PlanError, ReleaseError
from likeness.privacy.adjacency import Adjacency, Stability
from likeness.release.query import Query
from likeness.release.records import (
    BucketPairs,
    EachPerson,
    EachRecord,
    PositionPairs,
    Records,
    WithClass,
)

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def stream(x: np.ndarray, chunk: int) -> Iterator[Records]:
    for start in range(0, len(x), chunk):
        part = x[start : start + chunk]
        yield Records(part, np.zeros(len(part), dtype=np.int64))


def pairs_of(terms: BucketPairs | PositionPairs, x: np.ndarray, chunk: int = 7) -> Counter[frozenset[float]]:
    """Pairs as unordered sets of record names; records are numbers here."""
    found = [row for part in terms.stream(stream(x[:, None], chunk)) for row in part.x]
    return Counter(frozenset(row.tolist()) for row in found)


def dice_for(x: np.ndarray, dice: dict[float, int], chunk: int) -> BucketPairs:
    """Bucket pairs in which each record keeps its own die, in and out of the table."""
    position = iter(x)

    def throw(count: int) -> np.ndarray:
        return np.array([dice[float(next(position))] for _ in range(count)], dtype=np.uint64)

    return BucketPairs(4, throw)


@given(st.integers(1, 40), st.integers(0, 10**6), st.integers(1, 9), st.data())
def test_removing_a_record_touches_one_bucket(n: int, seed: int, chunk: int, data: st.DataObject) -> None:
    x = np.arange(n, dtype=float)
    dice = dict(zip(x.tolist(), np.random.default_rng(seed).integers(0, 2**63, n).tolist(), strict=True))
    without = np.delete(x, data.draw(st.integers(0, n - 1)))
    before = pairs_of(dice_for(x, dice, chunk), x, chunk)
    after = pairs_of(dice_for(without, dice, chunk), without, chunk)
    assert sum((before - after).values()) <= 1
    assert sum((after - before).values()) <= 1
    assert sum(before.values()) <= 4
    assert before == pairs_of(dice_for(x, dice, 100), x, 100)  # chunking changes nothing


@given(st.integers(2, 40), st.integers(1, 9), st.data())
def test_replacing_a_record_replaces_one_pair(n: int, chunk: int, data: st.DataObject) -> None:
    terms = PositionPairs(4, seed=1)
    x = np.arange(n, dtype=float)
    other = x.copy()
    other[data.draw(st.integers(0, n - 1))] = -1.0
    before, after = pairs_of(terms, x, chunk), pairs_of(terms, other, chunk)
    assert sum(before.values()) == sum(after.values()) >= (n - 4) // 2
    assert sum((before - after).values()) <= 1
    assert all(len(pair) == 2 for pair in before)
    assert max(Counter(name for pair in before.elements() for name in pair).values(), default=0) <= 1
    assert before == pairs_of(terms, x, 100)


def test_secret_dice_differ_from_call_to_call() -> None:
    x = np.arange(2_000, dtype=float)
    assert pairs_of(BucketPairs(256), x) != pairs_of(BucketPairs(256), x)


def test_change_follows_the_adjacency() -> None:
    assert EachRecord().change(ADD) is Stability.ONE_APPEARS
    assert EachRecord().change(REPLACE) is Stability.ONE_REPLACED
    assert BucketPairs(4).change(ADD) is Stability.ONE_APPEARS_OR_REPLACED
    assert PositionPairs(4, 0).change(REPLACE) is Stability.ONE_REPLACED
    with pytest.raises(PlanError):
        BucketPairs(4).change(REPLACE)
    with pytest.raises(PlanError):
        PositionPairs(4, 0).change(ADD)


def test_a_name_that_map_and_terms_share_is_refused() -> None:
    """Else one seed would hide the other in the key, and another question would be answered from the store."""
    map_with_a_seed = Trigonometric(2, 4, 1.0, seed=3)
    with pytest.raises(ReleaseError, match="q: both map and contributions use the name seed"):
        Query("q", "auxiliary", map_with_a_seed, contributions=PositionPairs(4, seed=1)).spec()
    assert Query("q", "auxiliary", map_with_a_seed).spec()["seed"] == 3


@pytest.mark.parametrize("terms", [EachPerson(), WithClass(2), BucketPairs(4)])
def test_only_single_records_have_a_class(terms: EachRecord) -> None:
    with pytest.raises(ReleaseError, match="need contributions of single records"):
        WithClass(2, terms)
