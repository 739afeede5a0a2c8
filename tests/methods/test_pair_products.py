"""Products of pairs: their sensitivity on every small table, scores from ranks, and what stands out of the noise."""

from dataclasses import replace
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toys import schema_with

from likeness.core.errors import ReleaseError
from likeness.data.encoding.bins import unit_of
from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import CLASS_COUNTS, Context
from likeness.methods.maps import from_spec
from likeness.methods.marginals.columns import cells_of_number, first_grid
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts, denoise_products
from likeness.methods.marginals.release_state import COLUMNS, PRODUCTS, ReleaseState
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.release.sums import products
from likeness.release.sums.clipping import paired_lattice
from likeness.release.sums.lattice_sum import lattice_sum

CELLS = (Cells(0, 3, (0.5,), missing=True), Cells(2, 2))
GRID = [[unit, missing, *one] for (unit, missing), one in product([(0.2, 0), (0.8, 0), (0, 1)], [(1, 0), (0, 1)])]
MAPS = [
    PairProducts(CELLS, ((0, 0, 1), (0, 0)), ((-0.75, 0.3, 1.0), (-1.0, 1.0))),
    PairProducts(CELLS, ((0, 1, 2), (0, 1)), ((1.0, 1.0, 0.0), (1.0, 1.0))),
    PairMarginals(CELLS, (713,), ((0,), (1,)), table_weights=(144, 143)),
    ColumnMarginals(CELLS),
]


def counted(query: Query, rows: tuple[int, ...]) -> np.ndarray:
    x = np.array([GRID[row] for row in rows], dtype=np.float64).reshape(-1, 4)
    return lattice_sum(query, [Records(x, np.zeros(len(rows), dtype=np.int64))])


@pytest.mark.parametrize("feature", MAPS, ids=["ranks", "categories", "cells", "columns"])
def test_no_neighbor_of_any_table_of_three_records_is_farther_than_stated(feature: FeatureMap) -> None:
    """Every multiset of at most three of six records, with every record added, or put in the place of another."""
    query = Query("q", "auxiliary", feature)
    sums = {
        rows: counted(query, rows).astype(object)
        for size in range(4)
        for rows in combinations_with_replacement(range(len(GRID)), size)
    }
    most = dict.fromkeys(Adjacency, 0)
    for rows, total in sums.items():
        for place in range(len(rows)):
            rest = rows[:place] + rows[place + 1 :]
            most[Adjacency.ADD_REMOVE_ONE] = max(most[Adjacency.ADD_REMOVE_ONE], int(((total - sums[rest]) ** 2).sum()))
            for other in range(len(GRID)):
                moved = int(((total - sums[tuple(sorted((*rest, other)))]) ** 2).sum())
                most[Adjacency.REPLACE_ONE] = max(most[Adjacency.REPLACE_ONE], moved)
    for adjacency, found in most.items():
        stated = query.sensitivity_squared(adjacency)
        assert found <= stated
        if adjacency is Adjacency.ADD_REMOVE_ONE:
            assert found == pytest.approx(stated, rel=1e-6)


@pytest.mark.parametrize("feature", MAPS[:2], ids=["ranks", "categories"])
@pytest.mark.parametrize("columns", [0, 32], ids=["matrix", "counts"])
def test_either_way_gives_the_sum_of_products_of_integers(
    feature: PairProducts, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_FEW_COLUMNS", columns)
    query = Query("q", "auxiliary", feature)
    rows = tuple(np.random.default_rng(1).integers(0, len(GRID), 50).tolist())
    _, features = feature.paired_features(np.array([GRID[row] for row in rows]))
    signs = [bool(feature.bounded_parts[0].nonnegative)] * 2
    lattice = paired_lattice(features, signs, feature.bounded_parts[0].lattice_bound_squared(query.lattice_bits))
    joint = (lattice.T @ lattice)[: feature.column_sizes[0], feature.column_sizes[0] :]
    assert np.array_equal(counted(query, rows)[0], joint.ravel())


@pytest.mark.parametrize(
    "change",
    [
        {"slots": ((0, 0, 2), (0, 0))},
        {"slots": ((0, 0), (0, 0))},
        {"slots": ((0, 0, 1.0), (0, 0))},
        {"scores": ((1.5, 0.0, 0.0), (1.0, 1.0))},
        {"scores": ((float("nan"), 0.0, 0.0), (1.0, 1.0))},
        {"scores": ((1, 0.0, 0.0), (1.0, 1.0))},
        {"columns": CELLS[:1]},
    ],
)
def test_scores_and_slots_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError, match="pair_products"):
        from_spec({**MAPS[0].spec(), **change})


SCHEMA = schema_with(
    {
        **{name: {"kind": "integer", "lower": 1, "upper": 5, "nullable": name == "a"} for name in "abc"},
        "d": {"kind": "categorical", "categories": ["s", "t", "u", "v"]},
    }
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)


def answers(count: int = 4_000, sigma: float = 1e-6) -> dict[str, Released]:
    """What the method asks first about rows where a and b are alike and the others are independent, with this noise."""
    random = np.random.default_rng(0)
    a = random.integers(0, 5, count)
    b, c = np.clip(a + random.integers(-1, 2, count), 0, 4), random.integers(0, 5, count)
    x, starts = np.zeros((count, CONTEXT.layout.width)), CONTEXT.layout.starts
    for name, value in zip("abc", (a, b, c), strict=True):
        x[:, starts[name]] = value / 4
    x[:10, starts["a"] + 1] = 1
    x[np.arange(count), starts["d"] + random.choice(4, count, p=[0.5, 0.3, 0.199, 0.001])] = 1
    records = Records(x, np.zeros(count, dtype=np.int64))

    def answer(query: Query) -> Released:
        scale = sigma * 2.0**query.lattice_bits
        lattice = lattice_sum(query, [records])
        receipt: Any = SimpleNamespace(lattice_bits=query.lattice_bits, noise_scale=scale, feature=query.spec())
        return Released(lattice + np.rint(scale * random.standard_normal(lattice.shape)).astype(np.int64), receipt)

    return Marginals().ask(CONTEXT, answer)


