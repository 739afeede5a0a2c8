"""params.yaml, read and checked."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import yaml

from likeness.config.params import _SQLITE, Params
from likeness.config.typed import build
from likeness.core.errors import ParamsError
from likeness.core.paths import ProjectPaths


def load_params(path: Path | str = ProjectPaths.params) -> Params:
    """Read and check params.yaml; in a copy of the project that DVC made for an experiment, with :func:`at_home`.

    Raises:
        ParamsError: names the file, the key, the rule and what is allowed.
    """
    params, root = read_params(path), Path(path).parent
    home = Path(os.environ.get("DVC_ROOT", root))
    return params if home.resolve() == root.resolve() else at_home(params, root, home)


def read_params(path: Path | str = ProjectPaths.params) -> Params:
    """Read and check params.yaml as it is written.

    Raises:
        ParamsError: names the file, the key, the rule and what is allowed.
    """
    content = read_content(path)
    try:
        return params_from(content)
    except ParamsError as error:
        raise ParamsError(f"{path}: {error}") from None


def read_content(path: Path | str) -> dict[str, Any]:
    """What params.yaml holds, unchecked.

    Raises:
        ParamsError: there is no such file, or it holds no sections.
    """
    path = Path(path)
    if not path.exists():
        raise ParamsError(f"{path} is missing. Run from the project's folder.")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: not UTF-8, or a date that does not exist
        raise ParamsError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ParamsError(f"{path} must hold sections, one a line")
    return content


def params_from(content: Mapping[str, Any]) -> Params:
    """Settings from the content of a params.yaml. Sections that are not shared belong to methods.

    Raises:
        ParamsError: names the key, the rule and what is allowed.
    """
    shared = {item.name for item in fields(Params)} - {"sections"}
    sections = {key: value for key, value in content.items() if key not in shared}
    return build(Params, {**{key: content[key] for key in content if key in shared}, "sections": sections}, "")


def at_home(params: Params, root: Path, home: Path) -> Params:
    """The settings of the project in ``root``, which is a copy of that in ``home``.

    ``dvc exp run --temp`` and its queue run stages in a copy that holds what git holds, so neither the private source
    nor a ledger in the project's folder, and name the project in ``DVC_ROOT``. A source that the copy has is its own.
    """
    ingest, ledger, tracking = params.ingest, params.ledger, params.tracking
    place = Path(ingest.source.removeprefix(_SQLITE))
    if not (root / place).exists() and (home / place).exists():
        ingest = replace(ingest, source=source_at(ingest.source, home))
    if ledger.home is not None and not ledger.home.startswith("~"):
        ledger = replace(ledger, home=str(home / ledger.home))
    database = (tracking.uri or "").removeprefix(_SQLITE)
    if database != (tracking.uri or "") and not database.startswith("~"):
        tracking = replace(tracking, uri=f"{_SQLITE}{home / database}")
    return replace(params, ingest=ingest, ledger=ledger, tracking=tracking)


def source_at(source: str, home: Path) -> str:
    """``ingest.source`` as other folders name it: a file's place made absolute; a server's database stays as it is."""
    if "://" in source and not source.startswith(_SQLITE):
        return source
    prefix = _SQLITE if source.startswith(_SQLITE) else ""
    return prefix + str((home / Path(source.removeprefix(_SQLITE)).expanduser()).resolve())
