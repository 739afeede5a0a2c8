"""Named tables of ``marginals``: what is asked, at which share of the budget, and what is refused."""

import dataclasses
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import EQUAL_WIDTH, schema_with

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.core.errors import LikenessError, ParamsError, PlanError, ReleaseError
from likeness.features.cells import Cells
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import Context
from likeness.methods.maps import from_spec
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query

SCHEMA = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "categorical", "categories": ["u", "v", "w"]},
        "y": {"kind": "categorical", "categories": ["n", "p"]},
        "c": {"kind": "numeric", "lower": 0, "upper": 1},
        "d": {"kind": "categorical", "categories": ["s", "t"]},
    },
    "y",
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)


def feature_of(**settings: Any) -> PairMarginals:
    """Of settings as params.yaml gives them."""
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": {"bins": 4, **settings}}, "marginals")
    method.check(CONTEXT)
    feature = method.embedding_query(CONTEXT, {}).feature
    assert isinstance(feature, PairMarginals)
    return feature


def test_tables_are_asked_beside_all_pairs_at_their_share() -> None:
    feature = feature_of(tables=[["d", "a", "b"], ["a", "b", "c", "d"]], tables_share=0.4)
    assert feature.tables == ((0, 1, 2, 3), (0, 1, 3))
    bounds = [part.norm_bound_squared for part in feature.parts]
    assert bounds[:6] == [Fraction(1)] * 6
    assert float(sum(bounds[6:]) / sum(bounds)) == pytest.approx(0.4, rel=1e-12)
    assert [part.width for part in feature.parts[6:]] == [4 * 3 * 4 * 2, 4 * 3 * 2]
    assert from_spec(feature.spec()) == feature


def test_triples_are_all_sets_of_three() -> None:
    assert feature_of(tables="triples").tables == ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))


def test_a_workload_gives_sets_of_columns_their_weights() -> None:
    """Tables share the budget of tables by their weights; a pair has more of that of the pairs."""
    workload = [{"columns": ["b", "a"], "weight": 3}, {"columns": ["d", "a", "b"], "weight": 5}]
    feature = feature_of(workload=workload, tables=[["a", "b", "c", "d"]], tables_share=0.4)
    assert feature.squared_weights == (3, 1, 1, 1, 1, 1)
    assert feature.tables == ((0, 1, 2, 3), (0, 1, 3)) and feature.table_weights == (1, 5)
    bounds = [part.norm_bound_squared for part in feature.parts]
    assert bounds[7] == 5 * bounds[6] and float(sum(bounds[6:]) / sum(bounds)) == pytest.approx(0.4, rel=1e-12)
    assert from_spec(feature.spec()) == feature
    both = feature_of(workload=workload[:1], weights={"a": 2})
    assert both.squared_weights == (6, 2, 2, 1, 1, 1)
    assert feature_of(workload=[{"columns": ["a", "b", "d"]}]).spec() == feature_of(tables=[["a", "b", "d"]]).spec()


def test_the_fit_believes_each_table_by_its_weight() -> None:
    feature = feature_of(workload=[{"columns": ["a", "b", "d"], "weight": 5}], tables=[["a", "b", "c"]])
    assert feature.squared_table_weights == [feature.squared_table_weight, 5 * feature.squared_table_weight]
    values = np.concatenate([np.full(part.width, part.unit) for part in feature.parts])[None]
    assert all((counts == pytest.approx(1)) for _, counts in feature.table_counts(values))


def test_without_tables_nothing_of_them_is_said() -> None:
    """The key of a release is made of what is asked: releases from before stay the same."""
    assert set(feature_of().spec()) == {"map", "columns", "squared_weights"}


def test_counts_by_table_are_those_of_the_rows() -> None:
    feature = feature_of(tables=[["a", "b", "d"]], tables_share=0.4)
    generator = np.random.default_rng(0)
    first, category, last = generator.random(200), generator.integers(0, 3, 200), generator.integers(0, 2, 200)
    x = np.c_[first, np.eye(3)[category], generator.random(200), np.eye(2)[last]]
    values = feature(x).sum(axis=0, keepdims=True)
    ((table, counts),) = feature.table_counts(values)
    expected = np.zeros((4, 3, 2))
    np.add.at(expected, ((4 * first).astype(int), category, last), 1)
    assert table == (0, 1, 3) and counts[0] == pytest.approx(expected)
    assert [block.shape for _, _, block in feature.blocks(values)][-1] == (1, 4, 2)


