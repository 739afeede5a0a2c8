"""The checks of a stranger's bundle in a process that ends when its time or its memory does.

The process is a new program, as those of :mod:`likeness.privacy.noise_processes`: a fork would copy locks, and
multiprocessing would run the caller's script again.
"""

import json
import logging
import math
import os
import subprocess
import sys
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from likeness.bundle.verdict import Check
from likeness.core.files import machine_memory
from likeness.core.messages import LOG, show_messages

# Isolated from environment and working folder; it searches packages where this process does.
_PROGRAM = """
import sys
folder, retrain, minutes, shows, trusted, *sys.path = sys.argv[1:]
from likeness.verify.process import send
send(folder, retrain == "True", float(minutes), shows == "True", trusted.split())
"""


def checks_within(
    folder: Path, retrain: bool, most_minutes: float, trusted: Collection[str]
) -> tuple[list[Check], str]:
    """The checks that were done in time and in memory, and why there are no more; empty where all are done.

    Args:
        folder: a bundle.
        retrain: whether to train the generator again.
        most_minutes: for all of them.
        trusted: plug-ins that they may load.
    """
    path = [entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str)]
    arguments = [folder.absolute(), retrain, most_minutes, LOG.isEnabledFor(logging.INFO), " ".join(trusted)]
    command = [sys.executable, "-I", "-c", _PROGRAM, *map(str, arguments), *path]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            sent, _ = process.communicate(timeout=60 * most_minutes if most_minutes < _FOR_EVER else None)
            reason = f"the process ended with {process.returncode}: not enough memory, or somebody stopped it"
        except subprocess.TimeoutExpired:
            process.kill()
            sent, _ = process.communicate()
            reason = f"stopped after {most_minutes:g} minutes. Allow more: likeness verify --most-minutes"
        finally:
            process.kill()
    whole = sent[: sent.rfind(b"\n") + 1].splitlines()
    return [Check(*json.loads(line)) for line in whole], reason


_FOR_EVER = 1e6  # minutes


def send(folder: str, retrain: bool, most_minutes: float, shows: bool, trusted: Collection[str]) -> None:
    """Make the checks in a started process, and write each to the standard output, where nothing else is written."""
    from likeness.verify import checks_of

    if shows:
        show_messages()
    _bound_memory()
    with os.fdopen(os.dup(1), "w") as sent:
        os.dup2(2, 1)
        for check in checks_of(Path(folder), retrain, most_minutes, trusted):
            sent.write(json.dumps([check.name, check.passed, check.text]) + "\n")
            sent.flush()


def _bound_memory() -> None:
    """Let no array be larger than the memory of the machine: else the system would end other processes, too."""
    most = machine_memory()
    if most < math.inf and find_spec("resource") is not None:
        limits = import_module("resource")
        _, hard = limits.getrlimit(limits.RLIMIT_DATA)
        soft = int(most) if hard == limits.RLIM_INFINITY else min(int(most), hard)
        limits.setrlimit(limits.RLIMIT_DATA, (soft, hard))
