"""``likeness init --ask``: whatever is typed becomes a valid schema, or is told why not and asked again."""

import csv
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from person import GUESSED, Person
from typer.testing import CliRunner

from likeness.cli import init as cli_own
from likeness.cli.app import app
from likeness.config.load import load_params
from likeness.core.errors import LikenessError, SchemaError
from likeness.data.schema.answers import read_answer
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import KINDS
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import read_mapping, schema_yaml
from likeness.ledger.home import Home
from likeness.preflight.interview import Completed

ROOT = Path(__file__).resolve().parents[2]
# What a person types who knows everything, by the beginning of the question.
KNOWN = {
    "Source": "codebook of 2024: page 5", "Column to": "sick", "1 age": "0 110",
    "2 ward": "surgery, medicine, other ...", "3 pay": "0..1e6, log, decimals 2 spikes 0",
    "4 day": "1958-03-01 2001-12-31 format %d.%m.%Y", "5 seen": "1994-03-01 17:05:00 2001-12-31",
    "6 sick": "no, yes", "7 note": "free text", "8 town": "private", "9 rank": "1 < 2 < 3",
    "Columns that": "1, ward 4", "Words": "NA, ?", "Name for": "patients-2024", "Most rows": "5",
}  # fmt: skip
EXPECTED: dict[str, Any] = {
    "age": {"kind": "integer", "lower": 0, "upper": 110, "nullable": True, "missing_values": ["NA", "?"]},
    "ward": {"kind": "categorical", "categories": ["surgery", "medicine", "other"], "other": "other"}
    | {"nullable": True, "missing_values": ["NA", "?"]},
    "pay": {"kind": "numeric", "lower": 0, "upper": 1e6, "transform": "log1p", "spikes": [0], "decimals": 2},
    "day": {"kind": "date", "lower": "1958-03-01", "upper": "2001-12-31", "format": "%d.%m.%Y"}
    | {"nullable": True, "missing_values": ["NA", "?"]},
    "seen": {"kind": "datetime", "lower": "1994-03-01 17:05:00", "upper": "2001-12-31"},
    "sick": {"kind": "boolean", "categories": ["no", "yes"]},
    "note": {"kind": "drop", "reason": "free text"},
    "town": {"kind": "categorical", "categories": "private", "other": "other"},
    "rank": {"kind": "categorical", "categories": ["1", "2", "3"], "ordered": True},
}


def columns_of(found: Completed) -> dict[str, Any]:
    return found.draft.to_dict()["columns"]


def of_person() -> SchemaDraft:
    draft = SchemaDraft(GUESSED, "own")
    draft.person = "note"
    return draft


def read_back(draft: SchemaDraft, folder: Path) -> Schema:
    """As it is written, loaded; and the same as it was answered."""
    path = folder / "own.yaml"
    path.write_text(draft.text(), encoding="utf-8")
    assert read_mapping(path) == draft.to_dict()
    return Schema.load(path)


def test_answers_become_the_schema_that_they_say(tmp_path: Path) -> None:
    person = Person(KNOWN)
    found = person.interview()
    assert columns_of(found) == EXPECTED and (found.population, found.max_rows) == ("patients-2024", None)
    schema = read_back(found.draft, tmp_path)
    assert (schema.source, schema.task, schema.label) == (KNOWN["Source"], "classification", "sick")
    text = (tmp_path / "own.yaml").read_text()
    assert len(text.splitlines()) == 2 + 5 + len(GUESSED)  # one line a column
    assert len(person.asked) == len(KNOWN) - 1 and not any("column '" in line for line in person.told)
    assert "PUBLIC" in person.told[0] and "never from the rows" in person.told[0]


