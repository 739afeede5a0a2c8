"""What ``marginals`` asks after its first releases: which pairs, tables and single columns, with which weights.

Products of pairs: their sensitivity on every small table, scores from ranks, and what stands out of the noise.
"""

import dataclasses
from dataclasses import replace
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import schema_with

from likeness import Synthesizer
from likeness.core.errors import LikenessError, ParamsError, PlanError, ReleaseError
from likeness.core.typed import build
from likeness.data.encoding.bins import unit_of
from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import CLASS_COUNTS, Context
from likeness.methods.maps import from_spec
from likeness.methods.marginals.columns import cells_of_number, first_grid
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts, denoise_products
from likeness.methods.marginals.release_state import COLUMNS, PRODUCTS, ReleaseState
from likeness.methods.marginals.workload import Workload, _whole_weights
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.release.sums import products
from likeness.release.sums.clipping import paired_lattice
from likeness.release.sums.lattice_sum import lattice_sum

NUMBER = {"kind": "numeric", "lower": 0, "upper": 1}
THREE = {"kind": "categorical", "categories": ["s", "t", "u"]}
LABEL = {"kind": "categorical", "categories": ["n", "p"]}
SCHEMA = schema_with({"a": NUMBER, "b": NUMBER, "y": LABEL, "c": NUMBER, "d": THREE}, "y")
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
ADD = Adjacency.ADD_REMOVE_ONE
FOUR = (*(Cells(place, 4, (0.25, 0.5, 0.75)) for place in range(3)), Cells(3, 3))
NOTHING = [0.0] * 6


def of(*columns: str, **weight: int) -> dict[str, Any]:
    return {"columns": [*columns], **weight}


def chosen(
    *workload: Any, strengths: list[float] = NOTHING, hidden: bool = False, noise: float = 0.05, **settings: Any
) -> PairMarginals:
    """The map of the embedding after products of these strengths."""
    section = build(Workload, {"bins": 4, "workload": [*workload], **settings}, "privatize")
    return section.feature(FOUR, SCHEMA, 2, (strengths, hidden, noise))


def query_of(*workload: Any, **settings: Any) -> Query:
    """Of settings as params.yaml gives them, before anything is released."""
    method = build(Marginals, {"privatize": {"bins": 4, "workload": [*workload], **settings}}, "marginals")
    method.check(CONTEXT)
    return method.embedding_query(CONTEXT, {})


def rows(count: int) -> Records:
    """Rows and classes by a formula."""
    k = np.arange(count)
    return Records(np.column_stack([k % 7 / 7, k % 11 / 11, k % 13 / 13, np.eye(3)[k % 3]]), k % 2)


def test_pairs_are_taken_while_they_show_or_may_hold_more_than_the_noise_of_their_cells() -> None:
    """A pair has 32 cells, or 24 with d: three have a noise of .1 · .05 · √3 · 32, .28; .1 may be unseen."""
    strengths = [0.9, 0.0, 0.5, 0.3, 0.02, 0.001]
    assert chosen(strengths=strengths).pairs == ((0, 1), (0, 3), (1, 2))
    assert chosen(strengths=strengths, noise=0.15).pairs == ((0, 1),)
    assert chosen(strengths=strengths, noise=0.001).pairs == ()  # so little noise takes all
    assert chosen(of("a", "c"), strengths=strengths).pairs == ((0, 1), (0, 2), (0, 3), (1, 2))  # a named one, always
    assert chosen(strengths=strengths, hidden=True).pairs == ((0, 1),)
    assert chosen(strengths=[np.inf] * 6).pairs == ()  # all of them
    assert chosen(strengths=strengths, max_coordinates=100).pairs == ((0, 1), (0, 3))
    narrow = [0.1, 0.0, 0.9, 0.0, 0.8, 0.0]  # no more cells than the plan has, whose pair is a wide one
    assert chosen(strengths=narrow, max_coordinates=80).pairs == ((0, 3),)


