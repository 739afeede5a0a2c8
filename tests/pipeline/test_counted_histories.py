"""A run of people with histories who stay in their database: the same integers, digests and charges as of files."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from small_project import stage, write_settings
from test_history_run import EXAMPLE, SCHEMA, TABLES
from typer.testing import CliRunner
from verdicts import verify

from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.core.errors import BudgetError, DataError
from likeness.core.paths import ProjectPaths, of_rows, read_json
from likeness.data.private_tables import read_private
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.counted_rows import CountedRows
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine
from likeness.release.released import load_released
from likeness_histories.schema import NEXT

pytestmark = pytest.mark.long

ASKED = ("settings", "fingerprint", "ingest", "plan", "categories", "preprocess", "auxiliary", "privatize")
LATER = ("train", "sample", "evaluate", "account", "report")
PLACES = {
    "files": {"source": "data/raw/events.csv", "people": "data/raw/people.csv"},
    "duckdb": {
        "source": "duckdb:///visits.duckdb",
        "query": "events",
        "people": "SELECT age, patient, sex FROM people",
    },
    "sqlite": {"source": "sqlite:///visits.db", "query": "SELECT * FROM events", "people": "people"},
}
RULES = [
    {"if": {"sex": "f"}, "then": {"first state": ["well", "ill"]}},
    {"never": {"last state": "ill", "next state": "dead"}},
]


def settings(place: str, rows: str = "stay", **changed: Any) -> None:
    content = yaml.safe_load((EXAMPLE / "params.yaml").read_text())
    content["marginals"] = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}}
    asked = {f"ingest__{key}": value for key, value in {**PLACES[place], "rows": rows}.items()}
    write_settings({**content, "sample": {}, "evaluate": {}}, {**asked, **changed})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example with fewer people and some events of nobody, in files and in two databases."""
    write_project(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    Ledger.create(locate())
    Path("data/raw").mkdir(parents=True)
    day, cost = {"lower": "2020-01-01", "upper": "2020-03-01"}, {"kind": "integer", "lower": 0, "upper": 20}
    events = {**SCHEMA["events"], "day": {"kind": "date", **day}, "cost": cost}
    schema = {**SCHEMA, "which": "hash", "most": 4, "memory": ["usual", "before"], "rules": RULES, "events": events}
    Path("data/schema/visits.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    events, people = TABLES["events"].round({"cost": 0}), TABLES["people"]
    tables = {"events": events[events["patient"] < 300], "people": people[people["patient"] < 295]}
    with closing(sqlite3.connect("visits.db")) as lite, duckdb.connect("visits.duckdb") as duck:
        for name, table in tables.items():
            table.to_csv(f"data/raw/{name}.csv", index=False)
            table.sample(frac=1, random_state=0).to_sql(name, lite, index=False)
            duck.register("given", table.sample(frac=1, random_state=1))
            duck.execute(f"CREATE TABLE {name} AS SELECT * FROM given")  # noqa: S608
    return tmp_path / "run"


def test_people_who_stay_give_the_integers_of_files(project: Path) -> None:
    """Without noise. Each place has an attempt of its own, so that nothing is known yet."""
    integers = {}
    for place in PLACES:
        ledger = {"attempt": place, "cap": {"epsilon": float("inf"), "delta": 1e-5}}
        settings(place, "come" if place == "files" else "stay", privacy__epsilon=float("inf"), ledger=ledger)
        for name in ASKED:
            stage(name)
        integers[place] = [load_released(path).values.tolist() for path in ProjectPaths().released_files]
    assert integers["files"] == integers["duckdb"] == integers["sqlite"] and len(integers["files"]) == 10


def test_a_whole_run_leaves_people_where_they_are(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger knows them from elsewhere: nothing more is spent, and another population is refused."""
    settings("duckdb")
    assert not examine().faults
    with monkeypatch.context() as nobody_reads:
        nobody_reads.setattr("likeness.data.source.databases.Database.read", None)
        nobody_reads.setattr("likeness.data.source.databases.Database.fingerprint", None)
        for name in (*ASKED, *LATER):
            stage(name)
    paths = ProjectPaths()
    kept = [of_rows(path, prefix) for path in (paths.table, paths.encoded) for prefix in ("", NEXT)]
    assert [len(read_private(path)) for path in kept] == [0] * 4
    receipts = [load_released(path).receipt for path in paths.released_files]
    assert all(receipt.backend.startswith("duckdb ") for receipt in receipts)
    printed = CliRunner().invoke(app, ["sql"], catch_exceptions=False).output
    assert all(f"-- {receipt.query}: {receipt.backend.split()[1]}" in printed for receipt in receipts)
    assert any("stay in their database (duckdb)" in note for note in read_json(paths.privacy)["notes"])
    assert "no comparison with real rows" in paths.internal_report.read_text()
    write_bundle(Project.load(), Path("bundle.zip"))
    assert {check.name for check in verify(Path("bundle.zip")) if check.passed is False} == set()
    spent, released = Ledger.open(locate()).head(), [path.read_bytes() for path in paths.released_files]
    for place, rows in (("files", "come"), ("sqlite", "come"), ("sqlite", "stay")):
        settings(place, rows)
        for name in ASKED:
            stage(name)
        assert [path.read_bytes() for path in paths.released_files] == released
        assert Ledger.open(locate()).head() == spent
    for place, rows in (("sqlite", "stay"), ("sqlite", "come"), ("files", "come")):
        split = {"test_fraction": 0.4, "seed": 99}
        settings(place, rows, privacy__population="others", ingest__split=split)
        with pytest.raises(BudgetError, match="accounted under population"):
            stage("ingest")


def test_people_who_came_are_known_where_they_stay(project: Path) -> None:
    """Both tables, and each alone: other events of these people, and another split."""
    settings("files", "come")
    for name in ASKED:
        stage(name)
    with closing(sqlite3.connect("visits.db")) as connection:
        connection.execute("CREATE TABLE few AS SELECT * FROM events WHERE cost < 3")
        connection.execute("CREATE TABLE old AS SELECT patient, sex, MIN(age + 1, 100) AS age FROM people")
    for tables in ({}, {"ingest__query": "few"}, {"ingest__people": "old"}):
        split = {"test_fraction": 0.2, "seed": 4}
        settings("sqlite", privacy__population="others", ingest__split=split, **tables)
        with pytest.raises(BudgetError, match="accounted under population"):
            stage("ingest")
    settings("sqlite", privacy__population="others", ingest__query="few", ingest__people="old")
    stage("ingest")  # nobody can tell


def test_an_event_of_somebody_else_changes_the_fingerprint(project: Path) -> None:
    settings("sqlite")
    stage("fingerprint")
    before = ProjectPaths.source.read_bytes()
    with closing(sqlite3.connect("visits.db")) as connection, connection:
        connection.execute("UPDATE events SET patient = 200 WHERE patient = 100")
    stage("fingerprint")
    assert ProjectPaths.source.read_bytes() != before


def test_histories_that_change_after_ingest_are_not_released(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also an event that only the other row set sees."""
    settings("duckdb")
    for name in ASKED[:6]:
        stage(name)
    with duckdb.connect("visits.duckdb") as connection:
        connection.execute("UPDATE events SET cost = 19 WHERE day = (SELECT MAX(day) FROM events)")
    with pytest.raises(
        DataError, match=r"visits\.duckdb: the rows changed since they were ingested\. Nothing more was spent"
    ):
        stage("auxiliary")
    assert "reserve" not in {record.kind for record in Ledger.open(locate()).records()}
    with monkeypatch.context() as later:  # as if they changed right after the check
        later.setattr(CountedRows, "check", lambda _: None)
        with pytest.raises(DataError, match="Nothing was released, and the cost of this query stays on record"):
            stage("auxiliary")
    assert not ProjectPaths().auxiliary_files
    with pytest.raises(DataError, match="Nothing more was spent on this query"):  # which a run before has paid
        stage("auxiliary")
    assert [record.kind for record in Ledger.open(locate()).records()].count("reserve") == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"people": "SELECT * FROM people WHERE patient > 100"}, "more than 5% of the events name nobody"),
        ({"people": "SELECT patient, sex, 'x' AS age FROM people"}, "column 'age'"),
        (
            {"query": "SELECT NULL AS patient, day, state, cost FROM events"},
            "'patient' of ingest.unit must hold a text",
        ),
    ],
)
def test_why_people_cannot_stay_is_said(project: Path, changed: dict[str, str], message: str) -> None:
    settings("sqlite", **{f"ingest__{key}": value for key, value in changed.items()})
    with pytest.raises(DataError, match=message):
        stage("ingest")
