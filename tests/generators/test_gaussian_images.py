"""Images from noisy moments and levels: what noise leaves, brightness, and the copula that has both."""

import math

import numpy as np
import pytest
import torch
from sklearn.isotonic import isotonic_regression

from likeness.methods.moments.brightness import brightness, shares_above
from likeness.methods.moments.cosine_map import CosineMoments, cosine_basis
from likeness.methods.moments.estimates import Moments, denoised
from likeness.methods.moments.gaussian_images import GaussianImages
from likeness.methods.moments.levels_map import CosineLevels

SHAPE = (6, 9)


def images(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, math.prod(SHAPE), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_without_noise_the_moments_are_those_of_the_rows() -> None:
    feature = CosineMoments(SHAPE, 20, 3.0, 0.4)
    x, counts = images(300, 2), torch.tensor([100.0, 200.0], dtype=torch.float64)
    parts = torch.split(x, [100, 200])
    sums = torch.stack([feature(part).sum(dim=0) for part in parts])
    found = denoised(sums, counts, 0.4, noise_std=0.0)
    for own, mean, factor in zip(parts, found.means, found.factors, strict=True):
        ((u, _),) = feature.factors(own)
        assert torch.allclose(mean, u.mean(dim=0), atol=1e-12)
        assert torch.allclose(factor @ factor.T, torch.cov(u.T, correction=0), atol=1e-12)
    assert torch.allclose(found.features(0.4), sums / counts[:, None], atol=1e-12)


def planted(values: list[float], mean: float, size: int, sigma: float, draws: torch.Generator) -> Moments:
    """Estimates of 1,000 records whose covariance has these eigenvalues and whose mean has this norm, under noise."""
    count, share = 1_000.0, 0.5
    directions = torch.linalg.qr(torch.randn(size, len(values) + 1, generator=draws, dtype=torch.float64))[0]
    center = mean * directions[:, -1]
    second = (directions[:, :-1] * torch.tensor(values, dtype=torch.float64)) @ directions[:, :-1].T
    second = second + center[:, None] * center[None]
    exact = torch.cat([math.sqrt(share) * center[:, None], math.sqrt(1 - share) * second], dim=1)
    noise = sigma * torch.randn(size, size + 1, generator=draws, dtype=torch.float64)
    return denoised((count * exact + noise).flatten()[None], torch.tensor([count]), share, sigma)


def test_eigenvalues_are_freed_of_what_noise_added_and_hidden_ones_dropped() -> None:
    """40 covariances with eigenvalues 3, 1.8 and .5 times s√K, where noise makes of the first two a third more, and
    hides the third. False alarms: the bound is six deviations of a mean of 40, 2e-9; noise alone exceeds the edge in
    about one matrix of six, in more than 24 of 40 with probability below 1e-9."""
    size, sigma = 60, 5.0
    unit = sigma * math.sqrt(size / (2 * 0.5)) / 1_000  # s √K
    draws, found = torch.Generator().manual_seed(4), []
    for _ in range(40):
        found.append(planted([3 * unit, 1.8 * unit, 0.5 * unit], 0.0, size, sigma, draws))
    strengths = torch.stack([own.factors[0].square().sum(dim=0)[:2] for own in found]) / unit
    # A single eigenvalue has a deviation of s√2 at most, that is √(2/60) in this unit.
    assert strengths.mean(dim=0).tolist() == pytest.approx([3, 1.8], abs=6 * math.sqrt(2 / 60 / 40))
    assert sum(own.ranks[0] > 2 for own in found) <= 24


def test_noise_alone_gives_no_direction_and_dark_images() -> None:
    draws = torch.Generator().manual_seed(5)
    noise = torch.randn(1, 60 * 61, generator=draws, dtype=torch.float64)
    found = denoised(noise, torch.tensor([1000.0]), 0.3, 1.2)  # noise a fifth smaller than said: no false alarm
    assert found.ranks == [0] and float(found.means.norm()) < 0.1
    loud = denoised(1e4 * noise, torch.tensor([1000.0]), 0.3, 1.2e4)
    assert float(loud.means.norm()) == pytest.approx(1)  # no mean of vectors within the ball is longer


def test_directions_above_a_part_of_the_edge_are_kept_at_half() -> None:
    """Of the semicircle .142 lies above .6 of its edge: 14 of 100 eigenvalues, which hardly move."""
    draws = torch.Generator().manual_seed(6)
    noise = torch.randn(1, 100 * 101, generator=draws, dtype=torch.float64)
    found = denoised(noise, torch.tensor([1000.0]), 0.3, 1.0, edge_share=0.6)
    edge = math.sqrt(2 * 100 / 0.7) / 1_000
    strengths = found.factors[0].square().sum(dim=0)
    assert found.ranks[0] in (13, 14, 15, 16)
    assert float(strengths[0]) == pytest.approx(edge / 2, rel=0.1)
    assert float(strengths[strengths > 0].min()) == pytest.approx(0.6 * edge / 2, rel=0.1)


@pytest.mark.parametrize(("brightness", "expected"), [(-2.0, 0.0), (5.0, 1.0)])
def test_pixels_are_clipped_to_black_and_white(brightness: float, expected: float) -> None:
    network = GaussianImages((10, 10), 1, 60, 2.5)
    means = torch.zeros(1, 60, dtype=torch.float64)
    means[0, 0] = brightness * 10 / 2.5
    network.start_from(Moments(means, torch.zeros(1, 60, 60, dtype=torch.float64)))
    x = network.draw(torch.zeros(5, dtype=torch.int64), torch.Generator().manual_seed(1))
    assert bool((x == expected).all())


def test_the_generator_has_the_moments_that_it_was_given() -> None:
    """20,000 images of two classes, far from the ends of the scale; means of 20,000 within six deviations, 2e-9."""
    network, size, bound = GaussianImages(SHAPE, 2, 20, 2.4), 20, 2.4
    means = torch.zeros(2, size, dtype=torch.float64)
    means[:, 0] = torch.tensor([0.4, 0.6]) * math.sqrt(54) / bound  # gray
    factors = torch.zeros(2, size, size, dtype=torch.float64)
    factors[0, 3, 0], factors[1, 5, 1] = 0.05, 0.07
    network.start_from(Moments(means, factors))
    labels = torch.tensor([0, 1]).repeat(20_000)
    x = network.draw(labels, torch.Generator().manual_seed(2)).double()
    assert float(x.min()) >= 0 and float(x.max()) <= 1
    u = x @ cosine_basis(SHAPE, size).T / bound
    for label, (row, deviation) in enumerate(((3, 0.05), (5, 0.07))):
        own = u[labels == label]
        assert own.mean(dim=0).numpy() == pytest.approx(means[label].numpy(), abs=6 * 0.07 / math.sqrt(20_000))
        scatter = own.std(dim=0)
        assert float(scatter[row]) == pytest.approx(deviation, rel=6 / math.sqrt(40_000))
        assert float(scatter.sum() - scatter[row]) < 1e-3  # what rounding of the basis leaves


def test_without_noise_shares_above_levels_are_those_of_the_rows() -> None:
    """With all frequencies nothing is smoothed, and no image is dimmed where the bound is a white image's share."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 3, 1.0)
    x, counts = images(300, 2), torch.tensor([100.0, 200.0], dtype=torch.float64)
    parts = torch.split(x, [100, 200])
    found = shares_above(torch.stack([feature(part).sum(dim=0) for part in parts]), counts, feature)
    for own, shares in zip(parts, found, strict=True):
        for level in range(3):
            assert torch.allclose(shares[level], (own > level / 3).double().mean(dim=0), atol=1e-4)


def test_shares_do_not_increase_with_the_level() -> None:
    """The same as scikit-learn's isotonic regression, pixel by pixel."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 5, 1.0)
    noise = torch.randn(2, 5 * 54, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    counts = torch.tensor([10.0, 20.0], dtype=torch.float64)
    found = shares_above(noise, counts, feature)
    basis = cosine_basis(SHAPE, 54)
    for own, count, shares in zip(noise, counts, found, strict=True):
        rough = (own.view(5, 54) @ basis / (count * feature.scale)).numpy()
        for pixel in range(54):
            expected = isotonic_regression(rough[:, pixel], increasing=False)
            assert shares[:, pixel].numpy() == pytest.approx(np.clip(expected, 0, 1), abs=1e-9)


def test_a_pixel_is_above_a_level_as_often_as_was_released() -> None:
    shares = torch.tensor([[0.8, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.0, 0.0]], dtype=torch.float64)
    places = (torch.arange(1_000, dtype=torch.float64)[:, None] + 0.5) / 1_000 * torch.ones(1, 3)
    x = brightness(places, shares)
    for level in range(3):
        assert torch.equal((x > level / 3).double().mean(dim=0), shares[level])
    assert float(x.min()) == 0 and float(x.max()) <= 1
    assert bool((x[:-1, 0] >= x[1:, 0]).all())  # the brightest first
    mean = float(x[:, 0].mean())  # linear between levels: a fifth and three tenths twice, in the middle of each step
    assert mean == pytest.approx((0.3 * 1 / 6 + 0.3 * 3 / 6 + 0.2 * 5 / 6), abs=1e-3)


def test_pixels_that_go_together_in_the_moments_go_together_in_images() -> None:
    """One direction of the lowest frequency: all pixels rise and fall as one."""
    network = GaussianImages(SHAPE, 1, 20, 2.4, levels=1)
    factors = torch.zeros(1, 20, 20, dtype=torch.float64)
    factors[0, 0, 3] = 0.3
    network.start_from(Moments(torch.zeros(1, 20), factors), torch.full((1, 1, 54), 0.5).double())
    x = network.draw(torch.zeros(1_000, dtype=torch.int64), torch.Generator().manual_seed(2))
    assert torch.allclose(x, x[:, :1].expand_as(x), atol=1e-4)
    assert 0.4 < float((x[:, 0] > 0).float().mean()) < 0.6  # of 1,000: six deviations are 0.095
