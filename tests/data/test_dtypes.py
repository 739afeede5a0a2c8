"""Every dtype that a frame may have comes back, in frames, Parquet and CSV. The cases are the table of them."""

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from toys import schema_with

import likeness
from likeness.core.errors import DataError, SchemaError
from likeness.data.encoding.dtypes import to_dtypes, typed_again
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.frames import FrameType, pandas_frame
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.dtypes import dtype_name
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.header import guesses_of
from likeness.data.source.parquet_files import texts_without_cells
from likeness.data.source.row_digests import SourceDigest
from likeness.data.table_columns import OLD_PANDAS, TEXT

BOOLEAN = {"kind": "boolean"}
WHOLE = {"kind": "integer", "lower": 0, "upper": 99}
REAL = {"kind": "numeric", "lower": 0, "upper": 99}
DAY = {"kind": "date", "lower": "1994-03-01", "upper": "2024-12-31"}
MOMENT = {"kind": "datetime", "lower": "1994-01-01", "upper": "2024-12-31"}
STRS, DAYS, TRUTHS = ["a", "b", "a"], ["1994-03-01", "2024-12-31", "1994-03-01"], [True, False, True]


def categories(*texts: str, kind: str = "categorical") -> dict[str, Any]:
    return {"kind": kind, "categories": list(texts)}


def arrow(kind: Any) -> Any:
    return pd.ArrowDtype(kind)


def category(values: Sequence[Any], dtype: Any = None, ordered: bool = False) -> Any:
    return pd.CategoricalDtype(pd.Index(values, dtype=dtype), ordered)


STR = "object" if OLD_PANDAS else TEXT
MOMENTS = pd.to_datetime(DAYS)
LETTERS, CODES = categories("a", "b"), categories("30", "7")
ORDERED, ORDERED_CODES = {**categories("b", "a"), "ordered": True}, {**CODES, "ordered": True}
CASES: list[tuple[Any, dict[str, Any], Sequence[Any]]] = [
    ("bool", BOOLEAN, TRUTHS),
    ("bool", categories("True", "False"), TRUTHS),
    ("boolean", BOOLEAN, TRUTHS),
    (arrow(pa.bool_()), BOOLEAN, TRUTHS),
    (category([False, True]), BOOLEAN, TRUTHS),
    ("object", BOOLEAN, TRUTHS),
    ("int64", BOOLEAN, [1, 0, 1]),
    *[(f"{name}{bits}", WHOLE, [30, 7, 30]) for name in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)],
    *[(dtype, CODES, [30, 7, 30]) for dtype in ("int16", "Int32", "float32", "Float64", arrow(pa.int8()))],
    (arrow(pa.uint16()), WHOLE, [30, 7, 30]),
    (category([30, 7]), CODES, [30, 7, 30]),
    (category([30, 7], "int8"), CODES, [30, 7, 30]),
    (category([30, 7], "Int64", ordered=True), ORDERED_CODES, [30, 7, 30]),
    *[(dtype, REAL, [0.5, 98.25, 0.5]) for dtype in ("float16", "float32", "float64", "Float32", "Float64", "object")],
    (arrow(pa.float32()), REAL, [0.5, 98.25, 0.5]),
    (arrow(pa.decimal128(10, 2)), REAL, [Decimal("0.50"), Decimal("98.25"), Decimal("0.50")]),
    *[(dtype, LETTERS, STRS) for dtype in ("object", STR, pd.StringDtype("python"), pd.StringDtype("pyarrow"))],
    *[(arrow(kind), LETTERS, STRS) for kind in (pa.string(), pa.large_string())],
    (arrow(pa.dictionary(pa.int8(), pa.string())), LETTERS, STRS),
    (category(["a", "b"]), LETTERS, STRS),
    (category(["a", "b"], "object"), LETTERS, STRS),
    (category(["b", "a"], STR, ordered=True), ORDERED, STRS),
    *[(f"datetime64[{unit}]", kind, DAYS) for unit in ("s", "ms", "us", "ns") for kind in (DAY, MOMENT)],
    ("datetime64[us, Europe/Paris]", MOMENT, DAYS),
    (arrow(pa.timestamp("ms")), DAY, MOMENTS),
    (arrow(pa.timestamp("us", "UTC")), MOMENT, MOMENTS.tz_localize("UTC")),
    (arrow(pa.date32()), DAY, MOMENTS.date),
    ("object", DAY, DAYS if OLD_PANDAS else MOMENTS.date),
    (STR, DAY, DAYS),
    (STR, {**DAY, "format": "%d.%m.%Y"}, ["01.03.1994", "31.12.2024", "01.03.1994"]),
    ("int64", {**DAY, "format": "%Y%m%d"}, [19940301, 20241231, 19940301]),
    (category(MOMENTS[:2]), DAY, MOMENTS),
    (arrow(pa.time64("us")), categories("03:00:00", "04:30:00"), [time(3), time(4, 30), time(3)]),
    ("timedelta64[s]", WHOLE, pd.to_timedelta([30, 7, 30], unit="s")),
    (arrow(pa.duration("us")), WHOLE, pd.to_timedelta([30, 7, 30], unit="s")),
    ("timedelta64[ns]", REAL, pd.to_timedelta([30.25, 7e-9, 30], unit="s")),
]  # fmt: skip


