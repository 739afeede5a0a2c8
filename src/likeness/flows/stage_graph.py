"""The stages of ``dvc.yaml``: an order in which they can run, and which of them need which."""

from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from likeness.core.errors import ArtifactError, LikenessError, no_project
from likeness.core.yaml import load_written

Graph = dict[str, list[str]]
"""From a stage to the stages whose outputs it reads. A stage comes after all that it reads."""


def stage_graph(path: Path) -> Graph:
    """The graph of the stages.

    Templates such as ``${ingest.schema}`` are compared as text: writers and readers of a path spell it alike.

    Raises:
        ArtifactError: there is no such file, it has no stages, or two stages wait for each other.
    """
    stages = _read(path)
    outputs = {name: _paths(stage, "outs", "metrics", "plots") for name, stage in stages.items()}
    inputs = {name: _paths(stage, "deps", "params") for name, stage in stages.items()}
    graph = {
        name: [other for other in stages if other != name and _meet(inputs[name], outputs[other])] for name in stages
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise ArtifactError(
            f"{path}: these stages wait for each other: {', '.join(error.args[1][1:])}. Remove a dependency."
        ) from None
    ordered: Graph = {}

    def add(name: str) -> None:
        for other in graph[name]:
            if other not in ordered:
                add(other)
        ordered.setdefault(name, graph[name])

    for name in graph:
        add(name)
    return ordered


def left_out(graph: Graph, names: Collection[str]) -> list[str]:
    """Some stages, and every stage that needs one of them, in order.

    Raises:
        LikenessError: there is no stage of such a name.
    """
    for name in names:
        if name not in graph:
            raise LikenessError(f"--without {name}: there is no such stage. Give one of: {', '.join(graph)}.")
    out: list[str] = []
    for name, needed in graph.items():
        if name in names or set(needed) & set(out):
            out.append(name)
    return out


def _read(path: Path) -> dict[str, Any]:
    try:
        content = load_written(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError(no_project(path)) from None
    except yaml.YAMLError as error:
        raise ArtifactError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    stages = content.get("stages") if isinstance(content, dict) else None
    if not isinstance(stages, dict) or not stages:
        raise ArtifactError(f"{path} has no stages. Restore the file of the project.")
    return stages


def _paths(stage: dict[str, Any], *keys: str) -> list[Path]:
    """Paths of a stage; an item is a path, or a mapping from path to options."""
    entries = [entry for key in keys for entry in stage.get(key, [])]
    return [Path(name) for entry in entries for name in ([entry] if isinstance(entry, str) else entry)]


def _meet(inputs: list[Path], outputs: list[Path]) -> bool:
    """Tell whether an input is an output, or one lies inside the other."""
    return any(a.is_relative_to(b) or b.is_relative_to(a) for a in inputs for b in outputs)
