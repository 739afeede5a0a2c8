"""Run one DVC stage as a child that cannot outlive its parent's interest in it. Knows nothing of Prefect."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flows.notify import VARIABLE
from likeness.pipeline.dvc_repair import set_aside

# Exit codes with which likeness.pipeline.run_stage ends after printing a message that is safe to show.
_TOLD = ("2", "3")
Ending = Literal["Ran", "Restored", "UpToDate", "Failed"]


@dataclass(frozen=True)
class Outcome:
    """How a stage ended.

    Attributes:
        ending: what DVC did. message: for a person; never more of the stage's output than its own error message.
    """

    ending: Ending
    message: str


def reproduce(stage: str, root: Path, timeout: float) -> Outcome:
    """``dvc repro -s STAGE`` in ``root``; its output goes to stderr line by line.

    The child is a process group of its own. It is killed as a whole after ``timeout`` seconds, and when this call is
    left by any exception, such as that of a signal: DVC alone would leave its stage behind as an orphan.
    """
    for told in set_aside(root):
        print(told, file=sys.stderr, flush=True)
    # --wait-for-lock: another dvc may be at work in this folder, on another stage.
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "-s", stage]
    process = subprocess.Popen(
        command,
        cwd=root,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(timeout, stop)
    timer.daemon = True
    tail: deque[str] = deque(maxlen=200)
    # What DVC says before it runs or restores a stage.
    announced: dict[str, Ending] = {f"Running stage '{stage}'": "Ran", f"Stage '{stage}' is cached": "Restored"}
    ending: Ending = "UpToDate"
    try:
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            tail.append(line.rstrip("\n"))
            ending = next((name for begin, name in announced.items() if line.startswith(begin)), ending)
        process.wait()
    except BaseException:
        _kill(process)
        process.wait()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        return Outcome("Failed", f"{stage}: stopped after {timeout:g} s. Run it alone to see why: dvc repro -s {stage}")
    if process.returncode:
        return Outcome("Failed", failure_message(stage, list(tail)))
    return Outcome(ending, f"{stage}: {ending}")


def likeness(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """``likeness WORDS`` in ``root``; what it prints is safe to show."""
    command = [sys.executable, "-m", "likeness", *words]
    return subprocess.run(command, cwd=root, env=_environment(), capture_output=True, text=True, check=False)


def failure_message(stage: str, lines: list[str]) -> str:
    """The stage's own error message, or, where it did not write one, DVC's.

    Only what :func:`likeness.pipeline.run_stage.run_stage` prints is sure to hold no private value, so nothing else is
    quoted.
    """
    errors = [line for line in lines if line.startswith("ERROR: ")]
    code = re.search(r"exited with (-?\d+)", errors[-1]) if errors else None
    starts = [place for place, line in enumerate(lines) if line.startswith(f"{stage}: ")]
    if code is not None and code[1] in _TOLD and starts:
        end = next((place for place in range(starts[-1], len(lines)) if lines[place].startswith("ERROR: ")), len(lines))
        return "\n".join(lines[starts[-1] : end]).strip()
    return f"{stage}: {errors[-1].removeprefix('ERROR: ') if errors else 'dvc ended without a message'}"


def _environment() -> dict[str, str]:
    """This process's, with its own ``python`` first: under cron no virtual environment is active."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    ours = {name: value for name, value in os.environ.items() if name != VARIABLE}  # may hold a secret
    return {**ours, "PATH": path, "PYTHONUNBUFFERED": "1"}


def _kill(process: "subprocess.Popen[str]") -> None:
    """Kill the process group; a release survives that, see the ledger's tests."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
