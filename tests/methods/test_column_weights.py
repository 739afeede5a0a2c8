"""Weights of columns in ``marginals``: as many times the budget for their pairs, in the same release."""

import math
from typing import Any

import numpy as np
import pytest
from toys import EQUAL_WIDTH, ledger_of_people, plan_with, schema_with

from likeness.config.typed import build
from likeness.core.errors import LikenessError, ParamsError, PlanError
from likeness.methods.base import Context
from likeness.methods.maps import from_spec
from likeness.methods.marginals.measures import measures_of_cells
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.privacy.adjacency import Adjacency
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset
from likeness.release.sums.lattice_sum import lattice_sum

SCHEMA = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "numeric", "lower": 0, "upper": 1},
        "y": {"kind": "categorical", "categories": ["n", "p"]},
        "c": {"kind": "numeric", "lower": 0, "upper": 1},
    },
    "y",
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)


def method_of(**settings: Any) -> Marginals:
    return build(Marginals, {**EQUAL_WIDTH, "privatize": {"bins": 16, **settings}}, "marginals")


def query_of(**settings: Any) -> Query:
    method = method_of(**settings)
    method.check(CONTEXT)
    return method.embedding_query(CONTEXT, {})


def feature_of(**settings: Any) -> PairMarginals:
    feature = query_of(**settings).feature
    assert isinstance(feature, PairMarginals)
    return feature


def test_a_pair_has_the_product_of_its_columns_weights() -> None:
    feature = feature_of(weights={"a": 3, "c": 2})
    assert feature.squared_weights == (3, 6, 2)  # ab, ac, bc
    assert from_spec(feature.spec()) == feature


def test_without_weights_the_question_and_so_its_key_are_what_they_were() -> None:
    assert feature_of(weights={"b": 1}).squared_weights == ()
    assert feature_of(weights={}).spec() == feature_of(weights={"a": 1, "b": 1}).spec() == feature_of().spec()


def test_only_ratios_count_so_that_the_same_question_in_other_words_is_not_paid_for_again() -> None:
    assert feature_of(weights={"a": 5, "b": 5, "c": 5}).spec() == feature_of().spec()
    assert feature_of(weights={"a": 4, "b": 4, "c": 2}).squared_weights == (2, 1, 1)


def test_named_tables_keep_their_share_of_the_budget() -> None:
    feature = feature_of(weights={"a": 3, "c": 2}, tables=[["a", "b", "c"]], tables_share=0.25)
    bounds = [float(part.norm_bound_squared) for part in feature.parts]
    assert bounds[:3] == [3, 6, 2] and bounds[3] / sum(bounds) == pytest.approx(0.25)


def test_the_sensitivity_holds_on_neighbors_and_is_reached() -> None:
    query = query_of(weights={"a": 3, "c": 100})
    generator = np.random.default_rng(0)
    x, labels = generator.random((40, 3)), generator.integers(0, 2, 40)
    whole = lattice_sum(query, [Records(x, labels)])
    for place in range(40):
        less = lattice_sum(query, [Records(np.delete(x, place, axis=0), np.delete(labels, place))])
        moved = int(((whole - less).astype(object) ** 2).sum())
        assert moved <= query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
        assert moved == pytest.approx(query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE), rel=1e-6)
        other = x.copy()
        other[place] = 1 - x[place]
        changed = lattice_sum(query, [Records(other, labels)])
        moved = int(((whole - changed).astype(object) ** 2).sum())
        assert moved <= query.sensitivity_squared(Adjacency.REPLACE_ONE)


def test_noise_of_a_pair_goes_with_one_over_the_root_of_its_weight() -> None:
    """512 cells a pair: a variance is off by 40 % with a chance of 1e-8 (chi-squared)."""
    method = method_of(weights={"a": 9})
    plan = plan_with(method.shares(CONTEXT), method="marginals")
    ledger = ledger_of_people(plan.adjacency, plan.epsilon, plan.delta)
    query = method.embedding_query(CONTEXT, {})
    nobody = [Records(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))]
    found = from_bytes(Door(plan, ledger, Dataset("people", "digest"), lambda: nobody).release(query), query.name)
    expected = math.sqrt(9 + 9 + 1) * plan.query("embedding").noise_multiplier
    assert isinstance(query.feature, PairMarginals)
    for (_, _, counts), weight in zip(query.feature.blocks(found.values), (9, 9, 1), strict=True):
        assert counts.var() == pytest.approx(expected**2 / weight, rel=0.4)
    # What `likeness check` says of the worst pair of columns.
    (_, noise, _, _), *_ = measures_of_cells(query.feature, expected, 2, CONTEXT, ())
    assert noise == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "error", "said"),
    [
        ({"a": 0}, ParamsError, r"privatize\.weights\.a must be a whole number from 1 to 100, got 0"),
        ({"a": 101}, ParamsError, "from 1 to 100, got 101"),
        ({"a": 2.5}, ParamsError, "from 1 to 100, got 2.5"),
        ({"a": True}, ParamsError, "from 1 to 100, got True"),
        ({"a": "2"}, ParamsError, "from 1 to 100, got '2'"),
        (["a"], ParamsError, "must be a mapping from names to values"),
        ({"y": 2}, PlanError, r"weights: 'y' is the label: every pair is by class\. Columns: a, b, c"),
        ({"z": 2}, PlanError, r"weights: 'z' is not a column\. Columns: a, b, c"),
    ],
)
def test_what_is_refused(weights: Any, error: type[LikenessError], said: str) -> None:
    with pytest.raises(error, match=said):
        feature_of(weights=weights)
