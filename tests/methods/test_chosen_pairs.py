"""Which pairs ``marginals`` asks: all, drawn from public randomness, or a list."""

from collections import Counter
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import EQUAL_WIDTH, schema_with

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.core.errors import LikenessError, ParamsError, PlanError, ReleaseError
from likeness.core.hashing import sha256_json
from likeness.data.schema.schema import Schema
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
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum

NUMBER = {"kind": "numeric", "lower": 0, "upper": 1}
SCHEMA = schema_with({**{name: NUMBER for name in "abcd"}, "y": {"kind": "categorical", "categories": ["n", "p"]}}, "y")
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
EVEN = ((0, 1), (0, 6), (0, 7), (1, 3), (1, 5), (2, 5), (2, 6), (2, 7), (3, 4), (3, 6), (4, 5), (4, 7))
MANY = "42cfea23635fac7f91561b2398ef0e451cddd34a54a6f98a8b6fb7eb7d30c637"
ODD = ((0, 1), (0, 2), (0, 3), (0, 5), (1, 2), (1, 4), (1, 6), (2, 4), (2, 5), (3, 4), (3, 5), (3, 6), (4, 6), (5, 6))


def query_of(**settings: Any) -> Query:
    method = build(Marginals, {**EQUAL_WIDTH, "privatize": {"bins": 3, **settings}}, "marginals")
    method.check(CONTEXT)
    return method.embedding_query(CONTEXT, {})


def feature_of(**settings: Any) -> PairMarginals:
    feature = query_of(**settings).feature
    assert isinstance(feature, PairMarginals)
    return feature


@given(st.integers(2, 60), st.integers(2, 70), st.integers(0, 5))
def test_drawn_pairs_give_every_column_as_many_partners(columns: int, partners: int, seed: int) -> None:
    pairs = drawn_pairs(columns, partners, seed)
    assert list(pairs) == sorted(set(pairs)) and all(0 <= first < second < columns for first, second in pairs)
    counts, most = Counter(chain(*pairs)), min(partners, columns - 1)
    assert set(counts) == {*range(columns)} and set(counts.values()) == {most - most % 2 * (columns % 2)}
    assert pairs == drawn_pairs(columns, partners, seed)


def test_a_seed_means_the_same_pairs_for_ever() -> None:
    """Others would be another question, and be paid for again: of an even and an odd number of columns."""
    assert drawn_pairs(8, 3, 0) == EVEN
    assert drawn_pairs(7, 4, 1) == ODD
    assert sha256_json(drawn_pairs(40, 11, 2)) == MANY


def test_the_seed_draws_them() -> None:
    assert len({drawn_pairs(20, 3, seed) for seed in range(20)}) == 20
    assert len({feature_of(pairs="drawn", partners=2, seed=seed).pairs for seed in range(20)}) == 3  # there are no more


@given(st.integers(3, 60), st.integers(2, 5), st.integers(0, 5))
def test_no_columns_are_apart_from_the_others(columns: int, partners: int, seed: int) -> None:
    pairs, reached = drawn_pairs(columns, partners, seed), {0}
    for _ in range(columns):
        reached |= {place for pair in pairs if reached & {*pair} for place in pair}
    assert reached == {*range(columns)}


def test_the_question_of_all_pairs_keeps_its_key() -> None:
    spec = feature_of().spec()
    assert set(spec) == {"map", "columns", "squared_weights"}
    every = [[a, b] for a, b in combinations("abcd", 2)]
    assert feature_of(pairs=every).spec() == feature_of(pairs="drawn", partners=3).spec() == spec
    assert feature_of(partners=2, seed=5).spec() == spec


