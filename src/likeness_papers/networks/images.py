"""Conditional generators of images, gray or in color, with bilinear upsampling and convolutions."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from likeness_papers.networks.latent import LatentGenerator

_KERNEL = 5
_DRAWN = 500  # images at once


class ImageGenerator(LatentGenerator):
    """fc → bn → relu → fc → bn → (upsample → conv) twice → sigmoid, conditioned on the class.

    The network of DP-MERF's code and of later papers for 28 x 28 pixels (Liew et al. 2022, App. H; Yang et al. 2023).
    It starts from a quarter of each side and doubles twice, so neighboring pixels belong together. Other sizes start
    from a quarter rounded up and are stretched to the full size.
    """

    name: ClassVar[str] = "image"

    def __init__(
        self, shape: Sequence[int], num_classes: int, latent_dim: int, hidden: int, channels: Sequence[int]
    ) -> None:
        """Build the network.

        Args:
            shape: height and width, and 3 in color.
            num_classes: 1 for images without a class.
            latent_dim: dimension of z ~ N(0, I).
            hidden: width of the first layer.
            channels: of the two smaller resolutions.
        """
        super().__init__(latent_dim, num_classes)
        self.shape = tuple(int(size) for size in shape)
        self._colors = math.prod(self.shape[2:])
        self.hidden = hidden
        self.channels = (int(channels[0]), int(channels[1]))
        half, quarter = ([-(-side // part) for side in self.shape[:2]] for part in (2, 4))
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
        self.last = nn.Conv2d(second, self._colors, _KERNEL, padding=_KERNEL // 2)
        for name, matrix in self._matrices().items():
            self.register_buffer(name, matrix.contiguous(), persistent=False)

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Values in [0, 1], pixel by pixel, shape (n, values), from z (n, latent_dim) and classes (n,)."""
        small = self.body(self.inputs(z, labels)).view(-1, self.channels[0], *self._quarter)
        # Rows that are drawn from a saved network keep their last bits, so only training takes the other way.
        if self.training:
            stretched = self.get_buffer("_half_rows") @ (small @ self.get_buffer("_half_columns"))
            last = self._stretched_last(torch.relu(self.middle(stretched)))
        else:
            last = self.last(_stretch(torch.relu(self.middle(_stretch(small, self._half))), self.shape[:2]))
        pixels: Tensor = torch.sigmoid(last).permute(0, 2, 3, 1).flatten(1)
        return pixels

    def _matrices(self) -> dict[str, Tensor]:
        """Matrices that stretch rows and columns of pixels in training; public, and not saved."""
        (top, left), (bottom, right) = (
            [_stretching(*sides) for sides in zip(small, large, strict=True)]
            for small, large in ((self._quarter, self._half), (self._half, self.shape[:2]))
        )
        return {
            "_half_rows": top,
            "_half_columns": left.T,
            "_rows": _taps(bottom).permute(1, 0, 2).flatten(1),
            "_columns": _taps(right).permute(0, 2, 1).flatten(0, 1),
        }

    def _stretched_last(self, x: Tensor) -> Tensor:
        """``last(stretch(x))`` of x (n, channels, h, w) by matrix products: seven times as fast on a CPU.

        Both are linear, and stretching treats rows and columns apart. The channels are summed first, at a quarter of
        the pixels, into an image for each color and weight. Then each image is stretched and moved to where its
        weight looks: all columns at once, then all rows.
        """
        n, channels, h, w = x.shape
        taps = x.permute(0, 2, 3, 1).reshape(-1, channels) @ self.last.weight.transpose(0, 1).flatten(1)
        each = taps.view(n, h, w, self._colors, _KERNEL, _KERNEL)
        moved = each.permute(0, 3, 4, 1, 5, 2).reshape(-1, _KERNEL * w)
        wide = (moved @ self.get_buffer("_columns")).view(n * self._colors, _KERNEL * h, -1)
        assert self.last.bias is not None
        stretched = (self.get_buffer("_rows") @ wide).view(n, self._colors, *self.shape[:2])
        return stretched + self.last.bias[:, None, None]


class ResidualImages(LatentGenerator):
    """A residual network of 18 layers: a dense layer, eight blocks of two convolutions, and a last convolution.

    DP-NTK makes its images in color with a ResNet18 (Yang et al. 2024, section 5); the paper gives no other detail. Two
    blocks stand at each of four resolutions, from an eighth of each side, rounded up, to the full size. A block adds to
    its input what bn → relu → conv twice makes of it (He et al. 2016).
    """

    name: ClassVar[str] = "residual_images"

    def __init__(self, shape: Sequence[int], num_classes: int, latent_dim: int, channels: int) -> None:
        """Build the network.

        Args:
            shape: height and width, and 3 in color.
            num_classes: 1 for images without a class.
            latent_dim: dimension of z ~ N(0, I).
            channels: of every block.
        """
        super().__init__(latent_dim, num_classes)
        self.shape = tuple(int(size) for size in shape)
        self.channels = channels
        self._sizes = [tuple(-(-side // part) for side in self.shape[:2]) for part in (8, 4, 2, 1)]
        self.first = nn.Linear(latent_dim + num_classes, channels * math.prod(self._sizes[0]))
        self.blocks = nn.ModuleList(_block(channels) for _ in range(2 * len(self._sizes)))
        self.last = nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, math.prod(self.shape[2:]), 3, padding=1)
        )
        # Products with matrices: on a GPU the slope of PyTorch's own stretching is slow, or differs from run to run.
        for index, sizes in enumerate(pairwise(self._sizes), start=1):
            rows, columns = (_stretching(*sides) for sides in zip(*sizes, strict=True))
            self.register_buffer(f"_rows_{index}", rows.contiguous(), persistent=False)
            self.register_buffer(f"_columns_{index}", columns.T.contiguous(), persistent=False)

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Values in [0, 1], pixel by pixel, shape (n, values), from z (n, latent_dim) and classes (n,)."""
        inputs = self.inputs(z, labels)
        # Drawing needs no statistics of a batch, so it takes little memory.
        parts = [inputs] if self.training else torch.split(inputs, _DRAWN)
        return torch.cat([self._pixels(part) for part in parts])

    def _pixels(self, inputs: Tensor) -> Tensor:
        x = self.first(inputs).view(-1, self.channels, *self._sizes[0])
        for index, block in enumerate(self.blocks):
            if index % 2 == 0 and index > 0:
                x = self.get_buffer(f"_rows_{index // 2}") @ (x @ self.get_buffer(f"_columns_{index // 2}"))
            x = x + block(x)
        pixels: Tensor = torch.sigmoid(self.last(x)).permute(0, 2, 3, 1).flatten(1)
        return pixels


def _block(channels: int) -> nn.Sequential:
    def half() -> list[nn.Module]:
        return [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1)]

    return nn.Sequential(*half(), *half())


def _stretch(x: Tensor, size: tuple[int, ...]) -> Tensor:
    return nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=True)


def _stretching(small: int, large: int) -> Tensor:
    """:func:`_stretch` along one side, as a matrix of shape (large, small)."""
    identity = torch.eye(small, dtype=torch.float64)[None]
    return nn.functional.interpolate(identity, size=large, mode="linear", align_corners=True)[0].T.float()


def _taps(stretching: Tensor) -> Tensor:
    """Shift a stretching for each weight of a convolution along one side: (large, small) to (kernel, ...)."""
    padded = nn.functional.pad(stretching, (0, 0, _KERNEL // 2, _KERNEL // 2))
    return torch.stack([padded[start : start + len(stretching)] for start in range(_KERNEL)])
