"""Public Gaussian frequencies, rebuilt from a seed and checked against a digest."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from likeness.errors import ReleaseError
from likeness.rng import public

if TYPE_CHECKING:
    from torch import Tensor


def draw_frequencies(count: int, dimension: int, scale: float, seed: int, purpose: str) -> "Tensor":
    """Draw ``t_j ~ N(0, scale² I)``, shape (count, dimension), float64, from public randomness."""
    import torch

    return torch.from_numpy(public(seed, purpose).standard_normal((count, dimension)) * scale)


def frequencies_digest(frequencies: "Tensor") -> str:
    """SHA-256 of frequencies as single-precision little-endian bytes, the same on every machine."""
    return hashlib.sha256(np.ascontiguousarray(frequencies.numpy(), dtype="<f4").tobytes()).hexdigest()


def check_digest(frequencies: "Tensor", digest: str, name: str) -> None:
    """Refuse frequencies that are not those of the release.

    Raises:
        ReleaseError: this version of numpy draws other numbers from the same seed.
    """
    if frequencies_digest(frequencies) != digest:
        raise ReleaseError(
            f"{name}: the public frequencies drawn here are not those of the release. Install the numpy of "
            "constraints.txt: its random streams must be the ones the release was made with."
        )
