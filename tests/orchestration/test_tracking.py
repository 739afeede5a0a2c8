"""Tracking against a real MLflow database: public numbers arrive, private ones do not."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest import CaptureFixture

from likeness.core.errors import ArtifactError, LikenessError
from likeness.core.hashing import sha256_json
from likeness.core.paths import ProjectPaths
from likeness.core.refusals import refusals_of
from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.witness import Witness
from likeness.pipeline.project import Project
from likeness.preflight.doctor import examine_places

ROOT = Path(__file__).parents[2]
MARKER = 0.123456789
PRIVACY: dict[str, Any] = {
    "private": True,
    "total": {"rho": 0.03, "epsilon": 1.0, "epsilon_rdp": 1.09, "epsilon_gaussian": 0.9999, "delta": 1e-5},
    "rdp_curve": {"orders": [2.0, 4.0], "total": [0.1, 0.2], "stages": {"privatize": [0.1, 0.2]}},
    "queries": [{"query": "embedding", "sha256": "ab" * 32}],
    "ledger": {"lifetime": {"spent_epsilon": 1.0}},
}


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator, whose rows nobody looks at."""
    from likeness.methods.saved_generator import SavedGenerator
    from tests.generators.test_mixture import mixture

    folder = tmp_path_factory.mktemp("generator")
    SavedGenerator(mixture(), (0.7, 0.3), {"environment": {"torch": "2", "device": "cpu"}}).save(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path) -> Path:
    """The files that a run leaves, with a planted private number."""
    root = tmp_path / "project"
    (root / "reports/internal/evaluation").mkdir(parents=True)
    (root / "data/models").mkdir(parents=True)
    (root / ".likeness/stages").mkdir(parents=True)
    lines = (ROOT / "params.yaml").read_text().splitlines(keepends=True)
    (root / "params.yaml").write_text("".join(line for line in lines if "tolerance" not in line))
    (root / "reports/privacy.json").write_text(json.dumps(PRIVACY))
    (root / "reports/PRIVACY_STATEMENT.md").write_text("# statement")
    (root / "reports/index.html").write_text("<html></html>")
    metrics = {"scores": {"synthetic": {"accuracy": MARKER}}, "marginals": {"real": {"1": MARKER}}}
    metrics["distances"] = {"real": {"fid": MARKER}}
    (root / "reports/internal/evaluation/metrics.json").write_text(json.dumps(metrics))
    (root / "data/models/loss.csv").write_text("iteration,loss\n1,0.5\n2,0.25\n")
    (root / "reports/figures").mkdir()
    (root / "reports/figures/rdp.png").write_bytes(b"a public picture")
    shutil.copytree(ROOT / "data/schema", root / "data/schema")
    schema = root / "data/schema/adult.yaml"
    dropped = "columns:\n  Anna: {kind: drop, reason: HIV status of Berta}  # and of Carla\n"
    schema.write_text(schema.read_text().replace("columns:\n", dropped, 1))
    shutil.copytree(generator, root / "data/models/generator")
    monkeypatch.chdir(root)
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{tmp_path}/store/mlflow.db")
    Ledger.create(locate())
    return root


def wing() -> Any:
    """MLflow takes seconds to import: a worker that has none of these tests need not."""
    return import_module("likeness_orchestration.tracking")


def track(project: Project) -> dict[str, Any]:
    return wing().track(project)


def everything_stored(folder: Path) -> bytes:
    """Every file of the tracking store, and the database as text."""
    files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    with sqlite3.connect(folder / "mlflow.db") as connection:
        return files + "\n".join(connection.iterdump()).encode()


