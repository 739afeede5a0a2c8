"""The split: by content one row more or less moves no other row; by position the sizes are exact."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import schemas_and_tables

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source.split import split_by_column, split_by_content, split_by_position

NUMBERS = Schema("n", "made up", "none", None, (Column("v", "integer", 0.0, 10.0**9),))


@pytest.mark.long
@given(schemas_and_tables(min_rows=1), st.integers(0, 9))
def test_the_part_of_a_row_depends_on_that_row_alone(drawn: tuple[Schema, pd.DataFrame], seed: int) -> None:
    """So equal rows go together, and one more, one less or another order moves no other row."""
    schema, table = drawn
    alone = [split_by_content(table.iloc[[place]], schema, 0.5, seed)[0] for place in range(len(table))]
    assert split_by_content(table, schema, 0.5, seed).tolist() == alone


def test_share_held_out_by_content() -> None:
    # Binomial with n = 20,000 and p = 0.2: five standard deviations are 283 rows, false alarm below 1e-6 once; the
    # split is a fixed function of fixed rows, so a pass stays a pass.
    table = pd.DataFrame({"v": np.arange(20_000)})
    parts = split_by_content(table, NUMBERS, 0.2, 0)
    assert abs((parts == "test").sum() - 4000) < 283
    other = split_by_content(table, NUMBERS, 0.2, 1)
    # Another seed is another draw: both test with probability 0.04; the same split would give about 4,000.
    assert abs(((parts == "test") & (other == "test")).sum() - 800) < 5 * math.sqrt(20_000 * 0.04 * 0.96)


def test_missing_is_not_the_same_row_as_zero() -> None:
    schema = Schema("n", "made up", "none", None, (Column("v", "integer", 0.0, 9.0, nullable=True),))
    missing, zero = (pd.DataFrame({"v": pd.array([value], dtype="Int64")}) for value in (None, 0))
    differ = [
        split_by_content(missing, schema, 0.5, seed)[0] != split_by_content(zero, schema, 0.5, seed)[0]
        for seed in range(64)
    ]
    assert any(differ)


@given(st.integers(0, 500), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_split_by_position_has_an_exact_size_and_knows_no_content(count: int, fraction: float, seed: int) -> None:
    parts = split_by_position(count, fraction, seed)
    assert len(parts) == count
    assert (parts == "test").sum() == round(count * fraction)
    assert parts.tolist() == split_by_position(count, fraction, seed).tolist()


def test_split_by_position_depends_on_its_seed() -> None:
    assert split_by_position(100, 0.5, 0).tolist() != split_by_position(100, 0.5, 1).tolist()
    assert split_by_position(100, 0.5, 0).tolist() != ["test"] * 50 + ["train"] * 50


def test_split_by_column_and_its_refusal() -> None:
    column = pd.Series(["old", "new", "old"], name="era")
    assert split_by_column(column, "old", "new").tolist() == ["train", "test", "train"]
    for marker in ("MARKER-PRIVATE", None, ""):
        with pytest.raises(DataError, match="'era'") as caught:
            split_by_column(pd.Series(["old", marker, "new"], name="era"), "old", "new")
        assert "MARKER" not in str(caught.value)
