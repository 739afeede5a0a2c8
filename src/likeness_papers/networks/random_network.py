"""Public random networks at initialization. Their weights are coarse, so every layer is exact in float64."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, unfold

from likeness.core.rng import public
from likeness.features.base import convert_once
from likeness.features.frequencies import INPUT_BITS, fitting_bits
from likeness_papers.networks.numerics import round_to_grid

WEIGHT_BITS = 10
"""Weights are multiples of ``2**-WEIGHT_BITS``: coarse, and still as random as any."""

KERNEL = 3  # width of a convolution's window; the input is padded with zeros, so that its size stays


@dataclass(frozen=True)
class Layer:
    """One linear layer before a ReLU.

    Attributes:
        weights: shape (outputs, inputs + 1), float64; the last column is the bias, the weight of a constant 1.
        input_bits: inputs are rounded to multiples of ``2**-input_bits``, so that ``weights @ inputs`` is exact.
        input_bounds: what each input is at most, the constant 1 included, shape (inputs + 1,).
    """

    weights: Tensor
    input_bits: int
    input_bounds: Tensor

    def weights_like(self, x: Tensor) -> Tensor:
        """The weights in the type and on the device of x; converted once."""
        return convert_once(self, "weights", x, lambda: self.weights)

    @cached_property
    def output_bounds(self) -> Tensor:
        """Bound of each output's absolute value, shape (outputs,)."""
        return self.weights.abs() @ self.input_bounds


@dataclass(frozen=True)
class Gradients:
    """Gradients of many records as factors: that in a dense layer is ``signal ⊗ seen``, that in the output is ``last``.

    Attributes:
        kernel: gradient in the convolution, shape (n, channels · (window + 1)), or None.
        signals: what comes back to each dense layer, shapes (n, outputs).
        seen: its inputs and a 1, (n, inputs + 1).
        last: last hidden layer, shape (n, last width).
    """

    kernel: Tensor | None
    signals: tuple[Tensor, ...]
    seen: tuple[Tensor, ...]
    last: Tensor


@dataclass(frozen=True)
class RandomNetwork:
    r"""``g(x) = a · relu(W_k [... relu(W_1 [x, 1]) ..., 1])``, with a convolution in the place of W₁ if wanted.

    Weights are Gaussian with variance 2 / inputs (He et al. 2015), rounded to multiples of :math:`2^{-10}`.

    Attributes:
        convolution: first layer, applied to windows of three inputs, or 3 × 3 pixels; None: all layers are dense.
        dense: layers after it, at least one.
        output: a, shape (last width,).
        shape: of the input: (d,), or (height, width) of an image, and 3 in color.
    """

    convolution: Layer | None
    dense: tuple[Layer, ...]
    output: Tensor
    shape: tuple[int, ...]

    @classmethod
    def draw(
        cls, channels: int | None, widths: tuple[int, ...], shape: tuple[int, ...], seed: int, purpose: str
    ) -> "RandomNetwork":
        """Draw from public randomness.

        See :func:`layers_of` for channels, widths and shape, :func:`likeness.core.rng.public` for seed and purpose.
        """
        stream = public(seed, purpose)
        convolution, dense = layers_of(stream, channels, widths, shape)
        return cls(convolution, dense, gaussian_weights(stream, 1, widths[-1])[0], shape)

    def windows(self, x: Tensor) -> Tensor:
        """Give what the convolution sees at each place, and the constant 1, shape (n, places, window + 1)."""
        return windows_of(x, self.shape)

    def gradients(self, x: Tensor) -> Gradients:
        """Gradient of g in all its weights for each row of x, shape (n, d), forward and back once for all rows."""
        values, windows, excited = x, None, None
        if self.convolution is not None:
            windows = self.windows(x)
            under = windows @ self.convolution.weights_like(x).T  # (n, places, channels)
            values = under.relu().flatten(1)
            excited = values.detach().sign().view_as(under)
        seen, active = [], []
        for layer in self.dense:
            if layer.input_bits != INPUT_BITS:
                values = round_to_grid(values, layer.input_bits)
            seen.append(with_one(values))
            before = seen[-1] @ layer.weights_like(x).T
            values = before.relu()
            active.append(values.detach().sign())
        signals = [convert_once(self, "output", x, lambda: self.output) * active[-1]]
        for layer, mask in zip(self.dense[:0:-1], active[-2::-1], strict=True):
            signals.insert(0, (signals[0] @ layer.weights_like(x)[:, :-1]) * mask)
        kernel = None
        if windows is not None and excited is not None:
            back = (signals[0] @ self.dense[0].weights_like(x)[:, :-1]).view_as(excited) * excited
            back = round_to_grid(back, fitting_bits(float(self.kernel_bounds.max()) * 2.0**INPUT_BITS, 2 * WEIGHT_BITS))
            kernel = (back.transpose(1, 2) @ windows).flatten(1)
        return Gradients(kernel, tuple(signals), tuple(seen), values)

    @cached_property
    def signal_bounds(self) -> tuple[Tensor, ...]:
        """The largest absolute values of the signal to each dense layer, shapes (outputs,)."""
        bounds = [self.output.abs()]
        for layer in self.dense[:0:-1]:
            bounds.insert(0, bounds[0] @ layer.weights[:, :-1].abs())
        return tuple(bounds)

    @cached_property
    def kernel_bounds(self) -> Tensor:
        """Bound of the gradient in each weight of the convolution, shape (weights,): inputs are at most 1."""
        assert self.convolution is not None
        channels, window = self.convolution.weights.shape
        back = self.signal_bounds[0] @ self.dense[0].weights[:, :-1].abs()
        return back.view(-1, channels).sum(dim=0).repeat_interleave(window)

    def digest(self) -> str:
        """SHA-256 of all weights as single-precision little-endian bytes, which hold them exactly."""
        layers = [] if self.convolution is None else [self.convolution.weights]
        numbers = [*layers, *(layer.weights for layer in self.dense), self.output]
        hasher = hashlib.sha256()
        for weights in numbers:
            hasher.update(np.ascontiguousarray(weights.numpy(), dtype="<f4").tobytes())
        return hasher.hexdigest()


