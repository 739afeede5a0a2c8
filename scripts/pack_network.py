"""Pack a PUBLIC deep network into one file, as the encoder of ``merf_ae``. Only this script needs torchvision or timm.

Run: ``python scripts/pack_network.py torchvision:resnet18 cifar10.npz imagenet,cifar10 --weights resnet18.safetensors
--shape 28 28 --size 64 --code 64``, then put the file and the SHA-256 that is printed into ``merf_ae.privatize``.
Without ``--weights`` the network learns the labels of the images first, ``--epochs`` times over them.

Weights and images must be public, and OTHER images than the ones to be protected: a network that has seen a private row
moves with it, and then nothing is differentially private. Nothing here adds noise.

The file holds the network up to its last dense layer, as steps that are exact in fixed point
(:mod:`likeness.methods.merf_ae.deep`), between a public preparation of images (size, color, mean and deviation) and a
projection that makes codes of the public images of mean 0 and covariance I.
"""

import argparse
import hashlib
import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.fx import Node
from torch.nn import functional

from likeness.core.rng import public_seed
from likeness.methods.merf_ae.deep import REACH, DeepEncoder, Step, planes, rounded, run, save_steps
from likeness.methods.merf_ae.encoder import distance

_MOST = 2.0**REACH
_ROWS = 2  # of the images with which a network is traced
_SOME = 4000  # public images, for the projection
_BATCH = 256
_LEAST = 1e-3  # of the largest variance: directions below it stay short
_SAME = ("clone", "alias", "dropout", "detach", "_to_copy", "contiguous")


