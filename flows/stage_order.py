"""The stages of ``dvc.yaml`` in an order in which they can run."""

from pathlib import Path
from typing import Any

import yaml

from likeness.core.errors import ArtifactError


def stage_order(path: Path) -> list[str]:
    """Names of the stages, every stage after those whose outputs it reads; among equals, as written.

    Templates such as ``${ingest.schema}`` are compared as text: a stage's output is written the same way where it is
    read.

    Raises:
        ArtifactError: there is no such file, it has no stages, or two stages wait for each other.
    """
    stages = _read(path)
    outputs = {name: _paths(stage, "outs", "metrics", "plots") for name, stage in stages.items()}
    inputs = {name: _paths(stage, "deps", "params") for name, stage in stages.items()}
    waiting = {
        name: {other for other in stages if other != name and _meet(inputs[name], outputs[other])} for name in stages
    }
    order: list[str] = []
    while waiting:
        ready = next((name for name, needs in waiting.items() if needs <= set(order)), None)
        if ready is None:
            raise ArtifactError(f"{path}: these stages wait for each other: {', '.join(waiting)}")
        order.append(ready)
        del waiting[ready]
    return order


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run from the project's folder.") from None
    except yaml.YAMLError as error:
        raise ArtifactError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    stages = content.get("stages") if isinstance(content, dict) else None
    if not isinstance(stages, dict) or not stages:
        raise ArtifactError(f"{path} has no stages")
    return stages


def _paths(stage: dict[str, Any], *keys: str) -> list[Path]:
    """Paths of a stage; an item is a path, or a mapping from path to options."""
    return [Path(item) for key in keys for entry in stage.get(key, []) for item in _names(entry)]


def _names(entry: str | dict[str, Any]) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry)


def _meet(inputs: list[Path], outputs: list[Path]) -> bool:
    """Whether an input is an output, or one lies inside the other."""
    return any(a.is_relative_to(b) or b.is_relative_to(a) for a in inputs for b in outputs)
