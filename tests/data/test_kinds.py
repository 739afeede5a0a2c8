"""Booleans, dates, times, dropped and constant columns: read cell by cell, encoded as numbers or words, and back.

Columns whose categories the schema calls private: how they are written, refused, typed, completed and hashed.
"""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeness.core.bounds import MOST_CATEGORIES
from likeness.core.errors import DataError, ParamsError, SchemaError
from likeness.data.encoding.bins import grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Condition, Layout, encoding_digest
from likeness.data.private_tables import iter_private, text_columns, write_private
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.kinds import KINDS
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.data.source.cells import MOST_LETTERS, apply_released, cells_of, type_table
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.row_digests import row_hashes, typed_digest
from likeness.features.cells import Cells
from likeness.pipeline.where import conditions
from likeness.preflight.faults import schema_faults

ROOT = Path(__file__).resolve().parents[2]
MARKER = "8675309"
DAYS = {"lower": "1999-01-01", "upper": "2000-01-01"}


def schema_of(**columns: Any) -> Schema:
    mapping = {"name": "own", "source": "made up", "task": "none", "columns": columns}
    return Schema.from_dict(mapping, "own.yaml")


PATIENTS = schema_of(
    patient={"kind": "drop", "reason": "an id"},
    admitted={"kind": "date", "lower": "2000-01-01", "upper": "2020-12-31", "nullable": True},
    seen={"kind": "datetime", "lower": "2000-01-01", "upper": "2020-12-31", "nullable": True},
    smoker={"kind": "boolean", "nullable": True},
    insured={"kind": "boolean", "categories": ["nein", "ja"]},
    country={"kind": "categorical", "categories": ["Chile"]},
)


# Dates and times as numbers


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        ("date", "1970-01-01", 0),
        ("date", "1969-12-31", -1),
        ("date", "2000-03-01", 11017),
        ("date", "2000-03-01 00:00:00.000", 11017),  # how Parquet's times are written
        ("date", "2000-03-01 00:00:01", None),
        ("date", "2000-02-30", None),
        ("date", "20000301", None),
        ("date", "2000", None),
        ("date", "2000-03-01T00:00:00+01:00", None),
        ("datetime", "1970-01-02", 86_400),
        ("datetime", "1970-01-01 00:00:59.999999999", 59),
        ("datetime", "1969-12-31T23:59:59,5", -1),
        ("datetime", "1970-01-01 01:00:00+01:00", 0),
        ("datetime", "1970-01-01 01:00+0100", 0),
        ("datetime", "1970-01-01T00:00:05Z", 5),
        ("datetime", "1970-01-01 25:00:00", None),
        ("datetime", "12", None),
        ("time", "17:45", 63_900),
        ("time", "23:59:59.999", 86_399),
        ("time", "24:00", None),
        ("time", "7:45", None),
    ],
)
def test_a_text_is_a_number_or_nothing(kind: str, text: str, number: int | None) -> None:
    assert KINDS[kind].number(text) == number


DATES = ["2024-02-29", "2023-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "1969-12-31", "2024-13-01", "2024-00-10"]
CLOCKS = ["00:00:00", "24:00:00", "23:59:60", "23:59:59", "12:60:00", "17:05:06", "17:05", "17:05:06.5"]
MOMENTS = [day + mark + clock for day in DATES for mark in "T " for clock in CLOCKS]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("date", [*DATES, " 2024-01-01", "\uff12024-01-01", "2024-01-01\n"]),
        ("datetime", MOMENTS + DATES),
        ("time", CLOCKS),
    ],
)
def test_a_text_has_the_number_that_it_has_alone(kind: str, texts: list[str]) -> None:
    column = Column("at", kind, 0.0, 1e4)
    for text in texts:
        alone = KINDS[kind].number(text, column)
        for together in ([text], [text, texts[0]], [text, None]):
            found = KINDS[kind].read(together, column)[0]
            assert found == alone or (alone is None and np.isnan(found))


def test_an_upper_bound_without_hours_means_the_whole_day() -> None:
    seen = PATIENTS.column("seen")
    assert seen.range_text == "2000-01-01 00:00:00 to 2020-12-31 23:59:59"