def test_pairs_that_show_something_or_are_named_have_three_quarters_of_the_budget_beside_what_all_share() -> None:
    assert sum(_whole_weights([100_000, *[1] * 50], 1000)) == 1000  # also where small ones are raised to 1
    feature = chosen(strengths=[0.9, 0.0, 0.5, 0.0, 0.0, 0.0], noise=0.001)
    weights = feature.weights
    assert feature.pairs == () and {weights[1], *weights[3:]} == {min(weights)}
    clear = (weights[0] + weights[2]) / sum(weights)
    assert clear == pytest.approx(3 / 4 + 1 / 4 * 2 / 6, rel=0.01)
    for strengths in (NOTHING, [np.inf] * 6, [0.9] * 6):  # where none or all stand out, all are equal
        weights = chosen(strengths=strengths, noise=0.001).weights
        assert max(weights) - min(weights) <= 1
    assert chosen(of("a", "c"), strengths=[0.9] + [0.0] * 5, noise=0.001).weights[1] > min(weights) * 1.5


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("workload", [[], [of("a", weight=100), of("a", "c", weight=7)], [of("a", "b", "d", weight=9)]])
def test_the_sensitivity_does_not_depend_on_what_was_chosen(workload: list[Any], hidden: bool) -> None:
    for strengths in (NOTHING, [0.9, 0.0, 0.5, 0.3, 0.02, 0.001], [np.inf] * 6):
        feature = chosen(*workload, strengths=strengths, hidden=hidden)
        assert sum(part.norm_bound_squared for part in feature.bounded_parts) == 6_000
        assert from_spec(feature.spec()) == feature
        singles = [
            weight for table, weight in zip(feature.tables, feature.table_weights, strict=True) if len(table) < 2
        ]
        tables = sum(feature.table_weights) - sum(singles)
        assert sum(singles) == pytest.approx(4 / (4 + len(feature.column_pairs)) * (6_000 - tables), abs=1)
        assert max(singles) - min(singles) <= 1 and len(singles) == 4
        assert tables == (3_600 if len(feature.tables) > 4 else 0)  # 9 of 6 + 9


def test_a_column_has_its_weight_in_all_its_pairs_and_a_pair_its_own_times_these() -> None:
    feature = chosen(of("a", weight=3), of("c", weight=2), of("c", "a", weight=5), strengths=[np.inf] * 6)
    weights = np.array(feature.squared_weights)
    assert weights / weights[4] == pytest.approx(np.array([3, 30, 3, 2, 1, 2]), rel=0.02)  # ab, ac, ad, bc, bd, cd


def test_counts_by_table_are_those_of_the_rows() -> None:
    feature = chosen(of("a", "b", "d", weight=5), of("a", "b", "c"))
    records = rows(200)
    values = feature(records.x).sum(axis=0, keepdims=True)
    counts = dict(feature.table_counts(values))
    expected, cells = np.zeros((4, 4, 3)), [column.cell_indices(records.x) for column in feature.columns]
    np.add.at(expected, (cells[0], cells[1], cells[3]), 1)
    assert counts[0, 1, 3][0] == pytest.approx(expected) and counts[3,][0] == pytest.approx(expected.sum(axis=(0, 1)))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("workload", [[of("a", weight=3), of("c", weight=100)], [of("a", "b", "d", weight=20)]])
def test_the_sensitivity_holds_on_neighbors_and_is_reached(adjacency: Adjacency, workload: list[Any]) -> None:
    """Of two records in other cells of every column and other classes; every record of forty is taken out once."""
    query, records = query_of(*workload), rows(40)
    whole = lattice_sum(query, [records])
    for place in range(40):
        if adjacency is Adjacency.ADD_REMOVE_ONE:
            neighbor = Records(np.delete(records.x, place, axis=0), np.delete(records.labels, place))
        else:
            other, classes = records.x.copy(), records.labels.copy()
            other[place, :3] = (other[place, :3] + 0.5) % 1
            other[place, 3:] = np.roll(other[place, 3:], 1)
            classes[place] = 1 - classes[place]
            neighbor = Records(other, classes)
        moved = int(((whole - lattice_sum(query, [neighbor])).astype(object) ** 2).sum())
        assert moved <= query.sensitivity_squared(adjacency)
        assert moved == pytest.approx(query.sensitivity_squared(adjacency), rel=1e-6)


@pytest.mark.long
def test_from_rows_to_rows_a_named_table_is_kept_that_no_pair_shows() -> None:
    """Two thousand rows a class, whose third bit says whether the first two are alike; ε = 5."""
    generator = np.random.default_rng(0)
    bits, label = generator.integers(0, 2, (4_000, 2)), generator.integers(0, 2, 4_000)
    table = pd.DataFrame({"a": bits[:, 0], "b": bits[:, 1], "c": bits.sum(axis=1) % 2, "y": label}).astype(str)
    schema = schema_with({name: {"kind": "categorical", "categories": ["0", "1"]} for name in table}, "y")
    Ledger.create(locate())
    kept = []
    for workload in ([], [of("c", "a", "b")]):
        settings = {"privatize": {"workload": workload}, "train": {"num_components": 20}}
        own = Synthesizer(schema=schema, population="bits", epsilon=5.0, settings=settings, device="cpu").fit(table)
        kept.append((own.sample(4_000)[["a", "b", "c"]].astype(int).sum(axis=1) % 2 == 0).mean())
    assert kept[1] > 0.9 and kept[0] < 0.75


