"""``likeness init``: a draft with names and kinds, questions for the rest, and not one word of the rows."""

import difflib
import gzip
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import strategies as st
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.config.edit import edit_text
from likeness.config.load import load_params
from likeness.config.params import FileFormat
from likeness.core.errors import DataError, LikenessError, ParamsError
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import read_mapping
from likeness.data.source.header import guesses_of
from likeness.pipeline.datasets import MODELS
from likeness.preflight.faults import examine, schema_faults

OF_HISTORIES = pytest.mark.skipif("histories" not in MODELS, reason="nothing that is here reads histories")
ROOT = Path(__file__).resolve().parents[2]
# Values that stand for private ones: none may be in anything that is written or printed.
ROWS = {
    "age": ["8675309", "42", "NA"],
    "born": ["1867-05-30", "1901-11-29", ""],
    "seen at": ["1867-05-30 11:22:33", "1901-11-29 01:02", "?"],
    "smoker": ["Yes", "no", ""],
    "weight: kg": ["86.75309", "77", "1e2"],
    "code": ["00867", "00042", "00042"],
    "name": ["Xq7Secret", "Zork", "O'Neill, Jenny"],
    "yes": ["Blau", "Rot", "Blau"],
}
KINDS = {
    **{"age": "integer", "born": "date", "seen at": "datetime", "smoker": "boolean", "weight: kg": "numeric"},
    **{"code": "categorical", "name": "categorical", "yes": "categorical"},
}
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)
PRIVATE = sorted({cell for cells in ROWS.values() for cell in cells if len(cell) > 2} - {"Yes"})


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with params.yaml and a table that is nobody's."""
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    pd.DataFrame(ROWS).to_csv(tmp_path / "own.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["init", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_a_draft_holds_names_kinds_and_questions_and_nothing_of_the_rows(clone: Path) -> None:
    output = run("own.csv", "--label", "smoker")
    draft = (clone / "data/schema/own.yaml").read_text()
    written = draft + output + (clone / "params.yaml").read_text()
    for value in PRIVATE:
        assert value not in written, value
    content = read_mapping(clone / "data/schema/own.yaml")
    assert {name: spec["kind"] for name, spec in content["columns"].items()} == KINDS
    assert content["task"] == "classification" and content["label"] == "smoker" and content["source"] is None
    for spec in content["columns"].values():
        assert all(value is None for key, value in spec.items() if key != "kind")
    assert draft.count("# from the data: confirm from public knowledge") == len(KINDS)
    assert draft.count(": null  # ?") == draft.count(": null")
    assert "likeness init --nullable none" in draft


def test_a_completed_schema_answers_for_columns_of_the_same_name(clone: Path) -> None:
    known = {
        **{"name": "last", "source": "codebook of 2023: page 5", "task": "classification", "label": "yes"},
        "columns": {
            "age": {"kind": "integer", "lower": 0, "upper": 110, "nullable": True, "missing_values": ["NA"]},
            "weight: kg": {"kind": "numeric", "lower": 1e-5, "upper": 500.5, "transform": "log1p"},
            "born": {"kind": "date", "lower": "1850-01-01", "upper": "2020-12-31"},
            "code": {"kind": "categorical", "categories": ["007", "3.0", "no", "null"], "ordered": True, "other": "no"},
            "yes": {"kind": "categorical", "categories": ["Blau", "Rot", "Grün"]},
            "name": {"kind": "drop", "reason": "names a person"},
            "gone": {"kind": "boolean"},
        },
    }
    (clone / "last.yaml").write_text(yaml.safe_dump(known))
    output = run("own.csv", "--answers", "last.yaml")
    draft = read_mapping(clone / "data/schema/own.yaml")
    answered = {name for name in known["columns"] if name != "gone"}
    assert {name: draft["columns"][name] for name in answered} == {name: known["columns"][name] for name in answered}
    assert {key: draft[key] for key in ("source", "task", "label")} == {
        key: known[key] for key in ("source", "task", "label")
    }
    open_ones = {name: spec for name, spec in draft["columns"].items() if name not in answered}
    assert list(open_ones) == ["seen at", "smoker"] and open_ones["smoker"] == {"kind": "boolean", "nullable": None}
    assert "(4) is a question" in output and "last.yaml: born (to 2020-12-31)" in output
    draft["columns"] |= {"seen at": {"kind": "drop", "reason": "r"}, "smoker": {"kind": "boolean"}}
    expected = {**known, "columns": {name: known["columns"].get(name, draft["columns"][name]) for name in ROWS}}
    assert Schema.from_dict(draft, "draft").columns == Schema.from_dict(expected, "expected").columns


def test_an_incomplete_schema_does_not_answer(clone: Path) -> None:
    (clone / "last.yaml").write_text("name: last\nsource: null\ntask: none\ncolumns: {age: {kind: integer}}\n")
    result = CliRunner().invoke(app, ["init", "own.csv", "--answers", "last.yaml"])
    assert isinstance(result.exception, LikenessError) and "last.yaml" in str(result.exception)
    assert not (clone / "data/schema/own.yaml").exists()


def test_a_draft_does_not_depend_on_how_many_or_which_values_there_are(clone: Path) -> None:
    run("own.csv")
    draft = (clone / "data/schema/own.yaml").read_text()
    other = {name: cells[:1] * 5 + cells[1:2] for name, cells in ROWS.items()}
    other["name"] = ["Someone", "Else", "Third", "Fourth", "Fifth", "Sixth"]
    pd.DataFrame(other).to_csv(clone / "own.csv", index=False)
    run("own.csv", "--name", "again")
    assert (clone / "data/schema/again.yaml").read_text() == draft.replace("name: own", "name: again")


def test_params_change_in_place_and_ask_what_is_to_be_decided(clone: Path) -> None:
    mine = "# mine\n" + (clone / "params.yaml").read_text().replace("    seed: 0", "    seed: 0  # mine too", 1)
    (clone / "params.yaml").write_text(mine)
    run("own.csv", "--name", "mine", "--person", "name")
    text = (clone / "params.yaml").read_text()
    changed = [line for line in difflib.ndiff(mine.splitlines(), text.splitlines()) if line.startswith("+ ")]
    values = ["population: null", "unit: one person", "source: own.csv", "schema: data/schema/mine.yaml"]
    values += ["column: null", "unit: {column: name, max_rows: null}", "rows: auto"]
    assert [line[2:].partition("#")[0].strip() for line in changed] == values
    assert all(line.index("#") == 36 for line in changed if "{" not in line)  # each comment in its column
    assert "  population: null                # ? a name for the PEOPLE" in text
    assert "max_rows: null} # ? several rows a person" in text
    with pytest.raises(ParamsError, match=r"privacy\.population is an open question"):
        load_params()
    (clone / "params.yaml").write_text(mine.replace("  threads: 1 ", "  threads: 0 "))
    with pytest.raises(LikenessError, match=r"train\.threads must be"):
        run("own.csv", "--name", "other")
    assert not (clone / "data/schema/other.yaml").exists()


PIECES = ["a: 1", "b:\n  c: 2  # two\n  # below\n  d: [1, 2]", "b:\n  e:  # of e\n    f: x\n\n  c: 'a # b'   # c"]
PIECES += ["b:", "b:\n  c: >\n    folded\n    text\n  # next\n  g: 1", "# only a comment\nb:\n  c:\n  - 1\n  - 2\n"]


@pytest.mark.parametrize("text", PIECES)
@pytest.mark.parametrize("name", ["a", "b.c", "b.e.f", "b.z"])
@pytest.mark.parametrize("value", [None, "yes", "x: #y", {"k": None}])
def test_a_value_is_changed_and_every_comment_stays(text: str, name: str, value: Any) -> None:
    changed = edit_text(f"{text}\nlast: 1  # end\n", {name: value}, {})
    section = yaml.safe_load(changed)
    for key in name.split("."):
        section = section[key]
    assert section == value and yaml.safe_load(changed)["last"] == 1
    assert all(comment in changed for comment in re.findall(r"# (?!b).*", f"{text}\n# end"))


def test_settings_in_braces_get_lines_and_an_alias_is_refused(clone: Path) -> None:
    Path("params.yaml").write_text(
        "{method: marginals, ingest: {source: null, schema: s}, privacy: {epsilon: 1, delta: 1e-5}}"
    )
    run("own.csv")
    text = Path("params.yaml").read_text()
    assert "  source: own.csv\n" in text and "  population: null                # ? a name for the PEOPLE" in text
    assert yaml.safe_load(text)["privacy"] == {"epsilon": 1, "delta": "1e-5", "population": None}
    with pytest.raises(ParamsError, match=r"params\.yaml: write out what stands behind an alias in b\."):
        edit_text("a: &x {c: 1}\nb: *x\n", {"b.c": 2}, {})
    with pytest.raises(ParamsError, match=r"^params\.yaml: is not valid YAML in line 2: 'a' is given twice"):
        edit_text("a: 1\na: 2\n", {"b": 2}, {})


@pytest.mark.parametrize(
    "text", ["ingest: 5", "ingest: {format: 5}", "ingest: {split: [a]}", "privacy: x", "sample: 5"]
)
def test_a_section_that_is_none_is_refused(clone: Path, text: str) -> None:
    Path("params.yaml").write_text(f"{text}\n")
    with pytest.raises(ParamsError, match=r"^params\.yaml: \w+ must be a section with settings"):
        run("own.csv")
    assert not Path("data").exists()


@OF_HISTORIES
def test_a_draft_of_histories_has_both_tables_and_nothing_of_the_rows(clone: Path) -> None:
    ids = {"id": ["Zork7", "Zork8", "Zork7"]}
    pd.DataFrame({**ids, **{name: ROWS[name] for name in ("smoker", "name")}}).to_csv("people.csv", index=False)
    pd.DataFrame({**ids, **ROWS}).to_csv("events.csv", index=False)
    given = ("events.csv", "--people", "people.csv", "--person", "id", "--order", "code", "--nullable", "age")
    output = run(*given)
    draft = (clone / "data/schema/events.yaml").read_text()
    assert not [value for value in (*PRIVATE, *ids["id"]) if value in draft + output + Path("params.yaml").read_text()]
    content = read_mapping(clone / "data/schema/events.yaml")
    kinds = {table: {name: spec["kind"] for name, spec in content[table].items()} for table in ("people", "events")}
    assert kinds == {"people": {"smoker": "boolean", "name": "categorical"}, "events": {**KINDS, "code": "date"}}
    assert (content["person"], content["order"], content["most"]) == ("id", "code", None)
    assert content["events"]["age"]["nullable"] and "nullable" not in content["events"]["code"]
    ingest = yaml.safe_load(Path("params.yaml").read_text())["ingest"]
    assert ingest["people"] == "people.csv" and ingest.get("unit") is None
    faults = [fault.text for fault in examine().faults]
    assert any(text.startswith("most is an open question") for text in faults) and len(faults) > 8
    assert sum("source is an open question" in text for text in faults) == 1
    assert any(text.startswith("people: column 'name': categories") for text in faults)
    for wrong, words in (
        ((*given[:5], "--order", "height"), "--order height is not a column"),
        ((*given, "--label", "smoker"), "--label does not go with --people and --order"),
        (given[:3], "--people and --order need --person"),
        ((*given[:5], "--order", "id"), "--person and --order both name 'id'"),
    ):
        with pytest.raises(LikenessError, match=words):
            run(*wrong, "--name", "other")
    assert [path.name for path in Path("data/schema").iterdir()] == ["events.yaml"]


@OF_HISTORIES
def test_a_sheet_answers_the_questions_of_both_tables_of_histories(clone: Path) -> None:
    ids = {"id": ["Zork7", "Zork8", "Zork7"]}
    pd.DataFrame({**ids, "smoker": ROWS["smoker"]}).to_csv("people.csv", index=False)
    pd.DataFrame({**ids, "age": ROWS["age"], "code": ROWS["code"]}).to_csv("events.csv", index=False)
    given = ("events.csv", "--people", "people.csv", "--person", "id", "--order", "code", "--columns", "sheet.csv")
    run(*given)
    lines = Path("sheet.csv").read_text(encoding="utf-8-sig").splitlines()
    assert sorted(line.split(",")[0] for line in lines[1:]) == ["age", "code", "smoker"]
    assert not (clone / "data/schema/events.yaml").exists()
    filled = ["smoker,boolean,no/yes,yes", "age,integer,0..110,no", "code,integer,,"]
    Path("sheet.csv").write_text("\n".join([lines[0], *filled]))
    run(*given)
    content = read_mapping(clone / "data/schema/events.yaml")
    assert content["people"] == {"smoker": {"kind": "boolean", "categories": ["no", "yes"], "nullable": True}}
    assert content["events"]["age"] == {"kind": "integer", "lower": 0, "upper": 110}
    assert content["events"]["code"]["kind"] == "integer" and content["events"]["code"]["lower"] is None


def test_nothing_is_overwritten(clone: Path) -> None:
    run("own.csv")
    draft, params = (clone / "data/schema/own.yaml").read_bytes(), (clone / "params.yaml").read_bytes()
    with pytest.raises(LikenessError, match="exists and is not overwritten"):
        run("own.csv", "--label", "age")
    assert (clone / "data/schema/own.yaml").read_bytes() == draft and (clone / "params.yaml").read_bytes() == params


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((["absent.csv"], "absent.csv: no such file"), (["own.txt"], "not a format that is read")),
        (["own.csv", "--label", "height"], "--label height is not a column. Give a name of the first line"),
        (["own.csv", "--label", "SMOKER"], "--label SMOKER is not a column. One is that differs in capitals only"),
        *((["sqlite:///own.db"], "needs --query"), (["own.csv", "--name", "a/b"], "cannot name a table")),
        (["own.csv", "--format", "comma"], "ingest.format.comma is not a setting"),
    ],
)
def test_what_cannot_be_drafted_is_said_and_leaves_nothing(clone: Path, arguments: list[str], words: str) -> None:
    with pytest.raises(LikenessError, match=words):
        run(*arguments)
    assert not (clone / "data").exists() and (clone / "params.yaml").read_text() == (ROOT / "params.yaml").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "Xq7Secret,8675309\nOther,3\n",  # a number for a name
        "Xq7Secret,1867-05-30\nOther,1901-11-29\n",
        "Xq7Secret,\nOther,3\n",
        "Xq7Secret,female\nOther,male\nThird,female\n",  # a word that stands below too
    ],
)
def test_a_row_is_not_taken_for_a_header(clone: Path, text: str) -> None:
    (clone / "own.csv").write_text(text)
    with pytest.raises(DataError, match="does not look like a header") as caught:
        run("own.csv")
    assert "Xq7Secret" not in str(caught.value) and not (clone / "data").exists()


