"""The objective and the critic against their definitions."""

import dataclasses

import pytest
import torch

from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.networks.means import class_means
from likeness_papers.networks.objective import EmbeddingObjective, guarded_class_scale, rows_per_class
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.critic import FrequencyCritic

FEATURE = CharacteristicFunction(40, 3, 1.0, seed=0)
CPU = torch.device("cpu")


def rows(count: int, shift: float) -> torch.Tensor:
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(0)) * 0.5 + shift


def objective(critic: FrequencyCritic | None = None, weighting: str = "joint") -> EmbeddingObjective:
    """Target: the exact joint embedding of 60 rows of class 0 and 40 of class 1."""
    x, weights = rows(100, 0.0), torch.tensor([0.6, 0.4])
    features = FEATURE(x)
    target = torch.stack([features[:60].sum(dim=0), features[60:].sum(dim=0)]) / 100
    return EmbeddingObjective(
        feature=FEATURE,
        target=target,
        class_weights=weights,
        class_scale=guarded_class_scale(weights, weighting, 0.05),
        critic=critic,
    ).to(CPU)


@pytest.mark.parametrize("weighting", ["joint", "per_class"])
def test_loss_is_zero_at_the_data_and_positive_elsewhere(weighting: str) -> None:
    assert float(objective(weighting=weighting).loss(rows(100, 0.0), [60, 40])) < 1e-9
    assert float(objective(weighting=weighting).loss(rows(100, 0.3), [60, 40])) > 0.1


@pytest.mark.long
def test_the_critic_ascends_and_stays_within_its_limits() -> None:
    critic = FrequencyCritic(FEATURE, 0.05, 1.5, 0.01, CPU)
    assert torch.allclose(critic.weights(), torch.ones(80))  # ω = ω₀ at the start
    residuals = torch.cat([FEATURE.frequencies.norm(dim=1)] * 2).float()  # larger where the frequency is
    before = float((critic.weights().detach() * residuals).sum())
    for _ in range(200):
        critic.step(residuals)
    assert float((critic.weights().detach() * residuals).sum()) > before
    assert float(critic.weights().detach().mean()) == pytest.approx(1.0, rel=1e-5)
    narrow = FrequencyCritic(FEATURE, 0.05, 1.5, 0.9, CPU)
    for _ in range(200):
        narrow.step(residuals)
    assert 0.9 <= float(narrow._effective(narrow._log_scale[None]).detach()) < 0.92  # drawn back, and no farther
    scales = critic._log_scale.exp()
    assert float(scales.detach().max()) <= 1.5 + 1e-6 and float(scales.detach().min()) >= 1 / 1.5 - 1e-6


@pytest.mark.long
def test_the_critic_does_not_chase_the_scatter_of_batches() -> None:
    """With the right rows, weights move far less than when the batches' own scatter is taken for signal."""
    drift = []
    for known in (True, False):
        generator = torch.Generator().manual_seed(1)
        critic = FrequencyCritic(FEATURE, 0.01, 1.5, 0.01, CPU)
        if not known:
            critic.scatter = lambda means, counts: torch.zeros_like(means)
        exact = FEATURE(torch.rand(50_000, 3, generator=generator) * 0.5).mean(dim=0)
        made = EmbeddingObjective(
            feature=FEATURE,
            target=torch.stack([0.6 * exact, 0.4 * exact]),
            class_weights=torch.tensor([0.6, 0.4]),
            class_scale=torch.ones(2),
            critic=critic,
        ).to(CPU)
        for _ in range(50):
            made.loss(torch.rand(50, 3, generator=generator) * 0.5, [30, 20])
        drift.append(float((critic.weights() - 1).abs().mean().detach()))
    assert drift[0] < drift[1] / 3


def test_small_classes_are_guarded() -> None:
    scale = guarded_class_scale(torch.tensor([0.999, 0.001]), "per_class", 0.05)
    assert float(scale[1] / scale[0]) == pytest.approx((0.999 / 0.05) ** 2, rel=1e-3)
    assert torch.equal(guarded_class_scale(torch.tensor([0.9, 0.1]), "joint", 0.05), torch.ones(2))


def test_every_class_has_rows_in_a_batch() -> None:
    counts = rows_per_class(torch.tensor([0.98, 0.01, 0.01]), 300)
    assert counts == [294, 25, 25]


@pytest.mark.long
def test_fixed_weights_of_coordinates_and_a_map_s_own_means() -> None:
    """Weights scale the squares one by one; a map that knows its means gives the same loss as one that does not."""
    plain = objective()
    weights = torch.arange(80.0)
    weighted = dataclasses.replace(plain, coordinate_weights=weights).to(CPU)
    x = rows(100, 0.3)
    means = class_means(FEATURE, x, [60, 40])
    squares = (plain.target - plain.class_weights[:, None] * means).square().sum(dim=0)
    assert float(weighted.loss(x, [60, 40])) == pytest.approx(float(weights @ squares), rel=1e-5)
    hermite = HermiteFeatures((0, 1, 2), (), (), (0.7,) * 3, (6.0,) * 3, 5, 3, ((0, 1), (1, 2)), 0.5)
    own = class_means(hermite, x, [60, 40])
    torch.testing.assert_close(own, class_means(hermite.__call__, x, [60, 40]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("counts", [[2, 2], [60, 40]], ids=["few rows", "many rows"])
def test_a_network_s_loss_is_that_of_its_features_also_when_the_target_changes(counts: list[int]) -> None:
    """What is known of a target is kept from step to step, and no longer than the target."""
    feature = NetworkTangent("fc_1l", (20,), (3,), seed=0)
    stream = torch.Generator().manual_seed(2)
    x = torch.rand(sum(counts), 3, generator=stream)
    weights, scale = torch.tensor([0.6, 0.4]), torch.tensor([1.0, 2.0])
    made = EmbeddingObjective(
        feature, torch.rand(2, feature.bounded_parts[0].width, generator=stream) / 10, weights, scale
    )
    for factor in (1.0, 1.0, 3.0):
        made.target = factor * made.target
        made = made.to(CPU)
        means = class_means(feature.__call__, x, counts)
        expected = (scale[:, None] * (made.target - weights[:, None] * means).square()).sum()
        assert float(made.loss(x, counts)) == pytest.approx(float(expected), rel=1e-5)
