"""Log the generator of a run as an MLflow model: ``mlflow.pyfunc.load_model(uri).predict(1000)``."""

import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow.pyfunc
from mlflow.entities import LoggedModelOutput
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, ParamSchema, ParamSpec
from mlflow.types import Schema as Columns

from likeness import __version__
from likeness.core.paths import Outputs, read_json
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.ledger.records import moment
from likeness.pipeline.project import Project

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

NAME = "generator"
ALIAS = "newest"
"""Of the registered model's version that was logged last."""
_NO_SIGNS = str.maketrans("/:", "__")  # a name of a registered model has neither
_SCRIPT = Path(__file__).with_name("serving.py")


def log_generator(client: "MlflowClient", run: str, project: Project, settings: dict[str, Any]) -> str:
    """Log the generator's files, the schema and the privacy statement as a model of the run; return its URI.

    The model is also the newest version of a registered one, which is named after schema and method.

    It uses the client alone, without MLflow's global state: the stage may run inside another process. No pickle: the
    model is a script, :mod:`likeness.tracking.serving`, and files of safetensors and JSON. ``settings`` are shown
    beside the model.
    """
    experiment = client.get_run(run).info.experiment_id
    shown = {name: str(value) for name, value in settings.items()}
    model = client.create_logged_model(experiment, name=NAME, source_run_id=run, params=shown, model_type="generator")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # wants an example of the input, to run it
        mlflow.pyfunc.save_model(
            path=f"{folder}/model",
            mlflow_model=Model(
                artifact_path=model.artifact_location, run_id=run, model_id=model.model_id, utc_time_created=moment([])
            ),
            python_model=str(_SCRIPT),
            artifacts={
                "generator": str(project.paths.generator),
                "schema": str(_schema_file(project, Path(folder))),
                "privacy": str(project.paths.privacy),
                "statement": str(project.paths.statement),
            },
            signature=signature(*project.model.tables.values()),
            pip_requirements=[f"likeness-dp{_extra(project)}=={__version__}"],
        )
        client.log_model_artifacts(model.model_id, f"{folder}/model")
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(run, [LoggedModelOutput(model.model_id, step=0)])
    name = f"{project.written_schema.name}-{project.params.method}".translate(_NO_SIGNS)
    with suppress(MlflowException):  # an earlier run registered the name
        client.create_registered_model(name)
    version = client.create_model_version(name, model.artifact_location, run, model_id=model.model_id)
    client.set_registered_model_alias(name, ALIAS, version.version)
    return str(model.model_uri)


def trained_on(project: Project) -> dict[str, Any]:
    """Device, processor and versions that a training used, from the first generator of a run."""
    spec = project.root / Outputs.place(project.outputs.generator_files[0])
    found: dict[str, Any] = read_json(spec)["provenance"].get("environment", {})
    return found


def signature(*tables: Schema) -> "ModelSignature":
    """Columns of the only table, and parameters. The input is open: a number, or a column ``rows``."""
    columns = tables[0].columns if len(tables) == 1 else ()
    return ModelSignature(
        outputs=Columns([ColSpec(one.type.logged, one.name, not one.nullable) for one in columns]) if columns else None,
        params=ParamSchema([ParamSpec("where", "string", [], shape=(-1,)), ParamSpec("seed", "long", 0)]),
    )


def _schema_file(project: Project, folder: Path) -> Path:
    """The schema as the generator draws, its open columns completed, without comments and dropped columns."""
    path = folder / "schema.yaml"
    path.write_text(schema_text(project.model.schema.published), encoding="utf-8")
    return path


def _extra(project: Project) -> str:
    """What draws rows beyond the core: PyTorch, where it trained the generator."""
    return "[torch]" if "torch" in trained_on(project) else ""
