"""Mirror a run's public numbers to MLflow, once, from files.

Logged: settings, the privacy account, public figures and documents, how each stage ended, digests of released files and
the ledger's head. Never a private row, count or unkeyed hash: ``dvc.lock``, the seconds
of private stages and the place of the source are left out. Times are days: a finer time, less a start known from the
schedule, would give the seconds of private stages. Scores from real rows without noise are logged only with
``tracking.internal_metrics``, and then tagged ``not_private``.
"""

import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mlflow.entities import Dataset, DatasetInput, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.db import utils
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import DBAPIError

from likeness.config.params import Params
from likeness.core.errors import LikenessError
from likeness.core.files import expand_home, file_lock, user_folders
from likeness.core.hashing import json_value, sha256_json
from likeness.core.paths import ProjectPaths, read_json
from likeness.ledger.witness import Witness
from likeness.methods import method_from
from likeness.pipeline.dvc_repair import locked_stages
from likeness.pipeline.project import Project
from likeness.pipeline.provenance import public_settings
from likeness.report.files import read_losses

# Outputs and dependencies of stages whose duration depends on private rows.
_PRIVATE = (ProjectPaths.private, ProjectPaths.internal)
_SQLITE = "sqlite:///"
_UTILS: Any = utils  # it has no types
_BATCH = 500  # metrics in one call; MLflow takes at most 1000 items
_PARAMS, _LONGEST = 100, 500  # settings in one call, and characters of one


def track(project: Project) -> dict[str, Any]:
    """Log one MLflow run from the run's files, and return the content of ``reports/tracking.json``.

    It holds run id, experiment, tracking URI and how each stage ended.

    Raises:
        LikenessError: the tracking store cannot be used.
    """
    params, paths = project.params, project.paths
    privacy, endings = read_json(paths.privacy), stage_endings(paths)
    uri, folder = tracking_store(project)
    with _run(params, uri, folder) as (client, run):
        _log(client, run, project, privacy, endings)
    paths.tracked.parent.mkdir(parents=True, exist_ok=True)
    paths.tracked.write_bytes((json.dumps({"ended": _stage_ends(paths), "outs": _outputs(paths)})).encode())
    tracked = {"run_id": run, "experiment": params.tracking.experiment, "uri": _hide_password(uri)}
    return {**tracked, "stages": endings}


def tracking_store(project: Project) -> tuple[str, Path]:
    """Tracking URI, absolute, and the folder of its lock; for SQLite also of its artifacts.

    ``LIKENESS_MLFLOW_URI`` wins over ``tracking.uri``, which wins over the user's data folder.
    """
    uri = os.environ.get("LIKENESS_MLFLOW_URI") or project.params.tracking.uri or _SQLITE
    inside = uri.removeprefix(_SQLITE) if uri.startswith(_SQLITE) else ""
    database = (project.root / expand_home(inside)).resolve() if inside else user_folders()[0] / "mlflow" / "mlflow.db"
    if uri.startswith(_SQLITE):
        uri = f"{_SQLITE}{database}"
    return uri, database.parent


def stage_endings(paths: ProjectPaths) -> dict[str, str]:
    """Tell how each stage ended since the last tracked run: ``ran``, ``restored`` or ``up to date``.

    A stage ran if its marker changed; it was restored from DVC's cache if only its outputs changed. Stages before
    ``track`` stand in ``dvc.lock`` by then.
    """
    last: dict[str, Any] = read_json(paths.tracked) if paths.tracked.exists() else {}
    ended, before = _stage_ends(paths), last.get("ended", {})
    endings = {}
    for stage, digests in _outputs(paths).items():
        ran = stage in ended and ended[stage] != before.get(stage)
        changed = digests != last.get("outs", {}).get(stage)
        endings[stage] = "ran" if ran else "restored" if changed else "up to date"
    endings.pop("track", None)
    return endings


def public_metrics(privacy: dict[str, Any], endings: Mapping[str, str], paths: ProjectPaths) -> dict[str, float]:
    """The account in numbers, and the seconds of stages that ran and saw nothing private."""
    total, lifetime = privacy["total"], privacy["ledger"]["lifetime"]
    stages = locked_stages(paths)
    public = [stage for stage, how in endings.items() if how == "ran" and not _saw_private(stages[stage])]
    return {
        **{name: float(total[name]) for name in ("epsilon", "epsilon_rdp", "delta", "rho")},
        "lifetime_epsilon": float(lifetime["spent_epsilon"]),
        **{f"seconds.{stage}": float(read_json(paths.markers / f"{stage}.json")["seconds"]) for stage in public},
    }


