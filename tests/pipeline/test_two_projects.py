"""Two projects in turn, while the current directory is a third folder; the Python API and the stages are one."""

import dataclasses
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from shutil import copy

import pandas as pd
import pytest
import yaml
from pytest import MonkeyPatch
from small_project import ROOT, Clone, write_project_files
from verdicts import verify

from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.config.load import load_params
from likeness.core.paths import Outputs, ProjectPaths, read_json
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.account import account
from likeness.pipeline.datasets.table import Table
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.tracking import TRACKING

DAG = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
STAGES = [name for name in DAG if name != "track" or name in TRACKING]


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: MonkeyPatch) -> tuple[Path, Path]:
    """One project with a file as its source, one with a database and private categories; and we are elsewhere."""
    for name in ("LIKENESS_HOME", "LIKENESS_MLFLOW_URI"):
        monkeypatch.delenv(name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file, database = tmp_path / "file", tmp_path / "database"
    write_project_files(file, {"categories": ["clerk", "nurse"]}, source="rows.csv").to_csv(
        file / "rows.csv", index=False
    )
    private = {"categories": "private", "other": "rest"}
    table = write_project_files(database, private, source="sqlite:///rows.db", query="SELECT * FROM staff")
    with closing(sqlite3.connect(database / "rows.db")) as connection:
        table.to_sql("staff", connection, index=False)
    return file, database


def names_in(root: Path) -> set[str]:
    """Files of a project below data and reports."""
    return {str(path.relative_to(root)) for folder in ("data", "reports") for path in (root / folder).rglob("*.*")}


@pytest.mark.long
def test_two_projects_take_turns_and_the_current_directory_stays_empty(roots: tuple[Path, Path]) -> None:
    ids = [Ledger.create(Project.load(root).ledger_session.home).id for root in roots]
    for name in STAGES:
        for root in roots:
            run_stage(name, import_module(f"stages.{name}").main, root)
    assert not list(Path.cwd().iterdir())
    first, second = map(names_in, roots)
    assert second - first == {"data/released/categories/categories_1.safetensors"} and not first - second
    for root, ledger_id in zip(roots, ids, strict=True):
        paths = ProjectPaths(root)
        privacy = read_json(paths.privacy)
        assert (privacy["identity"], privacy["ledger"]["id"]) == (root.name, ledger_id)
        assert {*map(Path, privacy["outputs"])} == {*map(Outputs.project_path, Table.outputs.files)}
        assert {path.stem for path in paths.markers.iterdir()} == set(STAGES)
        assert "track" not in STAGES or read_json(paths.tracking)["uri"] == f"sqlite:///{root}/runs.db"
        write_bundle(Project.load(root), account(Project.load(root)), root / "bundle.zip")
        assert not [check for check in verify(root / "bundle.zip") if check.passed is False]


def test_whatever_is_relative_in_the_settings_is_below_the_root(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.delenv("LIKENESS_HOME")
    params = load_params(ROOT / "params.yaml")
    params = dataclasses.replace(
        params,
        ingest=dataclasses.replace(params.ingest, schema="s.yaml", source="sqlite:///a.db", query="visits"),
        ledger=dataclasses.replace(params.ledger, home="ledger"),
    )
    copy(ROOT / "data/schema/adult.yaml", tmp_path / "s.yaml")
    project = Project(tmp_path, params)
    assert project.schema_file == tmp_path / "s.yaml" and project.ledger_session.home.path == tmp_path / "ledger"
    assert project.sources.database is not None and project.sources.database.url == f"sqlite:///{tmp_path}/a.db"
    assert project.params is params  # as they are written: what the ledger notes of them names no folder


@pytest.mark.long
def test_what_the_stages_released_costs_the_api_nothing_and_gives_the_same_rows(
    finished: Clone, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        monkeypatch.setenv(name, finished.environment[name])
    params = yaml.safe_load((finished.root / "params.yaml").read_text())
    table = pd.read_csv(finished.root / "table.csv")
    before = Ledger.open(locate()).head()
    synthesizer = Synthesizer(
        method=params["method"],
        schema=finished.root / params["ingest"]["schema"],
        population=params["privacy"]["population"],
        settings=params[params["method"]],
    ).fit(table[table["split"] == "train"])
    assert Ledger.open(locate()).head() == before
    synthesizer.save(tmp_path / "saved")
    for query in synthesizer.releases_:
        place = "embedding/embedding" if query == "embedding" else f"auxiliary/{query}"
        released = finished.bytes(f"data/released/{place}.safetensors")
        assert (tmp_path / f"saved/released/{query}.safetensors").read_bytes() == released
    for name in ("spec.json", "weights.safetensors"):
        assert (tmp_path / "saved/generator" / name).read_bytes() == finished.bytes(f"data/models/generator/{name}")
    sample = synthesizer.sample(params["sample"]["rows"], seed=params["sample"]["seed"])
    staged = pd.read_parquet(finished.root / "data/synthetic/synthetic.parquet")
    pd.testing.assert_frame_equal(sample.astype(str), staged.astype(str))  # dtypes: those of the frame, of the schema
