"""The mixture of products: sampling is exact, marginals are what the objective thinks they are, and it learns them.

Files of a generator that somebody else wrote: what cannot be drawn from is refused when read.
"""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.hashing import json_value, sha256_bytes
from likeness.core.typed import build
from likeness.data.encoding.layout import Block, Condition, Layout
from likeness.features.cells import Cells
from likeness.generators.base import SPEC_DIGEST, systematic
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture, rows_from_cells
from likeness.methods.marginals.objective import (
    CountedTable,
    MarginalObjective,
    Measurement,
    Products,
    Singles,
    _halves,
)
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.training import is_near
from likeness.methods.saved_generator import SavedGenerator
from tests.contracts.method_examples import IMAGE_GENERATORS

COLUMNS = [
    MixtureColumn(Cells(0, 3)),
    MixtureColumn(Cells(3, 3, (0.5,), missing=True), (0.0, 0.5, 1.0), (0.0, 0.5), (0.5, 1.0)),
    MixtureColumn(Cells(5, 2)),
]
LAYOUT = Layout((Block("a", "unit", 0, 1), Block("c", "onehot", 1, 4)), num_classes=2)
FEATURE = PairMarginals(tuple(column.cells for column in COLUMNS))
PAIRS_OF_FIVE = tuple(itertools.combinations(range(5), 2))


def seeded(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits)
    return shares / shares.sum(axis=-1, keepdims=True)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 500), groups=st.integers(1, 5), categories=st.integers(1, 9))
def test_each_group_holds_each_category_as_often_as_expected(seed: int, n: int, groups: int, categories: int) -> None:
    probabilities = softmax(2 * seeded(seed).standard_normal((groups, categories)))
    group_of = seeded(seed + 1).integers(groups, size=n)
    chosen = systematic(probabilities, group_of, seeded(seed + 2))
    for group in range(groups):
        count = int((group_of == group).sum())
        drawn = np.bincount(chosen[group_of == group], minlength=categories)
        assert np.abs(drawn - count * probabilities[group]).max() < 1 + 1e-9


def test_a_category_of_probability_zero_is_never_drawn() -> None:
    probabilities = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]])
    assert set(systematic(probabilities, np.zeros(10_001, dtype=np.int64), seeded(0)).tolist()) == {1, 3}


def test_rows_are_in_random_order_and_row_by_row_right() -> None:
    """Over 2,000 seeds the first row's category has its probability (5 standard deviations: 6e-7 false alarms)."""
    probabilities, groups = np.array([[0.2, 0.8]]), np.zeros(10, dtype=np.int64)
    hits = sum(int(systematic(probabilities, groups, seeded(seed))[0]) for seed in range(2_000))
    assert abs(hits / 2_000 - 0.8) < 5 * np.sqrt(0.16 / 2_000)


def mixture(seed: int = 0, components: int = 7) -> ProductMixture:
    return started(ProductMixture(COLUMNS, num_classes=2, num_components=components, width=7), seed)


def started(model: ProductMixture, seed: int = 0) -> ProductMixture:
    model.start_from(np.ones(sum(model.sizes)), seeded(seed))
    return model


def exact(model: ProductMixture) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of cells in components, and of components by class."""
    parts, weights = model.exact()
    return np.concatenate(parts, axis=1), weights


def loss(made: MarginalObjective, model: ProductMixture) -> float:
    return made.loss(model.logits, model.weights)[0]


def sums(feature: PairMarginals, x: np.ndarray) -> np.ndarray:
    """The feature, summed over rows."""
    counts = zip(feature.bounded_parts, feature.cell_indices(x).T, strict=True)
    return np.concatenate([float(p.norm_bound_squared) ** 0.5 * np.bincount(at, minlength=p.width) for p, at in counts])


def counts_of(x: np.ndarray, labels: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Exact pair counts by class."""
    values = np.stack([sums(FEATURE, x[labels == c]) for c in range(2)])
    return list(FEATURE.blocks(values))


