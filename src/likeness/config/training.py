"""Settings of the training loop. Reading them loads no tensor library."""

from dataclasses import dataclass

from likeness.core.errors import ParamsError
from likeness.core.lazy import torch

SAMPLING = ("argmax", "categorical")
"""How a category is chosen from the softmax of a network."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        iterations: gradient steps; 0 for a closed form.
        batch_size: rows a step.
        learning_rate: of Adam.
        schedule: ``constant`` (the papers) or ``cosine`` decay to zero.
        tolerance: part of the loss; see :func:`likeness.methods.marginals.training.minimize`. 0: all iterations.
    """

    iterations: int
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    tolerance: float = 0.0


def choose_device(name: str) -> "torch.device":
    """``auto`` takes CUDA, then MPS, then the CPU.

    Raises:
        ParamsError: this machine does not have the device.
    """
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(device for device in ("cuda", "mps", "cpu") if has[device]))
    if name not in has:
        raise ParamsError(f"train.device must be one of auto, {', '.join(has)}, got {name!r}")
    if not has[name]:
        raise ParamsError(f"train.device is {name}, which this machine does not have. Use auto.")
    return torch.device(name)
