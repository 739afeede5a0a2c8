"""How much memory a process has held at most."""

from pathlib import Path


def peak_mb() -> float:
    """Peak of this process's memory, in MiB (Linux).

    Not ``ru_maxrss``: that survives ``exec``, so that a child begins with the peak of the process that started it.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("/proc/self/status tells no peak: this benchmark needs Linux")