@pytest.mark.long
def test_drawn_rows_have_the_marginals_of_the_model() -> None:
    model = mixture()
    labels = np.arange(200_000) % 2
    x = model.draw(labels, seeded(1))
    probabilities, weights = exact(model)
    for i, j, counts in counts_of(x, labels):
        a, b = (slice(sum(model.sizes[:c]), sum(model.sizes[: c + 1])) for c in (i, j))
        for y in range(2):
            expected = np.einsum("k,ka,kb->ab", weights[y], probabilities[:, a], probabilities[:, b])
            # Standard deviation of a cell at most sqrt(.25 / 1e5) = .0016; 5 of them, 42 cells: 3e-5 false alarms.
            assert np.abs(counts[y] / 100_000 - expected).max() < 0.008


def test_drawn_rows_are_encoded_rows() -> None:
    x = mixture().draw(np.zeros(1000, dtype=np.int64), seeded(2))
    assert np.array_equal(x[:, :3].sum(axis=1), np.ones(1000)) and np.array_equal(x[:, 5:].sum(axis=1), np.ones(1000))
    assert set(np.unique(x[:, 4])) <= {0.0, 1.0} and x[:, 3].min() >= 0 and x[:, 3].max() <= 1


def objective(
    blocks: list[tuple[int, int, np.ndarray]], records: float, share: float = 0.5, **others: object
) -> MarginalObjective:
    """Of pairs of these columns, without noise and price unless told otherwise."""
    plain = {"sizes": [3, 3, 2], "squared_weights": (1, 1, 1), "noise_std": 0.0, "kl_penalty": 0.0, "information": 1.0}
    given = {**plain, **others}
    even = np.concatenate([np.full(size, 1 / size) for size in given["sizes"]])
    measurement = Measurement(
        given.pop("sizes"), np.array([1 - share, share]), records, given.pop("noise_std"), given.pop("information")
    )
    weighted = zip(blocks, given.pop("squared_weights"), strict=True)
    return MarginalObjective(
        measurement,
        [CountedTable((i, j), counts, weight) for (i, j, counts), weight in weighted],
        **{"singles": Singles(even, np.full(len(even), np.inf)), **given},
    )


def test_the_loss_is_zero_at_its_own_marginals_and_positive_elsewhere() -> None:
    model = mixture()
    probabilities, weights = exact(model)
    blocks = []
    for i, j in itertools.combinations(range(3), 2):
        a, b = (slice(sum(model.sizes[:c]), sum(model.sizes[: c + 1])) for c in (i, j))
        joint = np.einsum("yk,ka,kb->yab", weights, probabilities[:, a], probabilities[:, b])
        blocks.append((i, j, joint * np.array([700, 300])[:, None, None]))
    made = objective(blocks, 1000, 0.3)
    assert loss(made, model) < 1e-6 and loss(made, mixture(seed=1)) > 1


def with_tables(
    feature: PairMarginals, values: np.ndarray, sizes: list[int], records: float, **others: object
) -> MarginalObjective:
    """All that a map with named tables asks for."""
    counted = zip(feature.table_counts(values), feature.squared_table_weights, strict=True)
    more = {"tables": [CountedTable(*table, weight) for table, weight in counted]}
    weights = feature.squared_weights or (1,) * len(feature.sizes)
    return objective(feature.blocks(values), records, sizes=sizes, squared_weights=weights, **more, **others)