def test_public_numbers_arrive_and_private_ones_stay(project: Path, tmp_path: Path, capfd: CaptureFixture[str]) -> None:
    run = fetch(track(Project.load()))
    assert run.info.status == "FINISHED" and run.info.run_name == "uci-adult-1994 marginals ε=1"
    (table,) = [used.dataset for used in run.inputs.dataset_inputs]
    schema = Schema.load(ROOT / "data/schema/adult.yaml")
    assert (table.name, table.source) == ("adult", schema.source)
    assert table.digest == sha256_json(schema.to_dict())[:8]  # of the schema alone, never of rows
    assert run.data.metrics["epsilon"] == 1.0 and run.data.metrics["loss"] == 0.25
    assert run.data.params["method"] == "marginals" and run.data.params["marginals.privatize.bins"] == "16"
    assert run.data.params["marginals.train.tolerance"]  # a default, which params.yaml does not name
    assert run.data.tags["trained.device"] == "cpu" and run.data.tags["released.embedding.sha256"] == "ab" * 32
    head = Ledger.open(locate()).head()
    assert run.data.tags["ledger.head"] == head.head
    witness = Witness(f"tracking run {run.info.run_id}", head.ledger_id, head.count, head.head)
    assert wing().run_witnesses(Project.load()) == [witness]
    database = tmp_path / "store/mlflow.db"
    for version, remedy in (("0584bdc529eb", f"run: mlflow db upgrade sqlite:///{database}"), ("newer", "pip install")):
        with sqlite3.connect(database) as connection:
            (right,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            connection.execute("UPDATE alembic_version SET version_num = ?", [version])
        (found,) = (one for one in examine_places(Path()) if one.place == "database of MLflow")
        assert f"tables have version {version}" in found.fault and remedy in found.fault
        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", [right])
    stored = everything_stored(tmp_path / "store")
    assert b"# statement" in stored and b"<html>" in stored  # the search looks into artifacts too
    assert b"0.12345678" not in stored
    assert b"adult.csv" not in stored  # the place of the private source
    assert not any(name in stored for name in (b"Anna", b"Berta", b"Carla"))  # nor what nobody synthesizes
    assert "INFO" not in "".join(capfd.readouterr())  # MLflow has a line for each step of a new database


def test_scores_on_real_rows_only_when_asked(project: Path) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["tracking"]["internal_metrics"] = True
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    run = fetch(track(Project.load()))
    assert run.data.metrics["internal.scores.synthetic.accuracy"] == MARKER
    assert run.data.metrics["internal.distances.real.fid"] == MARKER and run.data.tags["not_private"] == "true"


def test_endings(project: Path) -> None:
    """Marker newer: ran; other outputs without a run: restored; else up to date."""

    def lock(**digests: str) -> None:
        stages = {name: {"outs": [{"path": f"{name}.out", "md5": md5}]} for name, md5 in digests.items()}
        (project / "dvc.lock").write_text(yaml.safe_dump({"stages": stages}))

    def marker(name: str, ended: float) -> None:
        (project / f".likeness/stages/{name}.json").write_text(json.dumps({"ended": ended, "seconds": 1.0}))

    lock(ingest="1", train="1", sample="1")
    for name in ("ingest", "train", "sample"):
        marker(name, 10.0)
    assert set(wing().stage_endings(ProjectPaths()).values()) == {"ran"}
    track(Project.load())
    assert set(wing().stage_endings(ProjectPaths()).values()) == {"up to date"}
    marker("ingest", 20.0)
    lock(ingest="2", train="2", sample="1")
    assert wing().stage_endings(ProjectPaths()) == {"ingest": "ran", "train": "restored", "sample": "up to date"}


def test_seconds_of_private_stages_are_left_out(project: Path) -> None:
    """They tell how many rows there are."""
    stages = {
        "ingest": {"outs": [{"path": "data/private/typed/done.json", "md5": "1"}]},
        "evaluate": {"outs": [{"path": "reports/internal/evaluation/metrics.json", "md5": "1"}]},
        "preprocess": {"deps": [{"path": "data/private/typed/done.json"}], "outs": [{"path": "x", "md5": "1"}]},
        "train": {"deps": [{"path": "data/released"}], "outs": [{"path": "data/models", "md5": "1"}]},
        "sample": {"outs": [{"path": "data/synthetic", "md5": "1"}]},
    }
    (project / "dvc.lock").write_text(yaml.safe_dump({"stages": stages}))
    for name in set(stages) - {"sample"}:
        (project / f".likeness/stages/{name}.json").write_text(json.dumps({"ended": 1.0, "seconds": 2.5}))
    run = fetch(track(Project.load()))
    assert {name for name in run.data.metrics if name.startswith("seconds")} == {"seconds.train"}
    assert run.data.tags["stage.ingest"] == "ran" and run.data.tags["stage.sample"] == "restored"


def test_a_run_and_its_metrics_tell_days(project: Path) -> None:
    """The schedule tells when a run began: with its end to the second, private stages have seconds again."""
    logged = track(Project.load())
    run = fetch(logged)
    client = wing().MlflowClient(tracking_uri=logged["uri"])
    times = [run.info.start_time, run.info.end_time]
    times += [
        metric.timestamp for name in run.data.metrics for metric in client.get_metric_history(run.info.run_id, name)
    ]
    assert len(times) > 5 and not any(time % 86_400_000 for time in times)


def test_without_noise_only_settings_and_the_statement_leave(project: Path, tmp_path: Path) -> None:
    """Sums without noise are private rows in another form, and so are digests and losses computed from them."""
    total = {"rho": "inf", "epsilon": "inf", "epsilon_rdp": "inf", "epsilon_gaussian": "inf", "delta": 1e-5}
    privacy = PRIVACY | {"private": False, "total": total, "ledger": {"lifetime": {"spent_epsilon": "inf"}}}
    (project / "reports/privacy.json").write_text(json.dumps(privacy))
    run = fetch(track(Project.load()))
    assert run.data.tags["not_private"] == "true" and run.data.tags["private"] == "false"
    assert "loss" not in run.data.metrics
    stored = everything_stored(tmp_path / "store")
    assert b"# statement" in stored
    assert b"<html>" not in stored and b"abababab" not in stored
    assert b"a public picture" not in stored and not list((tmp_path / "store").rglob("*.safetensors"))


def test_a_run_that_cannot_be_logged_is_marked_failed(project: Path) -> None:
    (project / "data/models/loss.csv").unlink()
    with pytest.raises(ArtifactError):
        track(Project.load())
    client = wing().MlflowClient(tracking_uri=wing().tracking_store(Project.load())[0])
    experiment = client.get_experiment_by_name("likeness")
    assert [run.info.status for run in client.search_runs([experiment.experiment_id])] == ["FAILED"]
    assert not (project / ".likeness/tracked.json").exists()


def test_a_relative_database_stays_put_and_a_deleted_experiment_comes_back(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", "sqlite:///store/mlflow.db")
    logged = track(Project.load())
    assert logged["uri"] == f"sqlite:///{project}/store/mlflow.db"
    run = fetch(logged)
    assert run.info.artifact_uri.startswith((project / "store/artifacts/likeness").as_uri())
    wing().MlflowClient(tracking_uri=logged["uri"]).delete_experiment(run.info.experiment_id)
    assert fetch(track(Project.load())).info.experiment_id == run.info.experiment_id
    monkeypatch.delenv("LIKENESS_MLFLOW_URI")
    settings = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(settings.replace("uri: null", "uri: sqlite:///runs.db"))
    assert wing().tracking_store(Project.load()) == (f"sqlite:///{project}/runs.db", project)


@pytest.mark.parametrize("uri", ["http://me:hush@127.0.0.1:9", "file:///nowhere"])
def test_a_store_that_cannot_be_used_is_named_without_its_password(
    project: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(LikenessError, match=r"tracking\.uri in params\.yaml") as caught:
        track(Project.load())
    assert uri.rpartition("@")[2] in str(caught.value) and "hush" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no database"])
def test_a_database_that_is_none_is_named_and_an_empty_one_begins(
    project: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{project / 'mlflow.db'}")
    (project / "mlflow.db").write_bytes(content)
    for look in (wing().run_witnesses, track):
        refusals = refusals_of(partial(look, Project.load()))
        assert ["Moved away" in str(refusal) for refusal in refusals] == [True][: len(content)]


@pytest.mark.slow
def test_processes_that_start_a_database_together_all_log(project: Path) -> None:
    """Without a lock all but one fail in the database's migrations."""
    log = "from likeness_orchestration.tracking import track; track(Project.load())"
    code = f"from likeness.pipeline.project import Project; {log}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.wait(timeout=300) == 0, process.communicate()[1]


def fetch(logged: dict[str, Any]) -> Any:
    """The run that was logged."""
    return wing().MlflowClient(tracking_uri=logged["uri"]).get_run(logged["run_id"])
