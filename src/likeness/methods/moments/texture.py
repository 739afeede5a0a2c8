"""Detail beyond the released frequencies: a public guess that continues their strength."""

import math

import torch
from torch import Tensor, nn

from likeness.methods.moments.cosine_map import cosine_transform, lowest_frequencies

_DECAY = 3  # of power with the frequency


class Texture(nn.Module):
    r"""Gaussian detail of images in frequencies that were not released: variance :math:`t A f^{-3}` a coefficient.

    The K lowest cosine coefficients of an image of h × w pixels, by :math:`f^2 = (u / h)^2 + (v / w)^2`, are released.
    A makes :math:`\sum A f^{-3}` over their upper half equal to its variance, and the law continues beyond them. It is
    that of plane shapes with sharp edges (Porod, 1951, in two dimensions instead of three); power in photographs falls
    about as :math:`f^{-2}` (Field, 1987).

    Attributes:
        strength: t; 1 continues the released frequencies, 0 is no detail.
        variances: of pixels where t A is 1, shape (h · w,).
    """

    variances: Tensor
    amplitudes: Tensor
    down: Tensor
    across: Tensor

    def __init__(self, shape: tuple[int, int], num_coefficients: int, strength: float) -> None:
        """Build for images of ``shape`` and K ``num_coefficients``; nothing is learned."""
        super().__init__()
        self.shape = shape
        self.strength = strength
        places = lowest_frequencies(shape)
        powers = [math.hypot(u / shape[0], v / shape[1]) ** -_DECAY for u, v in places[1:]]  # the mean has no frequency
        self._upper = slice(max(num_coefficients // 2, 1), num_coefficients)
        self._power = sum(powers[self._upper.start - 1 : num_coefficients - 1])
        amplitudes = torch.zeros(shape, dtype=torch.float64)
        for (u, v), power in zip(places[num_coefficients:], powers[num_coefficients - 1 :], strict=True):
            amplitudes[u, v] = power**0.5
        down, across = (torch.from_numpy(cosine_transform(size)) for size in shape)
        variances = (down.square().T @ amplitudes.square() @ across.square()).flatten()
        for name, buffer in (("amplitudes", amplitudes), ("down", down), ("across", across), ("variances", variances)):
            self.register_buffer(name, buffer.float(), persistent=False)

    def deviation(self, factors: Tensor) -> Tensor:
        """The root of t A, differentiable; 0 where no coefficient of the upper half varies.

        ``factors`` (K, K) is L, where L L' is the covariance of the released coefficients.
        """
        if self._power == 0:  # one coefficient, the mean
            return factors.new_zeros(())
        norm: Tensor = torch.linalg.vector_norm(factors[self._upper])  # unlike a root, it has a gradient at 0
        return norm * math.sqrt(self.strength / self._power)

    def forward(self, noise: Tensor) -> Tensor:
        """Detail where t A is 1, shape (n, h · w), of noise ~ N(0, I) of the same shape."""
        coefficients = self.amplitudes * noise.view(-1, *self.shape)
        return (self.down.T @ coefficients @ self.across).flatten(1)
