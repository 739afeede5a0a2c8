"""Lattice noise: OpenDP's discrete Gaussian, without a seed. The only importer of opendp; only the door calls it.

Long vectors are divided among processes (:mod:`likeness.privacy.noise_processes`). The values never leave this one:
another process is told how many coordinates and which σ, both public, and hands back noise, which is added here. No two
coordinates share randomness. Nothing is forked: every process is a new program, whose OpenDP takes the seed of its
generator from the operating system, so that none can repeat what another has drawn. Noise that does not arrive whole is
thrown away, for reasons that are not its values, and that of these coordinates is drawn here: what is released has got
noise once in every coordinate, or there is no release.
"""

import hashlib
import math
import sys
from importlib.metadata import version

import numpy as np

from likeness.core.errors import LikenessError
from likeness.privacy import noise_processes

_AT_ONCE = 1 << 16  # coordinates handed to OpenDP at once: as Python's integers they take ten times the memory
_FITS = 2.0**50  # up to this σ noise reaches 2**62, as far as sums go, with probability below exp(−2**22)


def sampler_name() -> str:
    """Library and version, for the receipt."""
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
        int64 array of the same shape.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise LikenessError(f"the noise scale must be positive and finite, got {scale}")
    # OpenDP adds without an overflow, numpy does not: where noise could be as large as that, OpenDP adds all of it.
    counts = noise_processes.shares(len(values)) if scale <= _FITS else [len(values)]
    own, *others = np.split(values, np.cumsum(counts)[:-1])
    with noise_processes.started([len(other) for other in others], scale) as running:
        noisy = [_added(own, scale)]
        for other, process in zip(others, running, strict=True):
            noise = process.noise(digest)
            noisy.append(_added(other, scale) if noise is None else other + noise)
    return np.concatenate(noisy)


def _added(values: np.ndarray, scale: float) -> np.ndarray:
    """The same by OpenDP in this process."""
    # By their modules: opendp.prelude loads pandas and scikit-learn, which take ten times as long.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    noisy = np.empty(len(values), dtype=np.int64)
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE].tolist()
        space = (vector_domain(atom_domain(T="i64"), size=len(part)), l2_distance(T="f64"))
        noisy[start : start + len(part)] = make_gaussian(*space, scale=scale)(part)
    return noisy


def digest(noise: bytes, scale: float) -> bytes:
    """SHA-256 of noise, and of what drew it: another version of the library gives another digest, so no receipt can
    name the wrong one."""
    return hashlib.sha256(f"{sampler_name()} {scale.hex()} ".encode() + noise).digest()


def send(count: int, scale: float) -> None:
    """Of a process that another has started: draw, and write the noise and its digest to the standard output."""
    noise = _added(np.zeros(count, dtype=np.int64), scale).tobytes()
    sys.stdout.buffer.write(noise + digest(noise, scale))
    sys.stdout.buffer.flush()