def series_of(dtype: Any, cells: Sequence[Any]) -> "pd.Series[Any]":
    return (
        pd.Series(cells, dtype=dtype)
        if isinstance(dtype, str) and dtype == "object"
        else pd.Series(cells).astype(dtype)
    )


def decoded(values: "pd.Series[Any]", schema: Schema) -> pd.DataFrame:
    """The rows of one column after encoding and decoding, in the dtypes of the frame."""
    encoder = Encoder(schema)
    typed = encoder.decode_codes(encoder.encode(read_frame(values.to_frame(), schema)))
    return to_dtypes(typed, schema, {"x": dtype_name(values.dtype)})


def may_miss(values: "pd.Series[Any]") -> bool:
    return not (isinstance(values.dtype, np.dtype) and values.dtype.kind in "biu")


COLUMNS = [(series_of(dtype, cells), column) for dtype, column, cells in CASES]
COLUMNS += [
    (values.where([True, True, False]), {**each, "nullable": True}) for values, each in COLUMNS if may_miss(values)
]
NAMES = [f"{dtype_name(values.dtype)} {each['kind']}{' with missing' * values.hasnans}" for values, each in COLUMNS]


@pytest.mark.long
@pytest.mark.parametrize(("values", "column"), COLUMNS, ids=NAMES)
def test_each_dtype_of_each_kind_comes_back(values: "pd.Series[Any]", column: dict[str, Any]) -> None:
    schema, values = schema_with({"x": column}), values.rename("x")
    again = decoded(values, schema)
    pd.testing.assert_series_equal(again["x"], values)
    assert again.to_csv(index=False) == values.to_frame().to_csv(index=False)  # True stays True
    if isinstance(values.dtype, pd.ArrowDtype) and pa.types.is_dictionary(values.dtype.pyarrow_dtype):
        return  # pandas cannot read such a column of its own from Parquet
    file, reference = io.BytesIO(), io.BytesIO()
    again.to_parquet(file)
    values.to_frame().to_parquet(reference)
    assert pd.read_parquet(file)["x"].dtype == pd.read_parquet(reference)["x"].dtype
    said = replace(schema, columns=(replace(schema.columns[0], dtype=dtype_name(values.dtype)),))
    typed = typed_again(pd.read_parquet(file), said)
    pd.testing.assert_frame_equal(typed, read_frame(values.to_frame(), schema))  # what an evaluation compares


def frame(rows: int = 300) -> pd.DataFrame:
    """A table as people have it."""
    random = np.random.default_rng(0)
    code = random.choice([7, 30, 31], rows)
    return pd.DataFrame({
        "code": code.astype("int16"), "ward": pd.Categorical(random.choice([1, 2], rows)),
        "smoker": random.random(rows) < 0.5, "sex": random.choice(["f", "m"], rows),
        "children": pd.array(random.integers(0, 4, rows), "Int8"),
        "weight": random.uniform(40, 99, rows).astype("float32"),
        "born": pd.to_datetime(random.integers(0, 10**9, rows), unit="s"), "ill": code == 30,
    })  # fmt: skip


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_an_order_of_categories_takes_the_place_of_texts(dtype: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.Series(["b", "a"], dtype=dtype)})
    schema = schema_with({"x": ORDERED})
    again = to_dtypes(read_frame(frame, schema), schema, pandas_frame(frame)[1].dtypes)
    again.to_parquet(tmp_path / "t.parquet")
    for drawn in (again, pd.read_parquet(tmp_path / "t.parquet")):
        assert drawn["x"].cat.ordered and (drawn["x"] < "a").tolist() == [True, False]
    draft = likeness.draft(again)
    draft.answer("x", "low, high")
    assert draft["x"].ordered and draft["x"].categories == ["low", "high"]