@pytest.mark.parametrize(
    ("pairs", "tables"),
    [
        (((0, 1), (0, 3), (1, 2), (1, 3), (2, 3)), ((0, 1, 2),)),
        (tuple(itertools.combinations(range(4), 2)), ((0, 1, 2), (0, 1, 2, 3), (0, 1, 3), (1, 2, 3))),
    ],
    ids=["some", "all"],
)
def test_the_loss_counts_pairs_and_tables_each_with_its_weight(
    pairs: tuple[tuple[int, int], ...], tables: tuple[tuple[int, ...], ...]
) -> None:
    """Against a loop; a missing pair's counts are nowhere, and tables of three and four columns keep their weight."""
    sizes = [2, 3, 2, 4]
    columns = [MixtureColumn(Cells(start, size)) for start, size in zip((0, 2, 5, 7), sizes, strict=True)]
    asked = (3, 1, 4, 1, 5, 9)[: len(pairs)]
    feature = PairMarginals(tuple(column.cells for column in columns), asked, tables, 0.7, pairs)
    values = np.random.default_rng(0).random((2, sum(part.width for part in feature.bounded_parts)))
    model = started(ProductMixture(columns, num_classes=2, num_components=5, width=11))
    made = with_tables(feature, values, sizes, 100, share=0.7, noise_std=4.0)
    probabilities, weights = exact(model)
    parts = np.split(probabilities, np.cumsum(sizes)[:-1], axis=1)
    sets = [((i, j), counts) for i, j, counts in feature.blocks(values)] + list(feature.table_counts(values))
    expected = 0.0
    for (places, counts), weight in zip(sets, (*asked, *[0.7] * len(tables)), strict=True):
        letters = "abcd"[: len(places)]
        each = ",".join(f"k{letter}" for letter in letters)
        for y, share in enumerate((0.3, 0.7)):
            own = np.einsum(f"k,{each}->{letters}", weights[y], *(parts[place] for place in places))
            expected += weight / (2 * sum(sizes)) * 25**2 * np.square(counts[y] / 100 - share * own).sum()
    assert loss(made, model) == pytest.approx(expected, rel=1e-5)


def test_a_column_pays_less_the_more_it_depends_on_others() -> None:
    """Against a loop. A column that says nothing has information of a twentieth of the mean, and prices stay."""
    model, shares = mixture(), np.array([0.7, 0.3])
    model.logits[:, 6:] = 0
    blocks, penalty = list(FEATURE.blocks(np.ones((2, 21)))), {"kl_penalty": 1e5, "noise_std": 100.0}
    parts, weights = model.exact()
    nats = [
        sum(
            share * weight * (part[k] * (np.log(part[k]) - np.log(1 / part.shape[1] + 1e-4))).sum()
            for share, own in zip(shares, weights, strict=True)
            for k, weight in enumerate(own)
        )
        for part in parts
    ]
    prices = (np.maximum(nats, 0) + np.mean(np.maximum(nats, 0)) / 20) ** -0.5
    prices /= np.prod(prices) ** (1 / 3)
    assert prices[2] > 2 * max(prices[:2])
    found = []
    for adapted in (False, True):
        made = objective(blocks, 1000, 0.3, **penalty)
        if adapted:
            made.adapt(model.logits, model.weights)
            made.adapt(mixture(1).logits, mixture(1).weights)
        free = objective(blocks, 1000, 0.3, **{**penalty, "kl_penalty": 0.0})
        found.append(loss(made, model) - loss(free, model))
    assert found[1] / found[0] == pytest.approx(prices @ nats / sum(nats), rel=1e-3)


def test_a_value_lies_in_the_pieces_of_its_bin_as_often_as_they_say() -> None:
    edges, firsts, shares = (0.0, 0.1, 0.2, 0.5, 0.75, 1.0), (0, 3), (0.5, 0.0, 0.5, 0.9, 0.1)
    column = MixtureColumn(Cells(0, 3, (0.5,), missing=True), edges, edges[:-1], edges[1:], firsts, shares)
    assert build(MixtureColumn, json.loads(json.dumps(json_value(column))), "column") == column
    chosen = np.array([0] * 100 + [1] * 200 + [2] * 10)[:, None]
    x = rows_from_cells([column], 2, chosen, seeded(0))
    values = x[:, 0]
    assert list(np.histogram(values[:100], edges)[0]) == [50, 0, 50, 0, 0]
    found = np.histogram(values[100:300], edges)[0]
    assert abs(found[3] - 180) <= 2 and found[3] + found[4] == 200
    assert list(column.cells.cell_indices(x)) == chosen[:, 0].tolist()


