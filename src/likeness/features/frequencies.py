"""Public Gaussian frequencies: drawn from a seed, exact in products, checked against a digest."""

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ReleaseError
from likeness.core.extras import torch
from likeness.core.rng import public
from likeness.features.base import Map, convert_once

if TYPE_CHECKING:
    from torch import Tensor


INPUT_BITS = 24
"""The door rounds inputs, which lie in the unit cube, to multiples of ``2**-INPUT_BITS``."""

FLOAT_BITS = 52
"""Of float64's 53: one is left for what rounding adds to a sum."""

_MOST_BITS = 20


def fitting_bits(largest: float, most: int) -> int:
    """Largest q of at most ``most`` such that float64 adds multiples of ``2**-q`` exactly in every order.

    ``largest`` bounds the sum of the terms' sizes.
    """
    return min(most, FLOAT_BITS - math.ceil(math.log2(max(1.0, largest))))


def draw_frequencies(
    count: int, dimension: int, scale: float | NDArray[np.float64], seed: int, purpose: str
) -> NDArray[np.float64]:
    """Draw ``t_j ~ N(0, scale_j² I)`` from public randomness, rounded so that products with inputs are exact.

    Matrix products add in an order that depends on processor, threads and a row's place in its block. Another order
    may change the last bits. A record that is added shifts all rows behind it: their features would move too, and the
    sensitivity would not hold exactly. So the frequencies are multiples of ``2**-q``, with q as follows. For inputs in
    the unit cube, which the door rounds to multiples of ``2**-24``, every partial sum is a multiple of ``2**-(q + 24)``
    below ``2**(53 - q - 24)``. Such numbers are float64: no addition rounds, and all orders give the same angle.
    ``scale`` is one number, or of shape (count, 1).

    Returns:
        shape (count, dimension), float64.
    """
    drawn = public(seed, purpose).standard_normal((count, dimension)) * scale
    # No partial sum exceeds the sum of absolute frequencies, rounding (half a step each) counted.
    largest = max(1.0, float(np.abs(drawn).sum(axis=1).max(initial=0)) + dimension * 2.0**-_MOST_BITS)
    bits = min(_MOST_BITS, FLOAT_BITS + 1 - INPUT_BITS - math.ceil(math.log2(largest)))
    frequencies: NDArray[np.float64] = np.rint(drawn * 2.0**bits) * 2.0**-bits
    return frequencies


def frequencies_digest(frequencies: NDArray[np.float64]) -> str:
    """SHA-256 of frequencies as single-precision little-endian bytes, the same on every machine."""
    return hashlib.sha256(np.ascontiguousarray(frequencies, dtype="<f4").tobytes()).hexdigest()


class FrequencyMap(Map):
    """A map with public frequencies, which are drawn once and named by their digest.

    Attributes:
        seed: public.
        digest: of the frequencies; empty to compute it.
    """

    seed: int
    digest: str

    def _draw(self, count: int, dimension: int, scale: float | NDArray[np.float64]) -> None:
        """Draw the frequencies, and refuse those of another release.

        Raises:
            ReleaseError: this version of numpy draws other numbers from the same seed.
        """
        drawn = draw_frequencies(count, dimension, scale, self.seed, self.name)
        if self.digest:
            check_digest(drawn, self.digest, self.name)
        object.__setattr__(self, "digest", frequencies_digest(drawn))
        object.__setattr__(self, "_frequencies", drawn)

    @property
    def frequencies(self) -> "Tensor":
        """One row a frequency, float64."""
        return torch.from_numpy(self._frequencies)  # type: ignore[attr-defined]

    def angles(self, x: "Tensor") -> "Tensor":
        """Products of inputs (n, d) and frequencies, shape (n, k)."""
        return x @ convert_once(self, "frequencies", x, lambda: self.frequencies).T


def check_digest(frequencies: NDArray[np.float64], digest: str, name: str) -> None:
    """Refuse frequencies that are not those of the release.

    Raises:
        ReleaseError: this version of numpy draws other numbers from the same seed.
    """
    if frequencies_digest(frequencies) != digest:
        raise ReleaseError(
            f"{name}: the public frequencies drawn here are not those of the release. "
            "Install the numpy version of the release, see constraints.txt."
        )
