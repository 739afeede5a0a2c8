from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness_papers.measures import Condition, answers, draw_queries, papers_measures

Tables = Callable[..., pd.DataFrame]


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
    assert error > 0.02
    assert papers_measures(table, other, schema, queries=200)["range_queries"] == error


def test_narrow_and_empty_tables(table_of: Tables) -> None:
    narrow = Schema("n", "made up", "none", None, (Column("height", "numeric", 0.0, 8.0),))
    assert all(len(query) == 1 for query in draw_queries(narrow, 5))
    with pytest.raises(DataError, match="range queries: a table has no rows"):
        answers(pd.DataFrame({"height": np.empty(0)}), narrow, draw_queries(narrow, 5))
