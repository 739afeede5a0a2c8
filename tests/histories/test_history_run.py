"""A whole run of people with histories, stage by stage: two linked tables, and one release with the Python API."""

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from postgres_server import server
from small_project import stage, write_settings
from sqlalchemy import create_engine
from typer.testing import CliRunner
from verdicts import verify
from visits import EXAMPLE, SCHEMA, TABLES

from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.cli.summary import summary_json
from likeness.config.params import Ingest
from likeness.core.errors import DataError, ParamsError
from likeness.core.paths import ProjectPaths, read_json, row_set_file
from likeness.data.private_tables import read_manifest, read_private
from likeness.data.source.split import split_by_person
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import resolve_settings
from likeness.pipeline.account import account
from likeness.pipeline.datasets import read_schema
from likeness.pipeline.doors import rows_of
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.pipeline.tracking import TRACKING
from likeness.preflight.cost import new_releases
from likeness.preflight.faults import examine
from likeness_histories.schema import NEXT

pytestmark = [pytest.mark.long, pytest.mark.process]

STAGES = ("fingerprint", "ingest", "plan", "categories", "preprocess", "auxiliary", "privatize", "train", "sample",
          "evaluate", "account", "report", *(["track"] if "track" in TRACKING else []))  # fmt: skip
METHOD = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}}


def settings(**changed: Any) -> None:
    """params.yaml of the example with a short training, and with other values at keys with underscores for dots."""
    content = yaml.safe_load((EXAMPLE / "params.yaml").read_text())
    content["marginals"] = METHOD
    write_settings({**content, "sample": {}, "evaluate": {}}, changed)


def write_schema(**changed: Any) -> None:
    Path("data/schema/visits.yaml").write_text(yaml.safe_dump({**SCHEMA, **changed}, sort_keys=False))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example as a project, with fewer people."""
    write_project(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    Ledger.create(locate())
    Path("data/raw").mkdir(parents=True)
    for name, table in TABLES.items():
        table.to_csv(f"data/raw/{name}.csv", index=False)
    write_schema()
    settings()
    return tmp_path / "run"


def test_a_run_of_people_with_histories(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten people on the page have 26 events, with a deviation of 6. None has one with probability below 1e-6."""
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{project.parent}/store/mlflow.db")
    settings(
        ledger={"cap": {"epsilon": 1.0, "delta": 1e-5}}, ingest__split={"test_fraction": 0.2, "seed": 3}
    )  # all of the cap
    events = Path("data/raw/events.csv")
    given = pd.read_csv(events)
    strangers = given.head(3).assign(patient=8_675_309)
    pd.concat([given, strangers]).to_csv(events, index=False)
    for name in STAGES:
        stage(name)
    people, following = read_private(ProjectPaths.table), read_private(row_set_file(ProjectPaths.table, NEXT))
    train = {
        name: table[split_by_person(table["patient"].astype(str), 0.2, 3) == "train"] for name, table in TABLES.items()
    }
    assert (people["__split__"] == "train").sum() == len(train["people"]) < 400
    assert following.groupby(["__split__", "__person__"]).size().max() == 5
    tables = {name: pd.read_parquet(f"data/synthetic/{name}.parquet") for name in ("people", "events")}
    assert set(tables["events"]["patient"]) <= set(tables["people"]["patient"])
    assert [*map(list, tables.values())] == [["patient", "sex", "age"], ["patient", "day", "state", "cost"]]
    metrics = json.loads(ProjectPaths.internal_metrics.read_text())
    distances = metrics["distances"]
    assert "are left out: 3." in ProjectPaths.internal_report.read_text()
    assert set(distances) == {"synthetic", "real", "shuffled"}
    assert {"lengths", "transitions", "discrimination"} <= set(distances["real"])

    page = ProjectPaths.report.read_text()
    assert "The people, column by column" in page and "The next <strong>state</strong> after the last" in page
    assert "How long until the next event" in page and page.count('class="event"') > 0 and "<script" not in page
    files = summary_json(ProjectPaths())["files"]
    assert {name for name in files if (project / files[name]).exists()} == {*files} >= {"people", "events_csv"}
    secret = f"{distances['real']['discrimination']:.3g}"
    assert secret in ProjectPaths.internal_report.read_text() and "Discrimination" not in page

    write_bundle(Project.load(), account(Project.load()), Path("bundle"))
    assert {check.name for check in verify(Path("bundle")) if not check.passed} == {"training"}
    assert new_releases(Project.load(), rows_of(Project.load())[0]) == {}
    spent = read_json(ProjectPaths.privacy)["ledger"]["lifetime"]["spent_rho"]
    schema, section = read_schema("data/schema/visits.yaml"), resolve_settings(Project.load().params)["marginals"]
    model = Synthesizer(schema=schema, population="simulated-patients", settings=section).fit(train)
    assert model.privacy["ledger"]["lifetime"]["spent_rho"] == spent  # the releases of the stages


