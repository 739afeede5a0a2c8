"""The training loop. It may run for ever: everything it sees is released or public."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from likeness.errors import ParamsError
from likeness.generators.settings import TrainingSettings
from likeness.rng import public_seed


class Objective(Protocol):
    """What the loop minimizes."""

    def loss(self, x: Tensor, counts: list[int]) -> Tensor:
        """Loss of relaxed rows in order of class."""
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


def rows_per_class(class_weights: Tensor, batch_size: int) -> list[int]:
    """Rows of each class in a batch: by weight, but at least a quarter of an equal share, so that no mean is noise."""
    least = max(2, batch_size // (4 * len(class_weights)))
    return [max(least, round(float(weight) * batch_size)) for weight in class_weights]


def train(
    generator: nn.Module,
    latent_dim: int,
    objective: Objective,
    counts: list[int],
    settings: TrainingSettings,
    device: torch.device,
    seed: int,
    progress: Callable[[int, int, float], None],
) -> list[tuple[int, float]]:
    """Fit a generator.

    The loss stays on the device; it is read only every hundredth of the run, when progress is told.

    Args:
        counts: rows of each class in a batch. progress: called with (iteration, iterations, loss).

    Returns:
        (iteration, loss) at the same moments.
    """
    generator.to(device).train()
    draws = torch.Generator(device=device).manual_seed(public_seed(seed, "train.latent"))
    optimizer = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate)
    scheduler = None
    if settings.schedule == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.iterations)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).to(device)
    every = max(1, settings.iterations // 100)
    losses = []
    for iteration in range(1, settings.iterations + 1):
        z = torch.randn(len(labels), latent_dim, generator=draws, device=device)
        loss = objective.loss(generator(z, labels), counts)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        if iteration % every == 0 or iteration == settings.iterations:
            losses.append((iteration, float(loss.detach())))
            progress(iteration, settings.iterations, losses[-1][1])
    generator.to("cpu").eval()
    return losses