class Packer:
    """Turns a graph of torch into steps.

    Attributes:
        steps: so far.
        weights: their tensors, by name.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.steps: list[Step] = []
        self.weights: dict[str, Tensor] = {}

    def add(self, name: str, of: list[int], tensors: tuple[Tensor, ...] = (), **options: Any) -> int:
        """Append a step, and return its number."""
        names = tuple(f"{len(self.steps) + 1:04d}.{place}" for place in range(len(tensors)))
        self.weights |= {key: tensor.detach().double() for key, tensor in zip(names, tensors, strict=True)}
        self.steps.append(Step(name, tuple(of), names, options))
        return len(self.steps)

    def clamped(self, number: int, low: float, high: float, alone: bool) -> int:
        """Limit a value: in its own step if nothing else sees it before."""
        if not alone or number == 0 or self.steps[number - 1].clamp != (-_MOST, _MOST):
            number = self.add("same", [number])
        step = self.steps[number - 1]
        self.steps[number - 1] = Step(step.name, step.of, step.tensors, step.options, (low, high))
        return number

    def normalized(self, number: int, scale: Tensor, shift: Tensor, alone: bool) -> int:
        """A batch normalization with fixed statistics; the convolution before takes it up, if nothing else sees it."""
        step = self.steps[number - 1] if number else None
        if step is None or not (alone and step.name == "conv" and step.clamp == (-_MOST, _MOST)):
            return self.add("affine", [number], (scale, shift))
        first, *bias = (self.weights.pop(name) for name in step.tensors)
        names = (step.tensors[0], f"{number:04d}.1")
        moved = shift.double() + (scale.double() * bias[0] if bias else 0)
        self.weights |= {names[0]: first * scale.double()[:, None, None, None], names[1]: moved}
        self.steps[number - 1] = Step(step.name, step.of, names, step.options)
        return number

    def network(self, module: nn.Module, size: int, start: int, name: str) -> int:
        """Append a network of (n, 3, size, size) without its last dense layer; the number of its last step."""
        example = (torch.rand(_ROWS, 3, size, size),)
        try:
            exported = torch.export.export(module.eval(), example).run_decompositions({})
        except Exception as error:
            text = f"{name} takes no images of {size} x {size} pixels, or torch cannot trace it: {error}"
            raise SystemExit(text) from None
        nodes = list(exported.graph.nodes)
        held = {**exported.state_dict, **exported.constants}
        signature = exported.graph_signature
        named = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        tensors = {node: held[named[node.name]].detach() for node in nodes if node.name in named}
        places: dict[Node, Any] = {
            node: start for node in nodes if node.op == "placeholder" and node.name in signature.user_inputs
        }
        last = nodes[-1].args[0][0]
        if str(last.target) == "aten.linear.default":
            last = last.args[0]
        for node in nodes:
            if node.op == "call_function":
                places[node] = self._step(node, places, tensors, name)
            if node is last:
                break
        return int(places[last])

    def _step(self, node: Node, places: dict[Node, Any], tensors: dict[Node, Tensor], network: str) -> Any:
        """Append what a node computes; the number of its step, or of each of its results."""
        target = str(node.target)
        name = target.removeprefix("aten.").split(".")[0]
        found = {key.name: key.default_value for key in getattr(getattr(node.target, "_schema", None), "arguments", ())}
        found |= dict(zip(found, node.args, strict=False)) | dict(node.kwargs)
        given = list(found.values()) or list(node.args)
        source = given[0]
        of = [places[source]] if isinstance(source, Node) and source in places else []
        alone = isinstance(source, Node) and len(source.users) == 1
        if name in _SAME:
            return of[0]
        match name:
            case "<built-in function getitem>":
                return of[0][given[1]] if isinstance(of[0], list) else of[0]
            case "conv2d" if target.endswith(".default"):
                some = tuple(tensors[one] for one in given[1:3] if one is not None)
                keys = ("stride", "padding", "dilation", "groups")
                return self.add("conv", of, some, **{key: _plain(found[key]) for key in keys})
            case "linear":
                return self.add("linear", of, tuple(tensors[one] for one in given[1:3] if one is not None))
            case "_native_batch_norm_legit_no_training":
                gain, bias, mean, variance = (tensors[one].double() for one in given[1:5])
                scale = gain / (variance + found["eps"]).sqrt()
                return self.normalized(of[0], scale, bias - mean * scale, alone)
            case "relu":
                return self.clamped(of[0], 0.0, _MOST, alone)
            case "hardtanh" | "clamp":
                low, high = (
                    _MOST * sign if one is None else one for sign, one in zip((-1, 1), given[1:3], strict=True)
                )
                return self.clamped(of[0], float(low), float(high), alone)
            case "hardsigmoid" | "hardswish":
                gate = self.add("affine", of, (torch.tensor([1 / 6]), torch.tensor([0.5])))
                gate = self.clamped(gate, 0.0, 1.0, True)
                return gate if name == "hardsigmoid" else self.add("mul", [of[0], gate])
            case "max_pool2d":
                options = {key: _plain(found[key]) for key in ("kernel_size", "padding", "dilation", "ceil_mode")}
                return self.add("max_pool", of, (), **options, stride=_plain(found["stride"] or found["kernel_size"]))
            case "adaptive_avg_pool2d":
                sizes = zip(_sizes(source), given[1], strict=True)
                return self.add("resample", of, tuple(_bins(*pair) for pair in sizes))
            case "avg_pool2d" if not found["ceil_mode"] and found["divisor_override"] is None:
                sizes = [
                    _sizes(source),
                    *(_pair(found[key] or found["kernel_size"]) for key in ("kernel_size", "stride")),
                ]
                both = zip(*sizes, _pair(found["padding"]), strict=True)
                return self.add("resample", of, tuple(_windows(*one, found["count_include_pad"]) for one in both))
            case "mean" if sorted(axis % 4 for axis in given[1]) == [2, 3]:
                pooled = self.add("resample", of, tuple(_bins(size, 1) for size in _sizes(source)))
                return pooled if found["keepdim"] else self.add("view", [pooled], shape=[-1])
            case "add" | "mul" if isinstance(given[1], Node) and found.get("alpha", 1) == 1:
                return self.add(name, [places[one] for one in given[:2]])
            case "cat" if found["dim"] == 1:
                return self.add("cat", [places[one] for one in given[0]])
            case "split" if found["dim"] == 1:
                width = source.meta["val"].shape[1]
                ends = [min(start + given[1], width) for start in range(0, width, given[1])]
                return [self.add("slice", of, (), start=max(0, end - given[1]), stop=end) for end in ends]
            case "view" | "reshape" | "_unsafe_view" if given[1][0] in (_ROWS, -1):
                return self.add("view", of, (), shape=_plain(given[1][1:]))
            case "transpose" if min(given[1:]) > 0:
                return self.add("transpose", of, (), first=given[1], second=given[2])
        raise SystemExit(
            f"{network} computes {target}, which no step does exactly. Take a network of convolutions, normalizations "
            "by batch, ReLU, hard swish and pooling: resnet, resnext, vgg, densenet, shufflenet, mobilenet, mnasnet."
        )


def _plain(value: Any) -> Any:
    return [int(one) for one in value] if isinstance(value, list | tuple) else value


def _pair(value: Any) -> tuple[int, int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes[0], sizes[-1]


def _sizes(node: Any) -> tuple[int, int]:
    return tuple(node.meta["val"].shape[2:])  # type: ignore[return-value]


def _bins(size: int, bins: int) -> Tensor:
    """Means of adaptive pooling, shape (bins, size)."""
    rows = torch.zeros(bins, size)
    for place in range(bins):
        start, stop = place * size // bins, -(-(place + 1) * size // bins)
        rows[place, start:stop] = 1 / (stop - start)
    return rows


def _windows(size: int, kernel: int, stride: int, padding: int, whole: bool) -> Tensor:
    """Means of average pooling, shape (windows, size)."""
    rows = torch.zeros((size + 2 * padding - kernel) // stride + 1, size)
    for place, row in enumerate(rows):
        start = place * stride - padding
        inside = row[max(0, start) : start + kernel]
        inside += 1 / (kernel if whole else len(inside))
    return rows


def _stretched(size: int, new: int) -> Tensor:
    """Linear interpolation, shape (new, size)."""
    return functional.interpolate(torch.eye(size)[None], size=new, mode="linear", align_corners=False)[0].T


def prepared(packer: Packer, shape: tuple[int, ...], size: int, mean: list[float], deviation: list[float]) -> int:
    """Append the public preparation of images; the number of its last step."""
    number = packer.add("resample", [0], (_stretched(shape[0], size), _stretched(shape[1], size)))
    if len(shape) == 2:
        number = packer.add("cat", [number] * 3)
    scale = 1 / torch.tensor(deviation)
    return packer.add("affine", [number], (scale, -torch.tensor(mean) * scale))


def projected(features: Tensor, code: int) -> tuple[Tensor, Tensor]:
    """Weights (code, features) and bias that give these features mean 0 and, in their main directions, variance 1."""
    variances, directions = torch.linalg.eigh(torch.cov(features.T))
    shrunken = variances.clamp(min=float(variances.max()) * _LEAST)
    weights = (directions * shrunken.rsqrt()).T.flip(0)[:code]
    return weights, -weights @ features.mean(dim=0)


def outputs(packer: Packer, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The last step's values of images (n, values), as the door computes them."""
    steps, weights = tuple(packer.steps), {}
    for step in steps:
        weights |= zip(step.tensors, rounded(step.name, [packer.weights[name] for name in step.tensors]), strict=True)
    with torch.no_grad():
        return torch.cat([run(steps, weights, planes(some, shape)) for some in x.double().split(_BATCH)])


