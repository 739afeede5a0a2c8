"""``likeness init --ask`` for people with histories: one question for each column of two tables."""

import runpy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from person import Person
from small_project import ROOT
from typer.testing import CliRunner

import likeness.cli.init as cli_init
from likeness.cli.app import app
from likeness.core.bounds import PrivacyUnit
from likeness.pipeline.datasets import read_schema
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.preflight.interview import Interview
from likeness_histories.draft import HistoryDraft
from likeness_histories.schema import HistorySchema

KINDS = {"sex": "categorical", "born": "date", "day": "date", "state": "categorical", "cost": "numeric"}
TWO = {"people": ["sex", "born"], "events": ["day", "state", "cost"]}
ONE = {"events": list(KINDS)}
ANSWERS = {
    "Source": "codebook", "1 sex": "f, m", "2 born": "1930-01-01..2005-12-31", "3 day": "2020-01-01..2023-12-31",
    "4 state": "well, ill, dead", "5 cost": "0..900 log decimals 2", "Columns that may": "cost", "Words for": "NA",
    "Name for": "patients-2024", "Most events": "6", "Columns that never": "1 born",
    "Values that": "state: dead",
}  # fmt: skip


def drafted(tables: Any = TWO, order: str | None = "day") -> HistoryDraft:
    return HistoryDraft(
        {table: {name: KINDS[name] for name in own} for table, own in tables.items()}, "pid", order, "own"
    )


def interview(person: Person, tables: Any = TWO, order: str | None = "day", **more: Any) -> HistoryDraft:
    found = Interview(person.ask, person.told.append, drafted(tables, order), **more).run()
    assert found.population == ANSWERS["Name for"] and isinstance(found.draft, HistoryDraft)
    return found.draft


def read_back(draft: HistoryDraft, folder: Path) -> HistorySchema:
    (folder / "own.yaml").write_text(draft.text(), encoding="utf-8")
    return read_schema(folder / "own.yaml")


def test_answers_become_the_schema_of_two_tables(tmp_path: Path) -> None:
    person = Person(ANSWERS)
    schema = read_back(interview(person), tmp_path)
    assert schema.most_events == 6 and (schema.person, schema.order, schema.fixed) == ("pid", "day", ())
    assert schema.ends == {"state": ("dead",)}
    assert schema.people is not None and schema.people.names == ("sex", "born")
    assert schema.events.names == ("day", "state", "cost") and schema.events.column("cost").nullable
    assert not [question for question in person.asked if "predict" in question or "never change" in question]


def test_one_table_asks_what_never_changes(tmp_path: Path) -> None:
    schema = read_back(interview(Person(ANSWERS), ONE), tmp_path)
    assert schema.people is None and schema.fixed == ("sex", "born")
    unordered = read_back(interview(Person(ANSWERS), ONE, None), tmp_path)
    assert unordered.order is None and unordered.time_varying[0].name == "day"


@pytest.mark.parametrize(
    ("key", "line", "words"),
    [
        ("3 day", "categorical: a, b", "order 'day' must be a number or date that each event has"),
        ("1 sex", "private", "column 'sex' has private categories, which histories do not support"),
        ("2 born", "2005-12-31..1930-01-01", "column 'born' has bounds"),
        ("Columns that may", "day", "column 'day' is the label, is dropped or has an answer"),
        ("Columns that never", "day", "column 'day' is the label"),
        *(("Columns that never", "sex born state cost", ""), ("Values that", "dead", "'dead' is not a column")),
        ("Values that", "state: asleep", "ends.state: 'asleep' is not a category"),
        *(("Values that", "cost: 4", "ends.cost"), ("Most events", "1", "most must be a whole number from 2 to 999")),
        ("Most events", "many", "'many' is not a whole number"),
    ],
)
def test_a_rule_refuses_an_answer_at_once(key: str, line: str, words: str) -> None:
    person = Person(ANSWERS, {key: [line]})
    tables = ONE if "never" in key else TWO
    found = interview(person, tables)
    assert any(words in told for told in person.told)
    assert found.to_dict() == interview(Person(ANSWERS), tables).to_dict() or not words


def test_whoever_stops_goes_on_and_takes_answers_back() -> None:
    kept: list[tuple[str, str]] = []

    def save(lines: Any) -> None:
        kept[:] = lines

    whole = interview(Person(ANSWERS, {"Columns that never": ["state"], "Values that": ["<"]}), ONE, save=save)
    assert interview(Person({}), ONE, lines=list(kept)).to_dict() == whole.to_dict()
    assert [key for key, _ in kept].count("fixed") == 1 and whole.fixed == ["sex", "born"]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    pd.DataFrame({"pid": ["p1", "p2"], "sex": ["Zork", "Blau"], "born": ["1977-03-03"] * 2}).to_csv(
        tmp_path / "people.csv", index=False
    )
    rows = {"pid": ["p1"], "day": ["2021-07-07"], "state": ["Glum"], "cost": ["17.5"]}
    pd.DataFrame(rows).to_csv(tmp_path / "own.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_init, "_terminal", lambda: True)
    return tmp_path


ARGUMENTS = ["init", "own.csv", "--people", "people.csv", "--person", "pid", "--order", "day"]


def test_the_command_asks_and_leaves_a_project_that_can_run(clone: Path) -> None:
    answers = [ANSWERS[key] for key in ANSWERS if key not in ("Columns that never", "Columns that may", "Words for")]
    lines = [*answers[:6], answers[-1], "cost", "NA", *answers[6:-1], "n"]
    done = CliRunner().invoke(app, [*ARGUMENTS, "--ask"], input="\n".join(lines) + "\n", catch_exceptions=False)
    assert done.exit_code == 0 and "The run will spend epsilon 1" in done.output, done.output
    assert not {"Zork", "Glum", "p1", "17.5"} & set(done.output.replace(",", " ").split())
    project = Project.load()
    assert project.complete_params.ingest.unit == PrivacyUnit("pid", 6)
    assert project.params.ingest.unit is None and project.plan.unit is not None and project.plan.unit.max_rows == 6


def test_the_answers_on_the_page_make_a_complete_schema(clone: Path) -> None:
    """The tables of the page, its command and its answers, in its order."""
    text = (ROOT / "docs/howto/histories.md").read_text()
    command = next(line for line in text.splitlines() if line.startswith("likeness init"))
    shown = text.split("```text\n")[1].split("```")[0].splitlines()
    lines = [line.rpartition("): " if "): " in line else ": ")[2] for line in shown]
    lines = ["" if line.endswith(":") else line for line in lines]
    lines[6] = shown[6].partition("): ")[2]
    for name, table in runpy.run_path(str(ROOT / "examples/histories/make_tables.py"))["tables"](20).items():
        Path("data/raw").mkdir(parents=True, exist_ok=True)
        table.to_csv(f"data/raw/{name}.csv", index=False)
    done = CliRunner().invoke(app, command.split()[1:], input="\n".join([*lines[:-1], "n"]) + "\n")
    assert done.exit_code == 0, done.output
    for line in shown[:-1]:
        assert line.partition(": ")[0] in done.output
    assert Project.load().public_schema == read_schema(ROOT / "examples/histories/schema.yaml")
