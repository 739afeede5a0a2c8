"""Mirror a run's public numbers to MLflow, once, from files. The only importer of mlflow.

Logged: settings, the privacy account, public figures and documents, how each stage ended, digests of released files and
the ledger's head. Never a private row, count or unkeyed hash: ``dvc.lock`` and the seconds of private stages are left
out. Scores that were computed on real rows are logged only when ``tracking.internal_metrics`` asks for it.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from likeness.artifacts import INTERNAL, LOSS, PRIVACY, REPORT, STATEMENT, open_ledger, read_json
from likeness.params import Params
from likeness.privacy.chain import file_lock

MARKERS = Path(".likeness/stages")
TRACKED = Path(".likeness/tracked.json")


def track(params: Params) -> dict[str, Any]:
    """Log one MLflow run from the run's files.

    Returns:
        run id, experiment, tracking URI and how each stage ended: the content of ``reports/tracking.json``.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when mlflow is imported
    from mlflow.tracking import MlflowClient

    privacy, endings = read_json(PRIVACY), stage_endings()
    uri, folder = tracking_store(params)
    with file_lock(folder / ".tracking.lock"):  # two processes creating one database would race in its migrations
        client = MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(params.tracking.experiment)
        if found is None:
            place = (folder / "artifacts" / params.tracking.experiment).as_uri()
            experiment = client.create_experiment(params.tracking.experiment, artifact_location=place)
        else:
            experiment = found.experiment_id
    run = client.create_run(experiment, run_name=f"{params.method} ε={params.privacy.epsilon:g}")
    _log(client, run.info.run_id, params, privacy, endings)
    client.set_terminated(run.info.run_id)
    _remember()
    return {"run_id": run.info.run_id, "experiment": params.tracking.experiment, "uri": uri, "stages": endings}


def tracking_store(params: Params) -> tuple[str, Path]:
    """Tracking URI and the folder beside it for artifacts and the lock; the default is in the user's data folder."""
    import platformdirs

    folder = Path(platformdirs.user_data_dir("likeness")) / "mlflow"
    uri = os.environ.get("LIKENESS_MLFLOW_URI") or params.tracking.uri
    if uri is not None and uri.startswith("sqlite:///"):
        folder = Path(uri.removeprefix("sqlite:///")).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    return uri or f"sqlite:///{folder / 'mlflow.db'}", folder


def stage_endings() -> dict[str, str]:
    """How each stage ended since the last tracked run: ``ran``, ``restored`` or ``up to date``.

    A stage ran if its marker is newer than the last tracked run; it was restored from DVC's cache if its outputs are
    others than at that time without its having run.
    """
    last: dict[str, Any] = read_json(TRACKED) if TRACKED.exists() else {"time": 0.0, "outs": {}}
    outs = _outputs()
    endings = {}
    for stage, digests in outs.items():
        marker = MARKERS / f"{stage}.json"
        ran = marker.exists() and float(read_json(marker)["ended"]) > float(last["time"])
        changed = digests != last["outs"].get(stage)
        endings[stage] = "ran" if ran else "restored" if changed else "up to date"
    endings.pop("track", None)
    return endings


def _remember() -> None:
    """Note the moment and the outputs, for :func:`stage_endings` of the next run."""
    ended = [float(read_json(path)["ended"]) for path in MARKERS.glob("*.json")]
    TRACKED.parent.mkdir(parents=True, exist_ok=True)
    TRACKED.write_text(json.dumps({"time": max(ended, default=0.0), "outs": _outputs()}))


def _outputs() -> dict[str, dict[str, str]]:
    """Digest of every output by stage, from dvc.lock; for comparison only, never logged."""
    lock = Path("dvc.lock")
    stages = (yaml.safe_load(lock.read_text()) or {}).get("stages", {}) if lock.exists() else {}
    return {name: {out["path"]: str(out.get("md5")) for out in stage.get("outs", [])} for name, stage in stages.items()}


def _log(client: Any, run: str, params: Params, privacy: dict[str, Any], endings: Mapping[str, str]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    from likeness.evaluation.curves import loss_curve, rdp_curve
    from likeness.evaluation.inputs import read_losses

    head = open_ledger(params).head()
    git = ["git", "rev-parse", "HEAD"]
    tags = {
        "git_commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "none",
        "ledger.id": head.ledger_id,
        "ledger.count": str(head.count),
        "ledger.head": head.head,
        "private": str(privacy["private"]).lower(),
        **{f"stage.{name}": how for name, how in endings.items()},
        **{f"released.{query['query']}.sha256": query["sha256"] for query in privacy["queries"]},
    }
    metrics = public_metrics(privacy)
    if params.tracking.internal_metrics:
        tags["not_private"] = "true"
        metrics |= internal_metrics(read_json(INTERNAL / "metrics.json"))
    client.log_batch(
        run,
        metrics=[Metric(name, value, 0, 0) for name, value in metrics.items()] + _losses(),
        params=[Param(name, str(value)[:500]) for name, value in settings(params).items()],
        tags=[RunTag(name, value) for name, value in tags.items()],
    )
    for path in (PRIVACY, STATEMENT, REPORT):
        client.log_artifact(run, str(path))
    with tempfile.TemporaryDirectory() as folder:
        figures = {"loss.png": loss_curve(read_losses(LOSS)), "rdp.png": rdp_curve(privacy["rdp_curve"])}
        for name, png in figures.items():
            (Path(folder) / name).write_bytes(png)
        client.log_artifacts(run, folder, "figures")


def public_metrics(privacy: dict[str, Any]) -> dict[str, float]:
    """The account in numbers."""
    total, lifetime = privacy["total"], privacy["ledger"]["lifetime"]
    markers = [MARKERS / f"{stage}.json" for stage in ("train", "sample")]
    seconds = {f"seconds.{path.stem}": float(read_json(path)["seconds"]) for path in markers if path.exists()}
    return {
        "epsilon": float(total["epsilon_rdp"]),
        "epsilon_gaussian": float(total["epsilon_gaussian"]),
        "delta": float(total["delta"]),
        "rho": float(total["rho"]),
        "lifetime_epsilon": float(lifetime["spent_epsilon"]),
        **seconds,
    }


def internal_metrics(metrics: dict[str, Any]) -> dict[str, float]:
    """Scores computed on real rows, flattened; NOT private."""
    found = {}
    for kind in ("scores", "marginals"):
        for table, values in metrics[kind].items():
            found.update({f"internal.{kind}.{table}.{name}": float(value) for name, value in values.items()})
    return found


def settings(params: Params) -> dict[str, Any]:
    """params.yaml of the chosen method, flattened with dots; the path of the source is left out."""
    from dataclasses import asdict

    value = asdict(params)
    value.pop("sections")
    value["ingest"].pop("source")
    value[params.method] = dict(params.sections[params.method])
    return dict(_flatten(value, ""))


def _flatten(value: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key, item in value.items() for pair in _flatten(item, f"{where}.{key}" if where else str(key))]
    return [(where, value)]


def _losses() -> list[Any]:
    from mlflow.entities import Metric

    rows = [line.split(",") for line in LOSS.read_text().splitlines()[1:]]
    return [Metric("loss", float(loss), 0, int(step)) for step, loss in rows]
