r"""Deep public encoders, exact in float64: a network as a list of steps in fixed point.

Why fixed point. A network in floating point adds numbers in an order that depends on processor, threads, place in a
batch and place in memory. Then a code depends on more than its image, and one record may move the codes of others. Here
no addition rounds, so a code is a function of its image and of the file: alone, in any batch, on any machine.

Proof. Every value between two steps is a multiple of :math:`2^{-16}` of size at most :math:`2^{10}`: after each step it
is clipped and rounded to that. So each is a whole number of at most 26 bits, and it is enough that no step rounds
before that, whatever the order of its additions:

- *conv, linear, affine, resample* add products of values and weights. The weights w of one output and its bias b are
  multiples of :math:`2^{-k}`, where :math:`2^{10} \sum |w| + |b| \le 2^{36 - k}` before they are rounded
  (:func:`likeness.features.frequencies.fitting_bits`). Rounding adds at most half a step a weight, which at most
  doubles the sum for up to :math:`2^{24}` weights. So all partial sums are multiples of :math:`2^{-(16 + k)}` below
  :math:`2^{37 - k}`: whole numbers of at most 53 bits, which float64 holds.
- *add*: two values, 27 bits. *mul*: a product of two values has at most 52 bits.
- *max_pool, cat, slice, view, transpose, same* compute nothing, or choose.

The proof needs an algorithm that adds products and nothing else. The matrix products of float64 on a CPU are such. So
are its convolutions, which are matrix products too. Tests compare them with integers.

No step looks at other rows: it works on the axes after the first, and :meth:`DeepEncoder.load` refuses other shapes.
Nor may values serve as weights: a *linear* step of two inputs would multiply images with each other.
Batch normalization has fixed statistics, so it is an *affine* step. No step is inexact, as a sigmoid, a softmax or a
layer normalization would be: ``scripts/pack_network.py`` refuses networks that need one.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save_file
from torch import Tensor
from torch.nn import functional

from likeness.core.errors import ArtifactError
from likeness.core.hashing import sha256_bytes
from likeness.features.frequencies import fitting_bits
from likeness.features.numerics import on_grid
from likeness.methods.merf_ae.encoder import Encoder

FORMAT = "likeness-encoder-2"
VALUE_BITS = 16
"""Values are multiples of ``2**-VALUE_BITS``."""
REACH = 10
"""No value exceeds ``2**REACH``."""
_MOST_WEIGHT_BITS = 24
_LEAST_WEIGHT_BITS = 6  # coarser ones would no longer be the network
_MOST_WEIGHTS = 1 << 24  # of one output: see the proof
_MOST_VALUES = 1 << 26  # of a step, an image
_VALUES_AT_ONCE = 1 << 20  # of a step, many images
_ALL = (-(2.0**REACH), 2.0**REACH)
_MAKE = "Make an encoder with: python scripts/pack_network.py"


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        name: one of :data:`OPERATIONS`.
        of: numbers of its inputs: 0 is the image, n the result of step n.
        tensors: names of its weights.
        options: its other arguments.
        clamp: limits of its result, within ``2**REACH``.
    """

    name: str
    of: tuple[int, ...]
    tensors: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    clamp: tuple[float, float] = _ALL

    def to_json(self) -> list[Any]:
        """As the file holds it."""
        return [self.name, self.of, self.tensors, self.options, self.clamp]

    @classmethod
    def from_json(cls, values: list[Any]) -> "Step":
        """Read :meth:`to_json`, with limits of what every value obeys."""
        name, of, tensors, options, (low, high) = values
        if name not in OPERATIONS or (name != "cat" and len(of) != _INPUTS.get(name, 1)):
            raise ValueError
        limits = (max(_ALL[0], float(low)), min(_ALL[1], float(high)))
        return cls(name, tuple(map(int, of)), tuple(tensors), dict(options), limits)


def _affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    ones = (1,) * (x.ndim - 2)
    return x * scale.view(-1, *ones) + shift.view(-1, *ones)


def _conv(*tensors: Tensor, dilation: Any = 1, **options: Any) -> Tensor:
    if not bool((torch.tensor(dilation) > 0).all()):  # without values torch does not see it
        raise ValueError
    operation: Callable[..., Tensor] = functional.conv2d
    return operation(*tensors, dilation=dilation, **options)


