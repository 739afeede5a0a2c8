"""A project folder of its own for a run with another method or ε: the project's params.yaml stays as it is."""

import math
import shutil
from pathlib import Path
from typing import Any

import yaml

from likeness.config.load import source_at
from likeness.config.typed import allowed, require
from likeness.core.paths import ProjectPaths
from likeness.methods import METHODS
from likeness.pipeline.project import Project
from likeness.preflight.cost import with_target

_COPIED = (Path("src"), Path("stages"), ProjectPaths.stages, Path(".dvcignore"))


def cell_name(cell: Project) -> str:
    """Name of the folder of a cell."""
    return f"{cell.params.method}-epsilon-{cell.params.privacy.epsilon:g}"


def folder_of(cell: Project) -> Path:
    """The folder of a cell: a project below that whose settings it varies."""
    return cell.paths.sweeps / cell_name(cell)


def settings_of(cell: Project) -> dict[str, Any]:
    """params.yaml of a cell: the project's, with the places of source, schema, ledger and encoder made absolute."""
    params, root = cell.params, cell.root
    settings: dict[str, Any] = yaml.safe_load(cell.paths.params.read_text())
    settings["method"], settings["privacy"]["epsilon"] = params.method, params.privacy.epsilon
    settings["ingest"]["source"] = source_at(params.ingest.source, root)
    places = [(settings["ingest"], "schema"), (settings["ledger"], "home")]
    encoded = (settings.get("merf_ae") or {}).get("privatize") or {}
    if str(encoded.get("encoder")).endswith(".safetensors"):  # else a word, as random
        places.append((encoded, "encoder"))
    for section, key in places:
        if section.get(key) is not None:
            section[key] = str((root / Path(section[key]).expanduser()).resolve())
    return settings


def cell_of(project: Project, method: str | None, epsilon: float | None) -> Project:
    """The project of a run with another method or ε, its folder prepared and its settings checked.

    Args:
        project: the project.
        method: None for that of params.yaml.
        epsilon: None for that of params.yaml.

    Returns:
        ``project`` itself where both are None or as in params.yaml.

    Raises:
        ParamsError: params.yaml cannot be read, or the method or ε cannot be. An infinite ε would turn the noise off:
            that is a person's decision, in params.yaml, and not a parameter of a schedule.
    """
    params = project.params
    name, target = method or params.method, params.privacy.epsilon if epsilon is None else epsilon
    if epsilon is not None:
        require(0 < epsilon < math.inf, "epsilon", epsilon, "a finite number greater than 0")
    allowed("method", name, sorted(METHODS))
    if (name, target) == (params.method, params.privacy.epsilon):
        return project
    return Project.load(prepare(with_target(project, name, target)))


def prepare(cell: Project) -> Path:
    """A project folder for one cell: code and public files copied, places of the project made absolute."""
    root, folder = cell.root, folder_of(cell)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ProjectPaths.dvc).mkdir(exist_ok=True)
    # Without git: DVC refuses a dvc.yaml that git ignores.
    cache = (cell.paths.dvc / "cache").resolve()
    (folder / ProjectPaths.dvc / "config").write_text(
        f"[core]\n    analytics = false\n    no_scm = true\n[cache]\n    dir = {cache}\n"
    )
    for name in _COPIED:
        source, target = root / name, folder / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif source.exists():
            shutil.copy(source, target)
    (folder / ProjectPaths.params).write_text(yaml.safe_dump(settings_of(cell), sort_keys=False))
    return folder
