"""Products in bfloat16: only those of a network of latent noise, and what comes out of it is float32."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from likeness.methods.settings import TrainingSettings
from likeness_papers.networks.images import ImageGenerator
from likeness_papers.networks.latent import LatentGenerator
from likeness_papers.networks.training import train

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
    assert loss < 2 * exact < 0.02
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    assert objective.rows[0].dtype == torch.float32
    if own is images:  # before any step: the products alone are of another arithmetic
        assert 0 < (single.rows[0] - objective.rows[0]).abs().max() < 0.05
