"""The training loop. All that it reads is released or public, so its steps cost no privacy."""

import math
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from likeness.core.errors import ParamsError
from likeness.core.messages import LOG, progress
from likeness.core.rng import public_seed
from likeness.generators.base import Compute, Trained
from likeness.methods.settings import TrainingSettings, choose_device
from likeness_papers.networks.latent import LatentGenerator


class Objective(Protocol):
    """The objective that the loop minimizes."""

    def loss(self, generator: nn.Module) -> Tensor:
        """Loss of the generator as it is, differentiable in its parameters."""
        ...


def environment(device: torch.device) -> dict[str, Any]:
    """See :class:`~likeness.generators.base.Trained`; on CUDA also the model of the GPU, and its libraries."""
    where = {
        "torch": torch.__version__,
        "device": device.type,
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
    }
    if device.type == "cuda":
        gpu = re.sub("[^0-9A-Za-z_ ]", "_", torch.cuda.get_device_name(device))[:40]
        where |= {"gpu": gpu, "cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}  # type: ignore[no-untyped-call]
    return where


def fit_network(
    name: str,
    build: Callable[[], LatentGenerator],
    objective: Callable[[torch.device], Objective],
    settings: TrainingSettings,
    seed: int,
    compute: Compute,
) -> Trained:
    """Build a network from seeded random weights and train it.

    Args:
        name: of the method, for the progress.
        build: makes the generator.
        objective: makes what it is trained against, on a device.
        settings: of the loop.
        seed: public.
        compute: device, threads and precision.
    """
    device = choose_device(compute.device)
    _warn_of_busy_cores(compute.threads)
    with _seed_torch(seed, compute.threads), _deterministic(device):
        generator, where = build(), environment(device)
        target = objective(device)
        with progress(f"train {name}", settings.iterations) as step:
            losses = train(
                generator,
                target,
                settings,
                device,
                lambda iteration, _, loss: step(iteration, f"loss {loss:.5g}"),
                compute.precision,
            )
    generator.eval()
    return Trained(generator, where, losses)


def _warn_of_busy_cores(threads: int) -> None:
    """Say that several threads wait for each other where other programs use the cores."""
    cores = os.cpu_count() or 1
    busy = os.getloadavg()[0] - 1 if hasattr(os, "getloadavg") else 0.0  # without this process
    if threads > 1 and threads > cores - busy:
        text = (
            "train.threads is %d, but other programs use about %.0f of %d cores. One thread may be many times faster."
        )
        LOG.warning(text, threads, min(max(busy, 0), cores), cores)


@contextmanager
def _seed_torch(seed: int, threads: int) -> Iterator[None]:
    """PyTorch with a seed and a number of threads; then with those of the caller again."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.set_num_threads(threads)
        torch.manual_seed(public_seed(seed, "train.weights"))
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def _deterministic(device: torch.device) -> Iterator[None]:
    """Choose algorithms with equal bits in every run on CUDA, then restore the caller's. A CPU has no others."""
    if device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it, at its first product
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with cudnn:
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def train(
    generator: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    device: torch.device,
    progress: Callable[[int, int, float], None],
    precision: str = "float32",
) -> list[tuple[int, float]]:
    """Fit a network, and return (iteration, loss) a hundred times.

    ``progress`` is called as often, with (iteration, iterations, loss); between calls the loss stays on the device.
    With precision ``bfloat16`` the products of a network have that type. Weights, rows, features and the loss keep
    float32.
    """
    generator.to(device).train()
    optimizer = torch.optim.Adam(generator.parameters(), lr=settings.learning_rate)
    scheduler = None
    if settings.schedule == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, settings.iterations))
    every = max(1, settings.iterations // 100)
    losses = []
    seen = _Half(generator) if precision == "bfloat16" else generator
    for iteration in range(1, settings.iterations + 1):
        loss = objective.loss(seen)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        if iteration % every == 0 or iteration == settings.iterations:
            losses.append((iteration, float(loss.detach())))
            if not math.isfinite(losses[-1][1]):
                raise ParamsError(f"training diverged at step {iteration}. Lower train.learning_rate of the method.")
            progress(iteration, settings.iterations, losses[-1][1])
    generator.to("cpu").eval()
    return losses


class _Half(nn.Module):
    """A network with products in bfloat16 and rows in float32.

    Features of rows need float32: a Hermite recursion or the phase of a Fourier feature would lose its digits.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(z.device.type, torch.bfloat16):
            rows: Tensor = self.network(z, labels)
        return rows.float()
