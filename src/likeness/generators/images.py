"""A conditional generator of gray images, with bilinear upsampling and convolutions."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from likeness.generators.latent import LatentGenerator

_KERNEL = 5


class ImageGenerator(LatentGenerator):
    """fc → bn → relu → fc → bn → (upsample → conv) twice → sigmoid, conditioned on the class.

    The network of DP-MERF's code and of the papers after it for 28 x 28 pixels (Liew et al. 2022, App. H; Yang et al.
    2023): it starts from a quarter of each side, doubles twice, and so knows that neighboring pixels belong together.
    Other sizes start from a quarter rounded up and are stretched to the size asked for.
    """

    def __init__(
        self, shape: Sequence[int], num_classes: int, latent_dim: int, hidden: int, channels: Sequence[int]
    ) -> None:
        """Build the network.

        Args:
            shape: height and width. num_classes: 1 for images without a class.
            latent_dim: dimension of z ~ N(0, I). hidden: width of the first layer.
            channels: of the two smaller resolutions.
        """
        super().__init__(latent_dim, num_classes)
        self.shape = (int(shape[0]), int(shape[1]))
        self.hidden = hidden
        self.channels = (int(channels[0]), int(channels[1]))
        half, quarter = ([-(-side // part) for side in self.shape] for part in (2, 4))
        self._half, self._quarter = tuple(half), tuple(quarter)
        first, second = self.channels
        flat = first * quarter[0] * quarter[1]
        self.body = nn.Sequential(
            nn.Linear(latent_dim + num_classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, flat),
            nn.BatchNorm1d(flat),
        )
        self.middle = nn.Conv2d(first, second, _KERNEL, padding=_KERNEL // 2)
        self.last = nn.Conv2d(second, 1, _KERNEL, padding=_KERNEL // 2)

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Pixels in [0, 1], row by row, differentiable.

        Args:
            z: latent, shape (n, latent_dim). labels: classes, shape (n,).

        Returns:
            shape (n, height * width).
        """
        small = self.body(self.inputs(z, labels)).view(-1, self.channels[0], *self._quarter)
        middle = torch.relu(self.middle(_stretch(small, self._half)))
        pixels: Tensor = torch.sigmoid(self.last(_stretch(middle, self.shape))).flatten(1)
        return pixels

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON."""
        return {
            "generator": "image",
            "shape": list(self.shape),
            "num_classes": self.num_classes,
            "latent_dim": self.latent_dim,
            "hidden": self.hidden,
            "channels": list(self.channels),
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "ImageGenerator":
        """Inverse of :meth:`spec`."""
        return cls(spec["shape"], spec["num_classes"], spec["latent_dim"], spec["hidden"], spec["channels"])


def _stretch(x: Tensor, size: tuple[int, ...]) -> Tensor:
    return nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=True)