def test_listed_pairs_are_asked_and_no_others() -> None:
    feature = feature_of(pairs=[["c", "d"], ("b", "a")], weights={"a": 3})  # Python has tuples, YAML has not
    assert feature.pairs == feature.column_pairs == ((0, 1), (2, 3)) and feature.squared_weights == (3, 1)
    assert feature.spec() == feature_of(pairs=[["a", "b"], ["d", "c"]], weights={"a": 3}).spec()
    assert from_spec(feature.spec()) == feature
    assert float(sum(part.norm_bound_squared for part in feature.parts)) == 4
    tabled = feature_of(pairs=[["a", "b"], ["c", "d"]], tables=[["a", "b", "c"]], tables_share=0.2)
    bounds = [float(part.norm_bound_squared) for part in tabled.parts]
    assert bounds[:2] == [1, 1] and bounds[2] / sum(bounds) == pytest.approx(0.2)
    assert from_spec(tabled.spec()) == tabled


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_sensitivity_holds_on_neighbors_and_is_reached(adjacency: Adjacency) -> None:
    """Of two records in other cells of every column and other classes; every record of forty is taken out once."""
    query = query_of(pairs=[["a", "c"], ["b", "d"], ["c", "d"]])
    generator = np.random.default_rng(0)
    x, labels = generator.random((40, 4)), generator.integers(0, 2, 40)
    whole = lattice_sum(query, [Records(x, labels)])
    for place in range(40):
        if adjacency is Adjacency.ADD_REMOVE_ONE:
            neighbor = Records(np.delete(x, place, axis=0), np.delete(labels, place))
        else:
            other, classes = x.copy(), labels.copy()
            other[place], classes[place] = (x[place] + 0.5) % 1, 1 - labels[place]
            neighbor = Records(other, classes)
        moved = int(((whole - lattice_sum(query, [neighbor])).astype(object) ** 2).sum())
        assert moved <= query.sensitivity_squared(adjacency)
        assert moved == pytest.approx(query.sensitivity_squared(adjacency), rel=1e-6)
    some, every = (own.sensitivity_squared(adjacency) / 4**own.lattice_bits for own in (query, query_of()))
    assert some / every == pytest.approx(3 / 6, rel=1e-6)


def test_blocks_and_one_way_marginals_are_those_of_the_pairs() -> None:
    feature = feature_of(pairs=[["a", "c"], ["b", "d"]])
    generator = np.random.default_rng(1)
    x, labels = generator.random((500, 4)), generator.integers(0, 2, 500)
    query = query_of(pairs=[["a", "c"], ["b", "d"]])
    sums = lattice_sum(query, [Records(x, labels)]) / 2.0**query.lattice_bits
    cells = [column.places(x) for column in feature.columns]
    for i, j, counts in feature.blocks(sums):
        expected = np.zeros_like(counts)
        np.add.at(expected, (labels, cells[i], cells[j]), 1)
        assert counts == pytest.approx(expected, abs=1e-3)
    sizes = [column.size for column in feature.columns]
    found = one_way_marginals(feature.blocks(sums), sizes, [1, 1])
    expected = [np.bincount(own[labels == 1], minlength=size) for own, size in zip(cells, sizes, strict=True)]
    assert found[1] == pytest.approx(np.concatenate(expected) / (labels == 1).sum(), abs=1e-4)


def test_the_forecast_knows_how_often_a_column_is_measured() -> None:
    """Three cells a partner: a column with three pairs is measured thrice, the others once."""
    feature = feature_of(pairs=[["a", "b"], ["a", "c"], ["a", "d"]])
    *_, (_, noise, _, _) = measures_of_cells(feature, 1.0, 2, CONTEXT, ())
    assert noise == pytest.approx(3**0.5)


