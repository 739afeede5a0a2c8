"""Sums of outer products and of products of pairs: integer products that obey the bound whatever the map returns."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_maps import Outer, Products, outer_products

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OuterMap, PairedMap, evaluate
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums import lattice_sum as dense
from likeness.release.sums import products as module
from likeness.release.sums.clipping import outer_lattice, paired_lattice, to_lattice
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.sums.products import _ExactSum, _pair_features
from likeness.testing.maps import check_neighbors, distance_squared
from tests.contracts.method_examples import DOOR

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
ALL = tuple((i, j) for i in range(4) for j in range(i + 1, 4))


def products(share: float = 0.8, order: int = 2) -> Products:
    """Two numbers, the second of which may be missing, and two columns of categories."""
    return Products(((0, None), (1, 2)), ((3, 5), (5, 8)), order, ALL, share)


OUTER = [Outer(((6, 6), (1, 6)), 8, seed=0), *DOOR["outer products"]]
PAIRED = [products(), products(1.0), products(0.3, 5), *DOOR["products of columns"]]
IDS = {id(one): f"{one.name} with a share of {one.product_share}" for one in PAIRED}
EVERY = pytest.mark.parametrize(
    "feature", [*OUTER, *PAIRED], ids=lambda f: IDS.get(id(f), getattr(f, "architecture", f.name))
)


class Dense:
    """The same map, for which the door makes whole vectors; remembers the largest block of its last sum."""

    def __init__(self, feature: Any) -> None:
        self.feature, self.bounded_parts, self.most_rows = feature, feature.bounded_parts, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.most_rows = len(x)
        return self.feature(x)

    def spec(self) -> dict[str, Any]:
        return self.feature.spec()


class OuterLiar:
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


class PairedLiar:
    """A map of three columns, the last two non-negative, that declares bounds and returns whatever it likes.

    Before the products comes a part as long as the first column, of the same values.
    """

    pairs: tuple[tuple[int, int], ...] = ((0, 1), (0, 2), (1, 2))

    def __init__(self, columns: list[list[float]], bound: Fraction = Fraction(1, 3)) -> None:
        self.columns, self.bound = [torch.tensor([own], dtype=torch.float64) for own in columns], bound
        self.first = self.columns[0]

    @property
    def column_sizes(self) -> tuple[int, ...]:
        return tuple(own.shape[1] for own in self.columns)

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        widths = [self.column_sizes[i] * self.column_sizes[j] for i, j in self.pairs]
        first = Part(self.column_sizes[0], Fraction(1, 7))
        products = (
            Part(own, self.bound, nonnegative=0 not in pair) for own, pair in zip(widths, self.pairs, strict=True)
        )
        return (first, *products)

    def paired_features(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.first.repeat(len(x), 1), tuple(own.repeat(len(x), 1) for own in self.columns)

    def __call__(self, x: Tensor) -> Tensor:
        raise AssertionError("the door makes no whole vector of a map of pairs")

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


def table(n: int, seed: int) -> Records:
    generator = np.random.default_rng(seed)
    x = np.zeros((n, 8))
    x[:, :2] = generator.random((n, 2)).round(1)
    x[:, 2] = generator.random(n) < 0.3
    for start, stop in ((3, 5), (5, 8)):
        x[np.arange(n), start + generator.integers(0, stop - start, n)] = 1
    return Records(x, generator.integers(0, 2, n))


@EVERY
@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_on_neighboring_tables(feature: Any, n: int, seed: int, data: st.DataObject) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    check_neighbors(query, table, n, seed, data.draw(st.integers(0, n - 1)))


@EVERY
def test_one_record_moves_the_sum_by_almost_the_bound(feature: Any) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    records = table(1, 0)
    records.x[0, 2] = 1  # missing: its indicator is 1, and all its columns' norms but one number's are 1
    moved = distance_squared(lattice_sum(query, [records]), np.zeros(1, dtype=np.int64))
    least = 0.95 if isinstance(feature, PairedMap) else 1 - 1e-3
    assert query.sensitivity_squared(ADD) * least <= moved <= query.sensitivity_squared(ADD)


@EVERY
def test_the_sum_is_that_of_the_features(feature: Any) -> None:
    """Up to the truncation of factors to 15 bits each, and the rounding of columns.

    A factor has two steps of 2**-15 a coordinate at most, a column one of the fourth root of a product's squared bound.
    """
    query, records = Query("q", "privatize", feature, num_groups=2), table(500, 3)
    integers = lattice_sum(query, [records])
    found = integers * 2.0**-query.lattice_bits
    features = feature(torch.from_numpy(records.x)).numpy()
    expected = np.stack([features[records.labels == group].sum(axis=0) for group in range(2)])
    if feature in OUTER:
        assert isinstance(feature, OuterMap) and query.lattice_bits == 30
        step = 2.0
    else:
        assert isinstance(feature, PairedMap) and len(feature.pairs) == 6
        step = float(feature.bounded_parts[-1].norm_bound_squared) ** 0.25
        whole = lattice_sum(Query("q", "privatize", Dense(feature), num_groups=2), [records])
        assert np.array_equal(integers[:, : feature.sum_width], whole[:, : feature.sum_width])
    assert found.shape == (2, query.width) and float(np.abs(found - expected).max()) < 500 * step * 2.0**-15
    assert float(np.linalg.norm(found - expected) / np.linalg.norm(expected)) < 2e-4


def test_rounding_does_not_drift_towards_zero() -> None:
    """On average of all coordinates: truncation takes a fifth of a step off each record, rounding nothing."""
    feature = Products(((0, None), (1, None)), (), 2, ((0, 1),), 1.0)
    query, x = Query("q", "privatize", feature), np.random.default_rng(0).random((2_000, 2))
    found = lattice_sum(query, [Records(x, np.zeros(2_000, dtype=np.int64))])[0] * 2.0**-query.lattice_bits
    expected = feature(torch.from_numpy(x)).sum(dim=0).numpy()
    sizes = np.abs(feature(torch.from_numpy(x))).mean(dim=0).sqrt().numpy()  # of the other column, about
    drift = (expected - found) * np.sign(expected) / (2_000 * 2.0**-15 * sizes)
    assert abs(drift.mean()) < 0.05


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
        outer = isinstance(feature, OuterMap)
        width = sum(map(sum, feature.sizes)) if outer else feature.sum_width + sum(feature.column_sizes)
        patch.setattr(module, "_FACTORS_AT_ONCE", 7 * width)  # seven rows a block
        patch.setattr(module, "_EXACT", (9 if outer else 1) << 30)  # and a sum that is moved every few rows
        assert np.array_equal(whole, lattice_sum(query, chunks))


@pytest.mark.parametrize("feature", PAIRED, ids=[IDS[id(one)] for one in PAIRED])
def test_a_column_is_each_row_s_own_by_a_bit(feature: Any) -> None:
    query, x = Query("q", "privatize", feature), table(37, 6).x

    def joined(rows: np.ndarray) -> np.ndarray:
        widths = (feature.sum_width, *feature.column_sizes)
        return np.concatenate(_pair_features(query, feature, rows, 1024, widths), axis=1)

    order, together = np.random.default_rng(8).permutation(37), joined(x)
    assert np.array_equal(np.concatenate([joined(row[None]) for row in x]), together)
    assert np.array_equal(joined(x[order]), together[order])


def test_a_wide_map_is_evaluated_in_blocks_of_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dense path too: the same bits whatever the number of rows that memory allows."""
    query, records = Query("q", "privatize", Dense(OUTER[0]), num_groups=2), table(40, 5)
    assert not isinstance(query.feature, OuterMap)
    whole = lattice_sum(query, [records])
    monkeypatch.setattr(dense, "_WIDE", 3 * query.width)
    assert np.array_equal(whole, lattice_sum(query, [records])) and query.feature.most_rows == 8


