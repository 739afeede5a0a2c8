"""Reading of sources and private files: typed, refused without a private word, and telling nothing by hash or size."""

import gzip
import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_strategies import column_values, schemas_and_tables

from likeness.core.errors import ArtifactError, DataError
from likeness.core.files import make_private_folder
from likeness.data.private_tables import iter_private, read_private, write_private, write_private_chunks
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.data.source.row_digests import typed_digest

MARKER = "8675309"  # stands for a private value: it must never be in a message
KEY = b"k" * 32
PEOPLE = Schema(
    "people",
    "made up",
    "none",
    None,
    (
        Column("age", "integer", 0.0, 90.0, nullable=True, missing_values=("?", "unknown")),
        Column("code", "categorical", categories=("7", "07", "No", "NA"), nullable=True, missing_values=("?",)),
        Column("city", "categorical", categories=("Rome", "Other"), other="Other"),
        Column("height", "numeric", 0.0, 2.0),
    ),
)


def write(folder: Path, text: str, name: str = "people.csv") -> Path:
    """A source file."""
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


# Reading and typing


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_csv_is_typed_by_the_schema_alone(tmp_path: Path, name: str) -> None:
    text = "extra,height,age,code,city,part\nx,1.5,17,7,Rome,a\n,-9,?,07, Rome ,b\n,9,,?,Oslo,a\n,1e0,200,NA,Rome,b\n"
    table, parts, _ = read_source(write(tmp_path, text, name), PEOPLE, "part")
    assert table.columns.tolist() == ["age", "code", "city", "height"]
    assert table["age"].tolist() == [17, pd.NA, pd.NA, 90] and str(table["age"].dtype) == "Int64"
    assert table["code"].tolist()[:2] == ["7", "07"] and pd.isna(table["code"][2]) and table["code"][3] == "NA"
    assert table["city"].tolist() == ["Rome", "Rome", "Other", "Rome"]
    assert table["height"].tolist() == [1.5, 0.0, 2.0, 1.0]
    assert parts is not None and parts.tolist() == ["a", "b", "a", "b"]
    assert read_source(tmp_path / name, PEOPLE)[1] is None


@pytest.mark.long
@given(schemas_and_tables())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_typed_table_written_as_a_source_reads_back(tmp_path: Path, drawn: tuple[Schema, pd.DataFrame]) -> None:
    schema, table = drawn
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        path = tmp_path / name
        if name.endswith("parquet"):
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
        if len(schema.names) == 1 and table.isna().any(axis=None) and not name.endswith("parquet"):
            continue  # a CSV of one column cannot tell a missing cell from an empty line
        pd.testing.assert_frame_equal(read_source(path, schema)[0], table)


# Refusals: file, column and rule, no private word


@pytest.mark.parametrize(
    ("rows", "column", "rule"),
    [
        *((f"1,7,Rome,x{MARKER}", "height", "not a number"), (f"{MARKER}.5,7,Rome,1", "age", "not whole")),
        (f"1,c{MARKER},Rome,1", "code", "not among its public categories"),
        (f"{MARKER},7,Rome,", "height", "missing value, but is not nullable"),
        (f"{MARKER},7,,1", "city", "missing value, but is not nullable"),
        *((f"{MARKER},7,Rome,nan", "height", "not a number"), (f"{MARKER},7,Rome,1e999", "height", "not a number")),
    ],
)
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_a_bad_cell_is_refused_without_its_value_or_place(
    tmp_path: Path, rows: str, column: str, rule: str, name: str
) -> None:
    header, good = ["age", "code", "city", "height"], "2,7,Rome,1"
    if name.endswith("parquet"):
        cells = [good.split(","), rows.split(",")]
        pq.write_table(pa.table(dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))), tmp_path / name)
    else:
        write(tmp_path, "\n".join([",".join(header), good, rows]) + "\n", name)
    with pytest.raises(DataError) as caught:
        read_source(tmp_path / name, PEOPLE)
    message = str(caught.value)
    assert message.startswith(f"{name}: column '{column}'") and rule in message
    assert_no_private_word(caught.value)


