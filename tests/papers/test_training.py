"""The loop of training: learning rates, momenta and latent numbers; products in bfloat16, and float32 outside."""

import math
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likeness.core.rng import public_seed
from likeness.methods.settings import TrainingSettings
from likeness.verify.outputs import _is_origin
from likeness_papers.networks.images import ImageGenerator
from likeness_papers.networks.latent import LatentGenerator
from likeness_papers.networks.objective import LatentBatches
from likeness_papers.networks.training import _deterministic, _warn_of_busy_cores, environment, train


class Square:
    """The loss (w - 3)²."""

    def loss(self, generator: nn.Module) -> Tensor:
        (weight,) = generator.parameters()
        return (weight - 3).square().sum()


def watched(monkeypatch: pytest.MonkeyPatch, settings: TrainingSettings) -> list[dict[str, Any]]:
    """What Adam was given at each step of a training."""
    steps: list[dict[str, Any]] = []

    class Watched(torch.optim.Adam):
        def step(self, *arguments: Any, **options: Any) -> Any:
            (group,) = self.param_groups
            steps.append({"lr": group["lr"], "betas": group["betas"]})
            return super().step(*arguments, **options)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    train(nn.Linear(1, 1, bias=False), Square(), settings, torch.device("cpu"), lambda *_: None)
    return steps


@pytest.mark.long
def test_a_cosine_schedule_falls_from_the_learning_rate_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At step t of T the rate is η (1 + cos(π t / T)) / 2."""
    steps = watched(monkeypatch, TrainingSettings(20, 1, 0.4, "cosine"))
    assert [step["lr"] for step in steps] == pytest.approx([0.2 * (1 + math.cos(math.pi * t / 20)) for t in range(20)])


@pytest.mark.long
def test_a_constant_schedule_keeps_the_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = watched(monkeypatch, TrainingSettings(20, 1, 0.4, "constant"))
    assert steps == [{"lr": 0.4, "betas": (0.9, 0.999)}] * 20


@pytest.mark.long
def test_progress_is_told_every_hundredth_and_at_the_end() -> None:
    told: list[tuple[int, int, float]] = []
    settings = TrainingSettings(250, 1, 0.1, "constant")
    losses = train(nn.Linear(1, 1, bias=False), Square(), settings, torch.device("cpu"), lambda *one: told.append(one))
    assert [(iteration, loss) for iteration, _, loss in told] == losses
    assert [iteration for iteration, _ in losses] == list(range(2, 251, 2)) and losses[-1][1] < 1e-3 < losses[0][1]


def test_every_device_has_the_same_latent_numbers() -> None:
    stream = LatentBatches(None, 3, [2, 4], 0, torch.device("meta"))._draws  # type: ignore[arg-type]
    assert stream.device.type == "cpu" and stream.initial_seed() == public_seed(0, "train.latent")


@pytest.mark.long
def test_a_training_on_cuda_has_equal_bits_and_names_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    with _deterministic(cuda):
        assert torch.are_deterministic_algorithms_enabled() and torch.backends.cudnn.deterministic
    assert not torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.deterministic
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100 80GB HBM3 (1/2)")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
    where = environment(cuda)
    assert where.items() >= {"gpu": "NVIDIA H100 80GB HBM3 _1_2_", "cuda": "12.8", "cudnn": "91002"}.items()
    assert _is_origin({**where, "torch": "2.13.0+cu128"}) and not _is_origin({**where, "torch": "2.13.0+cpu"})


@pytest.mark.parametrize(
    ("threads", "load", "told"), [(1, 9.0, False), (2, 1.2, False), (2, 9.0, True), (16, 0.0, True)]
)
def test_threads_without_cores_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, threads: int, load: float, told: bool
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load), raising=False)
    _warn_of_busy_cores(threads)
    assert ("One thread may be many times faster" in caplog.text) == told


CPU = torch.device("cpu")
SETTINGS = TrainingSettings(iterations=60, batch_size=64, learning_rate=0.01)


class OneImage:
    """Every generated image should be the same gradient from black to white; keeps what it was given."""

    def __init__(self) -> None:
        self.labels = torch.zeros(64, dtype=torch.int64)
        self.target = torch.linspace(0, 1, 64)
        self.draws = torch.Generator().manual_seed(0)
        self.rows: list[Tensor] = []

    def loss(self, generator: nn.Module) -> Tensor:
        rows = generator(torch.randn(64, 4, generator=self.draws), self.labels)
        self.rows.append(rows.detach())
        return (rows - self.target).square().mean()


class Dense(LatentGenerator):
    """Ends in a product, so that its rows come out of it in bfloat16."""

    def __init__(self) -> None:
        super().__init__(4, 1)
        self.body = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        rows: Tensor = self.body(self.inputs(z, labels))
        return rows


def images() -> LatentGenerator:
    return ImageGenerator((8, 8), 1, 4, 16, (4, 2))


def fitted(precision: str, network: Callable[[], LatentGenerator] = images) -> tuple[nn.Module, OneImage, float]:
    torch.manual_seed(0)
    own, objective = network(), OneImage()
    losses = train(own, objective, SETTINGS, CPU, lambda *_: None, precision)
    return own, objective, losses[-1][1]


@pytest.mark.long
@pytest.mark.parametrize("own", [images, Dense])
def test_it_learns_as_well_and_hands_on_single_precision(own: Callable[[], LatentGenerator]) -> None:
    (_, single, exact), (network, objective, loss) = fitted("float32", own), fitted("bfloat16", own)
    assert loss < 2 * exact < 0.02 and {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    assert objective.rows[0].dtype == torch.float32
    if own is images:  # before any step: the products alone are of another arithmetic
        assert 0 < (single.rows[0] - objective.rows[0]).abs().max() < 0.05
