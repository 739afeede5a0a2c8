"""A Gaussian of low-frequency cosine coefficients for each class, clipped to what a pixel can be."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from likeness.features.cosine import cosine_basis
from likeness.generators.latent import LatentGenerator
from likeness.generators.moments import Moments


class GaussianImages(LatentGenerator):
    r""":math:`x = \mathrm{clip}_{[0,1]}(C B^\top (\mu_y + L_y z))`, z ~ N(0, I), with B the public cosine basis.

    The maximum-entropy images with given first and second moments, but for the clipping, which keeps their background
    black: most pixels of a digit are.
    """

    basis: Tensor

    def __init__(self, shape: Sequence[int], num_classes: int, num_coefficients: int, bound: float) -> None:
        """Build with black images.

        Args:
            shape: height and width. num_classes: 1 for images without a class. num_coefficients: K, and the dimension
                of z. bound: C, the norm of coefficients that 1 stands for.
        """
        super().__init__(num_coefficients, num_classes)
        self.shape = (int(shape[0]), int(shape[1]))
        self.bound = bound
        self.means = nn.Parameter(torch.zeros(num_classes, num_coefficients))
        self.factors = nn.Parameter(torch.zeros(num_classes, num_coefficients, num_coefficients))
        self.register_buffer("basis", cosine_basis(self.shape, num_coefficients).float(), persistent=False)

    def start_from(self, moments: Moments) -> None:
        """Take over means and factors."""
        with torch.no_grad():
            self.means.copy_(moments.means)
            self.factors.copy_(moments.factors)

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Pixels in [0, 1], row by row, differentiable.

        Args:
            z: latent, shape (n, K). labels: classes, shape (n,).

        Returns:
            shape (n, height * width).
        """
        coefficients = torch.empty_like(z)
        for label in range(self.num_classes):
            own = (labels == label).nonzero()[:, 0]
            found = self.means[label] + z[own] @ self.factors[label].T
            coefficients = coefficients.index_copy(0, own, found)
        pixels: Tensor = (self.bound * coefficients @ self.basis).clamp(0, 1)
        return pixels

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON."""
        return {
            "generator": "gaussian_images",
            "shape": list(self.shape),
            "num_classes": self.num_classes,
            "num_coefficients": self.latent_dim,
            "bound": self.bound,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "GaussianImages":
        """Inverse of :meth:`spec`."""
        return cls(spec["shape"], spec["num_classes"], spec["num_coefficients"], spec["bound"])