@pytest.mark.long
def test_a_pair_that_is_asked_is_kept_and_one_that_is_not_is_lost() -> None:
    """b copies a, d copies c: of the two one is asked. Rows without noise would agree in all of 4,000."""
    columns = {name: {"kind": "categorical", "categories": ["0", "1"]} for name in "abcd"}
    content = {"name": "bits", "source": "made up", "task": "none", "columns": columns}
    bits = np.random.default_rng(0).integers(0, 2, (20_000, 2))
    rows = pd.DataFrame({"a": bits[:, 0], "b": bits[:, 0], "c": bits[:, 1], "d": bits[:, 1]}).astype(str)
    settings = {"privatize": {"pairs": [["a", "b"], ["a", "c"], ["a", "d"]]}, "train": {"num_components": 20}}
    schema = Schema.from_dict(content, "bits.yaml")
    Ledger.create(locate())
    own = Synthesizer(schema=schema, population="bits", epsilon=5.0, settings=settings, device="cpu").fit(rows)
    made = own.sample(4_000)
    assert (made["a"] == made["b"]).mean() > 0.95
    assert 0.35 < (made["c"] == made["d"]).mean() < 0.65


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"pairs": "some"}, ParamsError, "pairs must be all, drawn, or a list of lists of two different columns"),
        ({"pairs": []}, ParamsError, "pairs must be all, drawn"),
        ({"pairs": None}, ParamsError, "pairs must be of type str or a list, got None"),
        ({"pairs": 3}, ParamsError, "pairs must be all, drawn"),
        ({"pairs": [["a"]]}, ParamsError, "two different columns"),
        ({"pairs": [["a", "a"]]}, ParamsError, "two different columns"),
        ({"pairs": [["a", "b", "c"]]}, ParamsError, "two different columns"),
        (
            {"pairs": [["a", "b"], ["b", "a"]]},
            ParamsError,
            r"pairs\[1\] must be named once in the list, got \['b', 'a'\]",
        ),
        ({"partners": 1}, ParamsError, "partners must be at least 2, got 1"),
        ({"pairs": [["a", "b"], ["c", "y"]]}, PlanError, "'y' is the label: every pair is released by class"),
        ({"pairs": [["a", "b"], ["c", "e"]]}, PlanError, "'e' is not a column. Columns: a, b, c, d"),
        ({"pairs": [["a", "b"], ["b", "d"]]}, PlanError, "no pair has 'c'"),
        ({"max_coordinates": 100}, PlanError, "set marginals.privatize.pairs: drawn with fewer"),
        (
            {"pairs": "drawn", "partners": 2, "max_coordinates": 70},
            PlanError,
            "lower marginals.privatize.partners, merge",
        ),
        (
            {"pairs": [["a", "b"], ["c", "d"]], "max_coordinates": 30},
            PlanError,
            "name fewer marginals.privatize.pairs, m",
        ),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[LikenessError], said: str) -> None:
    with pytest.raises(error, match=said):
        feature_of(**settings)


@pytest.mark.parametrize(
    "pairs",
    [
        [[0, 1]],
        [[1, 0], [1, 2]],
        [[1, 2], [0, 1]],
        [[0, 1], [0, 1], [1, 2]],
        [[0, 1], [1, 3]],
        [[0, 1], [1, -1]],
        [[0, 1, 2]],
        [[0, 1], [1, [2]]],
        [[0, 1], [1, 2.0]],
        ["ab"],
        [1],
        1,
    ],
)
def test_a_specification_with_other_pairs_is_refused(pairs: Any) -> None:
    good = PairMarginals((Cells(0, 2), Cells(2, 3), Cells(5, 2)), pairs=((0, 1), (1, 2)))
    assert from_spec(good.spec()) == good
    with pytest.raises(ReleaseError, match="pair_marginals"):
        from_spec({**good.spec(), "pairs": pairs})


@pytest.mark.parametrize("weights", [[1, 2.7], [1, "2"], [1, True], [1, 0], [1, -2], [1], [1, [2]], 1, "12"])
def test_a_specification_with_other_weights_is_refused(weights: Any) -> None:
    """Not rounded: 2.7 would be another question than the one that is said."""
    good = PairMarginals((Cells(0, 2), Cells(2, 3), Cells(5, 2)), (1, 2), pairs=((0, 1), (1, 2)))
    assert from_spec(good.spec()) == good
    with pytest.raises(ReleaseError, match="pair_marginals"):
        from_spec({**good.spec(), "squared_weights": weights})