def test_values_are_multiples_of_the_step_where_a_condition_holds_one() -> None:
    column = MixtureColumn(Cells(0, 1, ()), (-0.05, 1.05), (0.0,), (1.0,), lattice=(0.0, 0.1))
    bins = np.zeros(1_000, dtype=np.int64)
    multiples = column.values(bins, seeded(0), None) / 0.1
    assert multiples == pytest.approx(np.rint(multiples), abs=1e-9) and len(np.unique(np.rint(multiples))) == 11
    inside = column.values(bins, seeded(0), Condition(intervals=((0.22, 0.28), (0.38, 0.43))))
    between = (inside >= 0.22) & (inside <= 0.28)
    assert between.any() and (between | (np.abs(inside - 0.4) < 1e-9)).all()
    single = MixtureColumn(Cells(0, 2, (0.5,)), (0.0, 0.5, 1.0), (0.3, 0.7), (0.3, 0.7), lattice=(0.0, 0.1))
    asked = Condition(intervals=((0.64, 0.66),))
    assert single.weights(asked)[0] == 0 < single.weights(asked)[1]
    assert np.ptp(single.values(bins + 1, seeded(0), asked) - 0.65) <= 0.02
    with pytest.raises(ValueError, match="a lattice is a multiple and a step above 0"):
        MixtureColumn(Cells(0, 1, ()), (0.0, 1.0), (0.0,), (1.0,), lattice=(0.0, 0.0))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 1, 1), (1, 5), (4, 1, 1)])
def test_both_halves_of_a_table_have_columns(sizes: tuple[int, ...]) -> None:
    """A column that noise hides has one cell."""
    left, right = _halves(sizes)
    assert left and right and sorted((*left, *right)) == [*range(len(sizes))]


@pytest.mark.parametrize(
    "changed",
    [
        *({"firsts": None}, {"firsts": [0, 9]}, {"firsts": [0]}, {"firsts": [1, 3]}, {"firsts": [0, 0]}),
        *({"shares": [0.5, 0.5]}, {"shares": [0, 0, 0, 0.9, 0.1]}, {"shares": [0.5, float("nan"), 0.5, 0.9, 0.1]}),
        *({"shares": [1.5, -0.5, 0, 0.9, 0.1]}, {"shares": []}, {"lows": [0.0]}),
        *({"lows": [0.0, 0.1, 0.2, 0.5, float("nan")]}, {"edges": [0.0, 0.1, 0.2, 0.5, 0.5, 1.0]}),
        {"edges": [0.0, 1.0]},
    ],
)
def test_pieces_that_are_none_are_refused(changed: dict[str, object]) -> None:
    edges = (0.0, 0.1, 0.2, 0.5, 0.75, 1.0)
    column = MixtureColumn(Cells(0, 2, (0.5,)), edges, edges[:-1], edges[1:], (0, 3), (0.5, 0.0, 0.5, 0.9, 0.1))
    with pytest.raises(ParamsError, match=r"^column"):
        build(MixtureColumn, {**json_value(column), **changed}, "column")


def test_rows_with_equal_given_cells_are_alike_and_other_values_stay_in_their_cells() -> None:
    model = mixture(components=5)
    x, _ = SavedGenerator(model, (0.7, 0.3), {}).draw(500, seed=0)
    one = model.conditional([0, 2])
    cells = np.stack([column.cells.cell_indices(x) for column in model.columns], axis=1)
    numbers = one.alike(x)
    assert len(np.unique(numbers)) == len(np.unique(cells[:, [0, 2]], axis=0)) > 3
    assert len(np.unique(np.column_stack([numbers, cells[:, [0, 2]]]), axis=0)) == len(np.unique(numbers))
    again = one.draw_within(x, seeded(0))
    drawn = [place for place in range(len(model.columns)) if place not in (0, 2)]
    assert all((model.columns[place].cells.cell_indices(again) == cells[:, place]).all() for place in drawn)
    present = cells[:, 1] < 2
    assert (again[present, 3] != x[present, 3]).mean() > 0.9