@pytest.mark.parametrize(
    ("workload", "error", "said"),
    [
        ("all", ParamsError, "workload must be a list"),
        (["a"], ParamsError, r"workload"),
        ([{"columns": "ab"}], ParamsError, r"workload\[0\] must be columns, a list, and weight"),
        ([{"weight": 2}], ParamsError, r"workload\[0\] must be columns, a list, and weight"),
        ([{**of("a", "b"), "share": 1}], ParamsError, r"workload\[0\] must be columns, a list"),
        ([of()], ParamsError, r"workload\[0\] must be different columns"),
        ([of("a", "b", "b")], ParamsError, r"workload\[0\] must be different columns"),
        ([of("a", "b"), of("b", "a")], ParamsError, r"workload\[1\] must be named once in the list"),
        *(
            ([of("a", weight=weight)], ParamsError, r"workload\[0\]\.weight must be a whole number from 1 to 100")  # type: ignore[arg-type]
            for weight in (0, 101, 2.5, True, "2", None)
        ),
        ([of("a", "y")], PlanError, r"workload: 'y' is the label: every table is by class\. Columns: a, b, c, d"),
        ([of("a", "e")], PlanError, r"workload: 'e' is not a column\. Columns: a, b, c, d"),
    ],
)
def test_what_is_refused(workload: Any, error: type[LikenessError], said: str) -> None:
    with pytest.raises(error, match=said):
        build(Marginals, {"privatize": {"workload": workload}}, "marginals").check(CONTEXT)


@pytest.mark.parametrize(("workload", "limit"), [([], 61), ([of("a", "b", "c", "d")], 380)], ids=["a pair", "a table"])
def test_a_release_that_does_not_fit_is_refused(workload: list[Any], limit: int) -> None:
    with pytest.raises(
        PlanError, match=r"privatize\.max_coordinates .* Lower marginals\.privatize\.bins, name smaller tables"
    ):
        query_of(*workload, max_coordinates=limit)


@pytest.mark.parametrize(
    "change",
    [
        *({"pairs": pairs} for pairs in ([[1, 0], [1, 2]], [[1, 2], [0, 1]], [[0, 1], [0, 1], [1, 2]])),
        *({"pairs": pairs} for pairs in ([[0, 1], [1, 3]], [[0, 1], [1, -1]], [[0, 1, 2]], [[0, 1], [1, [2]]])),
        *({"pairs": pairs} for pairs in ([[0, 1], [1, 2.0]], ["ab"], [1], 1)),
        *({"squared_weights": weights} for weights in ([1, 2.7], [1, "2"], [1, True], [1, 0], [1, -2], [1], 1, "12")),
        *({"tables": tables} for tables in ([[0, 1]], [[]], [[3]], [[0, 2, 1]], [[0, 1, 1]], [[-1, 0, 1]], 7)),
        *({"tables": tables} for tables in ([[0, 1, 2], [0, 1, 2]], ["abc"], [[0, 1, 2.0]])),
        *({"table_weights": weights} for weights in ([1, 2], [0], [2.0], 3)),
        *({"squared_table_weight": weight} for weight in ("0.5", 10**400, 0.0, float("nan"), float("inf"))),
    ],
)
def test_a_specification_of_other_pairs_weights_or_tables_is_refused(change: dict[str, Any]) -> None:
    """Not rounded: 2.7 would be another question than the one that is said."""
    columns = (Cells(0, 2), Cells(2, 3), Cells(5, 2))
    good = PairMarginals(columns, (1, 2), ((0, 1, 2),), 0.7, ((0, 1), (1, 2)), (2,))
    assert from_spec(good.spec()) == good
    with pytest.raises(ReleaseError, match="pair_marginals"):
        from_spec({**good.spec(), **change})
    with pytest.raises(ReleaseError, match="pair_marginals"):
        dataclasses.replace(good, **change)


WIDE = Context(
    schema_with({name: {"kind": "categorical", "categories": [*range(1000)]} for name in "abcdefghij"}),
    "add_remove_one",
    None,
    0,
)


