"""Adam on arrays takes the steps that PyTorch's takes, and stops where the loss is not finite."""

import re

import numpy as np
import pytest
import torch

from likeness.core.errors import ParamsError
from likeness.generators.base import environment
from likeness.methods.marginals.training import minimize
from likeness.methods.settings import TrainingSettings


class Bowl:
    """A quartic of both arguments, with its minimum at 1."""

    def __init__(self) -> None:
        self.steps, self.adapted = 0, []

    def adapt(self, logits: np.ndarray, weights: np.ndarray) -> None:
        self.adapted.append(self.steps)

    def loss(self, logits: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        self.steps += 1
        off = logits - 1, weights - 1
        return float(sum((one**4).sum() for one in off)), *(4 * one**3 for one in off)


class Flat(Bowl):
    """A bowl whose least loss is 10, as that of noise is."""

    def loss(self, logits: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loss, *slopes = super().loss(logits, weights)
        return loss + 10, *slopes


@pytest.mark.long
def test_the_steps_are_those_of_pytorch() -> None:
    start = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((3, 4), (2, 3))]
    ours, theirs = [one.copy() for one in start], [torch.tensor(one, requires_grad=True) for one in start]
    settings, seen = TrainingSettings(90, 1, 0.05), []
    losses = minimize(Bowl(), *ours, settings, lambda iteration, loss: seen.append((iteration, loss)))  # type: ignore
    optimizer = torch.optim.Adam(theirs, lr=0.05, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 90)
    for _ in range(90):
        loss = sum(((one - 1) ** 4).sum() for one in theirs)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[union-attr]
        optimizer.step()
        scheduler.step()
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other.detach().numpy(), abs=1e-4)
    assert seen == losses and [iteration for iteration, _ in losses] == list(range(1, 91))


def test_a_fit_that_stands_still_ends_and_one_without_tolerance_does_not() -> None:
    ends = {}
    for tolerance in (0.0, 0.001, 0.5):
        ours = [np.zeros(shape, dtype=np.float32) for shape in ((3, 4), (2, 3))]
        settings = TrainingSettings(400, 1, 0.05, tolerance=tolerance)
        flat = Flat()
        ends[tolerance] = minimize(flat, *ours, settings, lambda *_: None)[-1]  # type: ignore[arg-type]
        assert flat.adapted == [ends[tolerance][0] // 2], "where the steps begin to fall, or half of them are done"
    assert ends[0.0][0] == 400 and ends[0.001][0] < 250 and ends[0.5][0] < ends[0.001][0]
    assert ends[0.001][0] % 40 == 0, "as many steps fall as stay"
    assert ends[0.001][1] == pytest.approx(ends[0.0][1], rel=1e-3)


def test_a_loss_that_is_not_finite_is_refused() -> None:
    weights = np.full((1, 1), np.inf, dtype=np.float32)
    with pytest.raises(ParamsError, match="diverged at step 1"):
        minimize(Bowl(), weights, weights.copy(), TrainingSettings(5, 1, 0.1), lambda *_: None)  # type: ignore


def test_the_origin_names_a_machine() -> None:
    where = environment()
    assert sorted(where) == ["device", "numpy", "processor"]
    assert re.fullmatch(r"[0-9A-Za-z_]{1,20} [0-9A-Za-z_ ]{1,20}", where["processor"])
