"""A public encoder of images: a fixed random network that no private record has touched, exact in float64.

The preprint trains its encoder on the private rows without privacy. Then a neighboring table has another encoder, which
moves the codes of all rows. No bound on one row's feature would bound what one record changes. The encoder here is
drawn from a public seed.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from likeness.core.rng import public
from likeness.features.frequencies import INPUT_BITS
from likeness_papers.networks.numerics import round_to_grid
from likeness_papers.networks.random_network import Layer, layers_of, windows_of

_PAIRS = 256  # of made-up images, whose mean distance is the unit


@dataclass(frozen=True)
class Encoder:
    """``W_2 [relu(W_1 [x, 1]), 1]``: pixels to a code, with a 3 × 3 convolution for W₁.

    No layer looks at other rows. All sums are exact in float64, in any order, for pixels that the door has rounded: see
    :mod:`likeness_papers.networks.random_network`.

    Attributes:
        convolution: first layer.
        projection: gives the code, without a ReLU.
        shape: height and width of the images, and 3 in color.
        unit: a public distance between codes, the unit of length scales.
        digest: SHA-256 of the weights.
    """

    convolution: Layer
    projection: Layer
    shape: tuple[int, ...]
    unit: float
    digest: str

    @classmethod
    def draw(cls, shape: tuple[int, ...], channels: int, code: int, seed: int) -> "Encoder":
        """A convolution and a projection with Gaussian weights, from a public seed.

        The unit is the root mean square distance between the codes of two images of independent uniform pixels, to
        three digits, so no image is needed.
        """
        convolution, (projection,) = layers_of(public(seed, "encoder"), channels, (code,), shape)
        assert convolution is not None
        hasher = hashlib.sha256()
        for layer in (convolution, projection):
            hasher.update(np.ascontiguousarray(layer.weights.numpy(), dtype="<f4").tobytes())
        drawn = cls(convolution, projection, shape, 1.0, hasher.hexdigest())
        noise = torch.from_numpy(public(seed, "encoder.unit").random((2 * _PAIRS, math.prod(shape))))
        codes = drawn(torch.round(noise * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS)
        distance = float((codes[::2] - codes[1::2]).square().sum(dim=1).mean().sqrt())
        return replace(drawn, unit=float(f"{distance:.3g}"))

    @cached_property
    def reach(self) -> int:
        """``2**reach`` bounds every coordinate of every code, from the weights and pixels of at most 1."""
        return max(0, math.ceil(math.log2(float(self.projection.output_bounds.max()))))

    def __call__(self, x: Tensor) -> Tensor:
        """Codes (n, code) of images (n, values), differentiable."""
        values = (windows_of(x, self.shape) @ self.convolution.weights_like(x).T).relu().flatten(1)
        values = round_to_grid(values, self.projection.input_bits)
        weights = self.projection.weights_like(x)
        # The bias is added after the sum, which is exact too and copies no wide inputs.
        return values @ weights[:, :-1].T + weights[:, -1]
