"""Images of two different models, half of each."""

from typing import ClassVar

import torch
from torch import Tensor

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

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Pixels in [0, 1], shape (n, height * width); z holds the coin and the latent numbers of both models."""
        pixels = z.new_empty(len(z), self.copula.shape[0] * self.copula.shape[1])
        coin, first, second = torch.split(z, [1, self.copula.latent_dim, self.network.latent_dim], dim=1)
        heads = coin[:, 0] > 0
        for part, latent, chosen in ((self.copula, first, heads), (self.network, second, ~heads)):
            places = chosen.nonzero()[:, 0]
            pixels = pixels.index_copy(0, places, part(latent[places], labels[places]))
        return pixels
