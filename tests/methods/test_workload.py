"""What ``marginals`` asks: all pairs or drawn ones, and which columns, pairs and tables a workload weighs."""

import dataclasses
import hashlib
import math
from collections import Counter
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import EQUAL_WIDTH, ledger_of_people, plan_with, schema_with

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.core.errors import LikenessError, ParamsError, PlanError, ReleaseError
from likeness.core.hashing import sha256_json
from likeness.features.cells import Cells
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import Context
from likeness.methods.maps import from_spec
from likeness.methods.marginals.blocks import one_way_marginals
from likeness.methods.marginals.measures import measures_of_cells
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.workload import drawn_pairs
from likeness.privacy.adjacency import Adjacency
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset
from likeness.release.sums.lattice_sum import lattice_sum

NUMBER = {"kind": "numeric", "lower": 0, "upper": 1}
THREE = {"kind": "categorical", "categories": ["s", "t", "u"]}
LABEL = {"kind": "categorical", "categories": ["n", "p"]}
SCHEMA = schema_with({"a": NUMBER, "b": NUMBER, "y": LABEL, "c": NUMBER, "d": THREE}, "y")
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
WIDE = Context(schema_with({f"c{place}": THREE for place in range(20)}), "add_remove_one", None, 0)
EVEN = ((0, 1), (0, 6), (0, 7), (1, 3), (1, 5), (2, 5), (2, 6), (2, 7), (3, 4), (3, 6), (4, 5), (4, 7))
ODD = "0f66cad9c8e5"
QUESTION = "ba61a29936a67d294aff2b8c44b432bbcc915afb6efc2bce51159d2c89b05528"
SUMS = "ed90e8beddf318e1d0fd5586097bce14a4d7a45bd4f0e8a6e833400d1f04033e"
WEIGHTED = "c3b6bd8348728a71204bd9fbb77227a6af2cc799a699420426af415a6e833308"


def of(*columns: str, **weight: int) -> dict[str, Any]:
    return {"columns": [*columns], **weight}


def query_of(*workload: Any, context: Context = CONTEXT, **settings: Any) -> Query:
    """Of settings as params.yaml gives them."""
    wanted = {"bins": 4, "workload": [*workload], **settings}
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": wanted}, "marginals")
    method.check(context)
    return method.embedding_query(context, {})


def feature_of(*workload: Any, **settings: Any) -> PairMarginals:
    feature = query_of(*workload, **settings).feature
    assert isinstance(feature, PairMarginals)
    return feature


def rows(count: int) -> Records:
    """Rows and classes by a formula."""
    k = np.arange(count)
    return Records(np.column_stack([k % 7 / 7, k % 11 / 11, k % 13 / 13, np.eye(3)[k % 3]]), k % 2)


def digest(settings: dict[str, Any]) -> str:
    query = build(Marginals, {"privatize": settings}, "marginals").foreseen_queries(CONTEXT)[-1]
    return hashlib.sha256(np.ascontiguousarray(lattice_sum(query, [rows(60)]), dtype="<i8").tobytes()).hexdigest()


def test_the_integers_before_noise_and_their_question_are_these() -> None:
    """A release is paid once for ever: the same settings ask the same question, and have the same sums."""
    assert sha256_json(build(Marginals, {}, "marginals").foreseen_queries(CONTEXT)[-1].feature.spec()) == QUESTION
    assert digest({}) == SUMS
    assert digest({"workload": [of("a", weight=3), of("a", "b", "d")]}) == WEIGHTED


@given(st.integers(2, 60), st.integers(2, 70))
def test_drawn_pairs_give_every_column_as_many_partners_and_join_all(columns: int, partners: int) -> None:
    pairs = drawn_pairs(columns, partners)
    assert list(pairs) == sorted(set(pairs)) and all(0 <= first < second < columns for first, second in pairs)
    counts, most = Counter(chain(*pairs)), min(partners, columns - 1)
    assert set(counts) == {*range(columns)} and set(counts.values()) == {most - most % 2 * (columns % 2)}
    reached = {0}
    for _ in range(columns):
        reached |= {place for pair in pairs if reached & {*pair} for place in pair}
    assert reached == {*range(columns)}


def test_drawn_pairs_are_the_same_for_ever() -> None:
    """Others would be another question, and be paid for again: of an even and an odd number of columns."""
    assert drawn_pairs(8, 3) == EVEN
    assert sha256_json(drawn_pairs(41, 10)).startswith(ODD)


@pytest.mark.parametrize(("limit", "partners"), [(1710, 19), (1709, 10), (900, 10), (899, 9), (180, 2)])
def test_a_table_whose_pairs_do_not_all_fit_has_as_many_partners_as_fit(limit: int, partners: int) -> None:
    """190 pairs of nine cells."""
    feature = feature_of(context=WIDE, max_coordinates=limit)
    assert feature.column_pairs == drawn_pairs(20, partners) and {*chain(*feature.column_pairs)} == {*range(20)}
    assert 9 * len(feature.column_pairs) <= limit


