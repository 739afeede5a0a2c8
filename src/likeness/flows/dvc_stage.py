"""Run one DVC stage as a child that ends with its parent. Needs no Prefect."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from likeness.core.paths import ProjectPaths
from likeness.pipeline.dvc_repair import dvc_environment, set_aside

Ending = Literal["Ran", "Restored", "UpToDate", "Failed"]


@dataclass(frozen=True)
class Outcome:
    """How a stage ended, and a message for a person, which holds no output of the stage but its error message."""

    ending: Ending
    message: str


def reproduce(stage: str, root: Path, timeout: float) -> Outcome:
    """``dvc repro -s STAGE`` in ``root``; its output goes to standard error.

    The child is a new process group. The whole group is killed after ``timeout`` seconds, and when an exception, such
    as that of a signal, ends this call: DVC alone would leave its stage behind as an orphan.
    """
    for line in set_aside(root):
        print(line, file=sys.stderr, flush=True)
    refusal = root / ProjectPaths.markers / f"{stage}.failed"
    refusal.unlink(missing_ok=True)
    before, alone = _traces(stage, root), f"Run it alone to see why: dvc repro -s {stage}"
    # --wait-for-lock: another dvc may work in this folder, on another stage.
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "-s", stage]
    process = subprocess.Popen(command, cwd=root, env=dvc_environment(), stdout=2, start_new_session=True)
    try:
        code = process.wait(timeout)
    except BaseException as error:
        _kill(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Outcome("Failed", f"{stage}: stopped after {timeout:g} s. {alone}")
    if code:
        message = refusal.read_text() if refusal.exists() else f"{stage}: dvc ended with exit code {code}. {alone}"
        return Outcome("Failed", message)
    marker, outputs = (one != other for one, other in zip(before, _traces(stage, root), strict=True))
    ending: Ending = "Ran" if marker else "Restored" if outputs else "UpToDate"
    return Outcome(ending, f"{stage}: {ending}")


def likeness(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """``likeness WORDS`` in ``root``; what it prints is safe to show."""
    command = [sys.executable, "-m", "likeness", *words]
    return subprocess.run(command, cwd=root, env=dvc_environment(), capture_output=True, text=True, check=False)


def _traces(stage: str, root: Path) -> tuple[str, Any]:
    """What a stage writes when it ends, and what DVC remembers of its outputs."""
    marker, lock = root / ProjectPaths.markers / f"{stage}.json", root / ProjectPaths.lock
    stages = yaml.safe_load(lock.read_text())["stages"] if lock.exists() else {}
    return marker.read_text() if marker.exists() else "", stages.get(stage, {}).get("outs")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group. A release survives that, see the ledger's tests."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
