"""The measures of the papers: MMD against a double loop, and range queries against known answers."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.evaluation.details import points
from likeness_papers import measures
from likeness_papers.measures import Condition, answers, draw_queries, length_scale, mmd_squared, papers_measures

Tables = Callable[..., pd.DataFrame]


def naive(a: np.ndarray, b: np.ndarray, scale: float) -> tuple[float, float]:
    """Both estimates, pair by pair."""

    def k(x: np.ndarray, y: np.ndarray) -> float:
        return math.exp(-sum((u - v) ** 2 for u, v in zip(x, y, strict=True)) / (2 * scale**2))

    def mean(x: np.ndarray, y: np.ndarray, skip: bool = False) -> float:
        pairs = [k(x[i], y[j]) for i in range(len(x)) for j in range(len(y)) if not (skip and i == j)]
        return sum(pairs) / len(pairs)

    return mean(a, a, True) + mean(b, b, True) - 2 * mean(a, b), mean(a, a) + mean(b, b) - 2 * mean(a, b)


@pytest.mark.parametrize("block", [1, 7, 1024])
def test_blocks_agree_with_a_double_loop(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(measures, "_BLOCK", block)
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(17, 3)), draw.normal(0.5, size=(23, 3))
    found = mmd_squared(a, b, 1.3)
    assert (found.unbiased, found.biased) == pytest.approx(naive(a, b, 1.3), rel=1e-10)


@pytest.mark.long
def test_two_gaussians_have_the_mmd_of_the_formula() -> None:
    """N(0, 1) against N(m, 1), scale l: 2 l/√(l² + 2) · (1 - exp(-m² / (2 (l² + 2))))."""
    draw = np.random.default_rng(1)
    expected = 2 / math.sqrt(3) * (1 - math.exp(-1 / 6))
    found = mmd_squared(draw.normal(size=(4000, 1)), draw.normal(1.0, size=(4000, 1)), 1.0)
    assert found.unbiased == pytest.approx(expected, abs=0.03)  # one fixed draw; its deviation is .009


def test_the_unbiased_one_is_0_in_the_mean_and_the_biased_one_is_not() -> None:
    """200 pairs of equal samples of 20. False alarm: 4 standard errors of a mean, 1 in 15,000."""
    draw = np.random.default_rng(2)
    pairs = [mmd_squared(draw.normal(size=(20, 2)), draw.normal(size=(20, 2)), 1.0) for _ in range(200)]
    unbiased, biased = (np.array([getattr(found, kind) for found in pairs]) for kind in ("unbiased", "biased"))
    error = unbiased.std(ddof=1) / math.sqrt(len(pairs))
    assert abs(unbiased.mean()) < 4 * error < biased.mean() / 5 and unbiased.min() < 0 <= biased.min()


def test_every_column_counts_alike(schema: Schema, table_of: Tables) -> None:
    table = table_of(2, 0).assign(height=[0.0, 8.0], visits=[0, 99])
    table["color"] = pd.Categorical(["red", "red"], ["red", "green", "blue"])
    table["size"] = pd.Categorical(["s", "l"], ["s", "m", "l"], ordered=True)
    table["sick"] = pd.Categorical(["no", "yes"], ["no", "yes"])
    a, b = points(table, schema)
    assert ((a - b) ** 2).sum() == pytest.approx(4)  # two whole ranges, a category and the class; color is the same


def test_the_length_scale_is_the_distance_of_uniform_rows() -> None:
    words = [Column(name, "categorical", categories=tuple(own)) for name, own in (("c", "abc"), ("label", "ny"))]
    schema = Schema("u", "made up", "classification", "label", (Column("x", "numeric", 0.0, 1.0), *words))
    draw = np.random.default_rng(3)
    rows = 20_000
    table = pd.DataFrame(
        {
            "x": draw.uniform(size=2 * rows),
            "c": pd.Categorical.from_codes(draw.integers(0, 3, 2 * rows), list("abc")),
            "label": pd.Categorical.from_codes(draw.integers(0, 2, 2 * rows), list("ny")),
        }
    )
    x = points(table, schema)
    squares = ((x[:rows] - x[rows:]) ** 2).sum(axis=1)
    # 5 standard errors: 1 in two million
    assert length_scale(schema) ** 2 == pytest.approx(squares.mean(), abs=5 * squares.std() / math.sqrt(rows))


def test_a_pair_needs_two_rows() -> None:
    with pytest.raises(DataError, match=r"mmd: .*two rows"):
        mmd_squared(np.zeros((1, 2)), np.zeros((5, 2)), 1.0)


def test_known_answers(schema: Schema) -> None:
    table = pd.DataFrame(
        {
            "height": [0.0, 2.0, 4.0, 8.0, np.nan],
            "visits": np.array([0, 9, 9, 99, 0], "int64"),
            "color": pd.Categorical(["red", "green", "blue", None, "red"], ["red", "green", "blue"]),
            "size": pd.Categorical(["s", "m", "l", "l", "s"], ["s", "m", "l"], ordered=True),
            "sick": pd.Categorical(["no", "yes", "yes", "no", "no"], ["no", "yes"]),
        }
    )
    queries = [
        (Condition("height", 0.25, 0.5),),  # 2 to 4, both included; a missing height meets nothing
        (Condition("height", 0.0, 1.0),),
        (Condition("visits", 0.0, 0.5), Condition("color", members=(0, 1))),  # log(10) / log(100) = 1/2
        (Condition("color", members=(0, 1, 2)),),  # missing is no member
        (Condition("size", members=(1, 2)), Condition("sick", members=(1,)), Condition("height", 0.3, 1.0)),
    ]
    assert answers(table, schema, queries).tolist() == pytest.approx([0.4, 0.8, 0.6, 0.8, 0.2])


def test_answers_agree_with_a_loop_over_rows(schema: Schema, table_of: Tables) -> None:
    from likeness.data.encoding.encoder import Encoder

    table = table_of(60, 4)
    queries = draw_queries(schema, 40, seed=3)
    codes = Encoder(schema).encode(table).to_dict("records")

    def meets(row: dict[str, float], part: Condition) -> bool:
        value = row[part.column]
        return value in part.members if part.members is not None else part.low <= value <= part.high

    expected = [sum(all(meets(row, part) for part in query) for row in codes) / len(codes) for query in queries]
    assert answers(table, schema, queries) == pytest.approx(expected)
    assert len(set(expected)) > 10  # power: the queries differ


def test_queries_are_public_and_of_their_kinds(schema: Schema) -> None:
    queries = draw_queries(schema, 400, seed=1)
    assert queries == draw_queries(schema, 400, seed=1) != draw_queries(schema, 400, seed=2)
    for query in queries:
        assert len({part.column for part in query}) == len(query) == 3
        for part in query:
            column = schema.column(part.column)
            if column.is_categorical:
                assert part.members and max(part.members) < len(column.categories)
            else:
                assert part.members is None and 0 <= part.low <= part.high <= 1
            if column.ordered:
                assert list(part.members) == list(range(part.members[0], part.members[-1] + 1))
    ordered = {part.members for query in queries for part in query if part.column == "size"}
    assert ordered == {(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)}  # both ends included
    assert any(part.members == (0, 2) for query in queries for part in query)  # a set, for what has no order


def test_an_equal_table_has_no_error_and_another_has(schema: Schema, table_of: Tables) -> None:
    queries = draw_queries(schema, 200, seed=0)
    table = table_of(300, 1)
    other = table.assign(size=table["size"].sample(frac=1, random_state=0).array, height=table["height"] / 4)
    assert np.array_equal(
        answers(table, schema, queries), answers(table.sample(frac=1, random_state=1), schema, queries)
    )
    error = abs(answers(table, schema, queries) - answers(other, schema, queries)).mean()
    assert error > 0.02 and papers_measures(table, other, schema, queries=200)["range_queries"] == error


def test_narrow_and_empty_tables(table_of: Tables) -> None:
    narrow = Schema("n", "made up", "none", None, (Column("height", "numeric", 0.0, 8.0),))
    assert all(len(query) == 1 for query in draw_queries(narrow, 5))
    with pytest.raises(DataError, match="range queries: a table has no rows"):
        answers(pd.DataFrame({"height": np.empty(0)}), narrow, draw_queries(narrow, 5))
