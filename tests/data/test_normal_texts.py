"""Names, categories and words for missing have one normal form, in the schema and in every reader."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.config.load import params_from
from likeness.config.params import FileFormat
from likeness.core.errors import DataError, ParamsError, SchemaError
from likeness.data.encoding.frames import pandas_frame
from likeness.data.schema.schema import Schema
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.header import header_of, kinds_of_frame
from likeness.inference.estimates import Question
from likeness.methods import method_from
from likeness.methods.marginals.method import Marginals
from likeness.pipeline.where import conditions
from likeness.preflight.missing_inputs import MissingInputs

SHARP = "gro\u0308ße"  # NFD
PLACES = ["Ko\u0308ln", "Sa\u0303o\u00a0Paulo", "\ufeffKöln", "Bad\u202fEms", "kei\u00adne\u200b", "Bonn", "\u200b"]
READ = ["Köln", "São Paulo", "Köln", "Bad Ems", None, "rest", None]


def schema_of(**beside: Any) -> Schema:
    place = {
        "kind": "categorical", "categories": ["Köln", "Sa\u0303o Paulo", "Bad Ems", "rest"], "other": "rest",
        "missing_values": ["ke\u00adine"], "nullable": True,
    }  # fmt: skip
    size = {"kind": "integer", "lower": 0, "upper": 9}
    mapping = {"name": "t", "source": "made up", "task": "none", "columns": {"größe": size, "o\u200brt": place}}
    return Schema.from_dict(mapping | beside, "t.yaml")


def table() -> pd.DataFrame:
    return pd.DataFrame({f"{SHARP} ": range(len(PLACES)), "ort\u200b": PLACES})


def of_csv(folder: Path) -> pd.DataFrame:
    table().to_csv(folder / "t.csv", index=False)
    return read_source(folder / "t.csv", schema_of())[0]


def of_excel(folder: Path) -> pd.DataFrame:
    table().to_excel(folder / "t.xlsx", index=False)
    return read_source(folder / "t.xlsx", schema_of())[0]


def of_parquet(folder: Path) -> pd.DataFrame:
    table().to_parquet(folder / "t.parquet")
    return read_source(folder / "t.parquet", schema_of())[0]


def of_partitions(folder: Path) -> pd.DataFrame:
    for place, row in table().iterrows():
        part = folder / "t" / f"{SHARP}={place}"
        part.mkdir(parents=True)
        row[["ort\u200b"]].to_frame().T.to_parquet(part / "0.parquet", index=False)
    return read_source(folder / "t", schema_of())[0]


def of_database(folder: Path) -> pd.DataFrame:
    with sqlite3.connect(folder / "t.db") as connection:
        table().to_sql("t", connection, index=False)
    connection.close()
    rows = Database(f"sqlite:///{folder / 't.db'}", "t").read(schema_of())[0]
    return rows.sort_values("größe", ignore_index=True)


def of_frame(_folder: Path) -> pd.DataFrame:
    return read_frame(table(), schema_of())


def of_categories(_folder: Path) -> pd.DataFrame:
    return read_frame(table().astype({"ort\u200b": "category"}), schema_of())


def of_arrow(_folder: Path) -> pd.DataFrame:
    return read_frame(pa.Table.from_pandas(table()).to_pandas(types_mapper=pd.ArrowDtype), schema_of())


READERS: tuple[Callable[[Path], pd.DataFrame], ...] = (
    *(of_csv, of_excel, of_parquet, of_partitions, of_database, of_frame, of_categories, of_arrow),
)


@pytest.mark.parametrize("read", READERS)
def test_every_reader_gives_one_table(read: Callable[[Path], pd.DataFrame], tmp_path: Path) -> None:
    found = read(tmp_path)
    assert list(found.columns) == ["größe", "ort"] and found["größe"].tolist() == [*range(len(PLACES))]
    cells = found["ort"].astype("object")
    assert cells.where(cells.notna(), None).tolist() == READ


def test_a_schema_keeps_normal_texts_and_reads_them_back() -> None:
    rules = [{"if": {SHARP: "< 3"}, "then": {"ort": ["Ko\u0308ln"]}}]
    schema = schema_of(rules=rules)
    assert schema.names == ("größe", "ort") and schema.column("ort").missing_values == ("keine",)
    assert schema.column(SHARP).name == "größe" and Schema.from_dict(schema.to_dict(), "copy") == schema
    assert conditions({SHARP: 3, "ort": "Ko\u0308ln"}, schema) == conditions({"größe": 3, "ort": "Köln"}, schema)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"größe": {}, SHARP: {}}, "column 'größe' is listed twice"),
        ({"größe": {"kind": "drop", "reason": "x"}, SHARP: {}}, "column 'größe' is listed twice"),
        ({"a": {"kind": "categorical", "categories": ["ö", "o\u0308"]}}, "lists a category twice"),
        ({"a": {"kind": "categorical", "categories": ["a", "\u200b"]}}, "a category that is empty"),
        ({"a": {"kind": "categorical", "categories": ["ö"], "missing_values": ["o\u0308"]}}, "the same text in"),
        ({"a": {}, "__spl\u00adit__": {}}, "reserved"),
    ],
)
def test_equal_looking_texts_are_one(columns: dict[str, Any], words: str) -> None:
    size = {"kind": "integer", "lower": 0, "upper": 9}
    with pytest.raises(SchemaError, match=words):
        schema_of(columns={name: spec or size for name, spec in columns.items()})


def test_names_of_settings_are_normal_too(tmp_path: Path) -> None:
    people = pd.DataFrame({f"na{SHARP}": ["Zoe\u0308", "Zoë"], "te\u00adil": ["tra\u00adin", "test"]})
    pd.concat([table().head(2), people], axis=1).to_csv(tmp_path / "t.csv", index=False)
    _, split, names = read_source(tmp_path / "t.csv", schema_of(), "teil", "nagröße")
    assert split is not None and names is not None
    assert split.tolist() == ["train", "test"] and len(names) == 2


def test_headers_are_normal_and_two_of_one_form_are_refused(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    assert header_of(tmp_path / "t.csv") == ["größe", "ort"] == list(kinds_of_frame(table()))
    with pytest.raises(DataError, match="'größe' occurs twice"):
        read_frame(table().assign(größe=1), schema_of())


@pytest.mark.parametrize(
    ("own", "asked"), [("Gro\u0308\u00dfe", "Gr\u00f6\u00dfe"), ("Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"), (" a", "a ")]
)
def test_a_sheet_is_named_in_any_form(own: str, asked: str, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'likeness-dp[excel]'")
    book = openpyxl.Workbook()
    book.active.title = own
    book.active.append(["x"])
    book.create_sheet("other")
    book.save(tmp_path / "t.xlsx")
    assert header_of(tmp_path / "t.xlsx", FileFormat(sheet=asked)) == ["x"]
    with pytest.raises(DataError, match=r"has no sheet 'öl' \(ö U\+00F6\)"):
        header_of(tmp_path / "t.xlsx", FileFormat(sheet="o\u0308l"))
    book.create_sheet(f"{own} \u200b")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="has several sheets '"):
        header_of(tmp_path / "t.xlsx", FileFormat(sheet=asked))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(("own", "written"), [(SHARP, "größe"), ("größe", SHARP), (" größe\ufeff", "größe\u00a0")])
def test_missing_inputs_take_names_in_any_form(library: str, own: str, written: str) -> None:
    frame: Any = pd.DataFrame({own: [1], "ort": ["x"]})
    if library != "pandas":
        frame = pa.Table.from_pandas(frame)
    if library == "polars":
        frame = pytest.importorskip("polars").from_arrow(frame)
    content = {"columns": {written: {"kind": "integer", "lower": 0, "upper": 3}, "ort": {"kind": "drop"}}}
    found = MissingInputs()
    found._header(content, pandas_frame(frame)[0])
    assert found.sentences == []
    found._header({"columns": {"grosse": content["columns"][written]}}, pandas_frame(frame)[0])
    assert "column 'grosse' is missing" in found.sentences[0]


def test_a_missing_name_shows_what_others_look_like(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_frame(table().rename(columns={f"{SHARP} ": "gr\u03cc\u00dfe"}), schema_of())
    assert "column 'größe' is missing" in str(caught.value) and "größe (ö U+00F6, ß U+00DF), ort" in str(caught.value)


def test_settings_and_questions_name_columns_in_any_form() -> None:
    content = {"method": "marginals", "privacy": {"epsilon": 1, "delta": 1e-5, "population": "p"}}
    content |= {
        "ingest": {"source": SHARP, "schema": "t.yaml"},
        "marginals": {"privatize": {"workload": [{"columns": [SHARP]}]}},
    }
    params = params_from(content)
    method = method_from(params)
    assert isinstance(method, Marginals) and method.privatize.workload == ({"columns": ["größe"]},)
    assert params.ingest.source == SHARP  # a path stays as it is
    assert Question.from_columns([SHARP], "o\u200brt") == Question(("größe",), ("ort",))


def test_a_value_that_looks_like_another_shows_its_signs() -> None:
    with pytest.raises(ParamsError, match=r"one of Köln, .* got 'K\u043eln' \(\u043e U\+043E\). Did you mean Köln"):
        conditions({"ort": "K\u043eln"}, schema_of())


def test_init_takes_a_label_in_any_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(
        "method: marginals\nprivacy:\n  epsilon: 1\n  delta: 1e-5\n  population: p\ningest:\n  source: a\n  schema: b\n"
    )
    done = CliRunner().invoke(app, ["init", "t.csv", "--label", "o\u200brt"])
    assert done.exit_code == 0, done.output
    assert "label: ort" in (tmp_path / "data/schema/t.yaml").read_text(encoding="utf-8")