@pytest.mark.long
def test_from_rows_to_rows_a_named_table_is_kept_that_no_pair_shows() -> None:
    """Two thousand rows a class, whose third bit says whether the first two are alike; ε = 5."""
    generator = np.random.default_rng(0)
    bits, label = generator.integers(0, 2, (4_000, 2)), generator.integers(0, 2, 4_000)
    rows = pd.DataFrame({"a": bits[:, 0], "b": bits[:, 1], "c": bits.sum(axis=1) % 2, "y": label}).astype(str)
    kinds = {name: {"kind": "categorical", "categories": ["0", "1"]} for name in rows}
    schema = {"name": "bits", "source": "made up", "task": "classification", "label": "y", "columns": kinds}
    Ledger.create(locate())
    kept = {}
    for tables in ("none", [["c", "a", "b"]]):
        settings = {"privatize": {"tables": tables}, "train": {"num_components": 20}}
        own = Synthesizer(schema=schema, population="bits", epsilon=5.0, settings=settings, device="cpu").fit(rows)
        kept[len(tables)] = (own.sample(4_000)[["a", "b", "c"]].astype(int).sum(axis=1) % 2 == 0).mean()
    assert kept[1] > 0.9 and kept[4] < 0.75


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"tables": "pairs"}, ParamsError, "tables must be none, triples"),
        ({"tables": []}, ParamsError, "tables must be none, triples"),
        ({"tables": None}, ParamsError, "tables must be of type str or a list, got None"),
        ({"tables": [["a", "b"]]}, ParamsError, "three different columns"),
        ({"tables": [["a", "b", "b"]]}, ParamsError, "three different columns"),
        ({"tables": [["a", "b", "c"], ["c", "b", "a"]]}, ParamsError, "named once"),
        ({"tables_share": 1e-18}, ParamsError, "tables_share must be from 0.001 to 0.999"),
        ({"tables_share": 1.0}, ParamsError, "tables_share must be from 0.001 to 0.999"),
        ({"tables": [["a", "b", "y"]]}, PlanError, "'y' is the label"),
        ({"tables": [["a", "b", "e"]]}, PlanError, "'e' is not a column. Columns: a, b, c, d"),
        ({"workload": [{"columns": ["a"]}]}, ParamsError, "two different columns or more"),
        ({"workload": [{"columns": "ab"}]}, ParamsError, r"workload\[0\] must be columns, a list, and weight"),
        ({"workload": [{"columns": ["a", "b"], "share": 1}]}, ParamsError, r"workload\[0\] must be columns, a list"),
        ({"workload": [{"columns": ["a", "b"], "weight": 0}]}, ParamsError, r"workload\[0\].weight must be a whole"),
        ({"workload": [{"columns": ["a", "b"]}, {"columns": ["b", "a"]}]}, ParamsError, "named once"),
        ({"workload": [{"columns": ["a", "b", "c"]}], "tables": [["c", "b", "a"]]}, ParamsError, "named once"),
        ({"workload": [{"columns": ["a", "y"]}]}, PlanError, "'y' is the label"),
        (
            {"workload": [{"columns": ["a", "d"]}], "pairs": [["a", "b"], ["b", "c"], ["c", "d"]]},
            PlanError,
            "workload: a, d is no pair of marginals.privatize.pairs",
        ),
        ({"tables": "triples", "max_coordinates": 300}, PlanError, "name fewer marginals.privatize.tables"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[LikenessError], said: str) -> None:
    with pytest.raises(error, match=said):
        feature_of(**settings)


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_every_share_that_is_taken_can_be_released(share: float) -> None:
    """The smallest bound is some steps of the lattice: else a run would end after its first release was paid."""
    for tables in ("triples", [["a", "b", "c"]]):
        query = Query("embedding", "privatize", feature_of(tables=tables, tables_share=share), num_groups=2)
        assert query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE, None) > 0
        assert min(part.lattice_bound_squared(query.lattice_bits) for part in query.parts) > 10**6


def test_triples_of_two_columns_are_refused() -> None:
    columns = {name: {"kind": "categorical", "categories": ["u", "v"]} for name in "ab"}
    narrow = schema_with(columns, name="n")
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": {"tables": "triples"}}, "marginals")
    with pytest.raises(PlanError, match="tables is triples, but the table has two feature columns"):
        method.check(Context(narrow, "add_remove_one", None, 0))


def test_too_many_triples_are_refused_before_they_are_listed() -> None:
    columns = {f"c{place}": {"kind": "categorical", "categories": ["u", "v"]} for place in range(1_000)}
    wide = schema_with(columns, name="w")
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": {"tables": "triples"}}, "marginals")
    with pytest.raises(PlanError, match=r"166,167,000 tables, more than 30,000\. Name those"):
        method.check(Context(wide, "add_remove_one", None, 0))


@pytest.mark.parametrize(
    "change",
    [
        {"tables": ((0, 1),)},
        {"tables": ((0, 2, 1),)},
        {"tables": ((0, 1, 1),)},
        {"tables": ((0, 1, 3),)},
        {"tables": ((-1, 0, 1),)},
        {"tables": ((0, 1, 2), (0, 1, 2))},
        {"tables": ("abc",)},
        {"tables": ((0, 1, 2.0),)},
        {"tables": 7},
        {"table_weights": (1, 2)},
        {"table_weights": (0,)},
        {"table_weights": (2.0,)},
        {"table_weights": 3},
        {"squared_table_weight": "0.5"},
        {"squared_table_weight": 10**400},
        {"squared_table_weight": 0.0},
        {"squared_table_weight": float("nan")},
        {"squared_table_weight": float("inf")},
    ],
)
def test_a_map_refuses_tables_that_are_none(change: dict[str, Any]) -> None:
    good = PairMarginals((Cells(0, 2), Cells(2, 3), Cells(5, 2)), tables=((0, 1, 2),))
    with pytest.raises(ReleaseError, match="pair_marginals"):
        dataclasses.replace(good, **change)


def test_weights_of_histories_count_where_their_columns_are() -> None:
    rows = {"people": ["a", "b"], "transitions": ["a", "c", "d"]}
    wanted = {"weights": {"c": 3}, "workload": ({"columns": ["a", "d"], "weight": 2}, {"columns": ["a", "b"]})}
    method = build(Marginals, {"privatize": wanted}, "marginals").for_histories(list(rows.values()))
    found = [method.privatize._squared_weights(names, None, tuple(combinations(range(len(names)), 2)))
             for names in rows.values()]  # fmt: skip
    assert found == [(), (3, 2, 3)]
    for name, value in (
        ("weights.x", {"weights": {"x": 2}}),
        (r"workload\[0\]", {"workload": [{"columns": ["b", "c"]}]}),
    ):
        with pytest.raises(PlanError, match=f"{name}: .* must be columns of one row set. .* people: a, b"):
            build(Marginals, {"privatize": value}, "marginals").for_histories(list(rows.values()))
