"""Tracking against a real MLflow database: public numbers arrive, private ones do not."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

from likeness.params import load_params
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger
from likeness.tracking import stage_endings, track

ROOT = Path(__file__).parents[1]
MARKER = 0.123456789
PRIVACY: dict[str, Any] = {
    "private": True,
    "total": {"rho": 0.03, "epsilon_rdp": 1.0, "epsilon_gaussian": 0.9, "delta": 1e-5},
    "rdp_curve": {"orders": [2.0, 4.0], "total": [0.1, 0.2], "stages": {"privatize": [0.1, 0.2]}},
    "queries": [{"query": "embedding", "sha256": "ab" * 32}],
    "ledger": {"lifetime": {"spent_epsilon": 1.0}},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that a run leaves, with a planted private number."""
    root = tmp_path / "project"
    (root / "reports/internal").mkdir(parents=True)
    (root / "data/models").mkdir(parents=True)
    (root / ".likeness/stages").mkdir(parents=True)
    shutil.copy(ROOT / "params.yaml", root)
    (root / "reports/privacy.json").write_text(json.dumps(PRIVACY))
    (root / "reports/PRIVACY_STATEMENT.md").write_text("# statement")
    (root / "reports/index.html").write_text("<html></html>")
    metrics = {"scores": {"synthetic": {"accuracy": MARKER}}, "marginals": {"real": {"1": MARKER}}}
    (root / "reports/internal/metrics.json").write_text(json.dumps(metrics))
    (root / "data/models/loss.csv").write_text("iteration,loss\n1,0.5\n2,0.25\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{tmp_path}/store/mlflow.db")
    Ledger.create(locate())
    return root


def everything_stored(folder: Path) -> bytes:
    """Every file of the tracking store, and the database as text."""
    files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    with sqlite3.connect(folder / "mlflow.db") as connection:
        return files + "\n".join(connection.iterdump()).encode()


def test_public_numbers_arrive_and_private_ones_stay(project: Path, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    logged = track(load_params())
    run = MlflowClient(tracking_uri=logged["uri"]).get_run(logged["run_id"])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["epsilon"] == 1.0 and run.data.metrics["loss"] == 0.25
    assert run.data.params["method"] == "pearl" and run.data.params["pearl.privatize.num_frequencies"] == "1000"
    assert run.data.tags["released.embedding.sha256"] == "ab" * 32
    assert run.data.tags["ledger.head"] == Ledger.open(locate()).head().head
    stored = everything_stored(tmp_path / "store")
    assert b"# statement" in stored and b"<html>" in stored  # the search looks into artifacts too
    assert b"0.12345678" not in stored
    assert b"adult.csv" not in stored  # the place of the private source


def test_scores_on_real_rows_only_when_asked(project: Path) -> None:
    from mlflow.tracking import MlflowClient

    content = yaml.safe_load((project / "params.yaml").read_text())
    content["tracking"]["internal_metrics"] = True
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    logged = track(load_params())
    run = MlflowClient(tracking_uri=logged["uri"]).get_run(logged["run_id"])
    assert run.data.metrics["internal.scores.synthetic.accuracy"] == MARKER
    assert run.data.tags["not_private"] == "true"


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
    assert set(stage_endings().values()) == {"ran"}
    track(load_params())
    assert set(stage_endings().values()) == {"up to date"}
    marker("ingest", 20.0)
    lock(ingest="2", train="2", sample="1")
    assert stage_endings() == {"ingest": "ran", "train": "restored", "sample": "up to date"}