def test_ranges_lists_and_missing_come_from_the_exact_conditional_distribution() -> None:
    """Against rejection, with a bin that a range cuts. 5 standard deviations of 12 means: 1e-5 false alarms in all."""
    edges, firsts, shares = (0.0, 0.1, 0.2, 0.5, 0.75, 1.0), (0, 3), (0.5, 0.1, 0.4, 0.9, 0.1)
    number = MixtureColumn(Cells(3, 3, (0.5,), missing=True), edges, edges[:-1], edges[1:], firsts, shares)
    model = started(ProductMixture([COLUMNS[0], number, COLUMNS[2]], 2, 5, width=7), 3)
    saved = SavedGenerator(model, (0.7, 0.3), {})
    whole, labels = saved.draw(100_000, seed=0)
    missing, value = whole[:, 4] == 1, whole[:, 3]
    ranges = ((0.05, 0.3), (0.6, 0.7))
    inside = ~missing & np.any([(low <= value) & (value <= high) for low, high in ranges], axis=0)
    for condition, kept in (
        (Condition(intervals=ranges), inside),
        (Condition(intervals=ranges, missing=True), inside | missing),
        (Condition(missing=True), missing),
    ):
        kept = kept & (whole[:, 0] == 0)
        drawn, classes = saved.draw(20_000, 1, conditions={0: Condition((1, 2)), 1: condition})
        assert ((drawn[:, 0] == 0).all() and not (drawn[:, 4] == 1).any()) or condition.missing
        present = drawn[drawn[:, 4] == 0, 3]
        assert all(any(low <= one <= high for low, high in condition.intervals) for one in present)
        off = 5 * (0.25 / min(kept.sum(), 20_000)) ** 0.5
        assert classes.mean() == pytest.approx(labels[kept].mean(), abs=off)
        for of in (
            lambda x: x[:, 1],
            lambda x: x[:, 4],
            lambda x: (x[:, 3] > 0.25) & (x[:, 4] == 0),
            lambda x: x[:, 5],
        ):
            assert of(drawn).mean() == pytest.approx(of(whole[kept]).mean(), abs=off)


def test_a_single_value_is_drawn_as_it_is_and_weighs_components_by_its_density() -> None:
    """Between 0 and .5 the density is 2 P(bin); a declared spike is all or nothing."""
    model = mixture(components=4)
    parts, weights = model.exact()
    point = {1: Condition(intervals=((0.3, 0.3),))}
    likelihood = weights @ parts[1][:, 0]
    assert model.class_likelihood(point) == pytest.approx(likelihood * model.class_likelihood(point)[0] / likelihood[0])
    assert set(model.draw(np.zeros(50, dtype=np.int64), seeded(0), point)[:, 3]) == {0.3}
    spike = MixtureColumn(Cells(0, 2, (0.5,)), (0.0, 0.5, 1.0), (0.25, 0.5), (0.25, 1.0))
    for interval, allowed in (((0.0, 0.25), [1, 0]), ((0.0, 0.24), [0, 0]), ((0.25, 0.75), [1, 0.5])):
        assert spike.weights(Condition(intervals=(interval,))) == pytest.approx(allowed, abs=1e-11)


def test_many_conditions_do_not_vanish() -> None:
    """The product of 60 small numbers is 0 in floating point."""
    number = [MixtureColumn(Cells(c, 2, (0.5,)), (0.0, 0.5, 1.0), (0.0, 0.5), (0.5, 1.0)) for c in range(60)]
    model = started(ProductMixture(number, 1, 3, width=60))
    point = Condition(intervals=((0.7, 0.7),))
    x, _ = SavedGenerator(model, (1.0,), {}).draw(5, 0, conditions=dict.fromkeys(range(60), point))
    assert (x == 0.7).all()


def test_a_column_differs_between_classes_by_what_stands_out_of_the_noise() -> None:
    """Two columns of two cells: the first differs by .3 within classes, the second by less than its noise."""
    shares, weights = np.array([0.5, 0.5, 0.25, 0.75]), np.array([0.8, 0.2])
    apart = np.array([[0.24, -0.24, 0.01, -0.01], [-0.06, 0.06, -0.01, 0.01]])
    found = Singles(shares, np.ones(4), weights[:, None] * shares + apart, 1e4).conditional_shares([2, 2], weights)
    assert found[:, 0] == pytest.approx([0.8, 0.2], abs=0.01) and found[:, 2:] == pytest.approx(
        np.tile(shares[2:], (2, 1))
    )
    assert found[:, :2].sum(axis=1) == pytest.approx(1)
    assert Singles(shares, np.ones(4)).conditional_shares([2, 2], weights) == pytest.approx(np.tile(shares, (2, 1)))