def _resample(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Weighted sums of pixels: ``rows`` has shape (new height, height), ``columns`` (new width, width)."""
    return _settled(x @ columns.T, *_ALL).transpose(2, 3).matmul(rows.T).transpose(2, 3)


def _transpose(x: Tensor, first: int, second: int) -> Tensor:
    if min(first, second) < 1:  # the first axis counts images
        raise ValueError
    return x.transpose(first, second)


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "add": lambda x, y: x + y,
    "affine": _affine,
    "cat": lambda *values: torch.cat(values, dim=1),
    "conv": _conv,
    "linear": functional.linear,
    "max_pool": functional.max_pool2d,
    "mul": lambda x, y: x * y,
    "resample": _resample,
    "same": lambda x: x,
    "slice": lambda x, start, stop: x[:, start:stop],
    "transpose": _transpose,
    "view": lambda x, shape: x.reshape(len(x), *shape),
}
"""Operations by their name: inputs, then weights, then options."""
_TENSORS = {"affine": (1, 1), "conv": (4, 1), "linear": (2, 1), "resample": (2, 2)}  # their axes
_INPUTS = {"add": 2, "mul": 2}  # others have one, and cat any number
_AXES = {"conv": 4, "linear": 2, "max_pool": 4, "resample": 4}
_MOVES = ("cat", "same", "slice", "transpose", "view")


def _settled(values: Tensor, low: float, high: float) -> Tensor:
    """Values within limits; in float64 on their grid."""
    return on_grid(values.clamp(low, high), VALUE_BITS)


@dataclass(frozen=True)
class DeepEncoder:
    """A network of steps; the last one gives the code.

    Attributes:
        steps: in order.
        weights: tensors of the steps by name, float64, on their grids.
        shape: height and width of the images, and 3 in color.
        width: dimension of the code.
        unit: a public distance between codes, the unit of length scales.
        trained_on: names of the public images, with commas.
        sha256: of the file.
        multiplications: of an image.
        values: of an image, in all steps together.
        largest: of these, in one step.
    """

    steps: tuple[Step, ...]
    weights: dict[str, Tensor]
    shape: tuple[int, ...]
    width: int
    unit: float
    trained_on: str
    sha256: str
    multiplications: int
    values: int
    largest: int

    @classmethod
    def load(cls, path: Path) -> "DeepEncoder":
        """Read what :func:`save_steps` wrote.

        Raises:
            ArtifactError: no such file, not an encoder, or weights that are too large.
        """
        try:
            data = path.read_bytes()
            facts = facts_of(data)
            shape = tuple(int(size) for size in json.loads(facts["shape"]))
            if facts["format"] != FORMAT or len(shape) not in (2, 3) or shape[2:] not in ((), (3,)) or min(shape) < 1:
                raise ValueError
            steps = tuple(map(Step.from_json, json.loads(facts["steps"])))
            given = {name: tensor.double() for name, tensor in load(data).items()}
            weights: dict[str, Tensor] = {}
            for step in steps:
                names = step.tensors
                if len({*weights, *names}) < len(weights) + len(names):  # a tensor of two steps has two grids
                    raise ValueError
                weights |= zip(names, rounded(step.name, [given[name] for name in names]), strict=True)
            unit, trained_on = float(facts["unit"]), facts["trained_on"]
            sizes, multiplications = _tried(steps, weights, shape)
        except OSError:
            raise ArtifactError(f"{path} is missing. {_MAKE}") from None
        except Exception:  # whatever torch says of a file's steps
            raise ArtifactError(f"{path} is no encoder of steps that this version knows. {_MAKE}") from None
        if not 0 < unit < math.inf or not trained_on:
            raise ArtifactError(f"{path}: unit or trained_on are missing. {_MAKE}")
        values, largest = sum(map(math.prod, sizes)), max(map(math.prod, sizes))
        return cls(steps, weights, shape, sizes[-1][0], unit, trained_on, sha256_bytes(data),
                   multiplications, values, largest)  # fmt: skip

    @property
    def reach(self) -> int:
        """``2**reach`` bounds every coordinate of every code."""
        return REACH

    def __call__(self, x: Tensor) -> Tensor:
        """Codes (n, width) of images (n, values), differentiable."""
        weights = self._weights_like(x)
        if torch.is_grad_enabled() and x.requires_grad:
            return run(self.steps, weights, planes(x, self.shape))
        images = max(1, _VALUES_AT_ONCE // self.largest)
        return torch.cat([run(self.steps, weights, planes(some, self.shape)) for some in torch.split(x, images)])

    def _weights_like(self, x: Tensor) -> dict[str, Tensor]:
        """The weights in the type and on the device of x; converted once."""
        kind = (x.dtype, x.device)
        if kind not in self._converted:
            self._converted[kind] = {name: tensor.to(x) for name, tensor in self.weights.items()}
        return self._converted[kind]

    @cached_property
    def _converted(self) -> dict[tuple[torch.dtype, torch.device], dict[str, Tensor]]:
        return {}


def load_encoder(path: Path) -> Encoder | DeepEncoder:
    """Read an encoder of either format.

    Raises:
        ArtifactError: no such file, or not an encoder.
    """
    try:
        deep = facts_of(path.read_bytes())["format"] == FORMAT
    except (OSError, KeyError, ValueError, TypeError, RecursionError):  # the other reader says what is wrong
        deep = False
    return DeepEncoder.load(path) if deep else Encoder.load(path)


def facts_of(data: bytes) -> dict[str, str]:
    """The texts in the header of a safetensors file."""
    facts: dict[str, str] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    return facts


def planes(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Images (n, values), color last, as planes (n, colors, height, width) on the grid of values."""
    colors = math.prod(shape[2:])
    return _settled(x.reshape(len(x), *shape[:2], colors).permute(0, 3, 1, 2), 0.0, 1.0)


def run(steps: tuple[Step, ...], weights: dict[str, Tensor], images: Tensor) -> Tensor:
    """The last step's values of planes (n, colors, height, width)."""
    result = images
    for _, _, value in _each(steps, weights, images):
        result = value
    return result


def _each(
    steps: tuple[Step, ...], weights: dict[str, Tensor], images: Tensor
) -> Iterator[tuple[Step, list[Tensor], Tensor]]:
    """Each step with its inputs and its values, which are kept until the last step that needs them."""
    last = {place: number for number, step in enumerate(steps, 1) for place in step.of}
    values = {0: images}
    for number, step in enumerate(steps, 1):
        inputs = [values[place] for place in step.of]
        value = OPERATIONS[step.name](*inputs, *(weights[name] for name in step.tensors), **step.options)
        moved = step.name in _MOVES and step.clamp == _ALL
        values[number] = value if moved else _settled(value, *step.clamp)
        yield step, inputs, values[number]
        for place in {*step.of, number}:
            if last.get(place, 0) <= number:
                del values[place]


def rounded(name: str, tensors: list[Tensor]) -> list[Tensor]:
    """Weights of a step on the grid on which it is exact.

    Args:
        name: of its operation.
        tensors: of *conv* and *linear*, weights and perhaps a bias; of *affine*, scale and shift; of *resample*, two
            matrices that are used one after the other.

    Raises:
        ValueError: weights are not finite or too large, or too many, or not those of the operation.
    """
    axes = tuple(tensor.ndim for tensor in tensors)
    expected = _TENSORS.get(name, ())
    if axes != expected and not (name in ("conv", "linear") and axes == expected[:1]):
        raise ValueError
    if name == "resample":
        return [_on_weight_grid(tensor, tensor.abs().sum(dim=1), tensor.shape[1]) for tensor in tensors]
    if not tensors:
        return []
    first = tensors[0].flatten(1) if tensors[0].ndim > 1 else tensors[0][:, None]
    sizes = first.abs().sum(dim=1)
    for bias in tensors[1:]:
        sizes = sizes + bias.abs() * 2.0**-REACH
    return [_on_weight_grid(tensor, sizes, first.shape[1] + 1) for tensor in tensors]


def _on_weight_grid(weights: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Weights rounded, where ``sizes`` are Σ|w| + |b| / 2**REACH of each output, and ``count`` its weights."""
    if not bool(torch.isfinite(sizes).all()) or count > _MOST_WEIGHTS:
        raise ValueError
    bits = fitting_bits(float(sizes.max()) * 2.0 ** (REACH + VALUE_BITS), _MOST_WEIGHT_BITS)
    if bits < _LEAST_WEIGHT_BITS:
        raise ValueError
    return torch.round(weights * 2.0**bits) * 2.0**-bits


def _tried(
    steps: tuple[Step, ...], weights: dict[str, Tensor], shape: tuple[int, ...]
) -> tuple[list[tuple[int, ...]], int]:
    """Sizes of each step's values for one image, and all multiplications, without computing anything.

    Raises:
        ValueError: a step mixes images, or has too many values; or the last one gives no code.
    """
    sizes: list[tuple[int, ...]] = []
    images, multiplications = 3, 0
    empty = {name: tensor.float().to("meta") for name, tensor in weights.items()}
    start = torch.zeros(images, math.prod(shape[2:]), *shape[:2], device="meta")
    with torch.no_grad():
        for step, inputs, value in _each(steps, empty, start):
            axes, (count, *size) = {one.ndim for one in inputs}, value.shape
            alike = axes == {_AXES.get(step.name, inputs[0].ndim)} and all(len(one) == images for one in inputs)
            if count != images or not size or not alike or math.prod(size) > _MOST_VALUES:
                raise ValueError
            sizes.append(tuple(size))
            if step.name in ("conv", "linear", "resample"):
                multiplications += math.prod(size) * weights[step.tensors[0]][0].numel()
    if len(sizes[-1]) != 1 or sizes[-1][0] < 1:
        raise ValueError
    return sizes, multiplications


def save_steps(
    path: Path, steps: tuple[Step, ...], weights: dict[str, Tensor], shape: tuple[int, ...], unit: float, name: str
) -> None:
    """Write a network of steps. ``unit`` is the distance between codes of the public images ``name``."""
    facts = {
        "format": FORMAT,
        "shape": json.dumps(list(shape)),
        "unit": f"{unit:.3g}",
        "trained_on": name,
        "steps": json.dumps([step.to_json() for step in steps]),
    }
    save_file({key: tensor.float().contiguous() for key, tensor in weights.items()}, path, metadata=facts)