def test_names_that_stand_twice_have_one_cause_and_one_remedy(clone: Path) -> None:
    (clone / "own.csv").write_text("Xq7Secret,age,Xq7Secret\nOther,3,4\n")
    with pytest.raises(DataError) as caught:
        run("own.csv")
    message = "own.csv: columns 1 and 3 of its header have one name. Rename them, so that each column has its own name."
    assert str(caught.value) == f"{message} Nothing was written."


@pytest.mark.parametrize("mark", [";", "\t", "|"], ids=["semicolon", "tab", "bar"])
def test_the_first_line_shows_the_separator(clone: Path, mark: str) -> None:
    (clone / "own.csv").write_text(f"age{mark}born{mark}cost, net{mark}smokes\n42{mark}1867-05-30{mark}1,5{mark}0.0\n")
    with (clone / "own.csv").open("a") as file:
        file.write(f"43{mark}1901-11-29{mark}2,25{mark}1.0\n")
    assert ("If numbers have a decimal comma" in run("own.csv", "--name", "points")) is (mark == ";")
    assert "decimal comma" not in run("own.csv", "--format", "decimal=,")
    columns = yaml.safe_load((clone / "data/schema/own.yaml").read_text())["columns"]
    kinds = {name: column["kind"] for name, column in columns.items()}
    assert kinds == {"age": "integer", "born": "date", "cost, net": "numeric", "smokes": "boolean"}
    written = yaml.safe_load((clone / "params.yaml").read_text())["ingest"]["format"]
    assert FileFormat(**written) == FileFormat(mark, ",")


