"""DVC as a child process, and how to go on after a kill that cut its files short.

DVC writes ``dvc.lock`` and ``.dvc/tmp/rwlock`` in place. Killed at that moment, it leaves them empty or cut short, and
from then on every command of DVC fails with a message that names no remedy. Neither file holds a release or a cost: the
ledger does, so that without them stages run again, get their released bytes back and spend nothing.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from likeness.core.paths import ProjectPaths

_PATIENCE = 1.0  # seconds; a DVC at work in the same folder has written its file by then


def dvc_environment() -> dict[str, str]:
    """This process's environment, with its own ``python`` first: under cron no virtual environment is active."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}


def set_aside(root: Path, patience: float = _PATIENCE) -> list[str]:
    """Rename files of DVC in ``root`` that a kill cut short; what is whole stays.

    Args:
        patience: seconds after which a file that looks cut is looked at again, in case somebody was writing it.

    Returns:
        a line for each file, for a person.
    """
    lines = []
    for name, whole in _WHOLE.items():
        path = root / name
        if _readable(path, whole):
            continue
        time.sleep(patience)
        if _readable(path, whole):
            continue
        aside = path.with_name(f"{path.name}.cut")
        path.replace(aside)
        lines.append(f"{name} was cut short by a kill; it is {aside.name} now. Stages run again and spend nothing.")
    return lines


def _readable(path: Path, whole: Callable[[str], bool]) -> bool:
    try:
        return whole(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return True
    except (ValueError, yaml.YAMLError):  # a ValueError: not JSON, or not UTF-8
        return False


def _whole_lock(text: str) -> bool:
    content = yaml.safe_load(text)
    if not isinstance(content, Mapping) or "schema" not in content:
        return False
    stages = content.get("stages", {})
    return isinstance(stages, Mapping) and all(isinstance(one, Mapping) and "cmd" in one for one in stages.values())


_WHOLE: dict[Path, Callable[[str], bool]] = {
    ProjectPaths.lock: _whole_lock,
    ProjectPaths.lock_of_dvc: lambda text: isinstance(json.loads(text), Mapping),
}
