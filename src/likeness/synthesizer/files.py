"""A fit as files: the folder of ``save``, and a bundle."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.bundle.contents import CHECKSUMS, PLAN_FILE, PRIVACY, RELEASED, SCHEMA, STATEMENT
from likeness.bundle.files import check_whole, checksums, sums
from likeness.bundle.write import write_bundle
from likeness.core.artifacts import Artifacts
from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.files import expand_home
from likeness.core.format import FORMAT, check_known
from likeness.core.hashing import json_value, sha256_bytes
from likeness.core.paths import ProjectPaths, read_json, write_json
from likeness.data.encoding.frames import FrameType
from likeness.data.schema.yaml import schema_text
from likeness.pipeline.account import account
from likeness.pipeline.datasets import read_schema
from likeness.pipeline.project import Project
from likeness.pipeline.written_tables import write_synthetic
from likeness.release.partition_selection import STAGE as CATEGORIES
from likeness.release.released import load_released
from likeness.synthesizer.parameters import Parameters, from_plain
from likeness.synthesizer.published import SAVED, Published

if TYPE_CHECKING:
    from likeness.config.params import Params

_LEFT_OUT = ("schema", "ledger_home")  # not in the saved parameters: it has a file; it is a place on this machine
_PATHS = {PLAN_FILE: ProjectPaths.plan, PRIVACY: ProjectPaths.privacy, STATEMENT: ProjectPaths.statement}
_FOLDERS = {
    CATEGORIES: ProjectPaths.categories,
    "auxiliary": ProjectPaths.auxiliary,
    "privatize": ProjectPaths.embedding.parent,
}
"""Where a project has the releases of a stage."""


def save(fitted: Published, params: Mapping[str, Any], target: Path) -> None:
    """Write all that may be published into a new folder, which ``likeness sample`` reads as it reads a bundle.

    Args:
        fitted: the fit.
        params: of the synthesizer.
        target: the folder.

    Raises:
        ArtifactError: it exists.
    """
    if target.exists():
        raise ArtifactError(f"{target} exists and is not overwritten. Delete it, or give another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    stored = {name: value for name, value in params.items() if name not in _LEFT_OUT}
    frames = {name: frame.to_dict() for name, frame in fitted.frames.items()}
    saved = {"format": FORMAT, "params": json_value(stored), "frames": frames}
    project = fitted.project
    files = {
        **{name: project.paths.root / path for name, path in _PATHS.items()},
        **{name: project.output(name) for name in project.outputs.generator_files},
        **{f"{RELEASED}/{path.name}": path for path in project.paths.released_files},
    }
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".synthesizer") as temporary:
        folder = Path(temporary) / "synthesizer"
        for name, path in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(path.read_bytes())
        (folder / SCHEMA).write_text(schema_text(project.public_schema.published_schema), encoding="utf-8")
        write_json(folder / SAVED, saved)
        (folder / CHECKSUMS).write_bytes(sums(folder).encode())
        folder.rename(target)


def load(folder: Path) -> tuple[dict[str, Any], Published]:
    """Parameters and fit of a folder in which each file has its form.

    Raises:
        ArtifactError: :func:`save` did not write the folder.
        ReleaseError: generator, released statistics and account do not belong together.
    """
    if not (folder / SAVED).is_file():
        raise ArtifactError(f"{folder} is no saved synthesizer: it has no {SAVED}. Give the folder of save().")
    check_whole(folder, checksums)
    settings = read_json(folder / SAVED)
    check_known(settings, ("format",), SAVED, ArtifactError)
    schema = read_schema(folder / SCHEMA, aliases=False)
    params = {**from_plain(settings["params"]), "schema": schema}
    project = Project(Path(), Parameters(**params).params(), schema, artifacts=Artifacts())
    files = {name: project.paths.root / path for name, path in _PATHS.items()}
    files |= {name: project.output(name) for name in project.outputs.generator_files}
    for path in (folder / RELEASED).glob("*.safetensors"):
        stage = load_released(path).receipt.stage
        files[f"{RELEASED}/{path.name}"] = project.paths.root / _FOLDERS[stage] / path.name
    for name, path in files.items():
        path.write_bytes((folder / name).read_bytes())
    frames = {name: FrameType.from_dict(frame) for name, frame in settings["frames"].items()}
    fitted = Published.from_project(project, frames)
    _check(fitted, folder)
    return params, fitted


def _check(fitted: Published, folder: Path) -> None:
    """Refuse files that do not belong together."""
    stated = {query["query"]: query["sha256"] for query in fitted.privacy["queries"]}
    if stated != {path.stem: sha256_bytes(path.read_bytes()) for path in (folder / RELEASED).iterdir()}:
        raise ReleaseError(f"{folder}: the released files are not those of {PRIVACY}. Restore the folder from a copy.")
    keys = sorted(release.receipt.key for release in fitted.released.values())
    if any(release.provenance["releases"] != keys for release in fitted.generators):
        raise ReleaseError(f"{folder}: the generator was trained on other releases. Restore the folder from a copy.")


def bundle(fitted: Published, params: "Params", target: Path, open_others: bool) -> list[str]:
    """Draw the table, and write the bundle; return the names of its files.

    Args:
        fitted: the fit.
        params: its settings, with the request for the table.
        target: a new folder, or a new .zip file.
        open_others: see :func:`likeness.bundle.write.write_bundle`.
    """
    home = None if params.ledger.home is None else str(expand_home(params.ledger.home).absolute())
    with tempfile.TemporaryDirectory() as temporary:
        params = replace(params, ledger=replace(params.ledger, home=home))
        project = Project(Path(temporary), params, fitted.project.given_schema)
        for name, data in (fitted.project.artifacts or {}).items():
            (project.root / name).parent.mkdir(parents=True, exist_ok=True)
            (project.root / name).write_bytes(data)
        write_synthetic(project, project.model.draw(fitted.generators, *project.sample))
        return write_bundle(project, account(project), target, open_others)