def test_the_split_column_is_no_data(clone: Path) -> None:
    (clone / "own.csv").write_text("age,Split,part\n42,train,a\n43,test,b\n")
    for options, split, left in ([], "Split", ["age", "part"]), (["--split", "part"], "part", ["age", "Split"]):
        run("own.csv", "--name", split, *options)
        assert list(yaml.safe_load((clone / f"data/schema/{split}.yaml").read_text())["columns"]) == left
        assert yaml.safe_load((clone / "params.yaml").read_text())["ingest"]["split"]["column"] == split


def test_an_answer_about_people_stays(clone: Path) -> None:
    """Else a row would be protected, and not a person."""
    (clone / "own.csv").write_text("who,age\n1,42\n1,43\n")
    (clone / "other.csv").write_text("age\n42\n")
    before = edit_text(Path("params.yaml").read_text(), {"ingest.unit": {"column": "who", "max_rows": 4}}, {})

    def unit_after(*options: str) -> object:
        (clone / "params.yaml").write_text(before)
        run(*options)
        return yaml.safe_load((clone / "params.yaml").read_text())["ingest"]["unit"]

    assert unit_after("own.csv") == unit_after("own.csv", "--name", "b", "--person", "who")
    assert unit_after("own.csv", "--name", "c") == {"column": "who", "max_rows": 4}
    assert yaml.safe_load((clone / "data/schema/own.yaml").read_text())["columns"]["who"]["kind"] == "drop"
    assert unit_after("other.csv") is None  # another table has no such column
    before = edit_text(before, {"ingest.unit": {"column": "who"}}, {})
    assert unit_after("own.csv", "--name", "d") == {"column": "who", "max_rows": None}


