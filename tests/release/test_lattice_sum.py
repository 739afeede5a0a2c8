"""The sum that the guarantee rests on: exact, clipped, and no farther apart than stated on neighboring tables."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_maps import Products, Trigonometric

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import FeatureMap
from likeness.features.column_marginals import Constant
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import BucketPairs, PositionPairs, Records
from likeness.release.sums.clipping import BLOCK, to_lattice
from likeness.release.sums.lattice_sum import block_rows, lattice_sum
from likeness.testing.maps import check_neighbors, distance_squared
from tests.contracts.method_examples import DOOR

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
FEATURES: list[FeatureMap] = [
    Trigonometric(12, 4, 1.5, seed=0),
    Constant(),
    Products(((0, None), (1, None)), ((2, 4),), 3, ((0, 1), (1, 2)), 0.75),
    *DOOR["records"],
]


class Liar:
    """A map that declares a norm of 1 and returns whatever it likes."""

    def __init__(self, answer: Tensor, nonnegative: bool = False) -> None:
        self.answer = answer
        self.nonnegative = nonnegative

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(self.answer.shape[1], Fraction(1), self.nonnegative),)

    def __call__(self, x: Tensor) -> Tensor:
        return self.answer[: len(x)] if len(x) <= len(self.answer) else self.answer.repeat(len(x), 1)[: len(x)]

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


def table(n: int, seed: int, classes: int = 2) -> Records:
    generator = np.random.default_rng(seed)
    x = generator.random((n, 4)).round(1)
    x[:, 2:] = np.eye(2)[(x[:, 2] > 0.5).astype(int)]
    return Records(x, generator.integers(0, classes, n))


def chunks(records: Records, size: int) -> list[Records]:
    places = range(0, len(records.x), size)
    return [Records(records.x[p : p + size], records.labels[p : p + size]) for p in places]


@pytest.mark.long
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.spec()["map"])
@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_on_neighboring_tables(feature: FeatureMap, n: int, seed: int, data: st.DataObject) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    check_neighbors(query, table, n, seed, data.draw(st.integers(0, n - 1)))


@pytest.mark.parametrize(
    "feature", [Trigonometric(4, 8, 1.5, seed=0), *DOOR["pairs of records"]], ids=lambda f: f.spec()["map"]
)
@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_of_pair_distances(feature: FeatureMap, n: int, seed: int, data: st.DataObject) -> None:
    records = table(n, seed)
    place = data.draw(st.integers(0, n - 1))
    dice = np.random.default_rng(seed).integers(0, 2**63, n).astype(np.uint64)
    kept = np.delete(np.arange(n), place)

    def bucket_sum(rows: np.ndarray) -> np.ndarray:
        query = Query("q", "auxiliary", feature, contributions=BucketPairs(4, lambda count: dice[rows]))
        return lattice_sum(query, [Records(records.x[rows], records.labels[rows])])

    add = Query("q", "auxiliary", feature, contributions=BucketPairs(4))
    assert distance_squared(bucket_sum(np.arange(n)), bucket_sum(kept)) <= add.sensitivity_squared(ADD)
    replace = Query("q", "auxiliary", feature, contributions=PositionPairs(2, 0))
    other = Records(records.x.copy(), records.labels)
    other.x[place] = table(1, seed + 1).x[0]
    moved = distance_squared(lattice_sum(replace, [records]), lattice_sum(replace, [other]))
    assert moved <= replace.sensitivity_squared(REPLACE)


def test_sensitivity_is_reached() -> None:
    """The bound is not slack: one record moves a characteristic function by its whole norm, up to truncation."""
    query = Query("q", "privatize", FEATURES[0])
    one = distance_squared(lattice_sum(query, [table(1, 0)]), np.zeros(1, dtype=np.int64))
    assert one >= query.sensitivity_squared(ADD) * (1 - 1e-6)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.spec()["map"])
@given(size=st.integers(1, 40), order_seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_chunks_and_order_change_no_bit(feature: FeatureMap, size: int, order_seed: int) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    records = table(40, 5)
    order = np.random.default_rng(order_seed).permutation(40)
    shuffled = Records(records.x[order], records.labels[order])
    assert np.array_equal(lattice_sum(query, [records]), lattice_sum(query, chunks(shuffled, size)))


LIES = [
    torch.full((1, 3), 5.0, dtype=torch.float64),
    torch.full((1, 3), 1e300, dtype=torch.float64),
    torch.tensor([[float("nan"), float("inf"), -float("inf")]], dtype=torch.float64),
    torch.tensor([[1.0, 1e-9, 0.0]], dtype=torch.float64),
    torch.tensor([[-1.0, 0.0, 1.0]], dtype=torch.float64),
]


@pytest.mark.parametrize("answer", LIES, ids=["long", "huge", "not numbers", "a hair over", "signed"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_map_that_lies_about_its_bound_does_not_pass(answer: Tensor, nonnegative: bool) -> None:
    query = Query("q", "privatize", Liar(answer, nonnegative))
    total = lattice_sum(query, [table(1, 0)])
    assert distance_squared(total, np.zeros_like(total)) <= query.sensitivity_squared(ADD)
    if nonnegative:
        assert total.min() >= 0


@pytest.mark.long
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.integers(1, 5), st.integers(0, 30))
def test_every_row_obeys_the_integer_bound(values: list[float], bound: int, bits: int) -> None:
    part = Part(3, Fraction(1, bound))
    lattice = to_lattice(np.array([values]), (part,), bits)
    assert sum(int(value) ** 2 for value in lattice[0]) <= part.lattice_bound_squared(bits)
    assert all(abs(int(integer)) <= abs(value) * 2.0**bits for integer, value in zip(lattice[0], values, strict=True))


def test_clipping_does_nothing_to_an_honest_map() -> None:
    features = FEATURES[0](torch.from_numpy(table(50, 0).x)).numpy()
    bits = Query("q", "privatize", FEATURES[0]).lattice_bits
    lattice = to_lattice(features, FEATURES[0].bounded_parts, bits)
    assert float(np.abs(lattice - features * 2.0**bits).max()) < 2


def test_a_map_of_another_width_is_refused() -> None:
    class Narrow(Liar):
        def __call__(self, x: Tensor) -> Tensor:
            return x[:, :1]

    with pytest.raises(ReleaseError, match="width"):
        lattice_sum(Query("q", "privatize", Narrow(LIES[0])), [table(1, 0)])


@pytest.mark.long
def test_a_wide_map_is_summed_in_smaller_blocks_to_the_same_sum() -> None:
    """A block's rows depend on the width alone, and the sum on neither chunks nor blocks, to the last bit."""
    wide = Trigonometric(2_500, 4, 1.5, seed=0)
    query = Query("q", "privatize", wide, num_groups=2)
    assert block_rows(query) == 256 and block_rows(Query("q", "privatize", Constant())) == BLOCK
    assert block_rows(Query("q", "privatize", Liar(torch.zeros(1, 80_000)))) == 16
    records = table(600, seed=4)
    expected = lattice_sum(query, [records])
    assert np.array_equal(lattice_sum(query, chunks(records, 100)), expected)
    one_by_one = sum(lattice_sum(query, [part]) for part in chunks(Records(records.x[:40], records.labels[:40]), 1))
    assert np.array_equal(one_by_one, lattice_sum(query, chunks(Records(records.x[:40], records.labels[:40]), 40)))


def test_the_map_always_sees_a_block_of_the_same_size() -> None:
    """However many rows are left: kernels of another shape could round otherwise."""
    seen: list[int] = []

    class Spy(Liar):
        def __call__(self, x: Tensor) -> Tensor:
            seen.append(len(x))
            return super().__call__(x)

    for width, expected in ((3, BLOCK), (80_000, 16)):
        seen.clear()
        query = Query("q", "privatize", Spy(torch.zeros(1, width)), num_groups=2)
        lattice_sum(query, chunks(table(70, seed=5), 33))
        assert set(seen) == {expected}