def drawn_network(name: str, classes: int | None) -> nn.Module:
    """A network of torchvision or timm, with random weights."""
    library, _, network = name.partition(":")
    makers = {"torchvision": ("torchvision.models", "get_model", "weights", None),
              "timm": ("timm", "create_model", "pretrained", False)}  # fmt: skip
    if library not in makers or not network:
        raise SystemExit(f"{name} is no network. Write torchvision:NAME or timm:NAME.")
    module, function, key, value = makers[library]
    try:
        make = getattr(importlib.import_module(module), function)
    except ImportError:
        raise SystemExit(f"{name} needs {library}. Run: pip install {library}") from None
    try:
        return make(network, **{key: value}, **({} if classes is None else {"num_classes": classes}))  # type: ignore[no-any-return]
    except (ValueError, RuntimeError, KeyError):
        raise SystemExit(f"{library} has no network '{network}'.") from None


def loaded(network: nn.Module, path: Path) -> None:
    """Give a network the weights of a file, all of them."""
    try:
        network.load_state_dict(load_file(path))
    except RuntimeError as error:
        raise SystemExit(f"{path} holds another network: {' '.join(str(error).split())[:500]}") from None
    except Exception as error:
        raise SystemExit(f"{path} is no readable safetensors file: {error}") from None


