"""DVC as a child process, what it remembers, and the repair of files that a kill cut short.

DVC writes ``dvc.lock`` and ``.dvc/tmp/rwlock`` in place. A kill at that moment leaves them empty or cut short. Then
every command of DVC fails with a message that names no remedy. A copy of ``dvc.lock`` from before the stage takes its
place. The ledger holds all releases and costs. Stages that run again get their released bytes back and spend nothing.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from likeness.core.files import make_private_folder, whole_file
from likeness.core.paths import ProjectPaths
from likeness.core.yaml import load_written

_PATIENCE = 1.0  # seconds; a DVC at work in the same folder has written its file by then


def dvc_environment(root: Path) -> dict[str, str]:
    """This process's environment for a child in a project, with its ``python`` first: under cron no venv is active.

    It speaks UTF-8, as its reader does, whatever the locale is. DVC keeps digests of files in a cache of pickles, which
    run as code when they are read. By default each user of the machine may write there, so it gets a private folder.
    """
    site = root.resolve() / ProjectPaths.site_cache
    if site.parents[1].is_dir():  # else DVC itself says that this is no project of its own
        site.parent.mkdir(exist_ok=True)
        make_private_folder(site)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {"DVC_SITE_CACHE_DIR": str(site), **os.environ}
    return {**environment, "PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}


def locked_stages(paths: ProjectPaths) -> dict[str, dict[str, Any]]:
    """Read DVC's record of the last run of each stage; empty before the first."""
    content = load_written(paths.lock.read_text(encoding="utf-8")) if paths.lock.exists() else None
    stages: dict[str, dict[str, Any]] = (content or {}).get("stages") or {}
    return stages


def set_aside(root: Path, patience: float = _PATIENCE) -> list[str]:
    """Rename files of DVC that a kill cut short; whole files stay. ``dvc.lock`` becomes what it was at the last look.

    Args:
        root: the project's folder.
        patience: seconds before a second look at a file that looks cut, in case somebody writes it.

    Returns:
        a line for each file, for a person.
    """
    lines = []
    cut = cut_files(root)
    if cut:
        time.sleep(patience)
        cut = cut_files(root)
    for name in _WHOLE:
        path, copy = root / name, root / ProjectPaths.lock_copy
        if name in cut:
            aside = path.with_name(f"{path.name}.cut")
            path.replace(aside)
            back = name == ProjectPaths.lock and copy.exists() and _readable(copy, _whole_lock)
            if back:
                shutil.copyfile(copy, path)
            effect = "Stages that ended meanwhile run again" if back else "Stages run again"
            fault = f"A kill cut {name} short, or a hand changed it. It is {aside.name} now."
            lines.append(f"{fault} {effect} and spend nothing.")
        elif name == ProjectPaths.lock and path.exists():
            copy.parent.mkdir(exist_ok=True)
            with whole_file(copy) as part:
                shutil.copyfile(path, part)
    return lines


def cut_files(root: Path) -> list[Path]:
    """Files of DVC that look cut short, by their paths in the project."""
    return [name for name, whole in _WHOLE.items() if not _readable(root / name, whole)]


def run_at_work(root: Path) -> str:
    """Name the processes of DVC that use files of the project now, without those that ended; empty if there is none."""
    try:
        held = json.loads((root / ProjectPaths.lock_of_dvc).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return ""
    import psutil  # DVC needs it

    users = [*held.get("write", {}).values(), *(user for each in held.get("read", {}).values() for user in each)]
    living = sorted({user["pid"] for user in users if psutil.pid_exists(user["pid"])})
    remedy = f"{ProjectPaths.lock_of_dvc} names it. Wait, or end it. If that process is no run, delete the file."
    return f"another run is at work in this folder: process {', '.join(map(str, living))}. {remedy}" if living else ""


def _readable(path: Path, whole: Callable[[str], bool]) -> bool:
    try:
        return whole(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return True
    except (ValueError, yaml.YAMLError):  # a ValueError: not JSON, or not UTF-8
        return False


@lru_cache(maxsize=1)
def _whole_lock(text: str) -> bool:
    content = load_written(text)
    if not isinstance(content, Mapping) or "schema" not in content:
        return False
    stages = content.get("stages", {})
    return isinstance(stages, Mapping) and all(map(_is_stage, stages.values()))


def _is_stage(item: Any) -> bool:
    """Tell whether DVC reads the record of a stage; a hand may have renamed its keys."""
    if not isinstance(item, Mapping) or not {"cmd"} <= {*item} <= {"cmd", "deps", "params", "outs"}:
        return False
    listed = [item.get(key) or [] for key in ("deps", "outs")]
    return all(
        isinstance(files, list) and all(isinstance(file, Mapping) and "path" in file for file in files)
        for files in listed
    )


_WHOLE: dict[Path, Callable[[str], bool]] = {
    ProjectPaths.lock: _whole_lock,
    ProjectPaths.lock_of_dvc: lambda text: isinstance(held := json.loads(text), dict) and {*held} <= {"read", "write"},
}
