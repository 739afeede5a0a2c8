"""Declared decimals: synthetic numbers have no more of them, and no release depends on it."""

import dataclasses
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import schema_with

from likeness.core.errors import SchemaError
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.schema import Schema

COST = {"kind": "numeric", "lower": 0, "upper": 2000.5, "transform": "log1p", "spikes": [0], "decimals": 2}


def schema_of(**changes: Any) -> Schema:
    columns = {"cost": {**COST, **changes}, "ward": {"kind": "categorical", "categories": ["a", "b"]}}
    return schema_with(columns, name="t")


def digits_behind_the_point(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


@given(
    st.integers(0, 6),
    st.integers(-(10**8), 10**8),
    st.integers(1, 10**8),
    st.sampled_from(["none", "log1p"]),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_values_are_written_with_so_many_decimals_and_stay_within_bounds(
    digits: int, low: int, width: int, transform: str, units: list[float]
) -> None:
    lower, upper = low / 10**digits, (low + width) / 10**digits
    column = Column("x", "numeric", lower, upper, transform=transform, decimals=digits)
    schema = Schema("t", "s", "none", None, (column,))
    found = Encoder(schema).decode_codes(pd.DataFrame({"x": [0.0, 1.0, *units]}))["x"]
    assert found.between(lower, upper).all() and found.iloc[0] == lower and found.iloc[1] == upper
    assert all(digits_behind_the_point(value) <= digits for value in found)
    free = dataclasses.replace(schema, columns=(dataclasses.replace(column, decimals=None),))
    drawn = Encoder(free).decode_codes(pd.DataFrame({"x": [0.0, 1.0, *units]}))["x"]
    assert ((found - drawn).abs() <= 0.5 / 10**digits + 1e-9 * np.maximum(1, drawn.abs())).all()


def test_there_is_no_minus_zero() -> None:
    schema = Schema("t", "s", "none", None, (Column("x", "numeric", -1.0, 1.0, decimals=2),))
    found = Encoder(schema).decode_codes(pd.DataFrame({"x": [0.4999, 0.5, 0.5001]}))["x"]
    assert (found == 0).all() and not np.signbit(found).any()


def test_no_release_depends_on_decimals_and_the_schema_that_is_published_has_them() -> None:
    declared, without = schema_of(), schema_of(decimals=None)
    assert declared != without and encoding_digest(declared) == encoding_digest(without)
    assert encoding_digest(declared) != encoding_digest(schema_of(upper=2000.0))
    assert Schema.from_dict(declared.to_dict(), "t.yaml") == declared
    assert "decimals" not in without.to_dict()["columns"][0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"decimals": -1}, "has decimals -1"),
        ({"decimals": 16}, "has decimals 16"),
        ({"decimals": 2.0}, "has decimals 2.0"),
        ({"decimals": True}, "has decimals True"),
        ({"decimals": "2"}, "has decimals 2"),
        ({"decimals": 0}, "a bound or a spike with more than 0 decimals"),
        ({"spikes": [0.125]}, "a bound or a spike with more than 2 decimals"),
        ({"decimals": 13}, "more than 15 digits"),
        ({"kind": "integer", "upper": 5}, "decimals is not a key of an integer column"),
    ],
)
def test_decimals_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        column_from("cost", {**COST, **changes})


@pytest.mark.parametrize("kind", ["integer", "date", "categorical"])
def test_only_numeric_columns_have_decimals(kind: str) -> None:
    """Elsewhere they would be published, and mean nothing."""
    own = {"categories": ("a", "b")} if kind == "categorical" else {"lower": 0.0, "upper": 9.0}
    assert Column("x", kind, **own).decimals is None  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="is not numeric"):
        Column("x", kind, decimals=2, **own)  # type: ignore[arg-type]
