"""Dependence of columns: marginals, Cramér's V, and the shuffled table that has none."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import DataError
from likeness.data.schema.schema import Schema
from likeness.evaluation import marginals
from likeness.evaluation.marginals import cells, cramers_v, marginal_table, total_variation, tuples
from likeness.evaluation.utility import shuffle_columns

Tables = Callable[..., pd.DataFrame]


def pair(first: list[int], second: list[int]) -> np.ndarray:
    return np.stack([np.array(first), np.array(second)], axis=1)


def test_total_variation_by_hand() -> None:
    a, b = pair([0, 0, 1, 1], [0, 1, 0, 1]), pair([0, 0, 0, 1], [0, 1, 1, 1])
    assert total_variation(a, b, [2, 2], [0]) == 0.25  # (1/2, 1/2) against (3/4, 1/4)
    assert total_variation(a, b, [2, 2], [1]) == 0.25
    assert total_variation(a, b, [2, 2]) == 0.25  # (1,1,1,1)/4 against (1,2,0,1)/4: half of (0 + 1 + 1 + 0)/4
    assert total_variation(pair([0], [0]), pair([1], [1]), [2, 2]) == 1.0


def test_tables_of_different_size_compare_by_share() -> None:
    a = pair([0, 1], [0, 1])
    assert total_variation(a, np.concatenate([a, a, a]), [2, 2]) == 0.0


def test_joint_cells_are_not_confused() -> None:
    # Equal 1-way marginals, opposite dependence: only the pair tells them apart.
    same, crossed = pair([0, 1, 2], [0, 1, 2]), pair([0, 1, 2], [1, 2, 0])
    assert total_variation(same, crossed, [3, 3], [0]) == total_variation(same, crossed, [3, 3], [1]) == 0.0
    assert total_variation(same, crossed, [3, 3]) == pytest.approx(1)


def test_sparse_counting_equals_dense_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 7, (400, 4)), draw.integers(0, 5, (300, 4))
    dense = total_variation(a, b, [7] * 4)
    monkeypatch.setattr(marginals, "MOST_DENSE_CELLS", 1)
    assert total_variation(a, b, [7] * 4) == pytest.approx(dense, abs=1e-12)
    assert 0.1 < dense < 1


def test_cells_come_from_public_bounds_and_missing_is_its_own(schema: Schema) -> None:
    table = pd.DataFrame(
        {
            "height": [0.0, 0.49, 0.51, 8.0, math.nan],
            "visits": np.array([0, 1, 9, 99, 99], "int64"),
            "color": pd.Categorical(["red", "green", "blue", None, "red"], ["red", "green", "blue"]),
            "size": pd.Categorical(["s", "m", "l", "s", "s"], ["s", "m", "l"], ordered=True),
            "sick": pd.Categorical(["no", "yes", "no", "no", "no"], ["no", "yes"]),
        }
    )
    codes, sizes = cells(table, schema, 16)
    assert sizes == [17, 17, 4, 3, 2]
    assert codes[:, 0].tolist() == [0, 0, 1, 15, 16]
    assert codes[:, 1].tolist() == [0, 2, 8, 15, 15]  # floor(16 log(1 + x) / log 100)
    assert codes[:, 2].tolist() == [0, 1, 2, 3, 0]
    assert codes[:, 3].tolist() == [0, 1, 2, 0, 0]
    assert codes[:, 4].tolist() == [0, 1, 0, 0, 0]


def test_all_pairs_and_the_label_are_in_the_table(schema: Schema, table_of: Tables) -> None:
    rows = marginal_table(table_of(50, 1), table_of(60, 2), schema)
    assert list(rows.columns) == ["order", "columns", "total_variation"]
    assert rows["order"].value_counts().to_dict() == {1: 5, 2: 10, 3: 10}
    assert {"sick", "size × sick", "height × color × sick"} <= set(rows["columns"])
    assert rows["total_variation"].between(0, 1).all()


def test_equal_tables_are_at_zero_and_more_columns_are_farther(schema: Schema, table_of: Tables) -> None:
    table = table_of(300, 1)
    assert marginal_table(table, table, schema)["total_variation"].max() == 0.0
    means = marginal_table(table, table_of(300, 2), schema).groupby("order")["total_variation"].mean()
    assert means[1] < means[2] < means[3]


def test_high_orders_are_a_public_sample(schema: Schema) -> None:
    drawn = tuples(30, 3, 50, 7)
    assert drawn == tuples(30, 3, 50, 7) != tuples(30, 3, 50, 8)
    assert len(set(drawn)) == 50 and all(len(set(chosen)) == 3 for chosen in drawn)
    assert len(tuples(30, 2, 50, 7)) == 435 and len(tuples(5, 3, 50, 7)) == 10


def test_a_table_without_rows_is_refused(schema: Schema, table_of: Tables) -> None:
    with pytest.raises(DataError, match="no rows"):
        marginal_table(table_of(5, 1), table_of(5, 1).head(0), schema)


def test_a_column_and_its_copy_have_one_and_strangers_none() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 5, 5000), draw.integers(0, 30, 5000)
    matrix = cramers_v(np.stack([a, (a + 2) % 5, b], axis=1), [5, 5, 30])
    assert matrix[0, 1] == pytest.approx(1, abs=1e-3)
    assert matrix[0, 2] < 0.06  # uncorrected it would be about sqrt(29 / 5000) = .076 on average
    assert np.array_equal(matrix, matrix.T) and np.array_equal(np.diag(matrix), np.ones(3))


def test_two_by_two_by_hand() -> None:
    # 40 30 / 10 20: chi² = n (ad - bc)² / (70 · 30 · 50 · 50) = 4.7619; V² = (chi²/n - 1/99) / (2 - 1/99 - 1)
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 30, 10, 20], axis=0)
    assert cramers_v(codes, [2, 2])[0, 1] == pytest.approx(((0.047619 - 1 / 99) / (1 - 1 / 99)) ** 0.5, rel=1e-4)


def test_constant_columns_and_single_rows_have_none() -> None:
    codes = np.stack([np.zeros(50, int), np.arange(50) % 2], axis=1)
    assert cramers_v(codes, [3, 2])[0, 1] == 0
    assert cramers_v(codes[:1], [3, 2])[0, 1] == 0


def test_the_floor_keeps_every_column_and_no_dependence(schema: Schema, table_of: Tables) -> None:
    real = table_of(4000, 1)
    floor = shuffle_columns(real, 3)
    assert marginal_table(real, floor, schema, orders=(1,))["total_variation"].max() == 0.0
    label, size = schema.names.index("sick"), schema.names.index("size")
    before, after = (cramers_v(*cells(table, schema)) for table in (real, floor))
    assert before[label, size] > 0.5  # power: the dependence is there, and would be seen
    assert (after - np.eye(len(after))).max() < 0.08  # bias-corrected; about five times 1/sqrt(4000)


def test_kinds_and_index_are_kept_and_the_original_is_untouched(table_of: Tables) -> None:
    real = table_of(50, 1).set_axis(range(100, 150))
    copy = real.copy(deep=True)
    floor = shuffle_columns(real, 0)
    pd.testing.assert_frame_equal(real, copy)
    assert floor.dtypes.equals(real.dtypes) and floor.index.equals(real.index)


def test_the_seed_is_public_and_each_column_has_its_own_order(table_of: Tables) -> None:
    real = table_of(200, 1)
    real["twin"] = real["visits"]
    floor = shuffle_columns(real, 0)
    assert floor.equals(shuffle_columns(real, 0)) and not floor.equals(shuffle_columns(real, 1))
    assert not floor["twin"].equals(floor["visits"])