def internal_metrics(metrics: dict[str, Any]) -> dict[str, float]:
    """Scores computed on real rows, flattened; NOT private."""
    flat = {}
    for kind in ("scores", "marginals", "distances"):
        for table, values in metrics.get(kind, {}).items():
            flat.update({f"internal.{kind}.{table}.{name}": float(value) for name, value in values.items()})
    return flat


def settings(params: Params) -> dict[str, Any]:
    """All settings with their defaults, of the chosen method alone, flattened with dots.

    They are without places, which may hold a password.
    """
    value = public_settings(params)
    del value["sections"]
    value[params.method] = json_value(method_from(params))
    value["ingest"]["schema"] = Path(params.ingest.schema).name
    return dict(_flatten(value, ""))


def run_witnesses(project: Project) -> list[Witness]:
    """The ledger's head at each tracked run.

    Raises:
        LikenessError: the tracking store cannot be used.
    """
    uri, _ = tracking_store(project)
    witnesses: list[Witness] = []
    database = Path(uri.removeprefix(_SQLITE))
    if uri.startswith(_SQLITE) and not (database.exists() and database.stat().st_size):
        return witnesses  # who looks makes no database
    with _errors_in_words(uri):
        if "sql" in uri.partition(":")[0]:  # a client would upgrade a database that lacks tables
            _UTILS._verify_schema(_UTILS.create_sqlalchemy_engine(uri))
        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name(project.params.tracking.experiment)
        token: str | None = None
        while experiment is not None:
            page = client.search_runs([experiment.experiment_id], max_results=_BATCH, page_token=token)
            for run in page:
                tags = run.data.tags
                if {"ledger.id", "ledger.count", "ledger.head"} <= tags.keys():
                    source = f"tracking run {run.info.run_id}"
                    witnesses.append(Witness(source, tags["ledger.id"], int(tags["ledger.count"]), tags["ledger.head"]))
            token = page.token
            if not token:
                break
    return witnesses


@contextmanager
def _errors_in_words(uri: str) -> Iterator[None]:
    try:
        yield
    except (MlflowException, DBAPIError) as error:
        raise _refusal(uri, error) from None


def _refusal(uri: str, error: MlflowException | DBAPIError) -> LikenessError:
    """The error of MLflow or of its database, with a remedy, also for a database of another version."""
    fault, shown = " ".join(str(getattr(error, "orig", error)).replace(uri, "").split()), _hide_password(uri)
    remedy = "Start the server, or set tracking.uri in params.yaml to null for a database in the user's data folder."
    if uri.startswith(_SQLITE):
        remedy = "End a program that holds it, make it writable, or restore it. Moved away, it begins anew, empty."
    if version := re.search(r"out-of-date database schema \(found version (\w+)", fault):
        is_older = any(Path(utils.__file__).parents[1].glob(f"db_migrations/versions/{version[1]}_*.py"))
        fault = f"its tables have version {version[1]}, which this MLflow {'upgrades' if is_older else 'does not know'}"
        upgrade = f"Back it up, and run: mlflow db upgrade {shown}"
        remedy = upgrade if is_older else "A newer one made them. Run: pip install --upgrade mlflow"
    return LikenessError(f"MLflow cannot use {shown} ({fault[:300]}). {remedy}")


@contextmanager
def _run(params: Params, uri: str, folder: Path) -> Iterator[tuple["MlflowClient", str]]:
    """A new MLflow run: it finishes with the block, and fails if the block raises."""
    name = params.tracking.experiment
    # A server chooses the place of artifacts. Beside a database they would land in the working folder.
    location = (folder / "artifacts" / name).as_uri() if uri.startswith(_SQLITE) else None
    folder.mkdir(parents=True, exist_ok=True)
    with _errors_in_words(uri):
        with file_lock(folder / ".tracking.lock"):  # two processes that create one database race in its migrations
            client = MlflowClient(tracking_uri=uri)
            old = client.get_experiment_by_name(name)
            if old is not None and old.lifecycle_stage == "deleted":
                client.restore_experiment(old.experiment_id)
            experiment = client.create_experiment(name, location) if old is None else old.experiment_id
        title = f"{params.privacy.population} {params.method} ε={params.privacy.epsilon:g}"
        run = client.create_run(experiment, start_time=_today(), run_name=title).info.run_id
    try:
        yield client, run
    except BaseException:
        client.set_terminated(run, "FAILED", _today())
        raise
    client.set_terminated(run, end_time=_today())