def test_named_pairs_are_asked_where_others_are_drawn() -> None:
    drawn = drawn_pairs(20, 4)
    named = next(pair for pair in combinations(range(20), 2) if pair not in drawn)
    columns = [f"c{place}" for place in named]
    feature = feature_of(of(*columns, weight=3), of("c0", "c1", "c2"), context=WIDE, max_coordinates=9 * 44)
    assert feature.column_pairs == tuple(sorted({*drawn, named}))
    assert feature.weights[feature.column_pairs.index(named)] == 3 and sum(feature.weights) == 43
    assert feature.tables == ((0, 1, 2),)
    method = build(Marginals, {"privatize": {"max_coordinates": 400}}, "marginals")
    assert method.notes(WIDE, {}) == ["Of 190 pairs of columns 40 are released: each column has a few partners."]
    asked, *_ = measures_of_cells(feature, 1.0, 1, WIDE, ())
    assert "of 41 pairs" in asked.of


def test_a_column_has_its_weight_in_all_its_pairs_and_a_pair_its_own_times_these() -> None:
    feature = feature_of(of("a", weight=3), of("c", weight=2), of("c", "a", weight=5))
    assert feature.squared_weights == (3, 30, 3, 2, 1, 2)  # ab, ac, ad, bc, bd, cd
    assert from_spec(feature.spec()) == feature


def test_only_ratios_count_so_that_the_same_question_in_other_words_is_not_paid_for_again() -> None:
    plain = feature_of().spec()
    assert set(plain) == {"map", "columns", "squared_weights"}
    assert feature_of(of("a"), of("b", "c")).spec() == plain
    assert feature_of(*(of(name, weight=5) for name in "abcd")).spec() == plain
    first, second = (
        feature_of(of("a", "b", "c", weight=one), of("b", "c", "d", weight=3 * one)).spec() for one in (30, 33)
    )
    assert first == second


@pytest.mark.parametrize(
    ("context", "weights", "share"),
    [(WIDE, (1, 2), 0.1), (CONTEXT, (6, 6), 12 / 18), (WIDE, (30, 20), 50 / 240), (CONTEXT, (100, 100), 0.9)],
)
def test_tables_together_have_the_budget_of_pairs_of_their_weights_within_bounds(
    context: Context, weights: tuple[int, int], share: float
) -> None:
    names = [column.name for column in context.schema.feature_columns]
    first, second = names[:4], [names[3], *names[:2]]
    feature = feature_of(of(*second, weight=weights[1]), of(*first, weight=weights[0]), context=context)
    assert feature.tables == ((0, 1, 2, 3), (0, 1, 3))
    bounds = [part.norm_bound_squared for part in feature.parts]
    assert {*bounds[:-2]} == {Fraction(1)} and float(bounds[-1] / bounds[-2]) == pytest.approx(weights[1] / weights[0])
    assert float(sum(bounds[-2:]) / sum(bounds)) == pytest.approx(share, rel=1e-12)
    assert from_spec(feature.spec()) == feature
    norms = [float(part.norm_bound_squared) for part in feature.table_parts]
    assert norms == pytest.approx(feature.squared_table_weights)
    bits = Query("embedding", "privatize", feature, num_groups=2).lattice_bits
    assert min(part.lattice_bound_squared(bits) for part in feature.parts) > 10**6


def test_counts_by_table_are_those_of_the_rows() -> None:
    feature = feature_of(of("a", "b", "d", weight=5), of("a", "b", "c"))
    records = rows(200)
    values = feature(records.x).sum(axis=0, keepdims=True)
    *_, (table, counts) = feature.table_counts(values)
    expected, cells = np.zeros((4, 4, 3)), [column.places(records.x) for column in feature.columns]
    np.add.at(expected, (cells[0], cells[1], cells[3]), 1)
    assert table == (0, 1, 3) and counts[0] == pytest.approx(expected)
    assert [block.shape for _, _, block in feature.blocks(values)][-1] == (1, 4, 3)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("workload", "limit"), [([of("a", weight=3), of("c", weight=100)], 130), ([of("a", "b", "d", weight=20)], 10**6)]
)
def test_the_sensitivity_holds_on_neighbors_and_is_reached(
    adjacency: Adjacency, workload: list[Any], limit: int
) -> None:
    """Of two records in other cells of every column and other classes; every record of forty is taken out once."""
    query, records = query_of(*workload, max_coordinates=limit), rows(40)
    assert bool(query.feature.spec().get("pairs")) is (limit == 130)
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


