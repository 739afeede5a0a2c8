"""A Gaussian of low-frequency cosine coefficients for each class, with the brightness of the data's pixels."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from likeness.generators.latent import LatentGenerator
from likeness.methods.moments.brightness import brightness, share_brighter
from likeness.methods.moments.cosine_map import cosine_basis
from likeness.methods.moments.estimates import Moments
from likeness.methods.moments.texture import Texture

_MOST_TEXTURE = 100
_LEAST = 1e-6  # of a pixel's deviation: below it, its place in the Gaussian is 0 over 0


class GaussianImages(LatentGenerator):
    r"""A Gaussian copula of pixels: :math:`x = Q_y(1 - \Phi((B^\top L_y z + d_y) / s_y))`, z ~ N(0, I).

    B is the public cosine basis and L L' the covariance of its coefficients, so pixels vary together as the class's low
    frequencies do. d is independent detail of higher frequencies (:class:`Texture`), s the deviations of the sum. Q is
    each pixel's quantile function by released shares above J levels. So each pixel is bright as often as in the data,
    even where noise hides directions.

    Without levels, :math:`x = \mathrm{clip}_{[0,1]}(C B^\top (\mu_y + L_y z))`: the maximum-entropy images with given
    first and second moments, clipped so that their background stays black.

    Source: copulas, Sklar (1959); for synthetic data under privacy, Li, Xiong and Jiang (2014).
    """

    name: ClassVar[str] = "gaussian_images"
    basis: Tensor
    shares: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        num_classes: int,
        num_coefficients: int,
        bound: float,
        levels: int = 0,
        texture: float = 0.0,
    ) -> None:
        """Build with black images.

        Args:
            shape: height and width.
            num_classes: 1 for images without a class.
            num_coefficients: K.
            bound: C, the norm of coefficients that 1 stands for.
            levels: J.
            texture: strength of the detail, 0 for none; with levels.
        """
        height, width = (int(size) for size in shape)
        if not (0 <= texture <= _MOST_TEXTURE and 0 < bound < math.inf) or (texture and not levels):
            raise ValueError("gaussian images: bound must be above 0, texture from 0 to 100, and 0 without levels")
        super().__init__(num_coefficients + (height * width if texture else 0), num_classes)
        self.shape = (height, width)
        self.num_coefficients = num_coefficients
        self.bound = bound
        self.levels = levels
        self.texture = Texture(self.shape, num_coefficients, texture) if texture else None
        self.means = nn.Parameter(torch.zeros(num_classes, num_coefficients))
        self.factors = nn.Parameter(torch.zeros(num_classes, num_coefficients, num_coefficients))
        shares = torch.zeros(num_classes, levels, self.shape[0] * self.shape[1])
        self.register_buffer("shares", shares, persistent=levels > 0)
        self.register_buffer("basis", cosine_basis(self.shape, num_coefficients).float(), persistent=False)

    def start_from(self, moments: Moments, shares: Tensor | None = None) -> None:
        """Take over means and factors, and how often pixels are above levels, shape (classes, J, pixels)."""
        with torch.no_grad():
            self.means.copy_(moments.means)
            self.factors.copy_(moments.factors)
            if shares is not None:
                self.shares.copy_(shares)

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Pixels in [0, 1], shape (n, height * width), differentiable; z (n, K) has h · w more columns with detail."""
        pixels = z.new_empty(len(z), self.shape[0] * self.shape[1])
        for label in range(self.num_classes):
            places = (labels == label).nonzero()[:, 0]
            pixels = pixels.index_copy(0, places, self._of_class(label, z[places]))
        return pixels

    def _of_class(self, label: int, z: Tensor) -> Tensor:
        """Images of one class, shape (n, pixels)."""
        if self.levels == 0:
            pixels: Tensor = self.bound * (self.means[label] + z @ self.factors[label].T) @ self.basis
            return pixels.clamp(0, 1)
        directions = self.factors[label].T @ self.basis
        field = z[:, : self.num_coefficients] @ directions
        variances = directions.square().sum(dim=0)
        if self.texture is not None:
            deviation = self.texture.deviation(self.factors[label])
            field = field + deviation * self.texture(z[:, self.num_coefficients :])
            variances = variances + deviation.square() * self.texture.variances
        return brightness(share_brighter(field / variances.clamp(min=_LEAST**2).sqrt()), self.shares[label])

    def argument(self, name: str) -> Any:
        """An argument of the constructor; of the detail, its strength."""
        if name == "texture":
            return self.texture.strength if self.texture else 0.0
        return super().argument(name)