@pytest.mark.parametrize(
    ("cells", "word", "kind"),
    [([0, 0, 30], "int64", "integer"), ([0.5, np.nan, 1], "float64", "numeric"), (TRUTHS, "bool", "boolean")],
)
def test_a_sparse_column_goes_in_and_comes_back_dense(cells: list[Any], word: str, kind: str) -> None:
    dense = pd.DataFrame({"x": cells})
    table, frame = pandas_frame(dense.astype(pd.SparseDtype(word)))
    pd.testing.assert_frame_equal(table, dense)
    assert frame.dtypes == {"x": word} and likeness.draft(dense.astype(pd.SparseDtype(word)))["x"].kind == kind


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pd.period_range("2020-01", periods=2, freq="M"), ["2020-01", "2020-02"]),
        (pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    ],
)
def test_periods_and_intervals_are_categories_of_their_texts(values: Any, texts: list[str]) -> None:
    frame = pd.DataFrame({"x": values})
    assert likeness.draft(frame)["x"].kind == "drop"  # until a person says another kind
    schema = schema_with({"x": categories(*texts)}, name="t")
    typed = read_frame(frame, schema)
    assert to_dtypes(typed, schema, pandas_frame(frame)[1].dtypes)["x"].tolist() == texts


@pytest.mark.parametrize("values", [pd.period_range("2020-01", periods=2, freq="M"), pd.interval_range(0.0, 2)])
def test_periods_and_intervals_are_texts_to_every_reader(values: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"c": ["a", "b"], "x": values})
    frame.loc[2, "c"] = "a"
    texts = frame.assign(x=[*map(str, values), None])
    digests = []
    for schema in (
        schema_with({"c": LETTERS}, name="t"),
        schema_with({"x": {**categories(*texts["x"][:2]), "nullable": True}}, name="t"),
    ):
        frame.to_parquet(tmp_path / "t.parquet")
        for one in (frame, pandas_frame(pa.Table.from_pandas(frame))[0], texts):
            digest = SourceDigest()
            assert len(read_frame(one, schema, source=digest)) == 3
            digests.append(digest.digest(b"k" * 32))
        digest = SourceDigest()
        assert read_source(tmp_path / "t.parquet", schema, source=digest)[0].equals(read_frame(texts, schema))
        digests.append(digest.digest(b"k" * 32))
    assert len(set(digests)) == 1
    classes = pd.DataFrame({"x": pd.Categorical(values)})
    assert pandas_frame(pa.Table.from_pandas(classes))[0].shape == (2, 1)


def test_frames_of_other_libraries_come_back_as_they_are() -> None:
    polars = pytest.importorskip("polars")
    letters = ["a", "b", None]
    table = polars.DataFrame({
        "code": polars.Series([7, 30, None], dtype=polars.Int16), "name": letters, "truth": [True, False, None],
        "place": polars.Series(letters, dtype=polars.Categorical),
        "level": polars.Series(letters, dtype=polars.Enum(["a", "b"])),
        "day": [date(2020, 1, 1), None, date(2021, 1, 1)],
        "moment": polars.Series([MOMENTS[0], MOMENTS[1], None], dtype=polars.Datetime("us", "UTC")),
        "cost": polars.Series([Decimal("1.20"), None, Decimal("3.00")], dtype=polars.Decimal(10, 2)),
    })  # fmt: skip
    kinds = [CODES, LETTERS, BOOLEAN, LETTERS, {**LETTERS, "ordered": True}, DAY, MOMENT, REAL]
    schema = schema_with({name: {**kind, "nullable": True} for name, kind in zip(table.columns, kinds, strict=True)})
    for native in (table, table.to_arrow()):
        cells, kind = pandas_frame(native)
        again = kind.native(to_dtypes(read_frame(cells, schema), schema, kind.dtypes))
        assert type(again) is type(native) and again.equals(native) and again.schema == native.schema
        assert FrameType(**kind.to_dict()) == kind
    for wrong in (table.lazy(), {"a": [1]}):
        with pytest.raises(DataError, match="must be a frame of pandas, polars or pyarrow"):
            pandas_frame(wrong)