@pytest.mark.parametrize("asked", [PAIRS_OF_FIVE, ((0, 1), (0, 4), (1, 2), (3, 4))], ids=["all pairs", "some"])
@pytest.mark.parametrize("tables", [(), ((0, 1, 3), (0, 1, 2, 4))], ids=["pairs", "tables"])
@pytest.mark.parametrize("more", ["", "singles", "products", "adapted"])
def test_the_gradient_is_that_of_the_loss(
    asked: tuple[tuple[int, int], ...], tables: tuple[tuple[int, ...], ...], more: str
) -> None:
    """Against central differences along eight directions, all in float64."""
    sizes, random = [2, 3, 2, 4, 3], seeded(0)
    blocks = [(i, j, random.normal(50, 20, (2, sizes[i], sizes[j]))) for i, j in asked]
    counts = [
        CountedTable(table, random.normal(5, 3, (2, *[sizes[place] for place in table])), weight)
        for table, weight in zip(tables, (2.5, 0.7), strict=False)
    ]
    weights = random.integers(1, 5, len(blocks)).tolist()
    others = {"noise_std": 7.0, "kl_penalty": 1.5, "tables": counts}
    shares = np.concatenate([random.dirichlet(np.ones(size)) for size in sizes])
    if more == "singles":
        by_class = 0.5 * np.stack([shares, shares[::-1]])
        others["singles"] = Singles(shares, np.full(len(shares), 0.01), by_class, 900.0)
    if more == "products":
        targets = random.standard_normal((12, 12))
        contents = [random.standard_normal((size, size - 1 + place % 2)) for place, size in enumerate(sizes)]
        targets = targets[:11, :11] + targets[:11, :11].T
        others["products"] = Products(contents, targets, np.full(targets.shape, 800.0), targets, 0.1)
    made = objective(blocks, 3_000, 0.3, sizes=sizes, squared_weights=weights, **others)
    at = [random.standard_normal(shape) for shape in ((6, sum(sizes)), (2, 6))]
    if more == "adapted":
        made.adapt(*(random.standard_normal(one.shape) for one in at))
    _, *slopes = made.loss(*at)
    for _ in range(8):
        way = [1e-5 * random.standard_normal(one.shape) for one in at]
        ahead, behind = (made.loss(*[a + sign * w for a, w in zip(at, way, strict=True)])[0] for sign in (1, -1))
        along = 2 * sum(float((slope * w).sum()) for slope, w in zip(slopes, way, strict=True))
        assert ahead - behind == pytest.approx(along, rel=1e-5)


def test_misfits_of_the_truth_are_those_of_noise_alone() -> None:
    """Released values around a mixture's own: half of their squares, in units of the noise; five deviations of them."""
    sizes, random, records, noise = [6, 5, 7], seeded(3), 1_000.0, 4.0
    at = [random.standard_normal(shape).astype(np.float32) for shape in ((4, sum(sizes)), (2, 4))]
    parts = [np.exp(part) / np.exp(part).sum(axis=1, keepdims=True) for part in np.split(at[0], [6, 11], axis=1)]
    shares = np.exp(at[1]) / np.exp(at[1]).sum(axis=1, keepdims=True) / 2
    pairs = [(0, 1), (0, 2), (1, 2)]
    cells = [(i, j, records * np.einsum("yk,ka,kb->yab", shares, parts[i], parts[j])) for i, j in pairs]
    noisy = [(i, j, counts + noise * random.standard_normal(counts.shape)) for i, j, counts in cells]
    whole = shares.sum(axis=0) @ np.concatenate(parts, axis=1)
    singles = Singles(whole + noise / records * random.standard_normal(18), np.full(18, noise / records))
    contents, products = [np.eye(size) for size in sizes], np.zeros((18, 18))
    starts = [slice(0, 6), slice(6, 11), slice(11, 18)]
    for i, j, counts in cells:
        block = (counts.sum(axis=0) + noise * random.standard_normal(counts.shape[1:])) / records
        products[starts[i], starts[j]], products[starts[j], starts[i]] = block, block.T
    made = objective(
        noisy, records, sizes=sizes, noise_std=noise, singles=singles,
        products=Products(contents, products, np.ones((18, 18)), products, noise / records),
    )  # fmt: skip
    found = made.misfits(*at)
    assert {name: alone for name, (_, alone) in found.items()} == {
        "single columns": 9, "products": (30 + 42 + 35) / 2, "cells": 30 + 42 + 35
    }  # fmt: skip
    for squares, alone in found.values():
        assert abs(squares - alone) < 5 * math.sqrt(alone)
    assert not is_near(made.misfits(at[0] * 0.5, at[1]))