@given(st.sampled_from(["date", "datetime"]), st.data())
@settings(max_examples=50)
def test_text_and_number_are_inverse_over_all_years(kind: str, data: st.DataObject) -> None:
    column = column_from("d", {"kind": kind, "lower": "0001-01-01", "upper": "9999-12-31", "nullable": True})
    assert isinstance(column, Column)
    lowest, highest = map(int, column.bounds)
    number = data.draw(st.integers(lowest, highest) | st.sampled_from([lowest, highest]))
    assert column.type.number(column.type.text(number)) == number
    back = column.numbers(column.to_typed([number, np.nan]))
    assert back[0] == number and np.isnan(back[1])


# Sources


def write_csv(folder: Path, rows: list[str]) -> Path:
    path = folder / "own.csv"
    path.write_text("\n".join(["patient,admitted,seen,smoker,insured,country", *rows]) + "\n")
    return path


def test_a_csv_is_read_by_these_kinds_with_missing_values(tmp_path: Path) -> None:
    rows = [
        "p1,2001-02-03,2001-02-03 04:05:06.123456789,Yes,JA,Chile",
        "p2,,,,no,Chile",
        "p3,1600-01-01,9999-12-31T00:00,f,0,Chile",
    ]
    table, *_ = read_source(write_csv(tmp_path, rows), PATIENTS)
    assert list(table.columns) == ["admitted", "seen", "smoker", "insured", "country"]
    assert table["smoker"].tolist()[::2] == ["true", "false"] and table["smoker"].isna().tolist() == [0, 1, 0]
    assert table["insured"].tolist() == ["ja", "nein", "nein"]
    # Clipped to the public bounds; a cell beside a year of 1600 or 9999 is read as if it were alone.
    assert table.to_csv(index=False).splitlines()[1:] == [
        "2001-02-03,2001-02-03 04:05:06,true,ja,Chile",
        ",,,nein,Chile",
        "2000-01-01,2020-12-31 23:59:59,false,nein,Chile",
    ]


@pytest.mark.parametrize(
    ("row", "column", "rule"),
    [
        (f"1,{MARKER},,,ja,Chile", "admitted", "not a date in ISO 8601"),
        (f"1,2001-02-03 10:00:{MARKER[:2]},,,ja,Chile", "admitted", "not a date in ISO 8601"),
        (f"1,,{MARKER},,ja,Chile", "seen", "not a datetime in ISO 8601"),
        (f"1,,,{MARKER},ja,Chile", "smoker", "not among its public categories. A boolean is written true"),
        (f"1,,,,{MARKER},Chile", "insured", "not among its public categories"),
        (f"1,,,,ja,{MARKER}", "country", "not among its public categories. Add the category"),
    ],
)
def test_a_bad_cell_is_refused_without_its_value(tmp_path: Path, row: str, column: str, rule: str) -> None:
    with pytest.raises(DataError) as caught:
        read_source(write_csv(tmp_path, ["9,,,,ja,Chile", row]), PATIENTS)
    assert str(caught.value).startswith(f"own.csv: column '{column}'") and rule in str(caught.value)
    assert MARKER not in str(caught.value) and caught.value.__context__ is None