def _log(client: "MlflowClient", run: str, project: Project, privacy: dict[str, Any], endings: dict[str, str]) -> None:
    """Log everything of a run that may leave."""
    params, paths, head, now = project.params, project.paths, project.ledger.head(), _today()
    tags = {
        "git_commit": project.provenance["git_commit"],
        "ledger.id": head.ledger_id,
        "ledger.count": str(head.count),
        "ledger.head": head.head,
        "private": str(privacy["private"]).lower(),
        **{f"stage.{name}": how for name, how in endings.items()},
    }
    internal, numbers = params.tracking.internal_metrics, public_metrics(privacy, endings, paths)
    if internal:
        numbers |= internal_metrics(read_json(paths.internal_metrics))
    metrics = [Metric(name, value, now, 0) for name, value in numbers.items()]
    if internal or not privacy["private"]:
        tags["not_private"] = "true"
    if internal or privacy["private"]:  # without noise, everything behind the door is as private as the rows
        tags |= {f"released.{query['query']}.sha256": query["sha256"] for query in privacy["queries"]}
        metrics += _log_results(client, run, now, paths)
        tags |= {f"trained.{name}": str(value) for name, value in _environment(project).items()}
    client.log_batch(run, tags=[RunTag(name, value) for name, value in tags.items()])
    shown = [Param(name, str(value)[:_LONGEST]) for name, value in settings(params).items()]
    for start in range(0, len(shown), _PARAMS):
        client.log_batch(run, params=shown[start : start + _PARAMS])
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run, metrics=metrics[start : start + _BATCH])
    schema = project.written_schema  # public, and so is its digest: MLflow wants one, and the rows give none
    digest = sha256_json(project.public_schema.published_schema.to_dict())[:8]
    client.log_inputs(run, [DatasetInput(Dataset(schema.name, digest, "public schema", schema.source))])
    client.log_artifact(run, str(paths.statement))


def _environment(project: Project) -> dict[str, Any]:
    """Device, processor and versions that a training used, from the first generator of a run."""
    spec = project.output(project.outputs.generator_files[0])
    environment: dict[str, Any] = read_json(spec)["provenance"].get("environment", {})
    return environment


def _log_results(client: "MlflowClient", run: str, now: int, paths: ProjectPaths) -> list[Any]:
    """Documents and figures of the run; the loss curve as metrics."""
    for path in (paths.privacy, paths.report):
        client.log_artifact(run, str(path))
    losses = read_losses(paths.loss)
    client.log_artifacts(run, str(paths.figures), "figures")
    steps = losses.pop("iteration")
    return [
        Metric(name, value, now, int(step))
        for name, values in losses.items()
        for step, value in zip(steps, values, strict=True)
        if not math.isnan(value)
    ]


def _outputs(paths: ProjectPaths) -> dict[str, dict[str, str]]:
    """Digest of every output by stage; for comparison only, never logged."""
    outputs = {name: stage.get("outs", []) for name, stage in locked_stages(paths).items()}
    return {name: {out["path"]: str(out.get("md5")) for out in outs} for name, outs in outputs.items()}


def _stage_ends(paths: ProjectPaths) -> dict[str, float]:
    """Tell when each stage last ended, by its marker."""
    return {path.stem: float(read_json(path)["ended"]) for path in sorted(paths.markers.glob("*.json"))}


def _saw_private(stage: Mapping[str, Any]) -> bool:
    """Tell whether a stage reads or writes anything private."""
    paths = [item["path"] for key in ("deps", "outs") for item in stage.get(key, [])]
    return any(Path(path).is_relative_to(private) for path in paths for private in _PRIVATE)


def _flatten(value: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key, item in value.items() for pair in _flatten(item, f"{where}.{key}" if where else str(key))]
    return [(where, value)]


def _today() -> int:
    """Tell when the day began, UTC, in the milliseconds that MLflow counts."""
    return int(time.time()) // 86_400 * 86_400_000


def _hide_password(uri: str) -> str:
    """A URI without user and password."""
    parts = urlsplit(uri)
    return uri if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
