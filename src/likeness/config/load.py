"""params.yaml, read and checked."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from likeness.config.params import Params
from likeness.core.errors import ParamsError, no_project
from likeness.core.files import expand_home
from likeness.core.paths import ProjectPaths
from likeness.core.text import did_you_mean
from likeness.core.typed import build
from likeness.core.yaml import read_yaml


def load_params(path: Path | str = ProjectPaths.params) -> Params:
    """Read and check params.yaml. In a copy that DVC made for an experiment, apply :func:`params_at_home`.

    Raises:
        ParamsError: names the file, the key, the rule and what is allowed.
    """
    params, root = read_params(path), Path(path).parent
    home = Path(os.environ.get("DVC_ROOT", root))
    return params if home.resolve() == root.resolve() else params_at_home(params, root, home)


def read_params(path: Path | str = ProjectPaths.params) -> Params:
    """Read and check params.yaml as it is written.

    Raises:
        ParamsError: names the file, the key, the rule and what is allowed.
    """
    return check_params(read_content(path), path)


def check_params(content: Mapping[str, Any], path: Path | str) -> Params:
    """Settings from the content of the file at ``path``, which messages name.

    Raises:
        ParamsError: as :func:`read_params`.
    """
    try:
        return params_from(content)
    except ParamsError as error:
        raise ParamsError(f"{path}: {error}") from None


def read_content(path: Path | str) -> dict[str, Any]:
    """Read the content of params.yaml, unchecked.

    Raises:
        ParamsError: there is no such file, or it holds no sections.
    """
    path = Path(path)
    if not path.exists():
        raise ParamsError(no_project(path))
    content = read_yaml(path, ParamsError)
    if not isinstance(content, dict):
        raise ParamsError(f"{path}: must hold sections such as 'privacy:'. `likeness params` prints them.")
    return content


def section_in(content: Mapping[str, Any], key: str) -> Any:
    """A section of params.yaml; empty where it is not there.

    Raises:
        ParamsError: it is no mapping.
    """
    value = content.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ParamsError(f"{ProjectPaths.params}: {key} must be a section with settings, got {value!r}. Correct it.")
    return value or {}


def params_from(content: Mapping[str, Any]) -> Params:
    """Settings from the content of a params.yaml. Sections that are not shared belong to methods.

    Raises:
        ParamsError: names the key, the rule and what is allowed.
    """
    shared = {item.name for item in fields(Params)} - {"sections"}
    sections = {key: value for key, value in content.items() if key not in shared}
    for key, section in sections.items():
        if isinstance(section, Mapping):
            sections[key] = {"expert": {}, **section}  # so that expert keys are refused elsewhere
        if close := did_you_mean(str(key), shared - set(content)):
            raise ParamsError(f"{key} is not a section.{close}")
    return build(Params, {**{key: content[key] for key in content if key in shared}, "sections": sections}, "")


def params_at_home(params: Params, root: Path, home: Path) -> Params:
    """Settings of the project in ``root``, which is a copy of that in ``home``.

    ``dvc exp run --temp`` and its queue run stages in a copy and name the project in ``DVC_ROOT``. The copy holds what
    git holds: no private source and no ledger of the project's folder. A source that the copy holds is used there.
    """
    ingest, ledger, tracking = params.ingest, params.ledger, params.tracking
    path = Path(ingest.source.removeprefix(_file_url(ingest.source)))
    if not (root / path).exists() and (home / path).exists():
        ingest = replace(ingest, source=source_at(ingest.source, home))
    people = ingest.people
    if people is not None and not (root / people).exists() and (home / people).exists():  # a query is no file there
        ingest = replace(ingest, people=source_at(people, home))
    if ledger.home is not None and not ledger.home.startswith("~"):
        ledger = replace(ledger, home=str(home / ledger.home))
    prefix = _file_url(tracking.uri or "")
    database = (tracking.uri or "").removeprefix(prefix)
    if prefix and not database.startswith("~"):
        tracking = replace(tracking, uri=f"{prefix}{home / database}")
    return replace(params, ingest=ingest, ledger=ledger, tracking=tracking)


def source_at(source: str, home: Path) -> str:
    """``ingest.source`` for other folders: the path of a file becomes absolute, the URL of a server stays."""
    prefix = _file_url(source)
    if "://" in source and not prefix:
        return source
    return prefix + str((home / expand_home(source.removeprefix(prefix))).resolve())


def _file_url(source: str) -> str:
    """Give the prefix before the path of a database that is a file; empty where there is none."""
    return next((prefix for prefix in ("sqlite:///", "duckdb:///") if source.startswith(prefix)), "")
