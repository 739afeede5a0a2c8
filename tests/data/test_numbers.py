"""Spans of time are seconds, a code for missing is a number in any type or text, and declared decimals are kept."""

import dataclasses
import sqlite3
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import objects
from toys import schema_with

from likeness.config.params import FileFormat
from likeness.core.errors import DataError, SchemaError
from likeness.data.encoding.dtypes import to_dtypes, typed_again
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.schema import Schema
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame, read_source


def schema_of(kind: str = "numeric", **spec: Any) -> Schema:
    bounds = {} if kind in ("boolean", "categorical") else {"lower": -1_000_000, "upper": 1_000_000}
    return schema_with({"c": {"kind": kind, "nullable": True, **bounds, **spec}}, name="t")


def read(cells: Any, schema: Schema) -> list[Any]:
    typed = read_frame(pd.DataFrame({"c": cells}), schema)["c"].astype("object")
    return typed.where(typed.notna(), None).tolist()


# Spans

SPANS = [timedelta(days=1, seconds=5), timedelta(milliseconds=-1500), timedelta(0), None]
SECONDS = [86405.0, -1.5, 0.0, None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("dtype", ["timedelta64[{}]", "duration[{}][pyarrow]", "object", "category", "parquet"])
def test_a_span_is_its_seconds_in_every_reader(dtype: str, unit: str, tmp_path: Path) -> None:
    cells: Any = pd.Series(SPANS, dtype=f"timedelta64[{unit}]")
    if dtype == "parquet":
        pd.DataFrame({"c": cells}).to_parquet(tmp_path / "t.parquet")
        typed = read_source(tmp_path / "t.parquet", schema_of())[0]["c"]
        assert typed.where(typed.notna(), -9).tolist() == [-9 if one is None else one for one in SECONDS]
        return
    if dtype == "object":
        cells = objects([None if one is None else np.timedelta64(one).astype(f"timedelta64[{unit}]") for one in SPANS])
    elif dtype == "category":
        cells = cells.astype("category")
    elif "duration" in dtype:
        cells = pd.Series(SPANS, dtype=pd.ArrowDtype(pa.duration(unit)))
    assert read(cells, schema_of()) == SECONDS


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        (np.timedelta64(3, "s"), 3.0), (np.timedelta64(3, "m"), 180.0), (np.timedelta64(2, "h"), 7200.0),
        (np.timedelta64(3, "D"), 259_200.0), (np.timedelta64(1, "W"), 604_800.0), (np.timedelta64(3, "ns"), 3e-9),
        (np.timedelta64(3, "25us"), 7.5e-5), (np.timedelta64(1, "as"), 1e-18), (np.timedelta64("NaT", "s"), None),
        (timedelta(microseconds=1), 1e-6), (pd.Timedelta("1ns"), 1e-9), (pd.Timedelta("2h"), 7200.0),
        (timedelta(days=1_000), 86_400_000.0),
    ],
)  # fmt: skip
def test_a_span_of_any_unit_is_seconds(cell: Any, seconds: float | None) -> None:
    assert read(objects([cell, None]), schema_of(upper=1e9)) == [seconds, None]


@pytest.mark.parametrize("cell", [np.timedelta64(3, "M"), np.timedelta64(3, "Y"), np.timedelta64(3)])
def test_a_span_without_a_length_is_refused(cell: Any) -> None:
    with pytest.raises(DataError, match="holds cells that are not single values"):
        read(objects([cell]), schema_of())


@pytest.mark.parametrize(
    "dtype", ["timedelta64[s]", "timedelta64[ns]", "duration[ms][pyarrow]", "duration[s][pyarrow]"]
)
def test_spans_go_out_as_they_came(dtype: str) -> None:
    schema = schema_of("integer", dtype=dtype)
    frame = pd.DataFrame({"c": pd.Series([timedelta(days=1), timedelta(seconds=-5), None], dtype=dtype)})
    typed = read_frame(frame, schema)
    assert typed["c"].tolist()[:2] == [86_400, -5]
    pd.testing.assert_frame_equal(to_dtypes(typed, schema), frame)
    pd.testing.assert_frame_equal(typed_again(frame, schema), typed)


