"""Detail beyond the released frequencies: a public guess that continues their strength."""

import math

import numpy as np
from numpy.typing import NDArray

from likeness.methods.moments.cosine_map import cosine_transform, lowest_frequencies

Float32 = NDArray[np.float32]
_DECAY = 3  # of power with the frequency


class Texture:
    r"""Gaussian detail of images in frequencies that were not released: variance :math:`t A f^{-3}` a coefficient.

    The K lowest cosine coefficients of an image of h × w pixels, by :math:`f^2 = (u / h)^2 + (v / w)^2`, are released.
    A makes :math:`\sum A f^{-3}` over their upper half equal to its variance, and the law continues beyond them. It is
    that of plane shapes with sharp edges (Porod, 1951, in two dimensions instead of three); power in photographs falls
    about as :math:`f^{-2}` (Field, 1987).

    Attributes:
        strength: t; 1 continues the released frequencies, 0 is no detail.
        variances: of pixels where t A is 1, shape (h · w,).
    """

    def __init__(self, shape: tuple[int, int], num_coefficients: int, strength: float) -> None:
        """Build for images of ``shape`` and K ``num_coefficients``; nothing is learned."""
        self.shape = shape
        self.strength = strength
        places = lowest_frequencies(shape)
        powers = [math.hypot(u / shape[0], v / shape[1]) ** -_DECAY for u, v in places[1:]]  # the mean has no frequency
        self._upper = slice(max(num_coefficients // 2, 1), num_coefficients)
        self._power = sum(powers[self._upper.start - 1 : num_coefficients - 1])
        amplitudes = np.zeros(shape)
        for (u, v), power in zip(places[num_coefficients:], powers[num_coefficients - 1 :], strict=True):
            amplitudes[u, v] = math.sqrt(power)
        down, across = (cosine_transform(size) for size in shape)
        self.variances: Float32 = ((down**2).T @ amplitudes**2 @ across**2).ravel().astype(np.float32)
        self._amplitudes, self._down, self._across = (part.astype(np.float32) for part in (amplitudes, down, across))

    def deviation(self, factors: Float32) -> float:
        """The root of t A; 0 where no coefficient of the upper half varies.

        ``factors`` (K, K) is L, where L L' is the covariance of the released coefficients.
        """
        if self._power == 0:  # one coefficient, the mean
            return 0.0
        return float(np.linalg.norm(factors[self._upper])) * math.sqrt(self.strength / self._power)

    def __call__(self, noise: Float32) -> Float32:
        """Detail where t A is 1, shape (n, h · w), of noise ~ N(0, I) of the same shape."""
        coefficients = self._amplitudes * noise.reshape(-1, *self.shape)
        return (self._down.T @ coefficients @ self._across).reshape(len(noise), -1)