def test_the_answers_that_are_shown_are_taken() -> None:
    text = (ROOT / "docs/own-data.md").read_text()
    shown = re.findall(r"^(\d+ (\w+), (\w+): )(.*)$", text, re.MULTILINE)
    assert len(shown) == 6
    person = Person({**{question: answer for question, _, _, answer in shown}, **KNOWN, "Columns that": "all"})
    draft = SchemaDraft({name: kind for _, name, kind, _ in shown})
    draft.label = "readmitted"
    columns = columns_of(person.interview(draft=draft))
    assert not [line for line in person.told if "column '" in line]
    assert columns["severity"]["categories"] == ["mild", "moderate", "severe"] and columns["seen"]["kind"] == "date"
    assert columns["ward"]["other"] == "other" and "nullable" not in columns["readmitted"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "line", "words"),
    [
        ("Source", " ", "source is missing"),
        ("Column to", "wages", "'wages' is not a column. Give names as in the header, or numbers from 1 to 9"),
        ("Column to", "10", "'10' is not a column"),
        ("1 age", "", "column 'age' has no bounds. Bounds must be public"),
        ("1 age", "110 0", "column 'age' has bounds 110 to 0"),
        ("1 age", "0 young", "column 'age': upper must be a number"),
        *(("1 age", "0 1,000,000", "more than two bounds"), ("1 age", "0 inf", "upper must be a number")),
        ("1 age", "0 1e400", "upper must be a number"),
        ("1 age", "0 99 spikes 100", "column 'age' has a spike at 100"),
        *(("2 ward", "", "has no categories. They must be public"), ("2 ward", "a, b, a", "lists a category twice")),
        *(("2 ward", "a,, b", "has a category that is empty"), ("2 ward", '"a, b', "quotes do not close")),
        ("2 ward", "a\x1b[A, b", "a character that cannot be written"),
        ("4 day", "01.03.1958 31.12.2001", "lower must be a date like 1994-03-01"),
        ("4 day", "1958-03-01 2001-12-31 log1p", "transform is not a key of a date column"),
        ("6 sick", "private", "is boolean: its categories are two words"),
        *(("6 sick", "drop: x", "label 'sick' has kind drop"), ("7 note", "", "reason is missing")),
        ("Columns that", "age, wages", "'wages' is not a column"),
        ("Columns that", "sick", "column 'sick' is the label, is dropped or has an answer"),
        ("Columns that", "note", "column 'note' is the label, is dropped"),
        ("Words", "medicine", "has the same text in categories and in missing_values"),
        ("Name for", "", "privacy.population must be a name for the people"),
    ],
)
def test_what_is_wrong_is_told_in_the_schema_s_words_and_asked_again(key: str, line: str, words: str) -> None:
    person = Person(KNOWN, {key: [line]})
    assert columns_of(person.interview()) == EXPECTED and [told for told in person.told if words in told]
    assert len([question for question in person.asked if question.startswith(key)]) == 2


KIND_WORDS = [*KINDS, *(f"{kind}:" for kind in KINDS), "drop", "drop:", "private", "spikes", "log1p", "format", "*"]
VALUES = ["0", "1", "-3.5", "1e3", "1e400", "9" * 400, "nan", "1994-03-01", "2001-12-31", "1994-03-01 17:05", "all"]
TEXTS = ["no", "yes", "null", "007", "1e5", "~", "?", ",", '"', "'", ": ", "#", "a", "b", "10", "age", "{", "\n", "..."]
WORDS = st.sampled_from(KIND_WORDS + VALUES + TEXTS)
LINES = st.one_of(st.text(max_size=20), st.lists(WORDS, max_size=6).map(" ".join), st.lists(WORDS).map(", ".join))
# What may be said of any column in any state: its kind is named, and it may be the label.
ALWAYS = {**KNOWN, "2 ward": "categorical: a, b", "6 sick": "boolean: no, yes", "8 town": "categorical: x, y"}
ALWAYS |= {key: f"{GUESSED[key[2:]]}: {KNOWN[key]}" for key in ("1 age", "3 pay", "4 day", "5 seen")}
ALWAYS |= {"7 note": "categorical: low < high", "Columns that": "", "Words": ""}
TYPED = st.fixed_dictionaries({key: st.lists(LINES, max_size=2) for key in KNOWN})