UNHELD: list[tuple[Any, Sequence[Any], list[str]]] = [
    *[(dtype, [30, 7, 30], ["30", "other"]) for dtype in ("int16", "Int64", "float64", arrow(pa.int8()))],
    ("bool", TRUTHS, ["True", "other"]),
    (category([30, 7]), [30, 7, 30], ["30", "other"]),
    ("uint8", [30, 7, 30], ["30", "7", "300"]),
    *[(dtype, DAYS, ["1994-03-01", "other"]) for dtype in ("datetime64[us]", arrow(pa.date32()))],
    ("datetime64[ns]", DAYS, ["1994-03-01 00:00:00", "2024-12-31", "1500-01-01"]),
    (arrow(pa.time64("us")), [time(3), time(4, 30), time(3)], ["03:00:00", "other"]),
    ("timedelta64[s]", pd.to_timedelta([30, 7, 30], unit="s"), ["30", "other"]),
]


@pytest.mark.parametrize(
    ("dtype", "cells", "texts"), UNHELD, ids=[f"{dtype} {texts[-1]}" for dtype, _, texts in UNHELD]
)
def test_a_dtype_that_cannot_hold_each_category_gives_way_to_texts(
    dtype: Any, cells: Sequence[Any], texts: list[str]
) -> None:
    column = {**categories(*texts), **({"other": "other"} if "other" in texts else {})}
    values = series_of(dtype, cells).rename("x")
    again = decoded(values, schema_with({"x": column}))["x"]
    assert again.tolist() == [texts[0], texts[1], texts[0]]
    word = dtype_name(values.dtype)
    with pytest.raises(SchemaError, match=f"which cannot hold its category '{texts[-1]}'. Leave dtype out, or give"):
        schema_with({"x": {**column, "dtype": word}})
    draft = SchemaDraft({"x": "categorical"}, "own", {"x": word})
    draft["x"].categories = texts
    assert draft["x"].dtype is None


def test_private_categories_have_no_dtype_but_texts() -> None:
    column = {"kind": "categorical", "categories": "private", "other": "-1"}
    with pytest.raises(SchemaError, match="dtype int64, which cannot hold private categories"):
        schema_with({"x": {**column, "dtype": "int64"}})
    assert schema_with({"x": {**column, "dtype": "category[str]"}})
    draft = SchemaDraft({"x": "integer"}, "own", {"x": "int64"})
    draft.answer("x", "categorical: private")
    assert draft["x"].categories == "private" and draft["x"].dtype is None


@pytest.mark.parametrize("text", ["2020-01-02", "2020-01-02 00:00:00"])
def test_midnight_is_the_day_alone_among_categories(text: str, tmp_path: Path) -> None:
    moments = pd.DataFrame({"x": pd.to_datetime(["2020-01-02", "2020-01-03 05:00:00", "1900-01-01"], format="ISO8601")})
    column = {**categories(text, "other"), "other": "other", "nullable": True, "missing_values": ["1900-01-01"]}
    schema = schema_with({"x": column})
    moments.to_parquet(tmp_path / "own.parquet")
    for source in (moments, moments.astype(str), pa.Table.from_pandas(moments)):
        typed = read_frame(pandas_frame(source)[0], schema)["x"]
        assert typed.tolist()[:2] == [text, "other"] and typed.isna()[2]
    assert read_source(tmp_path / "own.parquet", schema)[0]["x"].tolist()[:2] == [text, "other"]
    assert not texts_without_cells(pa.timestamp("us"), [text])
    assert texts_without_cells(pa.timestamp("us"), ["2020-01-32"])


