"""Columns whose categories the schema calls private: how they are written, refused, typed, completed and hashed."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from likeness.core.errors import DataError, SchemaError
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Layout
from likeness.data.private_tables import iter_private, text_columns, write_private
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.data.source.cells import MOST_LETTERS, apply_released_categories, cells_of, type_table
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.row_digests import row_hashes, typed_digest
from likeness.preflight.faults import schema_faults

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
    assert text_columns(path) == ["job"]
    assert pd.concat(iter_private(path, None, 1), ignore_index=True).equals(table)


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
    own = apply_released_categories(table, written, made)
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