@pytest.mark.long
@given(TYPED)
@settings(max_examples=40, deadline=None)
def test_whatever_is_typed_gives_a_valid_schema_or_the_question_again(
    tmp_path_factory: pytest.TempPathFactory, typed: dict[str, list[str]]
) -> None:
    person = Person(ALWAYS, typed)
    found = person.interview()
    schema = read_back(found.draft, tmp_path_factory.getbasetemp())
    assert schema.name == "own" and len(schema.columns) + len(schema.dropped) == len(GUESSED)
    assert found.population.strip()


@pytest.mark.long
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"]), min_size=1),
        st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"])), max_size=3),
        max_size=3,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_back_as_it_was_typed(tmp_path_factory: pytest.TempPathFactory, texts: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "texts.yaml"
    schema = {"name": "own", "columns": {name: {"categories": own, "nullable": True} for name, own in texts.items()}}
    path.write_text(schema_yaml(schema), encoding="utf-8")
    assert (read_mapping(path)["columns"] or {}) == schema["columns"]


def test_one_answer_may_be_meant_for_all_later_columns_guessed_alike() -> None:
    kinds = {f"bit{place}": "boolean" for place in range(44)} | {"a": "categorical", "b": "categorical"}
    person = Person({**ALWAYS, "1 bit0": "*", "Column to": "b", "45 a": "private *", "46 b": "x, y"})
    columns = columns_of(person.interview(kinds))
    assert [columns[f"bit{place}"] for place in range(44)] == [{"kind": "boolean"}] * 44
    # The label has its own answer: its classes are public.
    assert columns["a"]["categories"] == "private" and columns["b"]["categories"] == ["x", "y"]
    assert len([question for question in person.asked if question.partition(" ")[0].isdigit()]) == 3
    assert any(line.startswith("  also for bit1, bit2, bit3") for line in person.told)


def test_a_list_goes_on_behind_a_comma_or_in_a_pasted_line_and_a_quote_keeps_one() -> None:
    person = Person(KNOWN, {"8 town": ['1994, "Baker, Smith",', "third,\tfourth,\nfifth ,", "last"]})
    columns = columns_of(person.interview())
    assert columns["town"]["categories"] == ["1994", "Baker, Smith", "third", "fourth", "fifth", "last"]


def test_a_completed_schema_is_not_asked_again_and_options_answer() -> None:
    known = {name: EXPECTED[name] for name in ("age", "ward", "day", "note")}
    person = Person(KNOWN)
    draft = SchemaDraft(GUESSED)
    draft.source, draft.label = "last year", "sick"
    for name, spec in known.items():
        draft[name].settle(spec)
    draft.nullable = ["pay"]
    draft.make_private()
    columns = columns_of(person.interview(draft=draft))
    assert {name: columns[name] for name in known} == known
    asked = [question.partition(" ")[0] for question in person.asked]
    assert asked == ["6", "Words", "Name"]
    assert columns["town"] == EXPECTED["town"] and columns["pay"]["bounds"] == columns["seen"]["bounds"] == "private"
    assert "nullable" not in columns["pay"] and columns["seen"]["nullable"] is False


def test_what_no_answer_could_put_right_is_refused_before_a_question() -> None:
    person, draft = Person(KNOWN), SchemaDraft(GUESSED)
    draft["age"].settle(EXPECTED["age"])
    draft.label = "age"
    with pytest.raises(SchemaError, match="label 'age' is nullable"):
        person.interview(draft=draft)
    assert not person.asked


def test_rows_of_a_person_follow_the_rule_of_the_settings() -> None:
    person = Person(KNOWN, {"Most rows": ["0", "many", "20000"]})
    assert person.interview(draft=of_person()).max_rows == 5
    assert any("ingest.unit.max_rows must be 1 to 10,000" in line for line in person.told)


def test_a_kind_is_changed_by_its_word_alone_too() -> None:
    assert read_answer("categorical", "integer").kind == "categorical"
    person = Person({"9 rank, categorical": "1 < 2 < 3", **KNOWN, "9 rank": "categorical"})
    assert columns_of(person.interview()) == EXPECTED and "  rank is categorical" in person.told


@pytest.mark.parametrize(
    ("line", "guess", "kind", "rest"),
    [
        ("0..110", "integer", "integer", {"lower": 0, "upper": 110}),
        ("0 to 110", "categorical", "integer", {"lower": 0, "upper": 110}),
        ("-5..-1.5", "categorical", "numeric", {"lower": -5, "upper": -1.5}),
        ("0..5 decimals 2", "categorical", "numeric", {"lower": 0, "upper": 5, "decimals": 2}),
        ("1e-3..1e3 log", "numeric", "numeric", {"lower": 1e-3, "upper": 1e3, "transform": "log1p"}),
        ("1990-01-01..2026-12-31", "categorical", "date", {"lower": "1990-01-01", "upper": "2026-12-31"}),
        ("date 1990-01-01..2026-12-31", "numeric", "date", {"lower": "1990-01-01", "upper": "2026-12-31"}),
        ("1990-01-01 10:05..1990-01-02", "date", "datetime", {"lower": "1990-01-01 10:05", "upper": "1990-01-02"}),
        ("yes/no", "categorical", "boolean", {"categories": ["no", "yes"]}),
        ("0/1", "integer", "boolean", {"categories": ["0", "1"]}),
        ("0 < 1 < 2 ...", "integer", "categorical", {"categories": ["0", "1", "2"], "ordered": True, "other": "2"}),
        ("m/f", "categorical", "categorical", {"categories": ["f", "m"]}),
        ("1, 2, 3", "integer", "categorical", {"categories": ["1", "2", "3"]}),
        ("low, high", "numeric", "categorical", {"categories": ["low", "high"]}),
        ("private", "integer", "integer", {"bounds": "private"}),
        ("categorical: private", "integer", "categorical", {"categories": "private", "other": "other"}),
        ("0, 110", "integer", "integer", {"lower": 0, "upper": 110}),
        ("pages 1..5", "drop", "drop", {"reason": "pages 1..5"}),
    ],
)
def test_the_form_of_an_answer_says_its_kind(line: str, guess: str, kind: str, rest: dict[str, Any]) -> None:
    assert read_answer(line, guess).spec == {"kind": kind, **rest}


# 36 columns, as a survey of a hospital may have them.
MANY = {"age": "integer", "ward": "categorical", "stage": "categorical", "seen": "date", "weight": "numeric"}
MANY |= {f"lab_{place}": "numeric" for place in range(1, 13)} | {f"q{place}": "categorical" for place in range(1, 11)}
MANY |= {name: "boolean" for name in ("ill", "smoker", "old", "alone", "sick")} | {f"x{n}": "integer" for n in "1234"}
SHORT = {"Source": "codebook", "Column to": "sick", "1 age": "0..110", "2 ward": "a, b", "3 stage": "I < II"}
SHORT |= {"4 seen": "2020-01-01..2026-12-31", "5 weight": "0..400", "6 lab_1": "0..9", "18 q1": "no, yes"}
SHORT |= {"33 x1": "1..5", "Name for": "people", "Columns that": "lab_* 1-3"}


@pytest.mark.long
def test_columns_alike_share_a_question_and_36_take_15() -> None:
    person = Person(SHORT)
    columns = columns_of(person.interview(MANY))
    assert len(columns) == 36 and len(person.asked) == 15
    assert columns["lab_12"] == {"kind": "numeric", "lower": 0, "upper": 9, "nullable": True}
    assert columns["x4"] == {"kind": "integer", "lower": 1, "upper": 5} and columns["smoker"] == {"kind": "boolean"}
    assert [name for name in columns if columns[name].get("nullable")] == ["age", "ward", "stage", *list(MANY)[5:17]]
    assert any(line.startswith("  12 columns alike: lab_1, lab_2, ") for line in person.told)
    assert "6-17\u00a0lab_1 to lab_12, " in person.told[2]


@pytest.mark.long
def test_columns_alike_may_have_answers_of_their_own() -> None:
    alone = {"6 lab_1 to": "each", "6 lab_1,": "0..1", "7 lab_2": "0..2", "8 lab_3": "lab_* as lab_1"}
    columns = columns_of(Person({**alone, **SHORT}).interview(MANY))
    assert [columns[f"lab_{place}"]["upper"] for place in range(1, 13)] == [1, 2, *[1] * 10]


@pytest.mark.long
def test_a_pattern_needs_an_answer_and_columns() -> None:
    person = Person(SHORT, {"18 q1": ["lab_* as q1", "z* as age", "q* as lab_1"]})
    columns = columns_of(person.interview(MANY))
    assert columns["q1"] == columns["q10"] == {"kind": "numeric", "lower": 0, "upper": 9}
    assert "  column 'q1' has no answer yet. Answer it first." in person.told
    assert "  no column without an answer has a name like z*." in person.told


def test_every_question_has_help() -> None:
    person = Person(KNOWN, {key: ["help" if key == "Words" else "?"] for key in KNOWN})
    person.interview(draft=of_person())
    questions = [key for key in KNOWN if key != "7 note"]
    assert [sum(asked.startswith(key) for asked in person.asked) for key in questions] == [2] * len(questions)
    assert len([line for line in person.told if "X* as X1" in line]) == 8


def test_a_person_goes_back_to_the_last_question_or_to_a_column() -> None:
    back = {"Source": ["<"], "3 pay": ["<"], "2 ward": ["a, b", "back"], "1 age": ["0..1"], "4 day": ["< age"]}
    person = Person({"1 age": KNOWN["1 age"], **KNOWN}, back)
    assert columns_of(person.interview()) == EXPECTED
    order = [key for key in (asked.partition(",")[0] for asked in person.asked) if key[0].isdigit()][:8]
    assert order == ["1 age", "2 ward", "3 pay", "2 ward", "1 age", "2 ward", "3 pay", "4 day"]
    assert "  this is the first question." in person.told


@pytest.mark.long
@given(st.lists(st.sampled_from(["<", "< 1", "< ward", "back 9"]), max_size=4), st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_lines_that_are_taken_again_give_the_answers_that_they_gave(back: list[str], stop: int) -> None:
    kept: list[tuple[str, str]] = []

    def save(lines: Any) -> None:
        kept[:] = lines

    person = Person(ALWAYS, {"8 town": back})
    whole = person.interview(save=save)
    assert Person({}).interview(lines=list(kept)).draft.to_dict() == whole.draft.to_dict()
    rest = Person(ALWAYS).interview(lines=kept[:stop])
    assert columns_of(rest).keys() == columns_of(whole).keys()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with params.yaml, a table, and somebody at the terminal."""
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    rows = {"pid": ["p1", "p2"], "age": ["42", "23"], "sick": ["no", "yes"], "ward": ["Zork", "Blau"]}
    pd.DataFrame(rows).to_csv(tmp_path / "own.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_own, "_terminal", lambda: True)
    return tmp_path


ARGUMENTS = ["init", "own.csv", "--ask", "--person", "pid"]
LINES_TYPED = ["codebook", "sick", "0 110", "", "surgery, medicine", "age", "", "patients", "4"]


@pytest.mark.long
def test_the_files_are_complete_and_nothing_is_spent_without_a_word(clone: Path) -> None:
    result = CliRunner().invoke(app, ARGUMENTS, input="\n".join([*LINES_TYPED, ""]) + "\n", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    params, schema = load_params(), Schema.load("data/schema/own.yaml")
    assert params.privacy.population == "patients" and params.ingest.unit is not None
    assert (params.ingest.unit.column, params.ingest.unit.max_rows) == ("pid", 4)
    assert schema.column("age").nullable and [dropped.name for dropped in schema.dropped] == ["pid"]
    words = r"^[\d,]+ training records are enough for single columns, and [\d,]+ for relations of 0\.3"
    assert re.search(words, result.output, re.MULTILINE)
    assert "The run will spend epsilon 1, make this machine's ledger, bundle to own.zip.\nRun now? " in result.output
    assert "Nothing is spent. Then: likeness ledger init, likeness run --bundle own.zip" in result.output
    assert "Keep own.csv out of git." in result.output  # it lies in the project's folder
    assert not (clone / "ledger").exists()
    assert not {"Zork", "Blau", "p1", "23"} & set(result.output.replace(",", " ").split())


@pytest.mark.long
def test_whoever_says_yes_starts_the_ledger_once_and_the_run(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Path] = []
    monkeypatch.setattr(cli_own, "run", lambda bundle: runs.append(bundle))
    for place, name in enumerate(("own", "again")):
        arguments = [*ARGUMENTS, "--name", name]
        result = CliRunner().invoke(app, arguments, input="\n".join([*LINES_TYPED, "y"]), catch_exceptions=False)
        assert ("make this machine's ledger" in result.output) is ("started ledger" in result.output) is (place == 0)
        assert Home(clone / "ledger", clone / "anchor").database.exists()
    assert runs == [Path("own.zip"), Path("again.zip")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("classifiers: null", "classifiers: [oracle]", "1 to put right:"),
        ("epsilon: 1.0", "epsilon: 50.0", "a run is refused: over budget for 'patients'"),
    ],
    ids=["settings", "cap"],
)
def test_nothing_is_offered_that_would_be_refused(clone: Path, right: str, wrong: str, words: str) -> None:
    params = (clone / "params.yaml").read_text()
    (clone / "params.yaml").write_text(params.replace(right, wrong, 1))
    result = CliRunner().invoke(app, ARGUMENTS, input="\n".join([*LINES_TYPED, "y"]), catch_exceptions=False)
    assert words in result.output and "Run now" not in result.output and not (clone / "ledger").exists()


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 1, 5, len(LINES_TYPED) - 1])
def test_whoever_stops_goes_on_with_the_same_command(clone: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    lines = iter(LINES_TYPED[:count])

    def interrupted(*_: Any, **__: Any) -> str:
        for line in lines:
            return line
        raise typer.Abort

    before = sorted(clone.rglob("*"))
    with monkeypatch.context() as patched:
        patched.setattr(typer, "prompt", interrupted)
        result = CliRunner().invoke(app, ARGUMENTS)
    kept = Path("data/schema/own.answers.json")
    assert result.exit_code == 1 and ("Nothing was written." in result.output) is (count == 0) is (not kept.exists())
    files = [path for path in sorted(clone.rglob("*")) if path.is_file() and path != clone / kept]
    assert files == [path for path in before if path.is_file()]
    assert (clone / "params.yaml").read_text() == (ROOT / "params.yaml").read_text()
    rest = "\n".join([*LINES_TYPED[count:], "", ""])
    result = CliRunner().invoke(app, ARGUMENTS, input=rest, catch_exceptions=False)
    assert result.exit_code == 0 and (f"Going on after {count} answers" in result.output) is (count > 0)
    assert Schema.load("data/schema/own.yaml").source == "codebook" and not kept.exists()
    assert load_params().privacy.population == "patients"


def test_bytes_that_are_no_text_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecodable(*_: Any, **__: Any) -> str:
        return b"\xff".decode()

    monkeypatch.setattr(typer, "prompt", undecodable)
    with pytest.raises(LikenessError, match="not UTF-8 text"):
        cli_own._ask("1 age, integer: ")


def test_nobody_is_asked_who_cannot_answer(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_own, "_terminal", lambda: False)
    with pytest.raises(LikenessError, match="--ask needs a terminal for your answers"):
        CliRunner().invoke(app, ARGUMENTS, catch_exceptions=False)
    assert not (clone / "data").exists()


def test_options_answer_the_questions_of_a_draft(clone: Path) -> None:
    options = ["--label", "sick", "--nullable", "age", "--private"]
    result = CliRunner().invoke(app, ["init", "own.csv", *options], catch_exceptions=False)
    columns = read_mapping(clone / "data/schema/own.yaml")["columns"]
    assert columns["age"] == {"kind": "integer", "bounds": "private"}
    assert columns["ward"] == {"kind": "categorical", "categories": "private", "other": "other"}
    assert columns["sick"] == {"kind": "boolean"} and "(1) is a question" in result.output
    text = (clone / "data/schema/own.yaml").read_text()
    text = text.replace("source: null", "source: x")
    (clone / "data/schema/own.yaml").write_text(text)
    params = yaml.safe_load((clone / "params.yaml").read_text())
    params["privacy"]["population"] = "people"
    (clone / "params.yaml").write_text(yaml.safe_dump(params))
    checked = CliRunner().invoke(app, ["check"], catch_exceptions=False)
    assert checked.exit_code == 0 and "categories of 'pid', 'ward': private. A value needs about" in checked.output


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("wages", "'wages' is not a column"),
        ("sick", "column 'sick' is the label"),
        ("pid", "column 'pid' is the label"),
    ],
)
def test_columns_that_have_no_missing_values_are_refused(clone: Path, option: str, words: str) -> None:
    arguments = ["init", "own.csv", "--person", "pid", "--label", "sick", "--nullable", option]
    with pytest.raises(SchemaError, match=words):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert not (clone / "data").exists()


FILLED = [["pid", "drop", "an id", ""], ["age", "integer", "0..110", "NA, ?"], ["sick", "boolean", "", "no"]]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_sheet_answers_for_its_columns(clone: Path, separator: str) -> None:
    arguments = ["init", "own.csv", "--columns", "columns.csv", "--label", "sick"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0 and "run the same command again" in result.output
    new = (clone / "columns.csv").read_text(encoding="utf-8-sig")
    assert new.splitlines()[1:] == ["pid,categorical,,", "age,integer,,", "sick,boolean,,", "ward,categorical,,"]
    assert not (clone / "data").exists() and not {"Zork", "p1", "42"} & set(re.split(r"\W", new))
    rows = [["name", "kind", "values", "missing"], *FILLED, ["ward", "integer", "", ""]]
    with (clone / "columns.csv").open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    columns = read_mapping(clone / "data/schema/own.yaml")["columns"]
    assert columns["age"] == {"kind": "integer", "lower": 0, "upper": 110, "nullable": True} | {
        "missing_values": ["NA", "?"]
    }
    assert columns["pid"] == {"kind": "drop", "reason": "an id"} and columns["sick"] == {"kind": "boolean"}
    assert columns["ward"] == {"kind": "integer", "lower": None, "upper": None, "nullable": None}  # still a question


def test_one_error_lists_every_fault_of_a_sheet(clone: Path) -> None:
    rows = ["name,kind,values,missing", "age,integer,110..0,", "age,integer,0..1,", "wages,integer,,", "sick,bool,,"]
    (clone / "columns.csv").write_text("\n".join([*rows, 'ward,categorical,"a, a",']))
    with pytest.raises(SchemaError) as caught:
        CliRunner().invoke(app, ["init", "own.csv", "--columns", "columns.csv"], catch_exceptions=False)
    lines = str(caught.value).splitlines()
    assert lines[0] == "columns.csv has faults. Correct them and run the command again."
    assert [line.partition(":")[0] for line in lines[1:]] == [f"row {row}" for row in range(2, 7)]
    assert "'wages' is not a column" in lines[3] and "lists a category twice" in lines[5]
    (clone / "columns.csv").write_bytes(b"name\n\xe4\xf6")
    with pytest.raises(LikenessError, match="Save it as CSV in UTF-8"):
        CliRunner().invoke(app, ["init", "own.csv", "--columns", "columns.csv"], catch_exceptions=False)


def test_the_label_is_no_split(clone: Path) -> None:
    with pytest.raises(SchemaError, match="--split sick is the label"):
        CliRunner().invoke(app, ["init", "own.csv", "--split", "sick", "--label", "sick"], catch_exceptions=False)