def windows_of(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Give what a convolution sees at each place of inputs (n, d), and the constant 1, shape (n, places, window + 1).

    The window is 3 inputs, 3 x 3 pixels, or these in three colors.
    """
    if len(shape) == 1:
        seen = pad(x, (KERNEL // 2, KERNEL // 2)).unfold(1, KERNEL, 1)
    else:
        colors = math.prod(shape[2:])
        planes = x.reshape(len(x), math.prod(shape[:2]), colors).transpose(1, 2).reshape(len(x), colors, *shape[:2])
        seen = unfold(planes, KERNEL, padding=KERNEL // 2).transpose(1, 2)
    return with_one(seen)


def window(shape: tuple[int, ...]) -> int:
    """Inputs that a convolution sees at one place."""
    return int(KERNEL ** len(shape[:2]) * math.prod(shape[2:]))


def with_one(values: Tensor) -> Tensor:
    """Append the constant 1 along the last axis."""
    return pad(values, (0, 1), value=1.0)


def gaussian_weights(stream: np.random.Generator, outputs: int, inputs: int) -> Tensor:
    """Weights of a layer, shape (outputs, inputs), of variance 2 / inputs, on their grid."""
    drawn = stream.standard_normal((outputs, inputs)) * math.sqrt(2 / inputs)
    return torch.from_numpy(np.rint(drawn * 2.0**WEIGHT_BITS) * 2.0**-WEIGHT_BITS)


def layers_of(
    stream: np.random.Generator, channels: int | None, widths: Sequence[int], shape: tuple[int, ...]
) -> tuple[Layer | None, tuple[Layer, ...]]:
    """A convolution, if wanted, and dense layers behind it, each as exact as its inputs allow.

    Args:
        stream: of the weights. Sums of the first layer must be below 2**18; Gaussian weights make none so large.
        channels: of the convolution; None for none.
        widths: of the dense layers.
        shape: of the input.
    """
    convolution = None
    bounds = torch.ones(math.prod(shape), dtype=torch.float64)
    if channels is not None:
        seen = torch.ones(window(shape), dtype=torch.float64)
        convolution = _layer(stream, channels, seen, INPUT_BITS)
        bounds = convolution.output_bounds.repeat(math.prod(shape[:2]))
    dense: list[Layer] = []
    for width in widths:
        first = channels is None and not dense
        dense.append(_layer(stream, width, bounds, INPUT_BITS if first else None))
        bounds = dense[-1].output_bounds
    return convolution, tuple(dense)


def _layer(stream: np.random.Generator, outputs: int, bounds: Tensor, input_bits: int | None) -> Layer:
    """A layer; ``input_bits`` is given where the door has rounded the inputs already."""
    bounds = with_one(bounds)
    drawn = gaussian_weights(stream, outputs, len(bounds))
    largest = float((drawn.abs() @ bounds).max())
    return Layer(drawn, input_bits or fitting_bits(largest * 2.0**WEIGHT_BITS, 48), bounds)
