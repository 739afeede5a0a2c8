"""Brightness, sharpness and grain that vary from image to image: public knowledge, nothing is released."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likeness_images.moments.cosine_map import cosine_transform

Float32 = NDArray[np.float32]
_BLUR = 0.1  # of the sides, where t is 1


class Variety:
    r"""Makes some images brighter, darker, softer or more grainy than others.

    .. math:: x' = \mathrm{clip}_{[0,1]} \bigl( e^{t z_1} \, G_\sigma x + \tfrac t2 z_3 \varepsilon \bigr), \qquad
        \sigma = 0.1 \, t \, |z_2| \text{ of the sides}

    G is a Gaussian blur that is even at the border: a factor for each cosine. z and ε are standard normal, ε pixel by
    pixel. The detail of a copula is alike in all images, and a classifier learns it. So it learns shapes instead.

    Source: domain randomization, Tobin et al. (2017).

    Attributes:
        strength: t.
        latent_dim: numbers z and ε of an image.
    """

    def __init__(self, shape: Sequence[int], strength: float) -> None:
        """Build for images of ``shape``: height and width, and 3 in color."""
        self.strength = strength
        self._shape = (*shape[:2], math.prod(shape[2:]))
        self._transforms = [cosine_transform(size).astype(np.float32) for size in shape[:2]]
        # The exponent of a cosine's factor, where z_2 is 1.
        squares = [(math.pi * _BLUR * strength * np.arange(size, dtype=np.float32)) ** 2 / 2 for size in shape[:2]]
        self._exponents = (squares[0][:, None] + squares[1])[None, None]
        self.latent_dim = 3 + math.prod(shape)

    def __call__(self, images: Float32, z: Float32) -> Float32:
        """Images (n, values) in [0, 1] that vary, of images of that shape and numbers z (n, latent_dim)."""
        down, across = self._transforms
        planes = np.moveaxis(images.reshape(len(images), *self._shape), 3, 1)
        softness = np.square(z[:, 1])[:, None, None, None]
        soft = down.T @ ((down @ planes @ across.T) * np.exp(-self._exponents * softness)) @ across
        bright = np.exp(self.strength * z[:, :1]) * np.moveaxis(soft, 1, 3).reshape(images.shape)
        varied: Float32 = np.clip(bright + self.strength / 2 * z[:, 2:3] * z[:, 3:], 0, 1)
        return varied