@pytest.mark.parametrize(
    ("column", "dtype", "bounds"),
    [
        ({"kind": "integer", "lower": 0, "upper": 300}, "int8", "0 to 300"),
        ({"kind": "integer", "lower": -1, "upper": 9}, "UInt64", "-1 to 9"),
        ({"kind": "integer", "lower": 0, "upper": 2}, "bool", "0 to 2"),
        ({"kind": "numeric", "lower": 0, "upper": 255.75}, "uint8[pyarrow]", "0 to 255.75"),
        ({"kind": "numeric", "lower": 0, "upper": 2**63}, "category[int64]", r"0 to 9.22337e\+18"),
        ({"kind": "numeric", "lower": 0, "upper": 100_000}, "float16", "0 to 100000"),
        ({"kind": "numeric", "lower": -1e39, "upper": 0}, "float32", r"-1e\+39 to 0"),
        ({"kind": "numeric", "lower": 0, "upper": 1000}, "decimal128(5, 2)[pyarrow]", "0 to 1000"),
        ({"kind": "numeric", "lower": 0, "upper": 1e10}, "timedelta64[ns]", r"0 to 1e\+10"),
        ({"kind": "date", "lower": "1500-01-01", "upper": "2024-12-31"}, "datetime64[ns]", "1500-01-01 to 2024-12-31"),
    ],
)
def test_a_dtype_that_cannot_hold_the_bounds_is_refused(column: dict[str, Any], dtype: str, bounds: str) -> None:
    with pytest.raises(
        SchemaError, match=f"which cannot hold its bounds {bounds}. Leave dtype out, or write a wider one"
    ):
        schema_with({"x": {**column, "dtype": dtype}})
    schema = schema_with({"x": column})
    cells = ["1500-01-01", "2024-12-31"] if column["kind"] == "date" else [column["lower"], column["upper"]]
    typed = read_frame(pd.DataFrame({"x": cells}), schema)
    pd.testing.assert_frame_equal(to_dtypes(typed, schema, {"x": dtype}), typed)  # of a frame: as without a dtype


def test_a_dtype_gives_way_where_it_cannot_hold_the_kind() -> None:
    truths = schema_with({"x": {**BOOLEAN, "nullable": True}})
    empty = to_dtypes(read_frame(pd.DataFrame({"x": [True, None]}), truths), truths, {"x": "bool"})
    assert empty["x"].dtype == "boolean"
    wide = schema_with({"x": WHOLE})
    typed = read_frame(pd.DataFrame({"x": [0, 5, 99]}), wide)
    assert to_dtypes(typed, wide, {"x": "Period[D]"})["x"].dtype == "int64"  # no dtype of a kind: as without one


def test_the_schema_says_a_dtype_which_is_no_part_of_a_release(tmp_path: Path) -> None:
    plain, said = (schema_with({"x": {**CODES, **more}}) for more in ({}, {"dtype": "category[int64, ordered]"}))
    assert encoding_digest(said) == encoding_digest(plain) and "dtype" not in plain.to_dict()["columns"][0]
    assert Schema.from_dict(said.to_dict(), "x") == said
    typed = read_frame(pd.DataFrame({"x": [30, 7]}), said)
    assert typed["x"].dtype == category(["30", "7"], STR)  # what a cell becomes does not depend on it
    assert to_dtypes(typed, said)["x"].dtype == category([30, 7], ordered=True)
    pd.testing.assert_frame_equal(to_dtypes(typed, plain), typed)
    for column, dtype, words in (
        (WHOLE, "datetime64[ns]", "cannot hold that. Write one like bool, int64"),
        (DAY, "int64", "cannot hold that"),
        (WHOLE, "int7", "is no dtype"),
        (LETTERS, "dictionary<values=string, indices=int32, ordered=0>[pyarrow]", "is no dtype that Parquet gives"),
    ):
        with pytest.raises(SchemaError, match=words):
            schema_with({"x": {**column, "dtype": dtype}})


def test_a_draft_says_the_dtypes_of_the_source_and_no_value(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    table = frame().astype({"sex": "category"}).assign(cost=Decimal("8675.309"))
    table.to_parquet(path)
    dtypes = guesses_of(path)[1]
    assert dtypes == {
        "code": "int16", "ward": "int64", "smoker": "bool", "sex": "category[str]", "children": "Int8",
        "weight": "float32",
        "born": dtype_name(table["born"].dtype), "ill": "bool", "cost": "decimal128(7, 3)[pyarrow]",
    }  # fmt: skip
    kinds = {"code": "integer", "sex": "categorical", "born": "drop"}
    draft = SchemaDraft(kinds, "own", dtypes)
    columns = yaml.safe_load(draft.text())["columns"]
    assert [column.get("dtype") for column in columns.values()] == ["int16", "category[str]", None]
    draft.answer("code", "2020-01-01..2024-12-31")
    draft.answer("sex", "f, m")
    assert [draft[name].dtype for name in ("code", "sex")] == [None, "category[str]"]
    csv = tmp_path / "own.csv"
    csv.write_text("a,b,c,d\nTrue,1,true,True\nFalse,,false,no\n")
    assert guesses_of(csv)[1] == {"a": "bool", "b": "int64"}