def test_keys_link_in_any_spelling_or_stop_before_anything_is_spent(project: Path) -> None:
    """pandas writes whole numbers with a point where a cell is missing; leading zeros are another key."""
    settings()
    stage("ingest")
    digest, head = read_manifest(ProjectPaths.table)["digest"], Ledger.open(locate()).head()
    events = TABLES["events"]
    events.assign(patient=events["patient"].astype("float")).to_csv("data/raw/events.csv", index=False)
    stage("ingest")
    assert read_manifest(ProjectPaths.table)["digest"] == digest
    events.assign(patient=events["patient"].map("{:05}".format)).to_csv("data/raw/events.csv", index=False)
    with pytest.raises(DataError, match=r"more than 5% of the events name nobody among the people. Nothing was spent"):
        stage("ingest")
    assert Ledger.open(locate()).head() == head


def test_a_database_gives_the_rows_of_files(project: Path) -> None:
    """Two queries, joined by the key. The digest of the training rows is one of both row sets, keyed."""
    manifests = []
    with closing(sqlite3.connect("visits.db")) as connection:
        for name, table in TABLES.items():
            table.sample(frac=1, random_state=0).to_sql(name, connection, index=False)
    query = {"source": "sqlite:///visits.db", "query": "events", "people": "SELECT age, patient, sex FROM people"}
    for changed in ({}, {f"ingest__{key}": value for key, value in query.items()}):
        settings(**changed)
        stage("fingerprint")
        stage("ingest")
        manifests.append((read_manifest(ProjectPaths.table)["digest"], read_json(ProjectPaths.source)["hmac"]))
    assert manifests[0][0] == manifests[1][0] and manifests[0][1] != manifests[1][1] and not examine().faults
    settings(**{**changed, "ingest__people": "SELECT patient, sex FROM people"})
    (fault,) = examine().faults
    assert fault.file == "visits.db: ingest.people" and "column 'age'" in fault.text
    with pytest.raises(DataError, match=r"ingest\.people must give") as caught:
        stage("ingest")
    assert "ingest.query" not in str(caught.value)
    for people, message in (("DELETE FROM people", "ingest.people must be the name of a table, or one SELECT"),
                            ("nobody", "the database refuses ingest.people")):  # fmt: skip
        settings(**{**changed, "ingest__people": people})
        assert any(message in fault.text for fault in examine().faults)


JOINED = "SELECT s.patient, v.day, v.state, v.cost FROM visits v JOIN stays s ON s.stay = v.stay"


def test_events_without_a_name_get_it_by_a_join(project: Path) -> None:
    """In SQLite and, where there is a server, in PostgreSQL: the release is that of the files."""
    stays = TABLES["events"][["patient"]].assign(stay=range(len(TABLES["events"])))
    tables = {
        "people": TABLES["people"],
        "stays": stays,
        "visits": TABLES["events"].drop(columns="patient").assign(stay=stays["stay"]),
    }
    urls = ["sqlite:///hospital.db"]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(pytest.skip.Exception):
            urls.append(f"postgresql+psycopg://owner@/postgres?host={stack.enter_context(server())}")
        digests = set()
        for url in ("", *urls):
            settings(**({"ingest__source": url, "ingest__query": JOINED, "ingest__people": "people"} if url else {}))
            if url:
                engine = create_engine(url)
                for name, table in tables.items():
                    table.sample(frac=1, random_state=1).to_sql(name, engine, index=False)
                engine.dispose()
                assert not examine().faults
            stage("fingerprint")
            stage("ingest")
            digests.add(read_manifest(ProjectPaths.table)["digest"])
    assert len(digests) == 1


def test_a_password_of_the_people_is_refused() -> None:
    with pytest.raises(ParamsError, match=r"ingest\.people must be a plain URL") as caught:
        Ingest("events.csv", "s.yaml", people="https://me:8675309@host/people.csv")
    assert "8675309" not in str(caught.value)


def test_the_check_knows_both_tables(project: Path) -> None:
    done = CliRunner().invoke(app, ["check"])
    assert done.exit_code == 0, done.output
    assert "next_embedding: " in done.stdout and "as wide as with one row" not in done.stdout
    write_schema(people={**SCHEMA["people"], "size": {"kind": "integer", "lower": 0, "upper": 99}})
    settings(sample__where={"state": "ill"})
    done = CliRunner().invoke(app, ["check"])
    assert done.exit_code == 1 and "people.csv: column 'size' of the schema is not in the header" in done.stdout
    assert "sample.where.state must be a column of people: sex, age, size" in done.stdout
    write_schema(most=1)
    assert "visits.yaml: most must be a whole number" in CliRunner().invoke(app, ["check"]).stdout


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ingest__unit": {"column": "patient", "max_rows": 4}}, r"ingest.unit must be {column: patient, max_rows: 6}"),
        ({"privacy__unit": "one row is one person"}, "privacy.unit must be who is protected with all their rows"),
        ({"privacy__adjacency": "replace_one", "privacy__num_records": 400}, "the number of records cannot be public"),
        ({"ingest__people": None}, "ingest.people does not go with this schema of histories. Name the table of people"),
        ({"method": "merf", "merf": {}}, "merf makes no histories"),
    ],
)
def test_settings_that_do_not_go_with_histories_are_refused(
    project: Path, changed: dict[str, Any], message: str
) -> None:
    settings(**changed)
    with pytest.raises(ParamsError, match=message):
        Project.load().plan  # noqa: B018 (worked out on demand)
