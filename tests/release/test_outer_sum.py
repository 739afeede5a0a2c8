"""Sums of outer products: integer matrix products that obey the bound whatever the map returns."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_maps import Outer, outer_products

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OuterMap, evaluate
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums import lattice_sum as dense
from likeness.release.sums import products as module
from likeness.release.sums.clipping import outer_lattice, to_lattice
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.testing.maps import check_neighbors, distance_squared
from tests.contracts.method_examples import DOOR

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
FEATURES = [
    Outer(((6, 6), (1, 6)), 5, seed=0),
    *DOOR["outer products"],
]
EVERY = pytest.mark.parametrize("feature", FEATURES, ids=lambda f: getattr(f, "architecture", f.name))


class Liar:
    """A map that declares a norm and returns whatever factors it likes."""

    def __init__(self, left: Tensor, right: Tensor, blocks: int = 1, bound: Fraction = Fraction(1)) -> None:
        self.pair, self.blocks, self.bound = (left, right), blocks, bound
        self.sizes = ((left.shape[1], right.shape[1]),) * blocks

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(sum(a * b for a, b in self.sizes), self.bound),)

    def factors(self, x: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        left, right = (factor.repeat(len(x), 1)[: len(x)] for factor in self.pair)
        return ((left, right),) * self.blocks

    def __call__(self, x: Tensor) -> Tensor:
        return outer_products(self.factors(x))

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


def table(n: int, seed: int, d: int = 5) -> Records:
    generator = np.random.default_rng(seed)
    return Records(generator.random((n, d)).round(1), generator.integers(0, 2, n))


@EVERY
@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_on_neighboring_tables(feature: Any, n: int, seed: int, data: st.DataObject) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    check_neighbors(query, table, n, seed, data.draw(st.integers(0, n - 1)))


@EVERY
def test_one_record_moves_the_sum_by_almost_the_bound(feature: Any) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    moved = distance_squared(lattice_sum(query, [table(1, 0)]), np.zeros(1, dtype=np.int64))
    assert query.sensitivity_squared(ADD) * (1 - 1e-3) <= moved <= query.sensitivity_squared(ADD)


@EVERY
def test_the_sum_is_that_of_the_features(feature: Any) -> None:
    """Up to the truncation of factors to 15 bits each: two steps of 2**-15 a coordinate at most."""
    assert isinstance(feature, OuterMap)
    query, records = Query("q", "privatize", feature, num_groups=2), table(500, 3)
    found = lattice_sum(query, [records]) * 2.0**-query.lattice_bits
    features = feature(torch.from_numpy(records.x)).numpy()
    expected = np.stack([features[records.labels == group].sum(axis=0) for group in range(2)])
    assert found.shape == (2, query.width) and query.lattice_bits == 30
    assert float(np.abs(found - expected).max()) < 500 * 2 * 2.0**-15
    assert float(np.linalg.norm(found - expected) / np.linalg.norm(expected)) < 2e-4


@pytest.mark.long
@EVERY
@given(size=st.integers(1, 40), order_seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_chunks_order_and_blocks_change_no_bit(feature: Any, size: int, order_seed: int) -> None:
    query, records = Query("q", "privatize", feature, num_groups=2), table(40, 5)
    order = np.random.default_rng(order_seed).permutation(40)
    chunks = [Records(records.x[order[p : p + size]], records.labels[order[p : p + size]]) for p in range(0, 40, size)]
    whole = lattice_sum(query, [records])
    assert np.array_equal(whole, lattice_sum(query, chunks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FACTORS_AT_ONCE", 7 * sum(a + b for a, b in feature.sizes))  # seven rows a block
        patch.setattr(module, "_EXACT", 9 << 30)  # and a sum that is flushed every nine rows
        assert np.array_equal(whole, lattice_sum(query, chunks))


def test_a_wide_map_is_evaluated_in_blocks_of_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dense path too: the same bits whatever the number of rows that memory allows."""
    query, records = Query("q", "privatize", Dense(FEATURES[0]), num_groups=2), table(40, 5)
    assert not isinstance(query.feature, OuterMap)
    whole = lattice_sum(query, [records])
    monkeypatch.setattr(dense, "_WIDE", 3 * query.width)
    assert np.array_equal(whole, lattice_sum(query, [records]))
    assert query.feature.most_rows == 8