def learned(network: nn.Module, x: Tensor, y: Tensor, epochs: int, prepare: Any) -> None:
    """Train a network on the labels of public images."""
    steps = max(1, epochs * (len(x) // _BATCH))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.002, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.004, steps)
    network.train()
    right = 0.0
    for step in range(steps):
        rows = torch.randint(len(x), (_BATCH,))
        guessed = network(prepare(x[rows]))
        loss = functional.cross_entropy(guessed, y[rows], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        right = 0.98 * right + 0.02 * float((guessed.argmax(1) == y[rows]).float().mean())
        if step % 200 == 0:
            print(f"step {step} of {steps}: accuracy about {right / (1 - 0.98 ** (step + 1)):.3f}", flush=True)


def images(path: Path, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None]:
    """Training images in [0, 1] of the shape asked for, (n, values), and their labels."""
    with np.load(path, allow_pickle=False) as arrays:
        x = torch.from_numpy(arrays["x_train"])
        y = torch.from_numpy(arrays["y_train"].astype(np.int64)) if "y_train" in arrays.files else None
    x = x[..., None] if x.ndim == 3 else x
    if x.shape[3] != math.prod(shape[2:]):  # to gray, or to color
        x = x.float().mean(dim=3, keepdim=True).expand(-1, -1, -1, math.prod(shape[2:]))
    parts = [functional.interpolate(some.permute(0, 3, 1, 2).float() / 255, size=shape[:2], mode="bilinear")
             for some in x.split(4096)]  # fmt: skip
    return torch.cat(parts).permute(0, 2, 3, 1).flatten(1).clamp(0, 1), y


def main() -> None:
    """Read the command line, train if there are no weights, write, and say what to put into params.yaml."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="torchvision:NAME or timm:NAME")
    parser.add_argument("images", type=Path, help=".npz of public images with x_train, and y_train without --weights")
    parser.add_argument("name", help="names of all public images that it saw: of these, and of the weights")
    parser.add_argument("--weights", type=Path, help="a safetensors file with the network's state; public")
    parser.add_argument("--out", type=Path, default=Path("encoder.safetensors"))
    parser.add_argument(
        "--shape", type=int, nargs="+", default=[28, 28], help="of the images to protect: 28 28, 32 32 3"
    )
    parser.add_argument("--size", type=int, default=64, help="height and width that the network sees")
    parser.add_argument("--mean", type=float, nargs=3, default=[0.485, 0.456, 0.406], help="of ImageNet")
    parser.add_argument("--deviation", type=float, nargs=3, default=[0.229, 0.224, 0.225], help="of ImageNet")
    parser.add_argument("--code", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shape = tuple(arguments.shape)
    x, y = images(arguments.images, shape)
    torch.manual_seed(public_seed(arguments.seed, "scripts.pack_network"))
    packer = Packer()
    start = prepared(packer, shape, arguments.size, arguments.mean, arguments.deviation)
    if arguments.weights is None and y is None:
        raise SystemExit(f"{arguments.images} has no y_train to learn. Give --weights.")
    network = drawn_network(
        arguments.network, int(y.max()) + 1 if arguments.weights is None and y is not None else None
    )
    steps, weights = tuple(packer.steps), {key: tensor.float() for key, tensor in packer.weights.items()}
    if arguments.weights is not None:
        loaded(network, arguments.weights)
    elif y is not None:
        learned(network, x, y, arguments.epochs, lambda some: run(steps, weights, planes(some, shape)))
    number = packer.network(network, arguments.size, start, arguments.network)
    some = x[torch.randperm(len(x))[:_SOME]]
    some = some[: len(some) // 2 * 2]
    features = outputs(packer, some, shape)
    if features.ndim > 2:
        number, features = packer.add("view", [number], shape=[-1]), features.flatten(1)
    check(network, packer, some[:_BATCH], shape, run(steps, weights, planes(some[:_BATCH], shape)))
    packer.add("linear", [number], projected(features, arguments.code))
    codes = outputs(packer, some, shape)
    save_steps(arguments.out, tuple(packer.steps), packer.weights, shape, distance(codes), arguments.name)
    encoder = DeepEncoder.load(arguments.out)
    digest = hashlib.sha256(arguments.out.read_bytes()).hexdigest()
    print(f"{len(encoder.steps)} steps, {encoder.multiplications / 1e6:.3g} million multiplications an image; "
          f"codes of {encoder.width} numbers, unit {encoder.unit:g}")  # fmt: skip
    print(f"merf_ae.privatize.encoder: {arguments.out}\nmerf_ae.privatize.encoder_sha256: {digest}")


def check(network: nn.Module, packer: Packer, x: Tensor, shape: tuple[int, ...], seen: Tensor) -> None:
    """Refuse steps that are not the network: it clips values beyond 2**REACH, and rounds."""
    kept: list[Tensor] = []
    dense = [module for module in network.modules() if isinstance(module, nn.Linear)]
    hook = dense[-1].register_forward_pre_hook(lambda module, inputs: kept.append(inputs[0])) if dense else None
    with torch.no_grad():
        result = network.eval()(seen)
    if hook is not None:
        hook.remove()
    expected = (kept[-1] if kept else result).flatten(1).double()
    error = float((outputs(packer, x, shape).flatten(1) - expected).square().mean().sqrt() / expected.std())
    print(f"steps differ from the network by {error:.1e} of the deviation of a feature")
    if not error < 0.01:
        raise SystemExit("The steps are not the network: its values or weights are too large for fixed point.")


if __name__ == "__main__":
    main()