def test_a_given_class_is_the_only_one_and_what_never_happens_is_refused() -> None:
    x, labels = SavedGenerator(mixture(), (0.7, 0.3), {}).draw(500, seed=0, classes=(1,))
    assert (labels == 1).all() and len(x) == 500
    with pytest.raises(ParamsError, match="no such row"):
        SavedGenerator(mixture(), (1.0, 0.0), {}).draw(10, seed=0, classes=(1,))


def test_cells_of_another_release_have_the_shares_of_the_pieces_within_them() -> None:
    """Two bins of three and two pieces, the last a single value, as cells that cut the second piece in half."""
    edges, lows = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0), (0.0, 0.1, 0.2, 0.5, 0.9)
    highs = (0.1, 0.2, 0.5, 0.8, 0.9)
    column = MixtureColumn(Cells(0, 3, (0.5,), missing=True), edges, lows, highs, (0, 3), (0.5, 0.2, 0.3, 0.4, 0.6))
    found = column.refine(np.array([[0.5, 0.3, 0.2]]), Cells(0, 4, (0.15, 0.85), missing=True))
    assert found[0] == pytest.approx([0.5 * 0.6, 0.5 * 0.4 + 0.3 * 0.4, 0.3 * 0.6, 0.2])


EVERY = pytest.mark.parametrize("method", IMAGE_GENERATORS)


def saved(folder: Path, method: str, **changed: Any) -> Path:
    """A generator of 4 × 6 pixels and two classes with another spec, whose digest is right."""
    facts = {"method": method, "releases": [], "private": True}
    SavedGenerator(IMAGE_GENERATORS[method](), (0.5, 0.5), facts).save(folder)
    spec = json.loads((folder / "spec.json").read_text())
    text = json.dumps({**spec, **changed})
    (folder / "spec.json").write_text(text)
    weights = load_file(folder / "weights.safetensors")
    save_file(weights, folder / "weights.safetensors", metadata={SPEC_DIGEST: sha256_bytes(text.encode())})
    return folder


@EVERY
def test_as_it_was_it_draws(tmp_path: Path, method: str) -> None:
    x, _ = SavedGenerator.load(saved(tmp_path, method)).draw(10, seed=0)
    assert x.shape == (10, 24) and np.isfinite(x).all()


@pytest.mark.parametrize(
    "changed",
    [
        *({"texture": value} for value in (-1.0, "a", [1], float("nan"), float("inf"), 101.0)),
        *({"bound": value} for value in (0.0, "a", float("nan"))),
        {"levels": 0},
        *({"shape": shape} for shape in ([4], "a", [4, 7])),
        *(
            {"class_weights": weights}
            for weights in ([0.5], [1, 1, 1], None, ["a", "b"], [0.5, -0.5], [float("nan"), 1])
        ),
        {"num_classes": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", IMAGE_GENERATORS.keys() & {"moments"})  # whose generator has all these fields
def test_a_hostile_specification_is_refused(tmp_path: Path, method: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="not a generator of format"):
        SavedGenerator.load(saved(tmp_path, method, **changed))


@pytest.mark.long
@EVERY
def test_weights_that_were_cut_short_are_refused(tmp_path: Path, method: str) -> None:
    path = saved(tmp_path, method) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArtifactError, match="not a generator of format"):
        SavedGenerator.load(tmp_path)


@EVERY
@pytest.mark.parametrize("shape", [[0, 6], [-4, -6], [600, 600]], ids=str)
def test_no_pixels_or_too_many_are_refused_before_anything_is_built(
    tmp_path: Path, method: str, shape: list[int]
) -> None:
    with pytest.raises(ArtifactError) as refusal:
        SavedGenerator.load(saved(tmp_path, method, shape=shape))
    assert "1 to 16384 values" in str(refusal.value.__cause__)
