"""Lattice noise: OpenDP's discrete Gaussian, without a seed. The only importer of opendp; only the door calls it."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np

from likeness.errors import LikenessError

_AT_ONCE = 1 << 15  # coordinates drawn by one call; the calls of a long vector run side by side


def sampler_name() -> str:
    """Library and version, for the receipt."""
    return f"opendp {version('opendp')} discrete gaussian"


def add_discrete_gaussian(values: np.ndarray, scale: float) -> np.ndarray:
    """Add discrete Gaussian noise to integers.

    ``P[noise = k] ∝ exp(−k²/(2σ²))`` on the integers, by rejection from a discrete Laplace with exact rational
    arithmetic and bits of the operating system (Canonne, Kamath and Steinke 2020). About 11 µs a coordinate and core:
    a long vector is cut into pieces, each drawn by a call of its own. The library runs outside of Python's lock, so
    threads share the work, and no process has to be started. Nobody's draws depend on how it is cut.

    Args:
        values: lattice sums, shape ``(dimension,)``, int64.
        scale: σ in lattice steps, positive and finite.

    Returns:
        int64 array of the same shape.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise LikenessError(f"the noise scale must be positive and finite, got {scale}")
    pieces = [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]
    with ThreadPoolExecutor(max(1, min(len(pieces), os.cpu_count() or 1))) as pool:
        drawn = list(pool.map(lambda piece: _noisy(piece, scale), pieces))
    return np.concatenate(drawn) if drawn else values.astype(np.int64)


def _noisy(values: np.ndarray, scale: float) -> np.ndarray:
    """One call of the sampler."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = (dp.vector_domain(dp.atom_domain(T="i64"), size=len(values)), dp.l2_distance(T="f64"))
    measurement = dp.m.make_gaussian(*space, scale=scale)
    return np.asarray(measurement(values.tolist()), dtype=np.int64)
