"""Detail beyond the released frequencies: a public guess that continues their strength."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness_images.moments.cosine_map import cosine_transform, lowest_frequencies

Float32 = NDArray[np.float32]
_DECAY = 3  # of power with the frequency


class Texture:
    r"""Gaussian detail of images in frequencies that were not released: variance :math:`t A f^{-3}` a coefficient.

    The K lowest cosine coefficients of an image of h × w pixels, by :math:`f^2 = (u / h)^2 + (v / w)^2`, are released.
    A makes :math:`\sum A f^{-3}` over their upper half equal to its variance, and the law continues beyond them. It is
    that of plane shapes with sharp edges (Porod, 1951, in two dimensions instead of three); power in photographs falls
    about as :math:`f^{-2}` (Field, 1987). In color, f is that of :func:`lowest_frequencies`.

    Attributes:
        strength: t; 1 continues the released frequencies, 0 is no detail.
        variances: of pixels where t A is 1, shape (values,).
    """

    def __init__(self, shape: tuple[int, ...], num_coefficients: int, strength: float) -> None:
        """Build for images of ``shape`` and K ``num_coefficients``; nothing is learned."""
        self.shape = shape
        self.strength = strength
        frequencies = lowest_frequencies(shape)
        powers = [_power(frequency, shape) for frequency in frequencies]
        self._upper = slice(max(num_coefficients // 2, 1), num_coefficients)
        self._power = sum(powers[self._upper])
        amplitudes = np.zeros(shape)
        for frequency, power in zip(frequencies[num_coefficients:], powers[num_coefficients:], strict=True):
            amplitudes[frequency] = math.sqrt(power)
        transforms = [cosine_transform(size) for size in shape]
        variances = _pixels(amplitudes**2, [matrix**2 for matrix in transforms])
        self.variances: Float32 = variances.ravel().astype(np.float32)
        self._amplitudes = amplitudes.astype(np.float32)
        self._transforms = [matrix.astype(np.float32) for matrix in transforms]

    def deviation(self, factors: Float32) -> float:
        """The root of t A; 0 where no coefficient of the upper half varies.

        ``factors`` (K, K) is L, where L L' is the covariance of the released coefficients.
        """
        if self._power == 0:  # the mean alone
            return 0.0
        return float(np.linalg.norm(factors[self._upper])) * math.sqrt(self.strength / self._power)

    def __call__(self, noise: Float32) -> Float32:
        """Detail where t A is 1, shape (n, values), of noise ~ N(0, I) of the same shape."""
        coefficients = self._amplitudes * noise.reshape(-1, *self.shape)
        return _pixels(coefficients, self._transforms).reshape(noise.shape)


def _power(indices: tuple[int, ...], shape: tuple[int, ...]) -> float:
    """The power of a frequency; 0 for a mean, which has none."""
    frequency = math.hypot(indices[0] / shape[0], indices[1] / shape[1]) * (2 if any(indices[2:]) else 1)
    return frequency**-_DECAY if frequency else 0.0


def _pixels(coefficients: NDArray[Any], transforms: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Images of coefficients, both of shape (..., height, width) or (..., height, width, 3)."""
    down, across, *colors = transforms
    if not colors:
        return np.asarray(down.T @ coefficients @ across)
    planes = np.moveaxis(coefficients @ colors[0], -1, -3)
    return np.moveaxis(down.T @ planes @ across, -3, -1)