def test_a_persons_answer_about_the_split_stays(clone: Path) -> None:
    (clone / "own.csv").write_text("age,Split,part\n42,train,a\n43,test,b\n")
    (clone / "other.csv").write_text("age\n42\n")

    rest, text = {"train": "a", "test": "b", "test_fraction": 0.2, "seed": 0}, Path("params.yaml").read_text()
    before = edit_text(text, {f"ingest.split.{key}": value for key, value in {"column": "part", **rest}.items()}, {})

    def split_after(*options: str) -> object:
        (clone / "params.yaml").write_text(before)
        assert "All rows train" not in run(*options)
        return yaml.safe_load((clone / "params.yaml").read_text())["ingest"]["split"]

    assert split_after("own.csv") == {"column": "part", **rest}
    assert list(yaml.safe_load((clone / "data/schema/own.yaml").read_text())["columns"]) == ["age", "Split"]
    assert split_after("own.csv", "--name", "b", "--split", "Split") == {"column": "Split", **rest}
    assert split_after("own.csv", "--name", "c", "--label", "part") == {"column": "Split", **rest}
    assert split_after("other.csv") == {"column": None, **rest}  # another table has no such column


def test_classes_1_and_2_are_categories_and_a_whole_label_is_a_question(clone: Path) -> None:
    (clone / "own.csv").write_text("sex,grade,seat\n1,1,1.0\n2,2,2.0\n1,3,1.0\n")
    run("own.csv", "--label", "grade")
    draft = yaml.safe_load((clone / "data/schema/own.yaml").read_text())
    assert [column["kind"] for column in draft["columns"].values()] == ["categorical", "integer", "categorical"]
    assert draft["task"] is None and draft["label"] == "grade"
    assert "task is an open question: classification or regression." in schema_faults(draft)


