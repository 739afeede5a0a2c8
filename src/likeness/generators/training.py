"""The training loop. It may run for ever: everything it sees is released or public."""

import math
import platform
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likeness.config.training import TrainingSettings
from likeness.core.errors import ParamsError
from likeness.generators import parallel


class Objective(Protocol):
    """What the loop minimizes."""

    def loss(self, generator: nn.Module) -> Tensor:
        """Loss of the generator as it is, differentiable in its parameters."""
        ...


def choose_device(name: str) -> torch.device:
    """``auto`` takes CUDA, then MPS, then the CPU.

    Raises:
        ParamsError: the device asked for is not there.
    """
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(device for device in ("cuda", "mps", "cpu") if has[device]))
    if name not in has:
        raise ParamsError(f"train.device must be one of auto, {', '.join(has)}, got {name!r}")
    if not has[name]:
        raise ParamsError(f"train.device is {name}, which this machine does not have. Use auto.")
    return torch.device(name)


def environment(device: torch.device) -> dict[str, Any]:
    """What the bits of trained weights depend on, beside settings and seeds.

    Machines that agree in it train the same bits, but for vendors of processors. Other machines round otherwise, and
    hundreds of steps make other weights of that, which are as good.
    """
    return {
        "torch": torch.__version__,
        "device": device.type,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "processes": parallel.size(),
    }


def train(
    generator: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    device: torch.device,
    progress: Callable[[int, int, float], None],
    precision: str = "float32",
) -> list[tuple[int, float]]:
    """Fit a generator. With no iterations it stays as it started, for a closed form, and its loss is told.

    The loss stays on the device; it is read only every hundredth of the run, when progress is told.

    Args:
        progress: called with (iteration, iterations, loss).
        precision: ``bfloat16`` makes the products of a network in that type; its weights, its rows, the features of
            these and the loss keep float32. The mixture and Gaussian images keep it altogether.

    Returns:
        (iteration, loss) at the same moments.
    """
    generator.to(device).train()
    if parallel.size() > 1:
        parallel.join(generator)
    optimizer = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate, betas=(0.9, settings.beta2))
    scheduler = None
    if settings.schedule == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, settings.iterations))
    every = max(1, settings.iterations // 100)
    losses = []
    seen = _Half(generator) if precision == "bfloat16" and getattr(generator, "is_network", False) else generator
    for iteration in range(1, settings.iterations + 1):
        loss = objective.loss(seen)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if parallel.size() > 1:
            parallel.average_gradients(generator)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        if iteration % every == 0 or iteration == settings.iterations:
            losses.append((iteration, float(loss.detach())))
            if not math.isfinite(losses[-1][1]):
                raise ParamsError(f"the training diverged at step {iteration}: lower train.learning_rate of the method")
            progress(iteration, settings.iterations, losses[-1][1])
    if not losses:
        with torch.no_grad():
            losses.append((0, float(objective.loss(generator))))
        if not math.isfinite(losses[0][1]):
            raise ParamsError("the closed form has no finite loss: the noise is too large for the released values")
    generator.to("cpu").eval()
    return losses


class _Half(nn.Module):
    """A network whose products are made in bfloat16, and its rows given in float32 again.

    A row's features are not: a Hermite recursion or the phase of a Fourier feature would lose its digits.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(z.device.type, torch.bfloat16):
            rows: Tensor = self.network(z, labels)
        return rows.float()