ROW = torch.tensor([[3.0, -4.0, 0.0]], dtype=torch.float64)
ONE = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
BAD = torch.tensor([[float("nan"), float("inf"), -1.0]], dtype=torch.float64)
OUTER_LIES = {
    "long left": OuterLiar(ROW, ONE),
    "long right": OuterLiar(ONE, ROW),
    "both huge": OuterLiar(ROW * 1e300, ROW * 1e300),
    "tiny right, huge left": OuterLiar(ROW * 1e18, ONE * 1e-18),
    "not numbers": OuterLiar(BAD, BAD),
    "a hair over": OuterLiar(torch.tensor([[1.0, 1e-4, 1e-4]], dtype=torch.float64), ONE),
    "every block as long as the whole": OuterLiar(ROW / 5, ONE, blocks=4),
    "another bound": OuterLiar(ROW * 7, ROW, blocks=3, bound=Fraction(5, 3)),
    "wide": OuterLiar(torch.ones(1, 3_000, dtype=torch.float64), torch.ones(1, 70, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", OUTER_LIES)
def test_factors_that_lie_about_their_bound_do_not_pass(name: str) -> None:
    query = Query("q", "privatize", OUTER_LIES[name], num_groups=2)
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
def test_every_outer_row_obeys_the_integer_bound(
    lefts: list[float], rights: list[float], bound: int, bits: int
) -> None:
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
    for feature in OUTER:
        whole = to_lattice(evaluate(feature, feature, x), feature.bounded_parts, 30)
        factors = evaluate(feature, feature.factors, x)
        pairs = outer_lattice(factors, feature.bounded_parts[0].lattice_bound_squared(30), 30)
        vectors = outer_products(tuple((torch.from_numpy(left), torch.from_numpy(right)) for left, right in pairs))
        assert float(np.abs(vectors.numpy() - whole).max()) < 2 * 2**15 + 2


def test_factors_that_are_not_those_a_map_declares_are_refused() -> None:
    wrong = OuterLiar(ROW, ONE)
    wrong.sizes = ((2, 3),)  # as many coordinates, other factors
    with pytest.raises(ReleaseError, match="factors that it declares"):
        lattice_sum(Query("q", "privatize", wrong), [table(1, 0)])
    with pytest.raises(ReleaseError, match="at most 4 blocks"):
        lattice_sum(Query("q", "privatize", OuterLiar(ROW, ONE, blocks=5)), [table(1, 0)])


PAIRED_LIES = {
    "all too long": [[3.0, -4.0], [2.0, 2.0], [5.0]],
    "one huge": [[1e300, -1e300], [1.0, 0.0], [1.0]],
    "one tiny, one huge": [[1e-18, 0.0], [1e18, 1e18], [1.0]],
    "not numbers": [[float("nan"), 1.0], [float("inf"), 1.0], [float("-inf")]],
    "a hair over": [[1.0, 1e-4], [1.0, 1e-4], [1.0 + 1e-9]],
    "negative where it may not be": [[0.6, -0.8], [-1.0, 1.0], [-1.0]],
    "wide": [[1.0] * 900, [1.0] * 70, [1.0]],
}


OTHER_PAIRS = {
    "as declared": ((0, 1), (0, 2), (1, 2)),
    "with itself, turned round, twice": ((1, 1), (2, 1), (1, 2), (1, 2), (0, 0)),
}


@pytest.mark.long
@pytest.mark.parametrize("pairs", OTHER_PAIRS)
@pytest.mark.parametrize("bound", [Fraction(1, 3), Fraction(4, 5 * 820), Fraction(7, 2)], ids=str)
@pytest.mark.parametrize("name", PAIRED_LIES)
def test_columns_that_lie_about_their_bounds_do_not_pass(name: str, bound: Fraction, pairs: str) -> None:
    feature = PairedLiar(PAIRED_LIES[name], bound)
    feature.pairs = OTHER_PAIRS[pairs]
    query = Query("q", "privatize", feature, num_groups=2)
    total = lattice_sum(query, [table(1, 0)])
    start = 0
    for part in feature.bounded_parts:
        own = total[:, start : start + part.width]
        start += part.width
        assert distance_squared(own, np.zeros_like(own)) <= part.lattice_bound_squared(query.lattice_bits)
        assert (own >= 0).all() or not part.nonnegative
    moved = distance_squared(total, np.zeros_like(total))
    assert start == total.shape[1] and moved <= query.sensitivity_squared(ADD)
    if name in ("all too long", "a hair over", "wide"):
        assert moved >= query.sensitivity_squared(ADD) * 0.9  # shortened, and not thrown away
    several = lattice_sum(query, [table(5, 0)]).sum(axis=0)
    assert np.array_equal(several, 5 * total.sum(axis=0))
    # Another lie in the other class in its place.
    other = PairedLiar([[-value for value in reversed(own)] for own in PAIRED_LIES[name]], bound)
    other.pairs = feature.pairs
    replaced = lattice_sum(Query("q", "privatize", other, num_groups=2), [table(1, 0)])
    assert distance_squared(total, replaced) <= query.sensitivity_squared(REPLACE)
    assert distance_squared(total, replaced[::-1]) <= query.sensitivity_squared(REPLACE)


def test_labels_out_of_range_count_nowhere() -> None:
    query = Query("q", "privatize", PAIRED[0], num_groups=2)
    records = table(4, 0)
    assert not lattice_sum(query, [Records(records.x, np.array([-1, 2, 99, -7]))]).any()


def test_a_sum_is_moved_before_float64_could_round_it() -> None:
    """A bound of 2**30 and 3 · 2**23 rows: the sum is above 2**53, where odd integers end."""
    bound_squared, rows = (1 << 30) ** 2, 3 << 10
    product = float(((1 << 30) - 1) * rows)
    exact = _ExactSum((1, 1), bound_squared)
    for _ in range(1 << 13):
        held = exact.room_for(rows)
        held += product
    expected = ((1 << 30) - 1) * rows << 13
    assert expected > 1 << 53 and int(exact.total()[0, 0]) == expected
    alone = _ExactSum((1, 1), bound_squared)
    held = alone.room_for(1)
    held += 5
    assert alone.room_for((1 << 23) - 2) is held and held.item() == 5
    assert alone.room_for(2).item() == 0 and int(alone.total()[0, 0]) == 5  # one row more than there was room for


@settings(deadline=None)
@given(
    st.lists(st.floats(-4, 4), min_size=6, max_size=6),
    st.booleans(),
    st.fractions(Fraction(1, 10**6), Fraction(9)),
    st.integers(2, 30),
)
def test_every_product_obeys_the_integer_bound(
    values: list[float], nonnegative: bool, bound: Fraction, bits: int
) -> None:
    squared = Part(1, bound).lattice_bound_squared(bits)
    columns = [np.array([values[:2]]), np.array([values[2:]])]
    made = paired_lattice(columns, [nonnegative, False], squared)[0].tolist()
    assert all(own == int(own) for own in made) and (min(made[:2]) >= 0 or not nonnegative)
    assert sum((int(a) * int(b)) ** 2 for a in made[:2] for b in made[2:]) <= squared


def test_columns_that_are_not_those_a_map_declares_are_refused() -> None:
    records = [table(1, 0)]
    short = PairedLiar([[1.0], [1.0, 0.0], [1.0]])
    short.paired_features = lambda x: (x.new_zeros(len(x), 1), (x.new_zeros(len(x), 1),) * 3)  # type: ignore[method-assign]
    with pytest.raises(ReleaseError, match="columns that it declares"):
        lattice_sum(Query("q", "privatize", short), records)
    other = PairedLiar([[1.0], [1.0, 0.0], [1.0]])
    other.pairs = ((0, 1), (0, 2), (0, 2))
    parts = PairedLiar([[1.0], [1.0, 0.0], [1.0]]).bounded_parts
    with pytest.raises(ReleaseError, match="widths of their columns"):
        lattice_sum(Query("q", "privatize", _with_parts(other, parts)), records)
    uneven = (*parts[:2], Part(parts[2].width, Fraction(1, 2)), parts[3])
    with pytest.raises(ReleaseError, match="one bound"):
        lattice_sum(Query("q", "privatize", _with_parts(PairedLiar([[1.0], [1.0, 0.0], [1.0]]), uneven)), records)
    for nobody in (-1, 3):
        absent = PairedLiar([[1.0], [1.0, 0.0], [1.0]])
        absent.pairs = ((0, 1), (0, 2), (1, nobody))
        with pytest.raises(ReleaseError, match="two columns of the map"):
            lattice_sum(Query("q", "privatize", _with_parts(absent, parts)), records)


def _with_parts(feature: PairedLiar, parts: tuple[Part, ...]) -> PairedLiar:
    return type("Other", (PairedLiar,), {"bounded_parts": parts, "pairs": feature.pairs})(
        [own[0].tolist() for own in feature.columns]
    )