class Dense:
    """The same map without its factors; remembers the largest block of its last sum."""

    def __init__(self, feature: Any) -> None:
        self.feature, self.bounded_parts, self.most_rows = feature, feature.bounded_parts, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.most_rows = len(x)
        return self.feature(x)

    def spec(self) -> dict[str, Any]:
        return self.feature.spec()


ROW = torch.tensor([[3.0, -4.0, 0.0]], dtype=torch.float64)
ONE = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
BAD = torch.tensor([[float("nan"), float("inf"), -1.0]], dtype=torch.float64)
LIES = {
    "long left": Liar(ROW, ONE),
    "long right": Liar(ONE, ROW),
    "both huge": Liar(ROW * 1e300, ROW * 1e300),
    "tiny right, huge left": Liar(ROW * 1e18, ONE * 1e-18),
    "not numbers": Liar(BAD, BAD),
    "a hair over": Liar(torch.tensor([[1.0, 1e-4, 1e-4]], dtype=torch.float64), ONE),
    "every block as long as the whole": Liar(ROW / 5, ONE, blocks=4),
    "another bound": Liar(ROW * 7, ROW, blocks=3, bound=Fraction(5, 3)),
    "wide": Liar(torch.ones(1, 3_000, dtype=torch.float64), torch.ones(1, 70, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_map_that_lies_about_its_bound_does_not_pass(name: str) -> None:
    query = Query("q", "privatize", LIES[name], num_groups=2)
    total = lattice_sum(query, [table(1, 0)])
    moved = distance_squared(total, np.zeros_like(total))
    assert moved <= query.sensitivity_squared(ADD)
    if name not in ("not numbers", "tiny right, huge left"):
        assert moved >= query.sensitivity_squared(ADD) * 0.9  # shortened, and not thrown away
    several = lattice_sum(query, [table(5, 0)]).sum(axis=0)
    assert np.array_equal(several, 5 * total.sum(axis=0))


@settings(deadline=None)
@given(
    st.lists(st.floats(-4, 4), min_size=6, max_size=6),
    st.lists(st.floats(-4, 4), min_size=4, max_size=4),
    st.integers(1, 5),
    st.integers(2, 30),
)
def test_every_row_obeys_the_integer_bound(lefts: list[float], rights: list[float], bound: int, bits: int) -> None:
    left, right = (np.array(v).reshape(2, 1, -1) for v in (lefts, rights))
    squared = Part(1, Fraction(1, bound)).lattice_bound_squared(bits)
    made = outer_lattice([(left[0], right[0]), (left[1], right[1])], squared, bits)
    vector = [int(a) * int(b) for left, right in made for a in left[0].tolist() for b in right[0].tolist()]
    assert sum(value**2 for value in vector) <= squared
    for (a, b), (c, d) in zip(made, [(left[0], right[0]), (left[1], right[1])], strict=True):
        for integers, values, own in ((a, c, bits // 2), (b, d, bits - bits // 2)):
            assert (np.abs(integers) <= np.abs(values) * 2.0**own).all()
            assert np.array_equal(integers, integers.round())


def test_outer_products_and_vectors_are_clipped_alike() -> None:
    """The dense path and the one of factors agree on an honest map, up to their truncations."""
    x = table(20, 1).x
    for feature in FEATURES:
        dense = to_lattice(evaluate(feature, feature, x), feature.bounded_parts, 30)
        factors = evaluate(feature, feature.factors, x)
        pairs = outer_lattice(factors, feature.bounded_parts[0].lattice_bound_squared(30), 30)
        vectors = outer_products(tuple((torch.from_numpy(left), torch.from_numpy(right)) for left, right in pairs))
        assert float(np.abs(vectors.numpy() - dense).max()) < 2 * 2**15 + 2


def test_maps_that_do_not_return_what_they_declare_are_refused() -> None:
    wrong = Liar(ROW, ONE)
    wrong.sizes = ((2, 3),)  # as many coordinates, other factors
    with pytest.raises(ReleaseError, match="factors that it declares"):
        lattice_sum(Query("q", "privatize", wrong), [table(1, 0)])
    with pytest.raises(ReleaseError, match="at most 4 blocks"):
        lattice_sum(Query("q", "privatize", Liar(ROW, ONE, blocks=5)), [table(1, 0)])