def test_kinds_of_parquet_come_from_its_types_and_no_row_is_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.int8()),
            "b": pa.array([1.5]),
            "c": pa.array(["x"]),
            "d": pa.array(["x"]).dictionary_encode(),
            "e": pa.array([True]),
            "f": pa.array([1], pa.int32()).cast(pa.date32()),
            "g": pa.array([1], pa.timestamp("us", "UTC")),
            "h": pa.array([[1]]),
            "2020": pa.array([b"x"]),
        }
    )
    expected = ["integer", "numeric", "categorical", "categorical", "boolean", "date", "datetime", "drop", "drop"]
    path = tmp_path / "own.parquet"
    pq.write_table(table, path)
    assert list(guesses_of(path)[0].values()) == expected
    # The same footer with its rows overwritten: they were never looked at.
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(b"PAR1" + b"\xff" * (start - 4) + data[start:])
    assert list(guesses_of(path)[0].values()) == expected


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        *((["0", "1", "0"], "boolean"), (["0", "0"], "integer"), (["0", "1", "2"], "integer")),
        *((["007", "012"], "categorical"), (["7", "012"], "categorical"), (["1.5", "-2", ".5", "?"], "numeric")),
        *((["2001-02-03", "2001-02-30"], "categorical"), (["", "NA"], "categorical"), (["TRUE", "f"], "boolean")),
    ],
)
def test_kinds_are_guessed_from_a_csv(tmp_path: Path, cells: list[str], kind: str) -> None:
    for name, opener in (("t.csv", open), ("t.csv.gz", gzip.open)):
        with opener(tmp_path / name, "wt") as file:
            file.write("\n".join(["x,y", *(f"{cell},z" for cell in cells)]) + "\n")
        assert guesses_of(tmp_path / name)[0] == {"x": kind, "y": "categorical"}