def test_scores_are_clipped_ranks_and_rare_categories_have_none() -> None:
    known = ReleaseState(CONTEXT, answers(), 16)
    slots, scores = known.feature.slots, known.feature.scores
    assert slots[:2] == ((0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0)) and scores[0][5] == 1
    assert np.array(scores[2]) == pytest.approx([-1, -0.6, 0, 0.6, 1], abs=0.05)  # 1.5 times -.8, -.4, 0, .4, .8
    assert scores[3] == (1, 1, 1, 0) and slots[3] == (0, 1, 2, 0)
    assert [single.counts[-1] for single in known.columns.singles[:1]] == pytest.approx([10], abs=0.1)


def test_only_dependent_pairs_have_a_strength_and_more_noise_hides_all() -> None:
    """With σ of 20 records, a product of 4,000 has noise of .005; false alarms of 5 pairs about 1 in 3 at most."""
    strengths = ReleaseState(CONTEXT, answers(sigma=20.0), 16).strengths()
    assert strengths[0] > 0.3 and max(strengths[1:]) < 0.05 and sum(strength > 0 for strength in strengths) <= 3
    known = ReleaseState(CONTEXT, answers(100, 20.0), 16)
    assert known.hides_cells
    second = [*Marginals().auxiliary_queries(CONTEXT, answers(100, 20.0))][-1]
    assert second.name == "second" and second.feature == known.feature


def test_questions_before_any_answer_have_the_sensitivity_and_at_least_the_size_of_those_after() -> None:
    method, released = Marginals(), answers(sigma=20.0)
    foreseen = {query.name: query for query in method.planned_queries(CONTEXT)}
    for query in [*method.auxiliary_queries(CONTEXT, released), method.embedding_query(CONTEXT, released)]:
        for adjacency in Adjacency:
            stated = query.sensitivity_squared(adjacency) / 4**query.lattice_bits
            before = foreseen[query.name]
            assert stated == pytest.approx(before.sensitivity_squared(adjacency) / 4**before.lattice_bits, rel=1e-6)
        assert query.width <= foreseen[query.name].width


def test_noise_alone_is_independence_and_few_directions_are_kept() -> None:
    random, sizes, noise = np.random.default_rng(0), [1] * 30, 0.05
    pairs = [(i, j) for i in range(30) for j in range(i + 1, 30)]
    loads = random.uniform(0.4, 0.7, 30)
    for signal in (0.0, 1.0):
        truth = signal * np.outer(loads, loads)
        blocks = [np.array([[truth[i, j] + noise * random.standard_normal()]]) for i, j in pairs]
        found, trust = denoise_products(blocks, pairs, sizes, noise)
        off = found - truth
        np.fill_diagonal(off, 0)
        error, before = np.sqrt((off**2).mean()), noise
        assert error < (0.1 if signal == 0 else 0.6) * before and (trust > 1).all()
    assert denoise_products(blocks, pairs, sizes, 0.0)[0][0, 1] == blocks[0][0, 0]


def test_products_of_categories_stay_as_they_came_where_their_cells_are_released_too() -> None:
    sizes, pairs = [3, 2, 1], [(0, 1), (0, 2), (1, 2)]
    blocks = [np.full((sizes[i], sizes[j]), 0.01) for i, j in pairs]
    targets, trust = denoise_products(blocks, pairs, sizes, 0.05, pairs)
    assert (targets[:3, 3:5] == 0.01).all() and (trust[:3, 3:5] == 1).all()
    assert (targets[:5, 5] == 0).all() and (trust[:5, 5] > 1).all()


def test_another_class_count_or_column_changes_the_next_question() -> None:
    """Each question follows from released integers: those of another draw make another."""
    released = answers(sigma=20.0)
    first = ReleaseState(CONTEXT, released, 16).feature
    assert ReleaseState(CONTEXT, dict(released), 16).feature == first
    columns = released[COLUMNS]
    moved = replace(columns, lattice=columns.lattice[:, ::-1].copy())
    assert ReleaseState(CONTEXT, {**released, COLUMNS: moved}, 16).feature != first
    assert {CLASS_COUNTS, COLUMNS, PRODUCTS} <= released.keys()


@pytest.mark.parametrize("lower", [-5.0, 0.0, -1e4])
def test_products_see_a_single_value_in_the_cell_of_the_columns(lower: float) -> None:
    """Cells of single values are narrower than the grid to which rows of other maps are rounded."""
    (column,) = schema_with({"x": {"kind": "numeric", "lower": lower, "upper": 10}}).columns
    grid = first_grid(column, 8, None)
    cells = (cells_of_number(column, 0, grid), Cells(1, 2))
    units = [unit_of(column, value) for value in (lower, 0.0, 10.0, 3.0, -1e-4 if lower else 1e-4)]
    x = np.array([[unit, 1, 0] for unit in units])
    places = cells[0].cell_indices(x)
    feature = PairProducts(cells, (tuple(range(grid.size)), (0, 1)), ((1.0,) * grid.size, (1.0, 1.0)))
    sums = lattice_sum(Query("q", "auxiliary", feature), [Records(x, np.zeros(5, dtype=np.int64))])
    assert np.flatnonzero(sums.reshape(grid.size, 2)[:, 0]).tolist() == sorted(set(places.tolist()))
