"""How much memory the machine has."""

import math
import os


def machine_memory() -> float:
    """Bytes; infinite where the system does not say. Windows, which does not, refuses a larger array by itself."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
