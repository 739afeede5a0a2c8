"""Lattice noise: OpenDP's discrete Gaussian, without a seed. The only importer of opendp; only the door calls it.

Processes share the work for long vectors (:mod:`likeness.privacy.noise_processes`). The values never leave this
process: another one gets a number of coordinates and σ, both public, and returns noise, which is added here.

No two coordinates share randomness. Each process is a new program, never a fork. Its OpenDP takes the seed of its
generator from the operating system, so no process repeats another's draw.

Noise that does not arrive whole is discarded, for reasons other than its values. New noise for its coordinates is drawn
here. So each coordinate of a release has noise exactly once.
"""

import hashlib
import math
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

import numpy as np

from likeness.core.errors import LikenessError
from likeness.privacy import noise_processes

_AT_ONCE = 1 << 16  # coordinates for one call of OpenDP: as Python's integers they take ten times the memory
_FITS = 2.0**50  # up to this σ, noise reaches 2**62, the bound of sums, with probability below exp(−2**22)


def sampler_name() -> str:
    """Library and version, for the receipt. The library is loaded then."""
    import_module("opendp.measurements")
    return f"opendp {version('opendp')} discrete gaussian"


def add_discrete_gaussian(values: np.ndarray, scale: float) -> np.ndarray:
    """Add discrete Gaussian noise to integers.

    ``P[noise = k] ∝ exp(−k²/(2σ²))`` on the integers, independently for each coordinate, by rejection from a discrete
    Laplace with exact rational arithmetic and bits of the operating system (Canonne, Kamath and Steinke 2020). About
    11 µs a coordinate and process.

    Args:
        values: lattice sums, shape ``(dimension,)``, int64.
        scale: σ in lattice steps, positive and finite.

    Returns:
        int64 array of shape ``(dimension,)``.

    Raises:
        LikenessError: σ is not positive and finite.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise LikenessError(f"the noise scale must be positive and finite, got {scale}. Run: likeness run")
    # OpenDP adds without overflow, numpy does not. For noise near 64 bits, OpenDP adds all of it.
    counts = noise_processes.shares(len(values)) if scale <= _FITS else [len(values)]
    first, *parts = np.split(values, np.cumsum(counts)[:-1])
    with noise_processes.start_processes([len(part) for part in parts], scale) as running:
        noisy = [_add_here(first, scale)]
        for part, process in zip(parts, running, strict=True):
            noise = process.noise(digest)
            noisy.append(_add_here(part, scale) if noise is None else part + noise)
    return np.concatenate(noisy)


def choose(scores: Sequence[int], scale: float) -> int:
    """The index of a score, each with probability proportional to ``exp(score / scale)``, by OpenDP's Gumbel noise.

    It compares exact noise by as many bits of the operating system as it needs. ``scale`` is positive and finite.
    """
    from opendp import domains, measurements, measures, metrics, mod

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.linf_distance(T="i64", monotonic=True)
    # Under max_divergence it would permute and flip, which is another mechanism.
    return int(measurements.make_noisy_max(*space, measures.zero_concentrated_divergence(), scale)(list(scores)))


def _add_here(values: np.ndarray, scale: float) -> np.ndarray:
    """Add noise in this process, by OpenDP."""
    # No opendp.prelude: it loads pandas and scikit-learn, which take ten times as long.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    noisy = np.empty(len(values), dtype=np.int64)
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE].tolist()
        domain = domains.vector_domain(domains.atom_domain(T="i64"), size=len(part))
        noisy[start : start + len(part)] = measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale)(part)
    return noisy


def digest(noise: bytes, scale: float) -> bytes:
    """SHA-256 of noise and of the sampler's version, so that no receipt names another version."""
    return hashlib.sha256(f"{sampler_name()} {scale.hex()} ".encode() + noise).digest()


def send(count: int, scale: float) -> None:
    """Draw noise in a started process, and write it with its digest to the standard output."""
    noise = _add_here(np.zeros(count, dtype=np.int64), scale).tobytes()
    sys.stdout.buffer.write(noise + digest(noise, scale))
    sys.stdout.buffer.flush()