# Codes for missing

CODES: list[Any] = [
    *("-999", "-999.0", "-9.99e2", " -999.000 ", -999, -999.0, Decimal("-999.00"), np.float32(-999), np.int16(-999)),
]


@pytest.mark.parametrize("kind", ["numeric", "integer"])
@pytest.mark.parametrize("word", ["-999", "-999.0", "-9.99E2"])
def test_a_code_is_a_number(kind: str, word: str) -> None:
    schema = schema_of(kind, missing_values=[word, "NA"])
    assert read(objects([*CODES, "NA", 3, "-99"]), schema) == [None] * (len(CODES) + 1) + [3, -99]
    for dtype in ("float64", "float32", "float16", "Float64", "int64", "Int64", "double[pyarrow]", "float[pyarrow]"):
        assert read(pd.Series([-999, 5], dtype=dtype), schema) == [None, 5], dtype


def test_a_code_is_a_number_in_every_file(tmp_path: Path) -> None:
    schema = schema_of(missing_values=["-999"], lower=-1000, upper=1000)
    (tmp_path / "t.csv").write_text("c\n-999.0\n4\n")
    assert read_source(tmp_path / "t.csv", schema)[0]["c"].isna().tolist() == [True, False]
    (tmp_path / "t.tsv").write_text("c\n-999,00\n4,5\n")
    for word in ("-999", "-999,0"):
        swapped = schema_of(missing_values=[word], lower=-1000, upper=1000)
        typed = read_source(tmp_path / "t.tsv", swapped, layout=FileFormat(decimal=",", separator="\t"))[0]["c"]
        assert typed.isna().tolist() == [True, False] and typed[1] == 4.5
    with sqlite3.connect(tmp_path / "t.db") as connection:
        pd.DataFrame({"c": [-999.0, 4.0]}).to_sql("t", connection, index=False)
    connection.close()
    assert sorted(Database(f"sqlite:///{tmp_path / 't.db'}", "t").read(schema)[0]["c"].isna()) == [False, True]
    pd.DataFrame({"c": np.array([-999, 0.1], "float32")}).to_parquet(tmp_path / "t.parquet")
    assert read_source(tmp_path / "t.parquet", schema)[0]["c"].isna().tolist() == [True, False]


def test_32_bits_are_compared_by_their_own_digits() -> None:
    cells = pd.Series([0.1, 99.9, 0.3], dtype="float32")
    assert read(cells, schema_of(missing_values=["99.9"], spikes=[0.1])) == [0.1, None, 0.3]
    assert read(objects(list(cells.to_numpy())), schema_of(missing_values=["99.9"])) == [0.1, None, 0.3]
    places = schema_of("categorical", categories=["0.1", "rest"], other="rest", missing_values=["99.9"])
    assert read(cells, places) == ["0.1", None, "rest"]


@pytest.mark.parametrize("word", ["9999-12-31", "31.12.9999"])
def test_a_date_that_means_missing_is_a_date(word: str) -> None:
    spec = {"kind": "date", "lower": "1900-01-01", "upper": "9999-12-31", "format": "%d.%m.%Y"}
    schema = schema_of(**spec, missing_values=[word])
    cells = ["31.12.9999", date(9999, 12, 31), datetime(9999, 12, 31), "9999-12-31", "01.02.1999"]
    assert [one is None for one in read(objects(cells), schema)] == [True, True, True, True, False]


def test_a_code_of_categories_is_one_with_and_without_zeros() -> None:
    ward = schema_of("categorical", categories=["1.0", "2", "rest"], other="rest", missing_values=["-9", "2.0", "x"])
    assert read(["1.0", "-9.0", "-9", "2", "2.0", "x", "09"], ward) == ["1.0", None, None, "2", None, None, "rest"]
    assert read(pd.Series(["-9.0", "2"], dtype="category"), ward) == [None, "2"]
    smoker = schema_of("boolean", missing_values=["9"])
    assert read(["1.0", "0", "9.0", "9"], smoker) == ["true", "false", None, None]
    private = schema_of("categorical", categories="private", missing_values=["-9"])
    assert read(["-9.0", "007", "-9"], private) == [None, "007", None]


