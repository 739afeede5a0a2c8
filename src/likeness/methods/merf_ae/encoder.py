"""Public encoders of images: fixed networks that no private record has touched, exact in float64.

The preprint trains its encoder on the private rows without privacy. Then a neighboring table has another encoder, which
moves the codes of all rows. No bound on one row's feature would bound what one record changes. The encoders here are
drawn from a public seed, or read from a file made from public images.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from likeness.core.errors import ArtifactError
from likeness.core.hashing import sha256_bytes
from likeness.core.rng import public
from likeness.features.frequencies import INPUT_BITS
from likeness.features.numerics import on_grid
from likeness.features.random_network import WEIGHT_BITS, Layer, gaussian_weights, layers_of, windows_of

FORMAT = "likeness-encoder-1"
_PAIRS = 256  # of made-up images, whose mean distance is the unit of a random encoder
_MOST = 2.0**18  # what no sum of a first layer may reach: see random_network


@dataclass(frozen=True)
class Encoder:
    """``W_k [relu(... relu(W_1 [x, 1]) ...), 1]``: pixels to a code; with a 3 × 3 convolution for W₁ if wanted.

    No layer looks at other rows. All sums are exact in float64, in any order, for pixels that the door has rounded: see
    :mod:`likeness.features.random_network`.

    Attributes:
        convolution: first layer, or None.
        dense: the others; the last one gives the code, without a ReLU.
        shape: height and width of the images, and 3 in color.
        unit: a public distance between codes, the unit of length scales.
        trained_on: name of the public images of a file; empty for a random encoder.
        sha256: of the file, or of a random encoder's weights.
    """

    convolution: Layer | None
    dense: tuple[Layer, ...]
    shape: tuple[int, ...]
    unit: float
    trained_on: str
    sha256: str

    @classmethod
    def random(cls, shape: tuple[int, ...], channels: int, code: int, seed: int) -> "Encoder":
        """A convolution and a projection with Gaussian weights, from a public seed.

        The unit is the root mean square distance between the codes of two images of independent uniform pixels, so no
        image is needed.
        """
        stream = public(seed, "encoder")
        convolution, dense = layers_of(lambda rows, columns: gaussian_weights(stream, rows, columns),
                                       channels, (code,), shape)  # fmt: skip
        assert convolution is not None
        hasher = hashlib.sha256()
        for weights in (convolution.weights, dense[0].weights):
            hasher.update(np.ascontiguousarray(weights.numpy(), dtype="<f4").tobytes())
        drawn = cls(convolution, dense, shape, 1.0, "", hasher.hexdigest())
        noise = torch.from_numpy(public(seed, "encoder.unit").random((2 * _PAIRS, math.prod(shape))))
        unit = distance(drawn(torch.round(noise * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS))
        return cls(convolution, dense, shape, unit, "", hasher.hexdigest())

    @classmethod
    def load(cls, path: Path) -> "Encoder":
        """Read what :func:`save_encoder` wrote.

        Raises:
            ArtifactError: no such file, or not an encoder.
        """
        try:
            data = path.read_bytes()
            tensors = {name: tensor.double() for name, tensor in load(data).items()}
            facts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
            if facts["format"] != FORMAT:
                raise ValueError
            shape = tuple(int(size) for size in json.loads(facts["shape"]))
            if len(shape) not in (2, 3) or shape[2:] not in ((), (3,)) or min(shape) < 1:
                raise ValueError
            rest = [tensors[name] for name in sorted(tensors) if name != "convolution"]
            first = tensors.get("convolution")
            given = iter([*([] if first is None else [first]), *rest])
            if any((tensor * 2.0**WEIGHT_BITS % 1 != 0).any() for tensor in tensors.values()) or not rest:
                raise ValueError
            channels = None if first is None else len(first)
            convolution, dense = layers_of(lambda rows, columns: _checked(next(given), rows, columns),
                                           channels, [len(tensor) for tensor in rest], shape)  # fmt: skip
            encoder = cls(convolution, dense, shape, float(facts["unit"]), facts["trained_on"], sha256_bytes(data))
        except OSError:
            raise ArtifactError(f"{path} is missing. Make an encoder with: python scripts/train_encoder.py") from None
        except (SafetensorError, KeyError, ValueError, TypeError):
            raise ArtifactError(f"{path} is no encoder. Make one with: python scripts/train_encoder.py") from None
        layer = convolution or dense[0]
        if float(layer.output_bounds.max()) >= _MOST or not 0 < encoder.unit < math.inf or not encoder.trained_on:
            raise ArtifactError(
                f"{path}: weights are too large, or unit or trained_on are missing. Make an encoder with: "
                "python scripts/train_encoder.py"
            )
        return encoder

    @property
    def width(self) -> int:
        """Dimension of the code."""
        return len(self.dense[-1].weights)

    @cached_property
    def reach(self) -> int:
        """``2**reach`` bounds every coordinate of every code, from the weights and pixels of at most 1."""
        return max(0, math.ceil(math.log2(float(self.dense[-1].output_bounds.max()))))

    def __call__(self, x: Tensor) -> Tensor:
        """Codes (n, width) of images (n, values), differentiable."""
        values = x
        if self.convolution is not None:
            values = (windows_of(x, self.shape) @ self.convolution.weights_like(x).T).relu().flatten(1)
        for place, layer in enumerate(self.dense):
            if place:
                values = values.relu()
            if layer.input_bits != INPUT_BITS:
                values = on_grid(values, layer.input_bits)
            weights = layer.weights_like(x)
            # The bias is added after the sum, which is exact too and copies no wide inputs.
            values = values @ weights[:, :-1].T + weights[:, -1]
        return values


def distance(codes: Tensor) -> float:
    """Root mean square distance of codes 1 and 2, 3 and 4, ..., to three digits, equal on every machine."""
    differences = codes[::2] - codes[1::2]
    return float(f"{float(differences.square().sum(dim=1).mean().sqrt()):.3g}")


def save_encoder(
    path: Path, convolution: Tensor | None, dense: list[Tensor], shape: tuple[int, ...], unit: float, trained_on: str
) -> None:
    """Write an encoder, its weights rounded to their grid; the bias is the last column of each.

    ``convolution`` has shape (channels, 10), in color (channels, 28), and ``dense`` (outputs, inputs + 1). ``unit`` is
    the distance between codes of the public images ``trained_on``.
    """
    layers = {f"dense_{place:02d}": weights for place, weights in enumerate(dense)}
    if convolution is not None:
        layers["convolution"] = convolution
    rounded = {name: on_weight_grid(weights.detach()).float().contiguous() for name, weights in layers.items()}
    facts = {"format": FORMAT, "shape": json.dumps(list(shape)), "unit": f"{unit:.3g}", "trained_on": trained_on}
    save_file(rounded, path, metadata=facts)


def on_weight_grid(weights: Tensor) -> Tensor:
    """Weights as an encoder keeps them."""
    return torch.round(weights * 2.0**WEIGHT_BITS) * 2.0**-WEIGHT_BITS


def _checked(weights: Tensor, rows: int, columns: int) -> Tensor:
    if weights.shape != (rows, columns):
        raise ValueError
    return weights
