"""One DVC stage as a process of its own: output relayed, the whole process group killed when the flow ends."""

import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 6 * 3600.0


class StageFailedError(Exception):
    """A stage failed; the text is the stage's own message, which never holds a private value."""


@dataclass(frozen=True)
class Ended:
    """How a stage ended: ``Ran``, ``Restored`` (from DVC's cache) or ``UpToDate``."""

    stage: str
    how: str


def run_dvc_stage(stage: str, timeout: float = TIMEOUT_SECONDS) -> Ended:
    """``dvc repro --single-item STAGE`` in its own process group.

    DVC leaves its command running when it is killed, and starts it a second time later; so the group is killed as a
    whole on time-out, on SIGTERM and on SIGINT. A release would survive even that: it is drawn once.

    Raises:
        StageFailedError: the stage ended with an error.
    """
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", stage]
    # dvc runs `python`: it must be the one that runs the flow.
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=environment,
    )
    assert process.stdout is not None
    expired = threading.Event()
    timer = threading.Timer(timeout, lambda: (expired.set(), os.killpg(process.pid, signal.SIGKILL)))
    timer.start()
    lines: list[str] = []
    try:
        # To the console and not to Prefect's log: stage output is safe, but no database needs a copy of it.
        for line in process.stdout:
            lines.append(line.rstrip())
            print(line, end="", file=sys.stderr, flush=True)
        process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        timer.cancel()
    if expired.is_set():
        raise StageFailedError(f"{stage}: not finished after {timeout:g} seconds, and killed")
    output = "\n".join(lines)
    if process.returncode:
        raise StageFailedError(_message(stage, lines))
    if "is cached - skipping run" in output:
        return Ended(stage, "Restored")
    return Ended(stage, "UpToDate" if "didn't change, skipping" in output else "Ran")


def _message(stage: str, lines: list[str]) -> str:
    """The stage's own last words, or DVC's."""
    own = [line for line in lines if line.startswith(f"{stage}: ")]
    if own:
        return own[-1]
    code = re.search(r"exited with (-?\d+)", "\n".join(lines))
    told = [line for line in lines if line.startswith("ERROR")]
    return f"{stage}: " + (told[-1] if told else f"exit code {code[1] if code else 'unknown'}")