def test_noise_of_a_pair_goes_with_one_over_the_root_of_its_weight() -> None:
    """512 cells a pair: a variance is off by 40 % with a chance of 1e-8 (chi-squared)."""
    schema = schema_with({"a": NUMBER, "b": NUMBER, "y": LABEL, "c": NUMBER}, "y")
    context, settings = Context(schema, "add_remove_one", None, 0), {"workload": [of("a", weight=9)]}
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": settings}, "marginals")
    plan = plan_with(method.shares(context), method="marginals")
    ledger = ledger_of_people(plan.adjacency, plan.epsilon, plan.delta)
    query = method.embedding_query(context, {})
    nobody = [Records(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))]
    found = from_bytes(Door(plan, ledger, Dataset("people", "digest"), lambda: nobody).release(query), query.name)
    expected = math.sqrt(9 + 9 + 1) * plan.query("embedding").noise_multiplier
    assert isinstance(query.feature, PairMarginals)
    for (_, _, counts), weight in zip(query.feature.blocks(found.values), (9, 9, 1), strict=True):
        assert counts.var() == pytest.approx(expected**2 / weight, rel=0.4)
    # What `likeness check` says of the worst pair of columns.
    (_, noise, _, _), *_ = measures_of_cells(query.feature, expected, 2, context, ())
    assert noise == pytest.approx(expected)


def test_one_way_marginals_are_those_of_some_pairs_and_the_forecast_knows_how_often_a_column_is_measured() -> None:
    """Of a star of three pairs, each with four cells a partner."""
    query, records = query_of(), rows(500)
    feature = PairMarginals(query.feature.columns[:3], pairs=((0, 1), (0, 2)))  # type: ignore[attr-defined]
    asked = Query("embedding", "privatize", feature, num_groups=2)
    sums = lattice_sum(asked, [records]) / 2.0**asked.lattice_bits
    found = one_way_marginals(feature.blocks(sums), [4, 4, 4], [1, 1])
    ones = records.labels == 1
    cells = [np.bincount(column.places(records.x)[ones], minlength=4) for column in feature.columns]
    assert found[1] == pytest.approx(np.concatenate(cells) / ones.sum(), abs=1e-4)
    star = PairMarginals(tuple(Cells(4 * place, 4) for place in range(4)), pairs=((0, 1), (0, 2), (0, 3)))
    assert star.variances()[1] == pytest.approx([4 / 3, 4, 4, 4])


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


@pytest.mark.parametrize(
    ("workload", "limit"), [([], 80), ([of("a", "b", "c", "d")], 380)], ids=["two partners", "a table"]
)
def test_a_release_that_does_not_fit_is_refused(workload: list[Any], limit: int) -> None:
    with pytest.raises(
        PlanError, match=r"privatize\.max_coordinates .* Lower marginals\.privatize\.bins, name smaller tables"
    ):
        query_of(*workload, max_coordinates=limit)


@pytest.mark.parametrize(
    "change",
    [
        *({"pairs": pairs} for pairs in ([[0, 1]], [[1, 0], [1, 2]], [[1, 2], [0, 1]], [[0, 1], [0, 1], [1, 2]])),
        *({"pairs": pairs} for pairs in ([[0, 1], [1, 3]], [[0, 1], [1, -1]], [[0, 1, 2]], [[0, 1], [1, [2]]])),
        *({"pairs": pairs} for pairs in ([[0, 1], [1, 2.0]], ["ab"], [1], 1)),
        *({"squared_weights": weights} for weights in ([1, 2.7], [1, "2"], [1, True], [1, 0], [1, -2], [1], 1, "12")),
        *({"tables": tables} for tables in ([[0, 1]], [[0, 2, 1]], [[0, 1, 1]], [[0, 1, 3]], [[-1, 0, 1]], 7)),
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


def test_weights_of_histories_count_where_their_columns_are() -> None:
    sets = [["a", "b"], ["a", "c", "d"]]
    wanted = [of("c", weight=3), of("a", "d", weight=2), of("a", "b")]
    method = build(Marginals, {"privatize": {"workload": wanted}}, "marginals").for_histories(sets)
    found = []
    for names in sets:
        columns = tuple(Cells(2 * place, 2) for place in range(len(names)))
        schema, pairs = schema_with(dict.fromkeys(names, LABEL)), tuple(combinations(range(len(names)), 2))
        found.append(method.privatize.feature(columns, schema, pairs).squared_weights)
    assert found == [(), (3, 2, 3)]
    for wrong in (of("x", weight=2), of("b", "c")):
        with pytest.raises(PlanError, match=r"workload\[0\]: .* must be columns of one row set. .* people: a, b"):
            build(Marginals, {"privatize": {"workload": [wrong]}}, "marginals").for_histories(sets)