# Schema


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "date", "lower": "2000-01-01", "upper": "1999-01-01"}, "has bounds 2000-01-01 to 1999-01-01"),
        ({"kind": "date", "lower": 1999, "upper": "2000-01-01"}, "lower must be a date like 1994-03-01"),
        ({"kind": "datetime", "lower": "x", "upper": "2000-01-01"}, "lower must be a datetime like"),
        ({"kind": "date", "lower": "1999-01-01"}, "has no bounds"),
        ({"kind": "date", **DAYS, "format": "%m/%Y"}, "has format '%m/%Y'"),
        ({"kind": "date", **DAYS, "transform": "log1p"}, "transform is not a key"),
        ({"kind": "date", **DAYS, "spikes": ["1900-01-01"]}, "spike at 1900-01-01"),
        ({"kind": "boolean", "categories": ["yes", "no"]}, "the one for false first"),
        ({"kind": "boolean", "categories": ["yes", "perhaps"]}, "the one for false first"),
        ({"kind": "boolean", "categories": ["no", "yes", "maybe"]}, "its categories are two words"),
        ({"kind": "boolean", "other": "x"}, "other is not a key of a boolean column"),
        ({"kind": "drop"}, "reason is missing"),
        ({"kind": "drop", "reason": "id", "lower": 1}, "lower is not a key of a drop column"),
        ({"kind": "integer", "lower": 3, "upper": 3}, "A column with one value: give it kind drop, or"),
        ({"kind": "categorical", "categories": [*range(MOST_CATEGORIES + 1)]}, "Merge them along a public hierarchy"),
    ],
)
def test_what_is_refused_names_column_and_rule(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        column_from("x", spec)
    assert words in str(caught.value) and "column 'x'" in str(caught.value)


def test_every_fault_of_a_column_is_told_at_once() -> None:
    with pytest.raises(SchemaError) as caught:
        column_from("x", {"kind": "integer", "lower": "a", "upper": 2, "nullable": 1, "transform": "sqrt", "scale": 1})
    assert [key for key, _ in caught.value.faults] == ["scale", "lower", "nullable", "transform"]


def test_a_dropped_column_shapes_nothing_and_stays_in_the_schema() -> None:
    without = {key: value for key, value in PATIENTS.to_dict().items() if key != "columns"}
    columns = [column for column in PATIENTS.to_dict()["columns"] if column["kind"] != "drop"]
    bare = Schema.from_dict({**without, "columns": columns}, "bare")
    assert encoding_digest(bare) == encoding_digest(PATIENTS) and bare.names == PATIENTS.names
    assert [dropped.name for dropped in PATIENTS.dropped] == ["patient"]
    assert Schema.from_dict(PATIENTS.to_dict(), "copy") == PATIENTS
    with pytest.raises(SchemaError, match="label 'patient' has kind drop"):
        Schema.from_dict({**PATIENTS.to_dict(), "task": "classification", "label": "patient"}, "own")
    with pytest.raises(SchemaError, match="column 'patient' is listed twice"):
        Schema.from_dict(
            {**without, "columns": [*PATIENTS.to_dict()["columns"], columns[0] | {"name": "patient"}]}, "t"
        )


# Bins and conditions


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_bins_of_dates_hold_whole_days_or_seconds(kind: str) -> None:
    column = column_from("d", {"kind": kind, "lower": "2000-01-01", "upper": "2000-01-10"})
    assert isinstance(column, Column)
    grid = grid_of(column, 4)
    encoder = Encoder(Schema("t", "made up", "none", None, (column,)))
    values = np.arange(column.bounds[0], column.bounds[1] + 1, 1 if kind == "date" else 3600)
    x = encoder.expand(encoder.encode(pd.DataFrame({"d": column.to_typed(values)})))
    found = Cells(0, grid.size, grid.inner).cell_indices(x)
    assert np.bincount(found).tolist() == ([2, 3, 2, 3] if kind == "date" else [60, 60, 60, 60])


@pytest.mark.parametrize("given_", [True, "True", "yes", "1", "T"])
def test_a_boolean_can_be_asked_for_in_any_spelling(given_: object) -> None:
    assert conditions({"smoker": given_, "insured": "no"}, PATIENTS) == ((), {2: Condition((1,)), 3: Condition((0,))})
    with pytest.raises(ParamsError, match=r"sample\.where\.smoker must be one of false, true, got 'perhaps'"):
        conditions({"smoker": "perhaps"}, PATIENTS)
    with pytest.raises(ParamsError, match=r"sample\.where\.seen must be a datetime like"):
        conditions({"seen": "early"}, PATIENTS)


KEY = b"k" * 32


def schema(job: dict[str, Any] | None = None, **others: Any) -> Schema:
    return Schema.from_dict(mapping(job, **others), "schema")


def mapping(job: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    own = {"kind": "categorical", "categories": "private", "nullable": True, "missing_values": ["?"]}
    columns = {"x": {"kind": "integer", "lower": 0, "upper": 9}, "job": own if job is None else job}
    return {"name": "t", "source": "made up", "task": "none", "columns": columns, **others}


def test_private_is_a_word_and_other_is_public() -> None:
    made = schema()
    assert made.open_columns == (made.column("job"),) and made.column("job").other == "other"
    assert made.to_dict()["columns"][1]["categories"] == "private"
    assert Schema.from_dict(made.to_dict(), "again") == made
    listed = schema({"kind": "categorical", "categories": ["private"]})  # in a list it is a category
    assert not listed.open_columns and listed.column("job").categories == ("private",)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"kind": "categorical", "categories": "private", "ordered": True}, "is ordered, so its order must be public"),
        ({"kind": "boolean", "categories": "private"}, "is boolean, so its two words must be public"),
        ({"kind": "categorical", "categories": "secret"}, "list of texts or whole numbers, or the word private"),
        ({"kind": "categorical", "categories": "private", "other": " \u200b"}, "no other"),
        ({"kind": "categorical", "categories": "private", "missing_values": ["other"]}, "in other and in missing"),
    ],
    ids=["ordered", "boolean", "word", "other", "missing"],
)
def test_what_cannot_be_private_is_refused_with_a_remedy(job: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        schema(job)


def test_a_class_label_and_an_image_have_public_classes() -> None:
    job = {"kind": "categorical", "categories": "private"}
    with pytest.raises(SchemaError, match=r"label 'job' has private categories\. Classes must be public"):
        schema(job, task="classification", label="job")
    image = {"name": "t", "source": "s", "task": "none", "image": {"shape": [2, 2]}, "columns": {"job": job}}
    with pytest.raises(SchemaError, match="only a class label can"):
        Schema.from_dict(image, "schema")
    assert not schema_faults(mapping())


def test_cells_are_texts_each_by_itself(tmp_path: Path) -> None:
    rows = [" nurse", "?", "", "x" * MOST_LETTERS, "x" * (MOST_LETTERS + 1), "other", "7.0"]
    path = tmp_path / "t.csv"
    path.write_text("x,job\n" + "".join(f"{place},{job}\n" for place, job in enumerate(rows)))
    table, *_ = read_source(path, schema())
    expected = ["nurse", None, None, "x" * MOST_LETTERS, "other", "other", "7.0"]
    assert table["job"].astype("object").where(table["job"].notna(), None).tolist() == expected
    for place in range(len(rows)):  # alone in its file, a row is typed as among the others
        path.write_text(f"x,job\n{place},{rows[place]}\n")
        alone, *_ = read_source(path, schema())
        assert alone.equals(table.iloc[[place]].reset_index(drop=True))
    frame = pd.DataFrame({"x": range(7), "job": pd.Categorical(rows)})
    assert read_frame(frame, schema()).equals(table)
    with pytest.raises(DataError, match="has a missing value, but is not nullable"):
        read_frame(frame, schema({"kind": "categorical", "categories": "private"}))


EAST, WEST = timezone(timedelta(hours=2)), timezone(timedelta(hours=-5))
FRAMES: dict[str, Any] = {
    "numbers as categories": pd.Categorical([1, 2, None, 2]),
    "floats as categories": pd.Categorical([1.0, 2.5, None, 2.5]),
    "decimals": [Decimal("1"), Decimal("2.50"), None, Decimal("0.1")],
    "no numbers": [Decimal("1"), Decimal("NaN"), None, Decimal("2")],
    "times": [datetime(2020, 1, 1, 5, tzinfo=WEST), datetime(2020, 1, 1, 5, tzinfo=EAST), None, None],
    "days": [date(2020, 1, 1), None, date(1066, 10, 14), date(2020, 1, 2)],
    "whole": pd.array([1, None, 2**60, 3], dtype="Int64"),
    "floats": [1.0, 2.5, None, 1e20],
    "truths": pd.array([True, None, False, True], dtype="boolean"),
    "texts": ["1", "1.0", None, " x"],
    "arrow": pd.array([1, 2, None, 2], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_cell_of_a_frame_is_the_same_text_alone_and_among_others(name: str) -> None:
    frame = pd.DataFrame(
        {"x": range(4), "job": pd.Series(FRAMES[name], dtype=getattr(FRAMES[name], "dtype", "object"))}
    )
    table = read_frame(frame, schema())
    for place in range(len(frame)):
        alone = pd.DataFrame({"x": [place], "job": frame["job"].iloc[[place]].reset_index(drop=True)})
        if isinstance(frame["job"].dtype, pd.CategoricalDtype):
            alone["job"] = alone["job"].cat.remove_unused_categories()
        assert read_frame(alone, schema())["job"].equals(table["job"].iloc[[place]].reset_index(drop=True))
    cells = cells_of(["job"], [[None if cell is pd.NA else cell for cell in FRAMES[name]]], ["job"], "t")
    assert type_table(cells.assign(x=1), schema(), "t")["job"].equals(table["job"])  # and from a database


def test_decimals_of_a_closed_column_do_not_depend_on_each_other() -> None:
    listed = schema({"kind": "categorical", "categories": ["1", "2", "rest"], "other": "rest"})
    frame = pd.DataFrame({"x": [1, 1, 1], "job": [Decimal("1"), Decimal("2"), Decimal("0.25")]})
    assert read_frame(frame, listed)["job"].tolist() == ["1", "2", "rest"]


@pytest.mark.parametrize("cells", [[{"a": 1}, {"Xq7Secret": 2}], [["Xq7Secret"], ["b"]]], ids=["records", "lists"])
def test_cells_that_are_no_single_values_are_refused_in_silence(tmp_path: Path, cells: list[Any]) -> None:
    frame, path = pd.DataFrame({"x": [1, 1], "job": cells}), tmp_path / "t.parquet"
    frame.to_parquet(path)
    for where, read in (
        ("the DataFrame", lambda: read_frame(frame, schema())),
        ("t", lambda: read_source(path, schema())),
    ):
        with pytest.raises(
            DataError, match=rf"{where}.*: column 'job' holds (lists or records|cells that are not single)"
        ) as caught:
            read()
        assert "Xq7" not in str(caught.value)


def test_a_text_that_files_and_terminals_would_read_in_their_own_way_is_other() -> None:
    cells = ["a\rb", "a\x85b", "a\x00b", "a\x1bb", "a\U000e0041b", "a\u2028b", "=cmd()", "naïve"]
    table = read_frame(pd.DataFrame({"x": [1] * len(cells), "job": cells}), schema())
    assert table["job"].tolist() == ["other"] * 6 + ["=cmd()", "naïve"]


def test_a_table_keeps_its_texts_even_where_the_first_ones_are_missing(tmp_path: Path) -> None:
    table = read_frame(pd.DataFrame({"x": [1, 2], "job": [None, "nurse"]}), schema())
    path = tmp_path / "t.parquet"
    write_private(table, path)
    assert text_columns(path) == ["job"] and pd.concat(iter_private(path, None, 1), ignore_index=True).equals(table)


def test_digests_tell_texts_apart_and_rows_do_not_depend_on_others() -> None:
    made = schema()
    tables = [
        read_frame(pd.DataFrame({"x": [1, 1], "job": jobs}), made) for jobs in (["a", "b"], ["a", "c"], [None, "b"])
    ]
    assert len({typed_digest(table, made, KEY, ordered=True) for table in tables}) == 3
    whole = row_hashes(tables[0], made)
    assert [row_hashes(tables[0].iloc[[place]], made).tobytes() for place in range(2)] == [*map(bytes, whole)]


def test_what_was_released_completes_the_schema_and_all_else_is_other() -> None:
    written = schema()
    made = written.with_categories({"job": ["clerk", "nurse"]})
    assert made.column("job").categories == ("clerk", "nurse", "other") and not made.open_columns
    table = read_frame(pd.DataFrame({"x": [1] * 4, "job": ["nurse", "Xq7Secret", None, "other"]}), written)
    own = apply_released(table, written, made)
    assert own["job"].astype("object").where(own["job"].notna(), None).tolist() == ["nurse", "other", None, "other"]
    assert Encoder(made).encode(own)["job"].tolist() == [1, 2, 3, 2]
    assert Schema.from_dict(made.to_dict(), "again") == made and "nurse" in schema_text(made)
    with pytest.raises(SchemaError, match="not those of the schema"):
        written.with_categories({})
    with pytest.raises(SchemaError, match=r"are not released yet\. Run: likeness run"):
        Layout.from_schema(written)


def test_stand_ins_are_as_many_as_asked_for_and_no_public_word() -> None:
    job = {"kind": "categorical", "categories": "private", "other": "category 1", "missing_values": ["category 3"]}
    made = schema({**job, "nullable": True}).with_stand_ins(3)
    assert made.column("job").categories == ("category 2", "category 4", "category 5", "category 1")
    plain = schema({"kind": "categorical", "categories": ["a"]})
    assert plain.with_stand_ins(3) is not None and plain.with_stand_ins(3) == plain
    assert isinstance(made.column("job"), Column)
