"""A project folder of its own for a run with another method or ε: the project's params.yaml stays as it is."""

import math
import shutil
from pathlib import Path
from typing import Any

import yaml

from likeness.config.load import load_params, source_at
from likeness.config.params import Params
from likeness.config.typed import allowed, require
from likeness.methods import METHODS
from likeness.preflight.cost import with_target

SWEEPS = Path("sweeps")
_COPIED = ("src", "stages", "dvc.yaml", ".dvcignore")


def cell_name(params: Params) -> str:
    """Folder of a cell."""
    return f"{params.method}-epsilon-{params.privacy.epsilon:g}"


def settings_of(params: Params, root: Path) -> dict[str, Any]:
    """params.yaml of a cell: this project's, with absolute places of source, schema, ledger and public files."""
    settings: dict[str, Any] = yaml.safe_load((root / "params.yaml").read_text())
    settings["method"], settings["privacy"]["epsilon"] = params.method, params.privacy.epsilon
    settings["ingest"]["source"] = source_at(params.ingest.source, root)
    places = [(settings["ingest"], "schema"), (settings["ledger"], "home")]
    for section, key in places:
        if section.get(key) is not None:
            section[key] = _absolute(section[key], root)
    return {key: _with_files(value, root) if key in METHODS else value for key, value in settings.items()}


def _absolute(path: str, root: Path) -> str:
    return str((root / Path(path).expanduser()).resolve())


def _with_files(value: Any, root: Path) -> Any:
    """Settings of a method, its public files at their absolute places: texts that end in .safetensors."""
    if isinstance(value, dict):
        return {key: _with_files(item, root) for key, item in value.items()}
    return _absolute(value, root) if isinstance(value, str) and value.endswith(".safetensors") else value


def cell_of(root: Path, method: str | None, epsilon: float | None) -> Path:
    """The folder of a run with another method or ε, prepared and its settings checked.

    Args:
        root: the project. method, epsilon: None for that of params.yaml.

    Returns:
        ``root`` itself where both are None or as in params.yaml.

    Raises:
        ParamsError: params.yaml cannot be read, or the method or ε cannot be. An infinite ε would turn the noise off:
            that is a person's decision, in params.yaml, and not a parameter of a schedule.
    """
    params = load_params(root / "params.yaml")
    name, target = method or params.method, params.privacy.epsilon if epsilon is None else epsilon
    if epsilon is not None:
        require(0 < epsilon < math.inf, "epsilon", epsilon, "a finite number greater than 0")
    allowed("method", name, sorted(METHODS))
    if (name, target) == (params.method, params.privacy.epsilon):
        return root
    cell = with_target(params, name, target)
    folder = root / SWEEPS / cell_name(cell)
    prepare(cell, root, folder)
    load_params(folder / "params.yaml")
    return folder


def prepare(params: Params, root: Path, folder: Path) -> None:
    """A project folder for one cell: code and public files copied, places of this project made absolute."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".dvc").mkdir(exist_ok=True)
    # Without git: DVC refuses a dvc.yaml that git ignores.
    cache = (root / ".dvc" / "cache").resolve()
    (folder / ".dvc" / "config").write_text(
        f"[core]\n    analytics = false\n    no_scm = true\n[cache]\n    dir = {cache}\n"
    )
    for name in _COPIED:
        source, target = root / name, folder / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif source.exists():
            shutil.copy(source, target)
    (folder / "params.yaml").write_text(yaml.safe_dump(settings_of(params, root), sort_keys=False))