@pytest.mark.parametrize("noise", [0.0, 1e-7, 0.05])
@pytest.mark.parametrize("hidden", [False, True])
def test_ten_columns_of_a_thousand_categories_have_no_more_coordinates_than_the_setting_says(
    noise: float, hidden: bool
) -> None:
    """Whatever the products show; all 45 pairs would have 45,010,000."""
    method, random = Marginals(), np.random.default_rng(0)
    method.check(WIDE)
    first = method.embedding_query(WIDE, {})
    columns, most = tuple(Cells(1000 * place, 1000) for place in range(10)), method.privatize.max_coordinates
    assert 19_000_000 < first.dimension <= most
    for strengths in (random.random(45).tolist(), [0.0] * 45, [1.0] * 45):
        feature = method.privatize.feature(columns, WIDE.schema, 1, (strengths, hidden, noise))
        query = Query("embedding", "privatize", feature)
        assert query.dimension <= most and len(feature.pairs) == (1 if hidden or noise > 1e-6 else 19)
        assert query.sensitivity_squared(ADD) == first.sensitivity_squared(ADD)


def test_the_products_of_wide_columns_have_at_most_as_many_categories_as_can_be_frequent() -> None:
    products = next(query for query in Marginals().auxiliary_queries(WIDE, {}) if query.name == "products")
    assert products.dimension == 45 * 250**2


@pytest.mark.parametrize("limit, pair", [(1_009_999, []), (1_010_000, []), (2_009_999, [of("a", "b"), of("a", "c")])])
def test_a_pair_that_may_be_taken_and_does_not_fit_is_refused_before_anything_is_released(
    limit: int, pair: list[Any]
) -> None:
    method = build(Marginals, {"privatize": {"workload": pair, "max_coordinates": limit}}, "marginals")
    if limit == 1_010_000:
        return method.check(WIDE)
    with pytest.raises(PlanError, match="coordinates"):
        method.check(WIDE)


def test_weights_of_histories_count_where_their_columns_are() -> None:
    sets = [["a", "b"], ["a", "c", "d"]]
    wanted = [of("c", weight=3), of("a", "d", weight=2), of("a", "b")]
    method = build(Marginals, {"privatize": {"workload": wanted}}, "marginals").adapt_to_histories(sets)
    found = []
    for names in sets:
        columns = tuple(Cells(2 * place, 2) for place in range(len(names)))
        schema, every = schema_with(dict.fromkeys(names, LABEL)), [np.inf] * (len(names) * (len(names) - 1) // 2)
        weights = np.array(method.privatize.feature(columns, schema, 1, (every, False, 0.0)).squared_weights)
        found.append((weights / weights.min()).round(1).tolist())
    assert found == [[1.0], [1.5, 1.0, 1.5]]
    for wrong in (of("x", weight=2), of("b", "c")):
        with pytest.raises(PlanError, match=r"workload\[0\]: .* must be columns of one row set. .* people: a, b"):
            build(Marginals, {"privatize": {"workload": [wrong]}}, "marginals").adapt_to_histories(sets)


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
    odd = dataclasses.replace(feature, scores=tuple(tuple(0.7 * score for score in of) for of in feature.scores))
    for column, content in zip(odd.features, odd.contents(), strict=True):
        bound = feature.bounded_parts[0].lattice_bound_squared(query.lattice_bits)
        summed = paired_lattice([column], signs[:1], bound) / np.sqrt(2.0**query.lattice_bits)
        assert np.array_equal(content, summed), "what the fit expects is what the door sums"


@pytest.mark.parametrize(
    "change",
    [
        *({"slots": ((0, 0, 2), (0, 0))}, {"slots": ((0, 0), (0, 0))}, {"slots": ((0, 0, 1.0), (0, 0))}),
        *({"scores": ((1.5, 0.0, 0.0), (1.0, 1.0))}, {"scores": ((float("nan"), 0.0, 0.0), (1.0, 1.0))}),
        *({"scores": ((1, 0.0, 0.0), (1.0, 1.0))}, {"columns": CELLS[:1]}),
    ],
)
def test_scores_and_slots_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError, match="pair_products"):
        from_spec({**MAPS[0].spec(), **change})


PAIRED = schema_with(
    {
        **{name: {"kind": "integer", "lower": 1, "upper": 5, "nullable": name == "a"} for name in "abc"},
        "d": {"kind": "categorical", "categories": ["s", "t", "u", "v"]},
    }
)
OF_PAIRS = Context(PAIRED, "add_remove_one", None, 0)


