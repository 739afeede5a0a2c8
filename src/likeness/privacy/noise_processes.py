"""Processes that draw noise for :mod:`likeness.privacy.noise`, which says why that is safe.

Neither forked (a copy of a generator's state would repeat noise) nor made by multiprocessing (which runs the caller's
script again). A process gets a number of coordinates and σ, and gives back noise through a pipe; nothing of it enters a
file, a command line, a log or an error. Noise is as secret as the sums: with a released value it gives the sum.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

_WORTH = 250_000  # coordinates for which a process is worth starting: it draws for seconds, and starts in half of one
_MOST = 4  # processes
_PATIENCE, _SLOWER = 60.0, 10.0  # a process is given up after so many seconds, and so many times what this one took

# Isolated from the environment and the working folder; it looks for packages where this process does.
_PROGRAM = """
import sys
count, scale, *sys.path = sys.argv[1:]
from likeness.privacy.noise import send
send(int(count), float.fromhex(scale))
"""


def shares(count: int) -> list[int]:
    """Coordinates for each process, this one first: at most as many processes as this one may use processors."""
    processes = max(1, min(_usable_processors(), _MOST, count // _WORTH))
    return [count * (place + 1) // processes - count * place // processes for place in range(processes)]


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class NoiseProcess:
    """Draws noise for so many coordinates, from now on."""

    def __init__(self, count: int, scale: float) -> None:
        self._count = count
        self._scale = scale
        self._started = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        # Where Python is embedded, the executable is another program, which must not be started again.
        if not Path(sys.executable or "").name.lower().startswith("python"):
            return
        with suppress(OSError, ValueError):
            path = [entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str)]
            command = [sys.executable, "-I", "-c", _PROGRAM, str(count), scale.hex(), *path]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def noise(self, digest: Callable[[bytes, float], bytes]) -> np.ndarray | None:
        """Wait for the noise, shape (count,), int64.

        Args:
            digest: of noise and σ, which the process has sent behind it.

        Returns:
            None if the process could not be started, was killed, failed, hangs or sent anything else: its noise was not
            looked at, and is gone.
        """
        if self._process is None:
            return None
        try:
            sent, _ = self._process.communicate(timeout=_PATIENCE + _SLOWER * (time.monotonic() - self._started))
        except subprocess.TimeoutExpired:
            return None
        noise, found = sent[: 8 * self._count], sent[8 * self._count :]
        if self._process.returncode != 0 or len(noise) != 8 * self._count or found != digest(noise, self._scale):
            return None
        return np.frombuffer(noise, dtype=np.int64)

    def end(self) -> None:
        """Kill it if it still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


@contextmanager
def started(counts: Sequence[int], scale: float) -> Iterator[list[NoiseProcess]]:
    """A process for each of the counts; none outlives the context."""
    with ExitStack() as ended:
        processes = []
        for count in counts:
            processes.append(NoiseProcess(count, scale))
            ended.callback(processes[-1].end)
        yield processes
