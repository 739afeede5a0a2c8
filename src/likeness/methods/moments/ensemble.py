"""Images of two different models, half of each."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from likeness.generators.base import Arrays
from likeness.generators.images import ImageGenerator
from likeness.generators.latent import LatentGenerator
from likeness.methods.moments.gaussian_images import GaussianImages


class ImageEnsemble(LatentGenerator):
    """A Gaussian copula or a network, by a coin: the first latent dimension.

    The faults of each model are in half of the images only, so a classifier learns what both have in common.
    """

    name: ClassVar[str] = "image_ensemble"
    readers: ClassVar = {"copula": GaussianImages.from_spec, "network": ImageGenerator.from_spec}

    def __init__(self, copula: GaussianImages, network: ImageGenerator) -> None:
        """Join two generators of the same images and classes."""
        if (copula.shape, copula.num_classes) != (network.shape, network.num_classes):
            raise ValueError("ensemble: its generators have different image sizes or numbers of classes")
        super().__init__(1 + copula.latent_dim + network.latent_dim, copula.num_classes)
        self.copula = copula
        self.network = network

    def arrays(self) -> Arrays:
        """Those of both models, each under its name."""
        return {**super().arrays(), **{f"copula.{name}": array for name, array in self.copula.arrays().items()}}

    def load(self, arrays: Arrays) -> None:
        """Take them over, for drawing."""
        copula = {name.removeprefix("copula."): array for name, array in arrays.items() if name.startswith("copula.")}
        self.copula.load(copula)
        super().load({name: array for name, array in arrays.items() if not name.startswith("copula.")})

    @classmethod
    def shapes(cls, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Shape of each array of both models."""
        copula = GaussianImages.shapes(spec["copula"])
        return {**super().shapes(spec), **{f"copula.{name}": shape for name, shape in copula.items()}}

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Pixels in [0, 1], shape (n, values); z holds the coin and the latent numbers of both models."""
        pixels = z.new_empty(len(z), self.copula.width)
        coin, first, second = torch.split(z, [1, self.copula.latent_dim, self.network.latent_dim], dim=1)
        heads = coin[:, 0] > 0
        pixels[heads] = torch.from_numpy(self.copula.images(first[heads].numpy(), labels[heads].numpy()))
        pixels[~heads] = self.network(second[~heads], labels[~heads])
        return pixels
