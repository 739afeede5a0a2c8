"""Contrasts in ``marginals``: when they are taken, what they say of pairs, and that they say it with less noise."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import schema_with

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.core.errors import PlanError, ReleaseError
from likeness.features.base import width
from likeness.features.cells import Cells
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.marginals.measures import measures_of_cells
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_contrasts import PairContrasts
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query

ADD, REPLACE = str(Adjacency.ADD_REMOVE_ONE), str(Adjacency.REPLACE_ONE)


def context_of(sizes: dict[str, int], adjacency: str = ADD) -> Context:
    columns = {
        name: {"kind": "categorical", "categories": [str(code) for code in range(size)]} for name, size in sizes.items()
    }
    return Context(schema_with(columns), adjacency, 100 if adjacency == REPLACE else None, 0)


def query_of(context: Context, **settings: Any) -> Query:
    return build(Marginals, {"privatize": settings}, "marginals").foreseen_queries(context)[-1]


BINARY, LARGE = {name: 2 for name in "abcdef"}, {name: 9 for name in "abcdef"}
HEAVY: list[dict[str, Any]] = [{"columns": [name], "weight": 100} for name in "cdef"]


@pytest.mark.parametrize(
    ("sizes", "adjacency", "settings", "contrasts"),
    [
        (BINARY, ADD, {"basis": "auto"}, True),
        (BINARY, ADD, {"basis": "pairs"}, False),
        (BINARY, ADD, {}, False),
        (LARGE, ADD, {"basis": "auto"}, False),
        (LARGE, ADD, {"basis": "contrasts"}, True),
        ({**BINARY, "a": 1}, ADD, {"basis": "auto"}, False),
        (BINARY, REPLACE, {"basis": "auto"}, False),
        (BINARY, REPLACE, {"basis": "contrasts"}, True),
        ({**BINARY, "a": 900, "b": 900}, ADD, {"basis": "auto", "workload": HEAVY}, False),
        (BINARY, ADD, {"basis": "auto", "first_share": 0.2}, False),
    ],
)
def test_contrasts_are_taken_where_public_numbers_say_that_they_pay(
    sizes: dict[str, int], adjacency: str, settings: dict[str, Any], contrasts: bool
) -> None:
    assert isinstance(query_of(context_of(sizes, adjacency), **settings).feature, PairContrasts) is contrasts


@pytest.mark.parametrize(("sizes", "workload"), [({**BINARY, "a": 1}, []), ({**BINARY, "a": 900, "b": 900}, HEAVY)])
def test_contrasts_are_refused_where_they_cannot_be(sizes: dict[str, int], workload: list[dict[str, Any]]) -> None:
    with pytest.raises(PlanError, match="basis: contrasts need two cells"):
        query_of(context_of(sizes), basis="contrasts", workload=workload)


def test_histories_have_pairs() -> None:
    method = build(Marginals, {"privatize": {"basis": "contrasts"}}, "marginals").for_histories()
    assert not isinstance(method.foreseen_queries(context_of(BINARY))[-1].feature, PairContrasts)


FEATURES = [
    PairContrasts(tuple(Cells(9 * at, size) for at, size in enumerate(sizes)), weights, tables, 0.7, pairs)
    for sizes, weights, tables, pairs in [
        ((2, 2, 2, 2), (), (), ()),
        ((3, 2, 5, 9), (1, 4, 2, 1, 1, 7), ((0, 1, 3),), ()),
        ((3, 2, 5), (2, 1), (), ((0, 1), (1, 2))),
    ]
]


@pytest.mark.parametrize("feature", FEATURES)
def test_blocks_of_exact_sums_are_counts_and_their_noise_is_as_stated(feature: PairContrasts) -> None:
    rows = np.random.default_rng(0).integers(0, [column.size for column in feature.columns], (50, len(feature.columns)))
    x = np.zeros((50, 45))
    for place in range(len(feature.columns)):
        x[np.arange(50), 9 * place + rows[:, place]] = 1
    for i, j, counts in feature.blocks(feature(x).sum(axis=0)[None]):
        expected = np.zeros(counts.shape[1:])
        np.add.at(expected, (rows[:, i], rows[:, j]), 1)
        assert counts[0] == pytest.approx(expected, abs=1e-9)
    pairs, columns = feature.variances()
    each = list(feature.blocks(np.eye(width(feature))))  # noise of 1 in one coordinate at a time
    for (_, _, block), variance in zip(each, pairs, strict=True):
        assert np.square(block).sum(axis=0) == pytest.approx(variance)
    for i, _, block in each:
        assert np.square(block.sum(axis=2)).sum(axis=0) == pytest.approx(columns[i])


@pytest.mark.parametrize("sizes", [(2,) * 16, (2, 3, 4, 3, 2, 6), (16,) * 5 + (2,) * 20])
def test_at_an_equal_budget_interactions_have_less_noise_and_columns_have_no_more(sizes: tuple[int, ...]) -> None:
    """A contrast of a column has the variance that all its pairs give it."""
    columns = tuple(Cells(20 * at, size) for at, size in enumerate(sizes))
    pairs, apart = PairMarginals(columns), PairContrasts(columns)
    norms = [float(sum(part.norm_bound_squared for part in feature.parts)) for feature in (pairs, apart)]
    assert norms[1] == pytest.approx(float(apart.factor) * norms[0], rel=2e-3) and apart.factor < 0.9
    for of_cell, column, part in zip(pairs.variances()[1], columns, apart.parts[len(apart.sizes) :], strict=False):
        variance = (1 - 1 / column.size) / float(part.norm_bound_squared)
        assert norms[1] * variance <= norms[0] * of_cell * (1 + 1e-9)
    cells = np.array([a * b for a, b in pairs.sizes])
    means = [norm * (one.variances()[0] @ cells) for norm, one in zip(norms, (pairs, apart), strict=True)]
    assert means[1] < 0.9 * means[0]


def test_the_forecast_knows_the_noise_of_contrasts() -> None:
    context = context_of(BINARY)
    feature = query_of(context, basis="auto").feature
    assert isinstance(feature, PairContrasts)
    pair, column = measures_of_cells(feature, 10.0, 1, context, ())
    assert pair.noise == pytest.approx(10 * max(feature.variances()[0]) ** 0.5)
    assert column.noise == pytest.approx(10 * max(feature.variances()[1]) ** 0.5)


def test_a_column_of_one_cell_has_no_contrasts() -> None:
    with pytest.raises(ReleaseError, match="two cells or more"):
        PairContrasts((Cells(0, 1), Cells(1, 2)))


@pytest.mark.long
def test_a_fit_from_contrasts_has_what_was_released() -> None:
    """A copied column of 4,000 rows comes out; a named table and weights stand beside."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 2, (4_000, 6))
    codes[:, 1] = codes[:, 0]
    rows = pd.DataFrame({name: pd.Categorical.from_codes(codes[:, at], ["0", "1"]) for at, name in enumerate(BINARY)})
    Ledger.create(locate())
    settings = {
        "privatize": {"basis": "auto", "workload": [{"columns": ["a", "c", "d"]}]},
        "train": {"iterations": 200},
    }
    fitted = Synthesizer(schema=context_of(BINARY).schema, population="people", epsilon=1.0, settings=settings).fit(
        rows
    )
    assert fitted.releases_[EMBEDDING].receipt.feature["map"] == "pair_contrasts"
    drawn = fitted.sample(4_000)
    assert (drawn["a"] == drawn["b"]).mean() > 0.95
    share = fitted.estimate(("a",), by=("b",))
    assert share.loc[("0", "0"), "low"] > 0.9