@pytest.mark.parametrize("word", ["-9", "-9,0", "-9.0"])
@pytest.mark.parametrize("kind", ["categorical", "private", "boolean"])
def test_a_code_of_categories_may_have_a_decimal_comma(kind: str, word: str, tmp_path: Path) -> None:
    more: dict[str, Any] = {"boolean": {}, "private": {"categories": "private"}}.get(kind, {"categories": ["0", "1"]})
    schema = schema_of("categorical" if kind == "private" else kind, missing_values=[word], **more)
    (tmp_path / "t.csv").write_text("c\n-9,0\n-9\n1\n")
    typed = read_source(tmp_path / "t.csv", schema, layout=FileFormat(decimal=",", separator=";"))[0]["c"]
    assert typed.isna().tolist() == [True, True, False]
    (tmp_path / "t.csv").write_text("c\n-9.000\n")  # a mark of thousands
    if kind == "categorical":
        with pytest.raises(DataError, match="not among its public categories"):
            read_source(tmp_path / "t.csv", schema, layout=FileFormat(decimal=",", separator=";"))


def test_a_spike_is_not_missing() -> None:
    with pytest.raises(SchemaError, match="has 40 in spikes and in missing_values"):
        schema_of(spikes=[40], missing_values=["40.0"])


# Numbers in other writing


@pytest.mark.parametrize(
    "cell",
    [
        *("１２", "١٢", "1\u2009000", "1 000", "1,000", "\u22125", "1_000", "0x10", "nan", "inf", "-Infinity", "1e999"),
        *("½", "5 %"),
    ],
)
def test_a_number_in_another_writing_is_refused_in_words(cell: str) -> None:
    for kind in ("numeric", "integer"):
        with pytest.raises(DataError, match="A number has the digits 0 to 9, a hyphen as its minus"):
            read(["7", cell], schema_of(kind))


@pytest.mark.parametrize(
    ("cell", "value"), [("-0", 0.0), ("-0.0", 0.0), ("+5", 5.0), ("5.", 5.0), (".5", 0.5), ("5\u00a0", 5.0)]
)
def test_signs_zeros_and_blanks(cell: str, value: float) -> None:
    found = read([cell], schema_of())[0]
    assert found == value and not np.signbit(found)


@pytest.mark.parametrize("word", ["HAYIR", "hayır", "Hayir", "hayIr", "EVET"])
def test_turkish_words_have_one_letter_i(word: str) -> None:
    schema = schema_of("boolean", categories=["hayır", "evet"])
    assert read([word], schema) == ["evet" if word == "EVET" else "hayır"]
    assert read(["İYİ", "iyi", "IYI"], schema_of("boolean", categories=["kötü", "iyi"])) == ["iyi"] * 3


def test_words_that_differ_by_the_letter_i_alone_are_refused() -> None:
    with pytest.raises(SchemaError, match="two words, the one for false first"):
        schema_of("boolean", categories=["sık", "sik"])


COST = {"kind": "numeric", "lower": 0, "upper": 2000.5, "transform": "log1p", "spikes": [0], "decimals": 2}


def priced(**changes: Any) -> Schema:
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
    declared, without = priced(), priced(decimals=None)
    assert declared != without and encoding_digest(declared) == encoding_digest(without)
    assert encoding_digest(declared) != encoding_digest(priced(upper=2000.0))
    assert Schema.from_dict(declared.to_dict(), "t.yaml") == declared
    assert "decimals" not in without.to_dict()["columns"][0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({"decimals": -1}, "has decimals -1"), ({"decimals": 16}, "has decimals 16")),
        *(({"decimals": 2.0}, "has decimals 2.0"), ({"decimals": True}, "has decimals True")),
        *(({"decimals": "2"}, "has decimals 2"), ({"decimals": 0}, "a bound or a spike with more than 0 decimals")),
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
