"""A stage by ``dvc repro``, in a process that ends with its parent, also where a signal ends that."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from likeness.core.messages import LOG, MARK, REPORT, Report
from likeness.core.paths import ProjectPaths, read_json
from likeness.pipeline.dvc_repair import dvc_environment, dvc_processes, locked_stages, set_aside

Ending = Literal["Ran", "Restored", "UpToDate", "Failed"]
Listen = Callable[[Report], None]

_PARTS = re.compile(f"(?={MARK})")
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
_OTHER_RUN = (
    f"{ProjectPaths.lock_of_dvc} names it. Wait until it ends, or end it. If that process is no run, delete the file."
)


@dataclass(frozen=True)
class Outcome:
    """The ending of a stage, and a message for a person, which holds no output of the stage but its error message."""

    ending: Ending
    message: str


def reproduce(
    root: Path, stage: str, listen: Listen, timeout: float = threading.TIMEOUT_MAX, force: bool = False
) -> Outcome:
    """Run a stage if it is out of date, or restore its outputs from DVC's cache.

    First, and after an exception, repair what a kill left of DVC's files. DVC gets a new process group. An exception,
    such as that of a signal, kills all of it: DVC alone would leave its stage behind as an orphan. A release survives.

    Args:
        root: the project's folder.
        stage: its name.
        listen: gets every line of the stage.
        timeout: seconds after which the stage is killed.
        force: run it in any case.

    Returns:
        the ending. No error of a stage is raised.
    """
    _mend(root)
    paths = ProjectPaths(root)
    failure = paths.markers / f"{stage}.failed"
    failure.unlink(missing_ok=True)
    before, remedy = _traces(paths, stage), f"Run it alone to see why: dvc repro -s {stage}"
    process = subprocess.Popen(
        # Another DVC may work in this folder, on another stage.
        [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "-q", "-s", *(["-f"] if force else []), stage],
        cwd=root,
        env={**dvc_environment(root), REPORT: "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    late, heard = threading.Event(), False

    def stop() -> None:
        late.set()
        kill(process)

    clock = threading.Timer(timeout, stop)
    clock.daemon = True
    clock.start()
    try:
        for line in process.stdout:
            heard = True
            for part in filter(None, _PARTS.split(line)):  # what a stage writes without an end of line stands before
                listen(Report.read(part))
        process.wait()
    except BaseException:
        kill(process)
        _mend(root)
        raise
    finally:
        clock.cancel()
    if late.is_set():
        return Outcome("Failed", f"{stage}: stopped after {timeout:g} s. {remedy}")
    if process.returncode:
        message = failure.read_text(encoding="utf-8") if failure.exists() else ""  # empty where the disk is full
        processes = [] if message or heard else dvc_processes(root)  # DVC begins no stage whose files another one uses
        if processes:
            reason = f"another run is at work in this folder: process {', '.join(map(str, processes))}"
            message = f"{stage}: {reason}. {_OTHER_RUN}"
        return Outcome("Failed", message or f"{stage}: it failed. {remedy}")
    marker, outputs = (old != new for old, new in zip(before, _traces(paths, stage), strict=True))
    ending: Ending = "Ran" if marker else "Restored" if outputs else "UpToDate"
    return Outcome(ending, f"{stage}: {ending}")


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit with their exit code, as Ctrl-C raises KeyboardInterrupt.

    Cron's ``timeout``, systemd and a closed terminal send them. By default they end this process alone: DVC and its
    stage would go on, and spend. A signal that is ignored, as under ``nohup``, stays ignored.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for signum in signums:  # ``timeout`` sends it twice: the second must not stop the kill of the stage
            signal.signal(signum, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signums = [signum for signum in _ENDS if signal.getsignal(signum) is signal.SIG_DFL]
    for signum in signums:
        signal.signal(signum, end)
    try:
        yield
    finally:
        for signum in signums:
            if signal.getsignal(signum) is end:
                signal.signal(signum, signal.SIG_DFL)


def _mend(root: Path) -> None:
    """Mend what a kill left of DVC's files, and say so."""
    for line in set_aside(root):
        LOG.warning(line)


def _traces(paths: ProjectPaths, stage: str) -> tuple[str, Any]:
    """Read what a stage writes when it ends, and what DVC remembers of its outputs."""
    marker = paths.markers / f"{stage}.json"
    outputs = locked_stages(paths).get(stage, {}).get("outs")
    return marker.read_text(encoding="utf-8") if marker.exists() else "", outputs


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a process that leads a group, and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows ends no group of processes at once
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            for member in [first, *first.children(recursive=True)]:
                member.kill()
    process.wait()


def last_seconds(paths: ProjectPaths, stage: str) -> float | None:
    """Tell how long a stage took when it last ended well; None if it never did."""
    marker = paths.markers / f"{stage}.json"
    return float(read_json(marker)["seconds"]) if marker.exists() else None
