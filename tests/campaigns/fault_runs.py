"""Faults of whole runs: ``dvc repro`` killed again and again in one workspace."""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from likeness.pipeline.dvc_repair import set_aside
from tests.campaigns.fault_field import CAP_RHO, QUERIES, Field, Grounds

LATEST = 25.0  # seconds after its start at which a run is killed at the latest; a whole one takes twice as long
KILLS_OF_ONE = 10  # kills after which a workspace must be let through to its end


class WholeRun:
    """``dvc repro`` in one workspace, from nothing to the end."""

    def __init__(self, field: Field) -> None:
        """A workspace that has not run anything yet."""
        self.field = field
        self.kills = 0
        self.cut_files = 0

    def kill(self, after: float, alone: bool) -> str | None:
        """Start the run, kill it after so many seconds: its process group, or DVC alone, which leaves its stage behind.

        Returns:
            The stage that was at work, or None if the run came to its end before.

        Raises:
            RuntimeError: it came to a bad end by itself.
        """
        self._set_aside()
        with tempfile.TemporaryFile("w+") as output:
            process = repro(self.field, output)
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                process.kill() if alone else os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            told = output.read()
        if process.returncode == -signal.SIGKILL:
            self.kills += 1
            stages = re.findall("Running stage '(.*)'", told)
            return stages[-1] if stages else "before the first stage"
        if process.returncode:
            raise RuntimeError(f"the next run failed: {told.strip()[-300:]}")
        return None

    def ended_well(self) -> list[str]:
        """The next whole run succeeds; the ledger then knows one plan, paid once."""
        self._set_aside()
        with tempfile.TemporaryFile("w+") as output:
            process = repro(self.field, output)
            code = process.wait(600)
            output.seek(0)
            wrong = [f"the next run failed: {output.read().strip()[-300:]}"] if code else []
        records = self.field.records()
        reserved = [record for record in records if record["kind"] == "reserve"] if isinstance(records, list) else []
        if len(reserved) != len(QUERIES):
            wrong.append(f"{len(reserved)} releases were charged, not {len(QUERIES)}")
        return wrong + self.field.broken_rules(CAP_RHO)

    def _set_aside(self) -> None:
        """As ``likeness run`` and the flow do before they start DVC, whose own files a kill may have cut."""
        self.cut_files += len(set_aside(self.field.root))


class KilledRuns:
    """kill -9 of a whole ``dvc repro``; the next trial starts it again and kills it again, until it is through."""

    def __init__(self) -> None:
        """No run at work."""
        self._run: WholeRun | None = None

    def __call__(self, grounds: Grounds, trial: int, dice: random.Random) -> list[str]:
        """One kill; the stage at work is noted."""
        wrong: list[str] = []
        while True:
            run, self._run = self._run or WholeRun(grounds.fresh("run")), None
            try:
                stage = run.kill(dice.uniform(0, LATEST), alone=trial % 2 == 0)
            except RuntimeError as error:
                return [*wrong, str(error)]
            wrong += run.field.broken_rules(CAP_RHO)
            cut = f", {run.cut_files} of DVC's files had been cut" if run.cut_files else ""
            run.cut_files = 0
            if stage is None or run.kills == KILLS_OF_ONE:
                wrong += run.ended_well()
            else:
                self._run = run
            if stage is not None:
                return [*wrong, f"({stage}{cut})"]


def repro(field: Field, output: IO[str]) -> "subprocess.Popen[str]":
    """``dvc repro`` in a field, in a process group of its own; what it prints goes to a file.

    To a file, not a pipe: a stage that its killed DVC left behind keeps a pipe open, and nobody should wait for it.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(field.root / "src"), str(field.root)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "LIKENESS_HOME": str(field.home),
        "LIKENESS_ANCHOR": str(field.anchor),
        "LIKENESS_MLFLOW_URI": f"sqlite:///{field.home.parent}/mlflow.db",
    }
    words, keys = [sys.executable, "-m", "dvc", "repro"], {"cwd": field.root, "env": environment, "stdout": output}
    return subprocess.Popen(words, **keys, stderr=subprocess.STDOUT, text=True, start_new_session=True)
