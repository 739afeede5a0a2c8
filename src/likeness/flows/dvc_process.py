"""One DVC process for all stages of a run, which ends with its parent. A start of DVC costs a second."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

from likeness.core.messages import LOG, MARK, REPORT, Report
from likeness.core.paths import ProjectPaths, read_json
from likeness.flows.stage_graph import stage_graph
from likeness.pipeline.dvc_repair import dvc_environment, locked_stages, set_aside
from likeness.pipeline.run_stage import announcement

Ending = Literal["Ran", "Restored", "UpToDate", "Failed"]
Listen = Callable[[Report], None]

ANSWER = "\x06"
"""Begins a line in which :mod:`likeness.flows.dvc_worker` answers."""
_PARTS = re.compile(f"(?=[{ANSWER}{MARK}])")
_PATIENCE = 0.5  # seconds between looks at the clock


@dataclass(frozen=True)
class Outcome:
    """How a stage ended, and a message for a person, which holds no output of the stage but its error message."""

    ending: Ending
    message: str


class DVC:
    """A DVC process that looks at stages and runs them, one at a time. Use it in a ``with`` block.

    The process has a new process group. It and all that it started are killed when an exception, such as that of a
    signal, leaves the block: DVC alone would leave its stage behind as an orphan. A release survives that.
    """

    def __init__(self, root: Path) -> None:
        """Nothing starts before the block.

        Args:
            root: the project's folder.
        """
        self._paths = ProjectPaths(root)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stale: list[str] | None = None
        self._changed = False

    def __enter__(self) -> Self:
        """Repair what a kill left, and start the process."""
        for line in set_aside(self._paths.root):
            LOG.warning(line)
        command = [sys.executable, "-m", "likeness.flows.dvc_worker"]
        self._process = subprocess.Popen(
            command,
            cwd=self._paths.root,
            env={**dvc_environment(), REPORT: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        assert self._process.stdout is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, which has nothing to finish unless an exception leaves the block."""
        self._kill()

    def is_stale(self, stage: str) -> bool:
        """Whether a stage is out of date now: its command, settings, dependencies or outputs are not those of its run.

        Stages that DVC always runs are looked at too: do code, source and ledger stand as their stages have seen them?
        The first call looks at all stages at once. A stage that ran may have changed any later one.
        """
        if self._stale is None:
            self._stale = self._look(list(stage_graph(self._paths.stages)))
        elif self._changed:
            return stage in self._look([stage])
        return stage in self._stale

    def _look(self, stages: list[str]) -> list[str]:
        answer, _ = self._ask(["stale", *stages], lambda _: None)
        return stages if answer is None else list(answer)

    def reproduce(self, stage: str, listen: Listen, timeout: float | None = None, force: bool = False) -> Outcome:
        """Run a stage if it is out of date, or restore its outputs from DVC's cache.

        Args:
            stage: its name.
            listen: gets every line of the stage.
            timeout: seconds after which the stage and this process are killed.
            force: run it in any case.
        """
        failure = self._paths.markers / f"{stage}.failed"
        failure.unlink(missing_ok=True)
        before, alone = self._traces(stage), f"Run it alone to see why: dvc repro -s {stage}"
        listen(Report(announcement(stage, self._paths), safe=True))
        self._changed = True
        answer, late = self._ask(["force" if force else "reproduce", stage], listen, timeout)
        if late:
            self._kill()
            return Outcome("Failed", f"{stage}: stopped after {timeout:g} s. {alone}")
        if answer is not True:
            return Outcome(
                "Failed", failure.read_text(encoding="utf-8") if failure.exists() else f"{stage}: it failed. {alone}"
            )
        marker, outputs = (one != other for one, other in zip(before, self._traces(stage), strict=True))
        ending: Ending = "Ran" if marker else "Restored" if outputs else "UpToDate"
        return Outcome(ending, f"{stage}: {ending}")

    def _ask(self, words: list[str], listen: Listen, timeout: float | None = None) -> tuple[Any, bool]:
        """Give the process a command; return its answer, None where it ended, and whether the time was up."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
        deadline = None if timeout is None else time.monotonic() + timeout
        while deadline is None or time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
            if line is None:
                self._lines.put(None)  # for the next question
                return None, False
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER)), False
            listen(Report.read(line))
        return None, True

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            for part in _PARTS.split(line):  # what a stage writes without an end of line stands before
                if part:
                    self._lines.put(part)
        self._lines.put(None)

    def _traces(self, stage: str) -> tuple[str, Any]:
        """What a stage writes when it ends, and what DVC remembers of its outputs."""
        marker = self._paths.markers / f"{stage}.json"
        return marker.read_text(encoding="utf-8") if marker.exists() else "", locked_stages(self._paths).get(
            stage, {}
        ).get("outs")

    def _kill(self) -> None:
        """Kill the process, and all that it started."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:  # Windows ends no group of processes at once
            import psutil

            with contextlib.suppress(psutil.NoSuchProcess):
                first = psutil.Process(self._process.pid)
                for process in [first, *first.children(recursive=True)]:
                    process.kill()
        self._process.wait()


def last_seconds(paths: ProjectPaths, stage: str) -> float | None:
    """How long a stage took when it last ended well; None if it never did."""
    marker = paths.markers / f"{stage}.json"
    return float(read_json(marker)["seconds"]) if marker.exists() else None