def test_all_bad_columns_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_source(write(tmp_path, f"age,code,city,height\n{MARKER}x,7,{MARKER},1\n2,7,Rome,{MARKER}!\n"), PEOPLE)
    named = [line.split("'")[1] for line in str(caught.value).splitlines()]
    assert named == ["age", "height"]  # an unknown city is its other
    assert_no_private_word(caught.value)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (f"age,code,city,height\n1,7,Rome,1\n2,7,Rome,1,{MARKER}\n".encode(), "people.csv"),
        (f'age,code,city,height\n1,7,"Rome{MARKER},1\n'.encode(), "people.csv"),
        *((f"age,code,city,height\n{MARKER},7,Rome,\xe9\n".encode("latin-1"), "people.csv"), (b"", "people.csv")),
        (gzip.compress(f"age,code,city,height\n{MARKER},7,Rome,1\n".encode(), mtime=0)[:-9], "people.csv.gz"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\3" + MARKER.encode() * 9, "people.csv.gz"),
        *((MARKER.encode() * 9, "people.csv.gz"), (MARKER.encode() * 9, "people.parquet")),
        (b"PAR1" + MARKER.encode() * 9 + b"PAR1", "people.parquet"),
    ],
    # Names, not the bytes: gzip writes the time, and two workers must collect the same tests.
    ids=["wide row", "open quote", "not UTF-8", "empty", "cut gzip", "no gzip", "csv.gz of text", "text", "no Parquet"],
)
def test_a_damaged_source_is_refused_without_quoting_it(tmp_path: Path, data: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=f"{name}: (cannot be read as a table|a )") as caught:
        read_source(tmp_path / name, PEOPLE)
    assert_no_private_word(caught.value)


def assert_no_private_word(error: BaseException) -> None:
    """Neither the message nor an error that hangs on to it quotes the marker; a chained error could quote a row."""
    assert MARKER not in str(error) and error.__context__ is None and error.__cause__ is None


def test_columns_and_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"people\.csv: column 'city' is missing\. .* name: age, code, city, height\."):
        read_source(write(tmp_path, "age,code,height\n1,7,1\n"), PEOPLE)
    good = "age,code,city,height\n1,7,Rome,1\n"
    with pytest.raises(DataError, match="column 'part' is missing"):
        read_source(write(tmp_path, good), PEOPLE, "part")
    with pytest.raises(DataError, match="column 'age' occurs twice"):
        read_source(write(tmp_path, "age,code,city,height,age\n1,7,Rome,1,2\n"), PEOPLE)
    with pytest.raises(DataError, match=r"columns 'city', 'height' are missing\. .* columns 'age', 'code' occur"):
        read_source(write(tmp_path, "age,code,age,code\n1,7,1,7\n"), PEOPLE)
    with pytest.raises(
        DataError, match=r"column 'city' is missing\. .* does not name 1 of the table's columns\."
    ) as caught:
        read_source(write(tmp_path, f"age,code,{MARKER},height\n1,7,Rome,1\n"), PEOPLE)
    assert_no_private_word(caught.value)
    with pytest.raises(DataError, match=r"columns 'age', 'code', 'city', 'height' are missing\.") as caught:
        read_source(write(tmp_path, f"{MARKER},7,Rome,1\n"), PEOPLE)  # a row in the place of the header
    assert_no_private_word(caught.value)
    with pytest.raises(DataError, match=r"absent\.csv: no such file"):
        read_source(tmp_path / "absent.csv", PEOPLE)
    with pytest.raises(DataError, match=r"people\.txt: unknown format"):
        read_source(write(tmp_path, good, "people.txt"), PEOPLE)


# Private files


@pytest.mark.long
@given(schemas_and_tables())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_private_file_keeps_kinds_categories_and_order(tmp_path: Path, drawn: tuple[Schema, pd.DataFrame]) -> None:
    _, table = drawn
    path = tmp_path / "private" / "t.arrow"
    write_private(table.assign(__split__="train"), path)
    pd.testing.assert_frame_equal(read_private(path, list(table.columns)), table)
    chunks = list(iter_private(path, list(table.columns), 3))
    if chunks:
        pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), table)


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "private" / "t.arrow"
    write_private(pd.DataFrame({"x": [1.0]}), path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "other").mkdir(mode=0o755)
    make_private_folder(tmp_path / "other")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o700


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def full() -> dict[str, str]:
        assert len([*path.parent.iterdir()]) == 2
        raise OSError("no space left")

    path = tmp_path / "private" / "t.arrow"
    write_private(pd.DataFrame({"x": [1.0]}), path)
    with pytest.raises(OSError, match="no space left"):
        write_private_chunks([pd.DataFrame({"x": [2.0]})], path, full)
    assert read_private(path)["x"].tolist() == [1.0] and [file.name for file in path.parent.iterdir()] == ["t.arrow"]


