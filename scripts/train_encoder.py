"""Train a public encoder for ``merf_ae`` on PUBLIC images: a sparse auto-encoder, of which the encoder is kept.

Run: ``python scripts/train_encoder.py data/raw/digits.npz digits --shape 28 28 --out digits_encoder.safetensors``, then
put the file and the SHA-256 that is printed into ``merf_ae.privatize``.

The images must be public, and OTHER images than the ones to be protected: an encoder that has seen a private row
moves with it, and then nothing is differentially private. Nothing here adds noise. Images of another size are
stretched. Loss: pixel-wise cross-entropy of the reconstruction, as in Harder, Adamczewski and Park (2020), and a price
on the absolute values of the code, which makes it sparse. The weights that are kept are multiples of 2**-10.
"""

import argparse
import hashlib
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from likeness.core.rng import public_seed
from likeness.features.random_network import windows_of, with_one
from likeness.methods.merf_ae.encoder import Encoder, distance, on_weight_grid, save_encoder


class AutoEncoder(nn.Module):
    """The networks of :class:`likeness.methods.merf_ae.encoder.Encoder`, and a dense decoder."""

    def __init__(self, shape: tuple[int, int], channels: int, hidden: int, code: int) -> None:
        """Draw the weights; ``channels`` of a 3 × 3 convolution, 0 for none."""
        super().__init__()
        self.shape, pixels = shape, math.prod(shape)
        self.convolution = nn.Parameter(0.3 * torch.randn(channels, 10)) if channels else None
        inputs = pixels * max(1, channels)
        self.dense = nn.ParameterList([_drawn(hidden, inputs), _drawn(code, hidden)])
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def encode(self, x: Tensor) -> Tensor:
        """Codes of images (n, pixels)."""
        if self.convolution is not None:
            x = (windows_of(x, self.shape) @ self.convolution.T).relu().flatten(1)
        return with_one((with_one(x) @ self.dense[0].T).relu()) @ self.dense[1].T

    def loss(self, x: Tensor, sparsity: float) -> Tensor:
        """Cross-entropy a pixel, and the price of the code."""
        codes = self.encode(x)
        entropy = nn.functional.binary_cross_entropy_with_logits(self.decoder(codes), x)
        return entropy + sparsity * codes.abs().mean()


def _drawn(outputs: int, inputs: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(outputs, inputs + 1) * math.sqrt(2 / inputs))


def images(path: Path, shape: tuple[int, int]) -> Tensor:
    """Training images in [0, 1] of the shape asked for, (n, pixels)."""
    with np.load(path, allow_pickle=False) as arrays:
        x = torch.from_numpy(arrays["x_train"].astype(np.float32) / 255)[:, None]
    return nn.functional.interpolate(x, size=shape, mode="bilinear", align_corners=False).flatten(1).clamp(0, 1)


def main() -> None:
    """Read the command line, train, write, and say what to put into params.yaml."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, help=".npz with x_train, as scripts/build_images.py writes it")
    parser.add_argument("name", help="of the public images: the name of their schema")
    parser.add_argument("--out", type=Path, default=Path("encoder.safetensors"))
    parser.add_argument("--shape", type=int, nargs=2, metavar=("HEIGHT", "WIDTH"), default=(28, 28))
    parser.add_argument("--channels", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=300)
    parser.add_argument("--code", type=int, default=64)
    parser.add_argument("--sparsity", type=float, default=0.001)
    parser.add_argument("--iterations", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = (arguments.shape[0], arguments.shape[1])
    x = images(arguments.images, shape)
    torch.manual_seed(public_seed(arguments.seed, "scripts.train_encoder"))
    network = AutoEncoder(shape, arguments.channels, arguments.hidden, arguments.code)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    for _ in range(arguments.iterations):
        loss = network.loss(x[torch.randint(len(x), (arguments.batch_size,))], arguments.sparsity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        some = x[torch.randperm(len(x))[:2000]]
        error = float((torch.sigmoid(network.decoder(network.encode(some))) - some).square().mean().sqrt())
        for weights in (network.convolution, *network.dense):
            if weights is not None:
                weights.copy_(on_weight_grid(weights))
        unit = distance(network.encode(some[: len(some) // 2 * 2]))
    save_encoder(arguments.out, network.convolution, list(network.dense), shape, unit, arguments.name)
    encoder = Encoder.load(arguments.out)
    digest = hashlib.sha256(arguments.out.read_bytes()).hexdigest()
    print(f"root mean square error of a pixel {error:.3f}; codes of {encoder.width} numbers, unit {encoder.unit:g}")
    print(f"merf_ae.privatize.encoder: {arguments.out}\nmerf_ae.privatize.encoder_sha256: {digest}")


if __name__ == "__main__":
    main()
