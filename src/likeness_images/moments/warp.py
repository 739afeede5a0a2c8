"""Small smooth bends of images, after which a picture shows what it showed: public knowledge, nothing is released."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from likeness_images.moments.cosine_map import cosine_basis, lowest_frequencies

Float32 = NDArray[np.float32]
_FREQUENCIES = 16  # of a displacement: shifts, turns, slants, sizes and bends
_AT_ONCE = 1_000  # images


class Warp:
    r"""Displaces each pixel by two smooth random fields, one down and one across.

    A field is :math:`\sum_f a_f z_f b_f` over the 16 lowest cosines :math:`b_f`, with z ~ N(0, I) and :math:`a_f`
    proportional to :math:`1 / (1 + |f|)`. Its root mean square over pixels and fields is t times the height down, and
    t times the width across. A pixel takes the brightness at its displaced place, linear between four pixels. Beyond
    the border, brightness is that of the border.

    Source: training on bent images, Simard, Steinkraus and Platt (2003).

    Attributes:
        strength: t; 0.05 bends 28 pixels by 1.4.
        latent_dim: numbers z of an image.
    """

    def __init__(self, shape: Sequence[int], strength: float) -> None:
        """Build for images of ``shape``: height and width, and 3 in color."""
        self.strength = strength
        self._shape = tuple(shape)
        frequencies = lowest_frequencies(self._shape[:2])[:_FREQUENCIES]
        amplitudes = np.array([1 / (1 + math.hypot(*frequency)) for frequency in frequencies])
        # A cosine of the basis has length 1 over all pixels.
        amplitudes *= strength * math.sqrt(math.prod(self._shape[:2])) / np.linalg.norm(amplitudes)
        self._fields = (amplitudes[:, None] * cosine_basis(self._shape[:2], len(frequencies))).astype(np.float32)
        self.latent_dim = 2 * len(frequencies)

    def __call__(self, images: Float32, z: Float32) -> Float32:
        """Bent images, shape (n, values), of images of that shape and numbers z (n, latent_dim)."""
        bent = np.empty_like(images)
        for start in range(0, len(images), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            bent[part] = self._bent(images[part], z[part])
        return bent

    def _bent(self, images: Float32, z: Float32) -> Float32:
        height, width = self._shape[:2]
        fields = (z.reshape(2 * len(z), -1) @ self._fields).reshape(len(z), 2, height, width)
        image, down, across = np.ogrid[: len(z), :height, :width]
        positions = np.broadcast_arrays(image, down + height * fields[:, 0], across + width * fields[:, 1])
        planes = np.moveaxis(images.reshape(len(images), height, width, -1), -1, 0)
        bent = [map_coordinates(plane, positions, order=1, mode="nearest") for plane in planes]
        return np.stack(bent, axis=-1).reshape(images.shape)
