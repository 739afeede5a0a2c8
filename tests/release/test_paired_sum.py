"""Sums of products of pairs of columns: integer matrix products that obey the bounds whatever the map returns."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_maps import Products

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import PairedMap
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums import products as module
from likeness.release.sums.clipping import paired_lattice
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.sums.products import _ExactSum, _pair_features
from likeness.testing.maps import check_neighbors, distance_squared
from tests.contracts.method_examples import DOOR

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
ALL = tuple((i, j) for i in range(4) for j in range(i + 1, 4))


def products(share: float = 0.8, order: int = 2) -> Products:
    """Two numbers, the second of which may be missing, and two columns of categories."""
    return Products(((0, None), (1, 2)), ((3, 5), (5, 8)), order, ALL, share)


FEATURES = [products(), products(1.0), products(0.3, 5), *DOOR["products of columns"]]
IDS = [f"{feature.name} with a share of {feature.product_share}" for feature in FEATURES]
EVERY = pytest.mark.parametrize("feature", FEATURES, ids=IDS)


class Dense:
    """The same map, for which the door makes whole vectors."""

    def __init__(self, feature: Any) -> None:
        self.feature, self.parts = feature, feature.parts

    def __call__(self, x: Tensor) -> Tensor:
        return self.feature(x)

    def spec(self) -> dict[str, Any]:
        return self.feature.spec()


class Liar:
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
    assert query.sensitivity_squared(ADD) * 0.95 <= moved <= query.sensitivity_squared(ADD)


@EVERY
def test_the_sum_is_that_of_the_features(feature: Any) -> None:
    """Up to the rounding of columns: a step is 2**-15 of the fourth root of a product's squared bound."""
    assert isinstance(feature, PairedMap) and len(feature.pairs) == 6
    query, records = Query("q", "privatize", feature, num_groups=2), table(500, 3)
    unit = 2.0**-query.lattice_bits
    found = lattice_sum(query, [records]) * unit
    features = feature(torch.from_numpy(records.x)).numpy()
    expected = np.stack([features[records.labels == group].sum(axis=0) for group in range(2)])
    root = float(feature.bounded_parts[-1].norm_bound_squared) ** 0.25
    assert found.shape == (2, query.width)
    assert float(np.abs(found - expected).max()) < 500 * root * 2.0**-15
    assert float(np.linalg.norm(found - expected) / np.linalg.norm(expected)) < 2e-4
    dense = lattice_sum(Query("q", "privatize", Dense(feature), num_groups=2), [records])
    assert np.array_equal(lattice_sum(query, [records])[:, : feature.sum_width], dense[:, : feature.sum_width])


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
        width = feature.sum_width + sum(feature.column_sizes)
        patch.setattr(module, "_FACTORS_AT_ONCE", 7 * width)  # seven rows a block
        patch.setattr(module, "_EXACT", 1 << 30)  # and a sum that is moved every few rows
        assert np.array_equal(whole, lattice_sum(query, chunks))


@EVERY
def test_a_column_is_each_row_s_own_by_a_bit(feature: Any) -> None:
    query, x = Query("q", "privatize", feature), table(37, 6).x

    def joined(rows: np.ndarray) -> np.ndarray:
        widths = (feature.sum_width, *feature.column_sizes)
        return np.concatenate(_pair_features(query, feature, rows, 1024, widths), axis=1)

    order, together = np.random.default_rng(8).permutation(37), joined(x)
    assert np.array_equal(np.concatenate([joined(row[None]) for row in x]), together)
    assert np.array_equal(joined(x[order]), together[order])


LIES = {
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
@pytest.mark.parametrize("name", LIES)
def test_a_map_that_lies_about_its_bounds_does_not_pass(name: str, bound: Fraction, pairs: str) -> None:
    feature = Liar(LIES[name], bound)
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
    other = Liar([[-value for value in reversed(own)] for own in LIES[name]], bound)
    other.pairs = feature.pairs
    replaced = lattice_sum(Query("q", "privatize", other, num_groups=2), [table(1, 0)])
    assert distance_squared(total, replaced) <= query.sensitivity_squared(REPLACE)
    assert distance_squared(total, replaced[::-1]) <= query.sensitivity_squared(REPLACE)


def test_labels_out_of_range_count_nowhere() -> None:
    query = Query("q", "privatize", FEATURES[0], num_groups=2)
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


def test_maps_that_do_not_return_what_they_declare_are_refused() -> None:
    records = [table(1, 0)]
    short = Liar([[1.0], [1.0, 0.0], [1.0]])
    short.paired_features = lambda x: (x.new_zeros(len(x), 1), (x.new_zeros(len(x), 1),) * 3)  # type: ignore[method-assign]
    with pytest.raises(ReleaseError, match="columns that it declares"):
        lattice_sum(Query("q", "privatize", short), records)
    other = Liar([[1.0], [1.0, 0.0], [1.0]])
    other.pairs = ((0, 1), (0, 2), (0, 2))
    parts = Liar([[1.0], [1.0, 0.0], [1.0]]).bounded_parts
    with pytest.raises(ReleaseError, match="widths of their columns"):
        lattice_sum(Query("q", "privatize", _with_parts(other, parts)), records)
    uneven = (*parts[:2], Part(parts[2].width, Fraction(1, 2)), parts[3])
    with pytest.raises(ReleaseError, match="one bound"):
        lattice_sum(Query("q", "privatize", _with_parts(Liar([[1.0], [1.0, 0.0], [1.0]]), uneven)), records)
    for nobody in (-1, 3):
        absent = Liar([[1.0], [1.0, 0.0], [1.0]])
        absent.pairs = ((0, 1), (0, 2), (1, nobody))
        with pytest.raises(ReleaseError, match="two columns of the map"):
            lattice_sum(Query("q", "privatize", _with_parts(absent, parts)), records)


def _with_parts(feature: Liar, parts: tuple[Part, ...]) -> Liar:
    return type("Other", (Liar,), {"bounded_parts": parts, "pairs": feature.pairs})(
        [own[0].tolist() for own in feature.columns]
    )