@pytest.mark.long
def test_chunks_have_one_size_whatever_the_batches(tmp_path: Path) -> None:
    rows = 150_000
    table = pd.DataFrame({"x": np.arange(rows), "c": pd.Categorical(["a", None, "a"] * (rows // 3), ["a", "b"])})
    path = tmp_path / "private" / "t.arrow"
    write_private(table, path)
    chunks = list(iter_private(path, ["c", "x"], 40_000))
    assert [len(chunk) for chunk in chunks] == [40_000, 40_000, 40_000, 30_000]
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), table[["c", "x"]])
    assert [len(chunk) for chunk in iter_private(path, ["x"], 75_000)] == [75_000, 75_000]
    assert [len(chunk) for chunk in iter_private(path, None, 1_000_000)] == [rows]


def test_a_missing_damaged_or_replaced_private_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is missing"):
        read_private(tmp_path / "t.arrow")
    (tmp_path / "t.arrow").write_bytes(MARKER.encode() * 9)
    with pytest.raises(ArtifactError, match="is damaged") as caught:
        read_private(tmp_path / "t.arrow")
    assert MARKER not in str(caught.value)
    write_private(pd.DataFrame({"x": [1.0]}), tmp_path / "t.arrow", {"digest": "of others"})
    with pytest.raises(ArtifactError, match="was replaced while it was in use"):
        next(iter_private(tmp_path / "t.arrow", None, 9, {"digest": "ours"}))


# Digest


def digest_of(table: pd.DataFrame, schema: Schema, key: bytes = KEY) -> str:
    return typed_digest(table, schema, key, ordered=True)


@pytest.mark.long
@given(schemas_and_tables(min_rows=1), st.data())
def test_the_digest_changes_with_any_cell(drawn: tuple[Schema, pd.DataFrame], data: st.DataObject) -> None:
    schema, table = drawn
    row, name = data.draw(st.integers(0, len(table) - 1)), data.draw(st.sampled_from(schema.names))
    column, changed = schema.column(name), table.copy()
    old = table[name][row]
    if column.is_categorical:
        new = next(text for text in column.categories if text != old)
    else:
        lower, upper = column_values(column, list(column.bounds))
        new = upper if old is pd.NA or old != upper else lower
    changed.loc[row, name] = new
    assert changed[name].dtype == table[name].dtype and digest_of(changed, schema) != digest_of(table, schema)


@pytest.mark.long
@given(schemas_and_tables(min_rows=2))
def test_the_digest_knows_the_order_of_rows(drawn: tuple[Schema, pd.DataFrame]) -> None:
    schema, table = drawn
    turned = table.iloc[::-1].reset_index(drop=True)
    assert (digest_of(turned, schema) == digest_of(table, schema)) == turned.equals(table)


def test_the_digest_knows_key_missing_and_number_of_rows_but_not_index_or_salt(tmp_path: Path) -> None:
    schema = Schema("n", "made up", "none", None, (Column("v", "integer", 0.0, 9.0, nullable=True),))
    table = pd.DataFrame({"v": pd.array([0, 1, None], dtype="Int64")})
    digest = digest_of(table, schema)
    assert digest != digest_of(table, schema, b"q" * 32) and digest != digest_of(table.fillna(0), schema)
    assert digest != digest_of(table.iloc[:2], schema)
    assert digest == digest_of(table.set_index(pd.Index([9, 5, 7])), schema)
    for place in range(2):
        path = tmp_path / "private" / f"{place}.arrow"
        write_private(table, path)
        assert digest_of(read_private(path), schema) == digest


def test_the_digest_is_the_same_on_every_machine() -> None:
    # A golden value: if it changes, every ledger entry points at rows that it no longer recognizes.
    table = pd.DataFrame(
        {
            "age": pd.array([17, None], dtype="Int64"),
            "code": pd.Categorical(["No", None], ["7", "07", "No", "NA"]),
            "city": pd.Categorical(["Rome", "Other"], ["Rome", "Other"]),
            "height": [-0.0, 1.5],
        }
    )
    assert digest_of(table, PEOPLE) == "90e56a8a2ea206fead528a35306a949a4da649f27bb8ac4ec6d80d951fb756ad"
    assert digest_of(table.assign(height=[0.0, 1.5]), PEOPLE) == digest_of(table, PEOPLE)


def test_reading_keeps_nothing_of_the_batches_that_have_passed(tmp_path: Path):
    path, rows = tmp_path / "private/t.arrow", 1 << 16
    chunks = (pd.DataFrame({"x": np.random.default_rng(i).normal(size=rows)}) for i in range(24))  # 0.5 MB a batch
    write_private_chunks(chunks, path, lambda: {})
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in iter_private(path, None, rows)]
    assert len(held) == 24
    assert max(held) < 12 * 8 * rows  # three batches


@pytest.mark.parametrize(
    ("cells", "added", "kind"),
    [([datetime(2020, 1, 1)] * 3, datetime(2020, 1, 2, 3, 4), pa.timestamp("us")), ([2**53 + 1] * 3, None, pa.int64())],
)
def test_one_more_row_changes_no_other_cell_of_parquet(tmp_path: Path, cells: list[Any], added: Any, kind: Any) -> None:
    words = ("9007199254740993", "2020-01-01 00:00:00", "else")
    column = Column("c", "categorical", categories=words, other="else", nullable=True)
    schema = Schema("t", "made up", "none", None, (column,))

    def typed(values: list[Any]) -> list[Any]:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"c": pa.array(values, type=kind)}), path)
        return list(read_source(path, schema)[0]["c"])

    assert typed([*cells, added])[:3] == typed(cells) != ["else"] * 3
