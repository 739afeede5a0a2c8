"""A run of people with histories who stay in their database: the same integers, digests and charges as of files."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest import MonkeyPatch
from small_project import stage, write_settings
from test_statements import change, write
from typer.testing import CliRunner
from verdicts import verify
from visits import EXAMPLE, SCHEMA, TABLES

from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.core.errors import BudgetError, DataError
from likeness.core.paths import ProjectPaths, read_json, row_set_file
from likeness.data.private_tables import read_private
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.account import account
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine
from likeness.release.released import load_released
from likeness_histories.schema import NEXT
from likeness_postgres.reader import PostgresReader

pytestmark = pytest.mark.long

ASKED = ("settings", "fingerprint", "ingest", "plan", "categories", "preprocess", "auxiliary", "privatize")
LATER = ("train", "sample", "evaluate", "account", "report")
FILES = {"source": "data/raw/events.csv", "people": "data/raw/people.csv"}
RULES = [
    {"if": {"sex": "f"}, "then": {"first state": ["well", "ill"]}},
    {"never": {"last state": "ill", "next state": "dead"}},
]


def there(url: str, **changed: str) -> dict[str, str]:
    """Both tables in the database."""
    return {"source": url, "query": "events", "people": "SELECT age, patient, sex FROM people", **changed}


def settings(place: dict[str, str], rows: str = "stay", **changed: Any) -> None:
    content = yaml.safe_load((EXAMPLE / "params.yaml").read_text())
    content["marginals"] = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}}
    asked = {f"ingest__{key}": value for key, value in {**place, "rows": rows}.items()}
    write_settings({**content, "sample": {}, "evaluate": {}}, {**asked, **changed})


@pytest.fixture
def project(tmp_path: Path, url: str, monkeypatch: MonkeyPatch) -> Path:
    """The example with fewer people and some events of nobody, in files and in a database."""
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
    for name, table in tables.items():
        table.to_csv(f"data/raw/{name}.csv", index=False)
        write(url, name, table.sample(frac=1, random_state=0))
    return tmp_path / "run"


def test_people_who_stay_give_the_integers_of_files(project: Path, url: str) -> None:
    """Without noise. Each place has an attempt of its own, so that nothing is known yet."""
    integers = []
    for place, rows in ((FILES, "come"), (there(url), "stay")):
        ledger = {"attempt": rows, "cap": {"epsilon": float("inf"), "delta": 1e-5}}
        settings(place, rows, privacy__epsilon=float("inf"), ledger=ledger)
        for name in ASKED:
            stage(name)
        integers.append([load_released(path).values.tolist() for path in ProjectPaths().released_files])
    assert integers[0] == integers[1] and len(integers[0]) == 10


def test_a_whole_run_leaves_people_where_they_are(project: Path, url: str, monkeypatch: MonkeyPatch) -> None:
    """The ledger knows them from elsewhere: nothing more is spent, and another population is refused."""
    settings(there(url))
    assert not examine().faults
    with monkeypatch.context() as nobody_reads:
        nobody_reads.setattr("likeness.data.source.databases.Database.read", None)
        nobody_reads.setattr("likeness.data.source.databases.Database.fingerprint", None)
        for name in (*ASKED, *LATER):
            stage(name)
    paths = ProjectPaths()
    kept = [row_set_file(path, prefix) for path in (paths.table, paths.encoded) for prefix in ("", NEXT)]
    assert [len(read_private(path)) for path in kept] == [0] * 4
    receipts = [load_released(path).receipt for path in paths.released_files]
    assert all(receipt.backend.startswith("postgres ") for receipt in receipts)
    printed = CliRunner().invoke(app, ["sql"], catch_exceptions=False).output
    assert all(f"-- {receipt.query}: {receipt.backend.split()[1]}" in printed for receipt in receipts)
    assert any("stay in their database (postgres)" in note for note in read_json(paths.privacy)["notes"])
    assert "no comparison with real rows" in paths.internal_report.read_text()
    write_bundle(Project.load(), account(Project.load()), Path("bundle.zip"))
    assert {check.name for check in verify(Path("bundle.zip")) if check.passed is False} == set()
    spent, released = Ledger.open(locate()).head(), [path.read_bytes() for path in paths.released_files]
    for place, rows in ((FILES, "come"), (there(url), "come"), (there(url), "stay")):
        settings(place, rows)
        for name in ASKED:
            stage(name)
        assert [path.read_bytes() for path in paths.released_files] == released
        assert Ledger.open(locate()).head() == spent
    for place, rows in ((there(url), "stay"), (there(url), "come"), (FILES, "come")):
        split = {"test_fraction": 0.4, "seed": 99}
        settings(place, rows, privacy__population="others", ingest__split=split)
        with pytest.raises(BudgetError, match="accounted under population"):
            stage("ingest")


def test_people_who_came_are_known_where_they_stay(project: Path, url: str) -> None:
    """Both tables, and each alone: other events of these people, and another split."""
    settings(FILES, "come")
    for name in ASKED:
        stage(name)
    few = "CREATE TABLE few AS SELECT * FROM events WHERE cost < 3"
    change(url, few, "CREATE TABLE old AS SELECT patient, sex, LEAST(age + 1, 100) AS age FROM people")
    for tables in ({}, {"query": "few"}, {"people": "old"}):
        split = {"test_fraction": 0.2, "seed": 4}
        settings(there(url, **tables), privacy__population="others", ingest__split=split)
        with pytest.raises(BudgetError, match="accounted under population"):
            stage("ingest")
    settings(there(url, query="few", people="old"), privacy__population="others")
    stage("ingest")  # nobody can tell


def test_an_event_of_somebody_else_changes_the_fingerprint(project: Path, url: str) -> None:
    settings(there(url))
    stage("fingerprint")
    before = ProjectPaths.source.read_bytes()
    change(url, "UPDATE events SET patient = 200 WHERE patient = 100")
    stage("fingerprint")
    assert ProjectPaths.source.read_bytes() != before


def test_histories_that_change_after_ingest_are_not_released(project: Path, url: str, monkeypatch: MonkeyPatch) -> None:
    """Also an event that only the other row set sees."""
    settings(there(url))
    for name in ASKED[:6]:
        stage(name)
    change(url, "UPDATE events SET cost = 19 WHERE day = (SELECT MAX(day) FROM events)")
    with pytest.raises(DataError, match=r": the rows changed since they were ingested\. Nothing more was spent"):
        stage("auxiliary")
    assert "reserve" not in {record.kind for record in Ledger.open(locate()).records()}
    with monkeypatch.context() as later:  # as if they changed right after the check
        later.setattr(PostgresReader, "check", lambda *_: None)
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
            {"query": "SELECT CAST(NULL AS text) AS patient, day, state, cost FROM events"},
            "'patient' of ingest.unit must hold a text",
        ),
    ],
)
def test_why_people_cannot_stay_is_said(project: Path, url: str, changed: dict[str, str], message: str) -> None:
    settings(there(url, **changed))
    with pytest.raises(DataError, match=message):
        stage("ingest")