def answers(count: int = 4_000, sigma: float = 1e-6) -> dict[str, Released]:
    """What the method asks first about rows where a and b are alike and the others are independent, with this noise."""
    random = np.random.default_rng(0)
    a = random.integers(0, 5, count)
    b, c = np.clip(a + random.integers(-1, 2, count), 0, 4), random.integers(0, 5, count)
    x, starts = np.zeros((count, OF_PAIRS.layout.width)), OF_PAIRS.layout.starts
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

    return Marginals().ask(OF_PAIRS, answer)


def test_scores_are_clipped_ranks_and_rare_categories_have_none() -> None:
    known = ReleaseState(OF_PAIRS, answers(), 16)
    slots, scores = known.feature.slots, known.feature.scores
    assert slots[:2] == ((0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0)) and scores[0][5] == 1
    assert np.array(scores[2]) == pytest.approx([-1, -0.6, 0, 0.6, 1], abs=0.05)  # 1.5 times -.8, -.4, 0, .4, .8
    assert scores[3] == (1, 1, 1, 0) and slots[3] == (0, 1, 2, 0)
    assert [single.counts[-1] for single in known.columns.singles[:1]] == pytest.approx([10], abs=0.1)


def test_only_dependent_pairs_have_a_strength_and_more_noise_hides_all() -> None:
    """With σ of 20 records, a product of 4,000 has noise of .005; false alarms of 5 pairs about 1 in 3 at most."""
    strengths = ReleaseState(OF_PAIRS, answers(sigma=20.0), 16).strengths()
    assert strengths[0] > 0.3 and max(strengths[1:]) < 0.05 and sum(strength > 0 for strength in strengths) <= 3
    known = ReleaseState(OF_PAIRS, answers(100, 20.0), 16)
    assert known.hides_cells
    second = [*Marginals().auxiliary_queries(OF_PAIRS, answers(100, 20.0))][-1]
    assert second.name == "second" and second.feature == known.feature


def test_questions_before_any_answer_have_the_sensitivity_and_at_least_the_size_of_those_after() -> None:
    method, released = Marginals(), answers(sigma=20.0)
    foreseen = {query.name: query for query in method.planned_queries(OF_PAIRS)}
    for query in [*method.auxiliary_queries(OF_PAIRS, released), method.embedding_query(OF_PAIRS, released)]:
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
        _, found, trust = denoise_products(blocks, pairs, sizes, noise)
        off = found - truth
        np.fill_diagonal(off, 0)
        error, before = np.sqrt((off**2).mean()), noise
        assert error < (0.1 if signal == 0 else 0.6) * before and (trust > 1).all()
    assert denoise_products(blocks, pairs, sizes, 0.0)[0][0, 1] == blocks[0][0, 0]


def test_products_of_categories_stay_as_they_came_where_their_cells_are_released_too() -> None:
    sizes, pairs = [3, 2, 1], [(0, 1), (0, 2), (1, 2)]
    blocks = [np.full((sizes[i], sizes[j]), 0.01) for i, j in pairs]
    _, targets, trust = denoise_products(blocks, pairs, sizes, 0.05, pairs)
    assert (targets[:3, 3:5] == 0.01).all() and (trust[:3, 3:5] == 1).all()
    assert (targets[:5, 5] == 0).all() and (trust[:5, 5] > 1).all()


def test_a_state_is_kept_for_equal_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    method, released = Marginals(), answers()
    copied = {name: replace(answer, lattice=answer.lattice.copy()) for name, answer in released.items()}
    other = {**released, COLUMNS: replace(released[COLUMNS], lattice=released[COLUMNS].lattice + 1)}
    kept = method._state(OF_PAIRS, released)
    assert method._state(OF_PAIRS, copied) is kept and method._state(OF_PAIRS, other) is not kept
    # A fit in another thread keeps a state while this one compares answers.
    monkeypatch.setattr(Released, "equals", lambda *_: method._keep(OF_PAIRS, released, kept))
    assert method._state(OF_PAIRS, copied) is not kept


def test_another_class_count_or_column_changes_the_next_question() -> None:
    """Each question follows from released integers: those of another draw make another."""
    released = answers(sigma=20.0)
    first = ReleaseState(OF_PAIRS, released, 16).feature
    assert ReleaseState(OF_PAIRS, dict(released), 16).feature == first
    columns = released[COLUMNS]
    moved = replace(columns, lattice=columns.lattice[:, ::-1].copy())
    assert ReleaseState(OF_PAIRS, {**released, COLUMNS: moved}, 16).feature != first
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
