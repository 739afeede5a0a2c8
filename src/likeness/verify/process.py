"""The checks of a stranger's bundle in a process that ends when its time or its memory does.

The process is a new program, as those of :mod:`likeness.privacy.noise_processes`: a fork would copy locks, and
multiprocessing would run the caller's script again.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from likeness.bundle.verdict import Check
from likeness.core.errors import ArtifactError
from likeness.core.messages import LOG

# Isolated from environment and working folder; it searches packages where this process does.
_PROGRAM = """
import sys
path, retrain, minutes, shows, trusted, *sys.path = sys.argv[1:]
from likeness.verify.checks import send
send(path, retrain == "True", float(minutes), shows == "True", trusted.split())
"""
_FOR_EVER = 1e6  # minutes


def checks_within(
    path: Path, retrain: bool, most_minutes: float, trusted: Collection[str]
) -> tuple[list[Check], str | None]:
    """The checks that were done in time and in memory, and why there are no more; None where all are done.

    Args:
        path: a bundle, which the process unpacks.
        retrain: whether to train the generator again.
        most_minutes: for all of them.
        trusted: plug-ins that they may load.

    Raises:
        ArtifactError: the path is no bundle.
    """
    packages = [entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str)]
    arguments = [path.absolute(), retrain, most_minutes, LOG.isEnabledFor(logging.INFO), " ".join(trusted)]
    command = [sys.executable, "-I", "-c", _PROGRAM, *map(str, arguments), *packages]
    with tempfile.TemporaryDirectory() as temporary:  # a process that is ended leaves nothing
        environment = {**os.environ, "TMPDIR": temporary}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as process:
            try:
                sent, _ = process.communicate(timeout=60 * most_minutes if most_minutes < _FOR_EVER else None)
                reason = f"the process ended with {process.returncode}: not enough memory, or somebody stopped it"
            except subprocess.TimeoutExpired:
                process.kill()
                sent, _ = process.communicate()
                reason = f"stopped after {most_minutes:g} minutes. Allow more: likeness verify --most-minutes"
            finally:
                process.kill()
    whole = [json.loads(line) for line in sent[: sent.rfind(b"\n") + 1].splitlines()]
    if whole and isinstance(whole[-1], str):
        raise ArtifactError(whole[-1])
    return [Check(*line) for line in whole], reason if process.returncode else None
