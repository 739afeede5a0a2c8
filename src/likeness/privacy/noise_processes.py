"""Processes that draw noise for :mod:`likeness.privacy.noise`, which says why that is safe.

They are new programs. A fork would copy a generator's state and repeat noise; multiprocessing would run the caller's
script again. A process gets a number of coordinates and σ, and returns noise through a pipe. Noise is as secret as the
sums, because a released value minus its noise is the sum. So none of it enters a file, command line, log or error.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

_WORTH = 250_000  # coordinates that make a process worth its start: it draws for seconds and starts in half a second
_MOST = 16  # processes
_PATIENCE, _SLOWER = 60.0, 10.0  # seconds to wait for a process, plus this multiple of the time this process took

# Isolated from environment and working folder; it searches packages where this process does.
_PROGRAM = """
import sys
count, scale, *sys.path = sys.argv[1:]
from likeness.privacy.noise import send
send(int(count), float.fromhex(scale))
"""


def shares(count: int) -> list[int]:
    """Coordinates for each process, this one first. There are no more processes than usable processors."""
    processes = max(1, min(_usable_processors(), _MOST, count // _WORTH))
    return [count * (index + 1) // processes - count * index // processes for index in range(processes)]


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class NoiseProcess:
    """A process that draws noise. It starts at once."""

    def __init__(self, count: int, scale: float) -> None:
        self._count = count
        self._scale = scale
        self._started = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        # Where Python is embedded, the executable is another program, which must not start again.
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
            digest: from noise and σ to the digest that the process sends after the noise.

        Returns:
            None if the process did not start, was killed, failed, hung or sent other bytes. Its noise is discarded
            unread.
        """
        if self._process is None:
            return None
        try:
            sent, _ = self._process.communicate(timeout=_PATIENCE + _SLOWER * (time.monotonic() - self._started))
        except subprocess.TimeoutExpired:
            return None
        noise, checksum = sent[: 8 * self._count], sent[8 * self._count :]
        if self._process.returncode != 0 or len(noise) != 8 * self._count or checksum != digest(noise, self._scale):
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
def start_processes(counts: Sequence[int], scale: float) -> Iterator[list[NoiseProcess]]:
    """Start a process for each count; none outlives the context."""
    with ExitStack() as ended:
        processes = []
        for count in counts:
            processes.append(NoiseProcess(count, scale))
            ended.callback(processes[-1].end)
        yield processes
