"""Adam on arrays takes the steps that PyTorch's takes, and stops where the loss is not finite."""

import re

import numpy as np
import pytest
import torch

from likeness.core.errors import ParamsError
from likeness.generators.base import environment
from likeness.methods.marginals.training import is_near, minimize
from likeness.methods.settings import TrainingSettings


class Bowl:
    """A quartic of both arguments, with its minimum at 1."""

    def __init__(self, near: bool = True) -> None:
        self.steps, self.adapted, self.squares = 0, [], 0.0 if near else 9.0

    def adapt(self, logits: np.ndarray, weights: np.ndarray) -> None:
        self.adapted.append(self.steps)

    def misfits(self, logits: np.ndarray, weights: np.ndarray) -> dict[str, tuple[float, float]]:
        return {"cells": (self.squares, 1.0)}

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


def test_a_fit_ends_where_it_is_near_and_still_and_halves_its_rate_where_it_is_still_and_far() -> None:
    ends, falls = {}, {}
    for name, tolerance, near in (
        ("all", 0.0, True),
        ("near", 0.001, True),
        ("far", 0.001, False),
        ("soon", 0.5, True),
    ):
        ours = [np.zeros(shape, dtype=np.float32) for shape in ((3, 4), (2, 3))]
        flat = Flat(near)
        settings = TrainingSettings(2000, 1, 0.05, tolerance=tolerance)
        ends[name] = minimize(flat, *ours, settings, lambda *_: None)[-1]  # type: ignore[arg-type]
        (falls[name],) = flat.adapted
    assert ends["all"][0] == 2 * falls["all"] == 2000
    assert ends["soon"][0] < ends["near"][0] < ends["far"][0] < ends["all"][0]
    assert ends["near"][0] == 2 * falls["near"] < 400, "as many steps fall as stay, where these are few"
    assert ends["far"][0] == falls["far"] + max(200, falls["far"] // 3), "later a third of them"
    assert falls["far"] >= 5 * 3 * 20, "five rates, three windows each"
    assert ends["near"][1] == pytest.approx(ends["all"][1], rel=1e-3)


def test_near_is_what_noise_alone_leaves() -> None:
    assert is_near({"cells": (10_400.0, 10_000.0)}) and not is_near({"cells": (10_600.0, 10_000.0)})
    assert is_near({"products": (9.0 + 2 * 3, 9.0)}) and not is_near({"products": (9.0 + 2 * 3.1, 9.0)})
    assert is_near({"cells": (9_000.0, 10_000.0), "products": (300.0, 100.0)})


def test_a_loss_that_is_not_finite_is_refused() -> None:
    weights = np.full((1, 1), np.inf, dtype=np.float32)
    with pytest.raises(ParamsError, match="diverged at step 1"):
        minimize(Bowl(), weights, weights.copy(), TrainingSettings(5, 1, 0.1), lambda *_: None)  # type: ignore


def test_the_origin_names_a_machine() -> None:
    where = environment()
    assert sorted(where) == ["device", "numpy", "processor"]
    assert re.fullmatch(r"[0-9A-Za-z_]{1,20} [0-9A-Za-z_ ]{1,20}", where["processor"])
