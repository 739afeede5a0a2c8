"""Images from cosine coefficients, noisy moments, levels and the copula of both; the detail beyond released ones."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.fft import dctn
from sklearn.isotonic import isotonic_regression

from likeness.core.errors import ReleaseError
from likeness_images.moments.brightness import brightness, shares_above
from likeness_images.moments.clusters_map import halves
from likeness_images.moments.cosine_map import (
    CosineMoments,
    CosineNorms,
    cosine_basis,
    lowest_frequencies,
    mirrored_signs,
)
from likeness_images.moments.estimates import Moments, denoise_mirrored, denoise_moments, join_sums
from likeness_images.moments.gaussian_images import GaussianImages
from likeness_images.moments.levels_map import CosineLevels, LevelCounts
from likeness_images.moments.texture import Texture

SHAPE = (6, 9)


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, math.prod(SHAPE)))


def test_without_noise_the_moments_are_those_of_the_rows() -> None:
    feature = CosineMoments(SHAPE, 20, 3.0, 0.4)
    x, counts = images(300, 2), np.array([100.0, 200.0])
    parts = np.split(x, [100])
    sums = np.stack([feature(part).sum(axis=0) for part in parts])
    found = denoise_moments(sums, counts, 0.4, noise_std=0.0)
    for own, mean, factor in zip(parts, found.means, found.factors, strict=True):
        ((u, _),) = feature.factors(own)
        assert np.allclose(mean, u.mean(axis=0), atol=1e-12)
        assert np.allclose(factor @ factor.T, np.cov(u.T, ddof=0), atol=1e-12)
    assert np.allclose(found.features(0.4), sums / counts[:, None], atol=1e-12)


def test_what_a_mirror_turns_around_has_no_mean_and_varies_alone() -> None:
    """Without noise: the moments of the rows together with their mirror images."""
    feature, x = CosineMoments(SHAPE, 20, 3.0, 0.4), images(300, 2)
    both = np.concatenate([x, x.reshape(-1, *SHAPE)[:, :, ::-1].reshape(x.shape)])
    expected = denoise_moments(feature(both).sum(axis=0)[None], np.array([600.0]), 0.4, 0.0)
    signs = mirrored_signs(SHAPE, 20)
    found = denoise_mirrored(feature(x).sum(axis=0)[None], np.array([300.0]), 0.4, 0.0, 1.0, signs)
    assert 5 < signs.sum() < 15
    assert found.means == pytest.approx(expected.means, abs=1e-4)  # the basis is rounded
    assert found.factors[0] @ found.factors[0].T == pytest.approx(expected.factors[0] @ expected.factors[0].T, abs=1e-4)
    strengths = (found.factors[0] ** 2).sum(axis=0)
    assert (np.diff(strengths) <= 0).all()


def test_a_mirror_leaves_out_half_of_the_noise() -> None:
    """Directions of noise alone stay above .6 of an edge, at half: that of a matrix of half the size."""
    noise, signs = np.random.default_rng(6).standard_normal((1, 100 * 101)), np.arange(100) % 2 == 1
    edge = math.sqrt(2 * 100 / 0.7) / 1_000
    numbers = noise, np.array([1000.0]), 0.3, 1.0, 0.6
    for found, expected in (
        (denoise_moments(*numbers), edge),
        (denoise_mirrored(*numbers, signs), edge / math.sqrt(2)),
    ):
        strengths = (found.factors[0] ** 2).sum(axis=0)
        assert strengths[strengths > 0].min() == pytest.approx(0.6 * expected / 2, rel=0.1)


def planted(values: list[float], mean: float, size: int, sigma: float, draws: np.random.Generator) -> Moments:
    """Estimates of 1,000 records whose covariance has these eigenvalues and whose mean has this norm, under noise."""
    count, share = 1_000.0, 0.5
    directions = np.linalg.qr(draws.standard_normal((size, len(values) + 1)))[0]
    center = mean * directions[:, -1]
    second = (directions[:, :-1] * np.array(values)) @ directions[:, :-1].T
    second = second + center[:, None] * center[None]
    exact = np.hstack([math.sqrt(share) * center[:, None], math.sqrt(1 - share) * second])
    noise = sigma * draws.standard_normal((size, size + 1))
    return denoise_moments((count * exact + noise).reshape(1, -1), np.array([count]), share, sigma)


def test_eigenvalues_are_freed_of_what_noise_added_and_hidden_ones_dropped() -> None:
    """40 covariances with eigenvalues 3, 1.8 and .5 times s√K, where noise makes of the first two a third more, and
    hides the third. False alarms: the bound is six deviations of a mean of 40, 2e-9; noise alone exceeds the edge in
    about one matrix of six, in more than 24 of 40 with probability below 1e-9."""
    size, sigma = 60, 5.0
    unit = sigma * math.sqrt(size / (2 * 0.5)) / 1_000  # s √K
    draws, found = np.random.default_rng(4), []
    for _ in range(40):
        found.append(planted([3 * unit, 1.8 * unit, 0.5 * unit], 0.0, size, sigma, draws))
    strengths = np.stack([(each.factors[0] ** 2).sum(axis=0)[:2] for each in found]) / unit
    # A single eigenvalue has a deviation of s√2 at most, that is √(2/60) in this unit.
    assert strengths.mean(axis=0).tolist() == pytest.approx([3, 1.8], abs=6 * math.sqrt(2 / 60 / 40))
    assert sum(own.ranks[0] > 2 for own in found) <= 24


def test_noise_alone_gives_no_direction_and_dark_images() -> None:
    noise = np.random.default_rng(5).standard_normal((1, 60 * 61))
    found = denoise_moments(noise, np.array([1000.0]), 0.3, 1.2)  # noise a fifth smaller than said: no false alarm
    assert found.ranks == [0] and np.linalg.norm(found.means) < 0.1
    loud = denoise_moments(1e4 * noise, np.array([1000.0]), 0.3, 1.2e4)
    assert np.linalg.norm(loud.means) == pytest.approx(1)  # no mean of vectors within the ball is longer


def test_directions_above_a_part_of_the_edge_are_kept_at_half() -> None:
    """Of the semicircle .142 lies above .6 of its edge: 14 of 100 eigenvalues, which hardly move."""
    noise = np.random.default_rng(6).standard_normal((1, 100 * 101))
    found = denoise_moments(noise, np.array([1000.0]), 0.3, 1.0, edge_share=0.6)
    edge = math.sqrt(2 * 100 / 0.7) / 1_000
    strengths = (found.factors[0] ** 2).sum(axis=0)
    assert found.ranks[0] in (13, 14, 15, 16) and strengths[0] == pytest.approx(edge / 2, rel=0.1)
    assert strengths[strengths > 0].min() == pytest.approx(0.6 * edge / 2, rel=0.1)


@pytest.mark.parametrize(("brightness", "expected"), [(-2.0, 0.0), (5.0, 1.0)])
def test_pixels_are_clipped_to_black_and_white(brightness: float, expected: float) -> None:
    network = GaussianImages((10, 10), 1, 60, 2.5)
    means = np.zeros((1, 60))
    means[0, 0] = brightness * 10 / 2.5
    network.start_from(Moments(means, np.zeros((1, 60, 60))))
    x = network.draw(np.zeros(5, dtype=np.int64), np.random.default_rng(1), {})
    assert (x == expected).all()


def test_the_generator_has_the_moments_that_it_was_given() -> None:
    """20,000 images of two classes, far from the ends of the scale; means of 20,000 within six deviations, 2e-9."""
    network, size, bound = GaussianImages(SHAPE, 2, 20, 2.4), 20, 2.4
    means = np.zeros((2, size))
    means[:, 0] = np.array([0.4, 0.6]) * math.sqrt(54) / bound  # gray
    factors = np.zeros((2, size, size))
    factors[0, 3, 0], factors[1, 5, 1] = 0.05, 0.07
    network.start_from(Moments(means, factors))
    labels = np.tile([0, 1], 20_000)
    x = network.draw(labels, np.random.default_rng(2), {})
    assert x.min() >= 0 and x.max() <= 1
    u = x @ cosine_basis(SHAPE, size).T / bound
    for label, (row, deviation) in enumerate(((3, 0.05), (5, 0.07))):
        members = u[labels == label]
        assert members.mean(axis=0) == pytest.approx(means[label], abs=6 * 0.07 / math.sqrt(20_000))
        scatter = members.std(axis=0)
        assert scatter[row] == pytest.approx(deviation, rel=6 / math.sqrt(40_000))
        assert scatter.sum() - scatter[row] < 1e-3  # what rounding of the basis leaves


@pytest.mark.parametrize(("gray", "mirror"), [(False, False), (True, False), (True, True)])
def test_without_noise_shares_above_levels_are_those_of_the_rows(gray: bool, mirror: bool) -> None:
    """All frequencies smooth nothing, and a white image's bound dims none. A mirror averages both sides."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 3, 1.0, gray=gray)
    parts, counts = np.split(images(300, 2), [100]), np.array([100.0, 200.0])
    sums = np.stack([feature(part).sum(axis=0) for part in parts])
    for own, shares in zip(parts, shares_above(sums, counts, feature, mirror=mirror), strict=True):
        expected = np.stack([(own > level / 3).mean(axis=0) for level in range(3)]).reshape(3, *SHAPE)
        expected = (expected + expected[:, :, ::-1]) / 2 if mirror else expected
        assert shares == pytest.approx(expected.reshape(3, -1), abs=1e-4)


def test_shares_do_not_increase_with_the_level() -> None:
    """The same as scikit-learn's isotonic regression, pixel by pixel."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 5, 1.0)
    noise = np.random.default_rng(8).standard_normal((2, 5 * 54))
    counts = np.array([10.0, 20.0])
    found = shares_above(noise, counts, feature)
    basis = cosine_basis(SHAPE, 54)
    for own, count, shares in zip(noise, counts, found, strict=True):
        rough = own.reshape(5, 54) @ basis / (count * feature.scale)
        for pixel in range(54):
            expected = isotonic_regression(rough[:, pixel], increasing=False)
            assert shares[:, pixel] == pytest.approx(np.clip(expected, 0, 1), abs=1e-9)


def test_a_pixel_is_above_a_level_as_often_as_was_released() -> None:
    shares = np.array([[0.8, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.0, 0.0]])
    places = (np.arange(1_000)[:, None] + 0.5) / 1_000 * np.ones((1, 3))
    x = brightness(places, shares)
    for level in range(3):
        assert np.array_equal((x > level / 3).mean(axis=0), shares[level])
    assert x.min() == 0 and x.max() <= 1
    assert (x[:-1, 0] >= x[1:, 0]).all()  # the brightest first
    mean = float(x[:, 0].mean())  # linear between levels: a fifth and three tenths twice, in the middle of each step
    assert mean == pytest.approx((0.3 * 1 / 6 + 0.3 * 3 / 6 + 0.2 * 5 / 6), abs=1e-3)


def test_pixels_that_go_together_in_the_moments_go_together_in_images() -> None:
    """One direction of the lowest frequency: all pixels rise and fall as one."""
    network = GaussianImages(SHAPE, 1, 20, 2.4, levels=1)
    factors = np.zeros((1, 20, 20))
    factors[0, 0, 3] = 0.3
    network.start_from(Moments(np.zeros((1, 20)), factors), np.full((1, 1, 54), 0.5))
    x = network.draw(np.zeros(1_000, dtype=np.int64), np.random.default_rng(2), {})
    assert np.allclose(x, x[:, :1], atol=1e-4)
    assert 0.4 < (x[:, 0] > 0).mean() < 0.6  # of 1,000: six deviations are 0.095


def test_clusters_are_drawn_by_their_weights_and_hold_their_own_images() -> None:
    """Dark, gray, and a white cluster without weight; of 4,000, six deviations are 0.044."""
    network = GaussianImages(SHAPE, 2, 20, 2.4, levels=1, clusters=3)
    shades = np.repeat(np.array([0.2, 0.6, 1.0] * 2)[:, None, None], 54, axis=2)
    weights = np.array([[0.3, 0.7, 0.0], [1.0, 0.0, 0.0]])
    network.start_from(Moments(np.zeros((6, 20)), np.zeros((6, 20, 20))), shades, weights)
    again = GaussianImages.from_spec(network.spec())
    again.load(network.arrays())
    x = again.draw(np.tile([0, 1], 4_000), np.random.default_rng(2))
    found = x.mean(axis=1).round(1)
    gray = found[::2] > found[1]
    assert gray.mean() == pytest.approx(0.7, abs=0.044)
    assert len(set(found[::2])) == 2 and len(set(found[1::2])) == 1 and found.max() < 1
    # The largest number that a machine draws chooses the last cluster that has weight.
    last = again.images(np.full((1, again.latent_dim), 9.0, np.float32), np.zeros(1, np.int64))
    assert last.max() == pytest.approx(1 / 6, abs=1e-6)  # (.6 - .5) of .6


@pytest.mark.parametrize("count", [1, 3])
def test_sums_by_cluster_and_of_their_class_are_joined_by_least_squares(count: int) -> None:
    """As numpy solves the weighted equations, with the deviation of that solution."""
    draws = np.random.default_rng(3)
    sums, looked, noise, look_noise = draws.random((4, 5)), draws.random((1, 5)), 0.7, 1.9
    found, deviations = join_sums(sums, noise, [count], looked, look_noise)
    design = np.vstack([np.eye(count) / noise, np.ones((1, count)) / look_noise])
    expected = np.linalg.lstsq(design, np.vstack([sums[:count] / noise, looked / look_noise]))[0]
    assert np.allclose(found[:count], expected, atol=1e-12) and not found[count:].any()
    assert deviations[:count] == pytest.approx(np.sqrt(np.diag(np.linalg.inv(design.T @ design))), rel=1e-12)
    without = join_sums(sums, 0.0, [count], looked, 0.0)
    assert np.array_equal(without[0][:count], sums[:count]) and not without[1].any()


def test_a_class_splits_where_its_directions_exceed_the_noise_of_a_cluster() -> None:
    """Variances 9 and 5, and eight times the edges .6, 1 and 3."""
    factors = np.zeros((3, 20, 20))
    factors[:, 3, 0], factors[:, 5, 1] = 3.0, -math.sqrt(5.0)
    means = np.full((3, 20), 0.1)
    found = halves(Moments(means, factors), SHAPE, 2.4, 2, np.array([0.6, 1.0, 3.0]), 8.0)
    assert found.active == [4, 2, 1]
    planes = np.array(found.directions).reshape(3, 2, 20)
    assert planes[0, 0, 3] == planes[0, 1, 5] == planes[1, 0, 3] == 127 and np.abs(planes).sum() == 3 * 127
    assert found.centers[:3] == pytest.approx([12.7, 12.7, 12.7], abs=1e-4)
    assert halves(Moments(means, -factors), SHAPE, 2.4, 2, np.array([0.6, 1.0, 3.0]), 8.0) == found
    x = images(50, 4)
    u = CosineMoments(SHAPE, 20, 2.4, 0.3).factors(x)[0][0]
    sides = (u[:, [3, 5]] > 0.1).astype(int) @ [1, 2]
    assert np.array_equal(found.cell_indices(x), np.stack([sides, sides % 2, 0 * sides], axis=1))


def test_the_basis_is_the_cosine_transform_lowest_frequencies_first() -> None:
    x = images(5, 1)
    basis = cosine_basis(SHAPE, math.prod(SHAPE))
    assert np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-5)
    whole = dctn(x.reshape(5, *SHAPE), axes=(1, 2), norm="ortho")
    order = sorted(np.ndindex(SHAPE), key=lambda at: ((9 * at[0]) ** 2 + (6 * at[1]) ** 2, at))
    for place, (u, v) in enumerate(order[:20]):
        assert x @ cosine_basis(SHAPE, 20)[place] == pytest.approx(whole[:, u, v], abs=1e-4)


def test_the_basis_in_color_is_the_transform_over_colors_too_at_half_the_resolution() -> None:
    """Orthonormal rows: no image has longer coefficients, which the bounds of all three maps rest on."""
    shape = (4, 6, 3)
    x = np.random.default_rng(1).random((5, 72))
    basis = cosine_basis(shape, 72)
    assert np.allclose(basis @ basis.T, np.eye(72), atol=1e-5)
    whole = dctn(x.reshape(5, *shape), axes=(1, 2, 3), norm="ortho")
    places = lowest_frequencies(shape)
    assert x @ basis.T == pytest.approx(np.stack([whole[:, u, v, c] for u, v, c in places], axis=1), abs=1e-4)
    assert places[:3] == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    assert places.index((0, 1, 1)) + 2 == places.index((0, 2, 0))  # as low as twice the frequency of brightness


def test_brightness_is_kept_below_the_bound_and_cut_above() -> None:
    feature = CosineMoments(SHAPE, 20, 2.0, 0.3)
    dim, bright = np.full((1, 54), 0.1), np.ones((1, 54))
    norms = [np.linalg.norm(feature.factors(x)[0][0]) for x in (dim, 2 * dim, bright)]
    assert norms == pytest.approx([0.1 * math.sqrt(54) / 2, 0.2 * math.sqrt(54) / 2, 1], abs=1e-5)
    assert np.linalg.norm(feature(bright)) == pytest.approx(1, abs=1e-12)


def test_no_pixel_is_on_a_level_by_rounding() -> None:
    """Bytes that are j/J exactly, where J divides 255, are not above it; the next byte is."""
    counts, feature = LevelCounts((1, 1), 5, 5), CosineLevels((1, 1), 1, 5, 1.0)
    for level in range(1, 5):
        byte = 255 * level // 5
        x = np.array([[byte / 255], [(byte + 1) / 255]])
        assert counts.cell_indices(x)[:, 0].tolist() == [level, min(level + 1, 4)]
        rounded = np.rint(x * 2.0**24) * 2.0**-24
        assert (feature(rounded) > 0).sum(axis=1).tolist() == [level, level + 1]


def test_the_basis_is_exact_on_the_grid_of_the_door() -> None:
    basis = cosine_basis((16, 16), 100)
    assert np.array_equal(basis * 2.0**20, (basis * 2.0**20).round())
    x = np.rint(images(1, 3)[0, :1] * np.linspace(0, 1, 256) * 2**24) * 2.0**-24
    exact = [
        sum(int(a * 2**24) * int(b * 2**20) for a, b in zip(x.tolist(), row.tolist(), strict=True))
        for row in basis[:10]
    ]
    assert ((basis[:10] @ x) * 2.0**44).tolist() == exact


@pytest.mark.parametrize(("shape", "count", "cells"), [((8, 8), 64, 255), ((16, 16), 100, 85), ((28, 28), 100, 64)])
def test_the_cell_of_an_image_does_not_depend_on_how_many_there_are(
    shape: tuple[int, int], count: int, cells: int
) -> None:
    """One gray each, whose norms stand exactly on borders of cells where 255 is a multiple of ``cells``. The door gives
    rows as they are encoded, v/255, in blocks of any size, and matrix products round by the size of the block."""
    norms = CosineNorms(shape, count, cells)
    grays = np.arange(0, 256)[:, None] / 255 * np.ones((1, math.prod(shape)))
    alone = np.concatenate([norms.cell_indices(row[None]) for row in grays])
    for size in (2, 3, 4, 5, 100):
        blocks = np.concatenate([norms.cell_indices(grays[start : start + size]) for start in range(0, 256, size)])
        assert np.array_equal(blocks, alone)
    assert alone.min() == 0 and alone.max() == cells - 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CosineMoments((2, 3), 7, 1.0, 0.3), "1 to as many coefficients as values"),
        (lambda: CosineMoments((2, 3), 6, 0.0, 0.3), "the bound is positive"),
        (lambda: CosineMoments((2, 3), 6, 1.0, 1.0), "first_share between 0 and 1"),
        (lambda: CosineMoments((2, 3), 6, 10**400, 0.3), "the bound is positive"),
        (lambda: CosineMoments((2.0, 3.0), 6, 1.0, 0.3), "1 to as many coefficients as values"),
        (lambda: CosineNorms((2, 3), 6, 0), "needs at least one cell"),
        (lambda: LevelCounts((2, 3), 4, 0), "needs at least one cell"),
        (lambda: LevelCounts((2, 3), 0, 4), "needs at least one level"),
        (lambda: CosineLevels((2, 3), 6, 0, 0.5), "needs at least one level"),
        (lambda: CosineLevels((2, 3), 7, 4, 0.5), "1 to as many coefficients as values"),
        (lambda: CosineLevels((2, 3), 6, 4, 0.0), "above 0 and at most 1"),
        (lambda: CosineLevels((2, 3), 6, 4, 1), "above 0 and at most 1"),
        (lambda: CosineMoments((2, 3), 2, 1.0, 0.3, centers=(1, 2, 3)), "a center of 2 whole numbers"),
        (lambda: CosineNorms((2, 3), 2, 4, centers=(1, 2.0)), "a center of 2 whole numbers"),
        (lambda: CosineNorms((2, 3), 2, 4, centers=(1, 10**6)), "no longer than images"),
    ],
)
def test_maps_that_make_no_sense_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        build()


def test_images_with_much_above_levels_are_dimmed_and_no_others() -> None:
    feature = CosineLevels(SHAPE, 20, 4, 0.25)
    dark, gray, white = (np.full((1, 54), value) for value in (0.2, 0.6, 1.0))
    norms = [np.linalg.norm(feature(x)) for x in (dark, gray, white)]  # above 1, 3 and 4 of the levels everywhere
    assert norms == pytest.approx([1, 1, 1], abs=1e-5)
    half = dark.copy()
    half[:, :27] = 0
    whole = CosineLevels(SHAPE, 54, 4, 0.25)(half)
    assert np.linalg.norm(whole) == pytest.approx(math.sqrt(0.5), abs=1e-5)  # an eighth of all pairs, not dimmed


def test_from_gray_an_even_gray_is_nothing_and_black_is_as_far_as_white() -> None:
    moments = CosineMoments(SHAPE, 20, 1.0, 0.3, gray=True)
    gray, black, white = (np.full((1, 54), value) for value in (0.5, 0.0, 1.0))
    assert not moments(gray).any()
    (black_u, _), (white_u, _) = (moments.factors(x)[0] for x in (black, white))
    assert np.allclose(black_u, -white_u, atol=1e-12) and np.linalg.norm(black_u) == pytest.approx(1, abs=1e-12)
    norms = CosineNorms(SHAPE, 20, 10, gray=True)
    assert norms.cell_width == pytest.approx(math.sqrt(54) / 20)
    shades = [norms.cell_indices(np.full((1, 54), value)).item() for value in (0.5, 0.57, 0.93, 1.0, 0.0)]
    assert shades == [0, 1, 8, 9, 9]


def test_from_gray_levels_are_distances_from_even_shares() -> None:
    """Of four levels a black pixel is (1 + 9/16 + 4/16 + 1/16) / 4 away, a white one (9/16 + 4/16 + 1/16) / 4."""
    counts, levels = LevelCounts((2, 2), 4, 64, gray=True), CosineLevels((2, 2), 4, 4, 0.01, gray=True)
    x = np.array([[0.0] * 4, [1.0] * 4, [0.0, 0.3, 0.6, 1.0]])
    squares = np.array([30 / 64, 14 / 64, (30 + 6 + 6 + 14) / 256])
    assert counts.cell_indices(x)[:, 0].tolist() == [30, 14, 14]
    brighter = np.stack([x > level / 4 for level in range(4)], axis=1) - (1 - np.arange(4) / 4)[None, :, None]
    assert (brighter**2).mean(axis=(1, 2)).tolist() == pytest.approx(squares.tolist())
    expected = (brighter @ cosine_basis((2, 2), 4).T).reshape(3, -1) / np.sqrt(16 * squares)[:, None]
    assert levels(x) == pytest.approx(expected, abs=1e-12)
    assert np.linalg.norm(levels(x), axis=1) == pytest.approx([1, 1, 1], abs=1e-5)


KNOWN = 20


def cubed_frequencies() -> np.ndarray:
    return np.array([math.hypot(u / 6, v / 9) ** 3 for u, v in lowest_frequencies(SHAPE)])


def factors(num_classes: int = 1) -> np.ndarray:
    three = np.zeros((num_classes, KNOWN, KNOWN), np.float32)
    three[0, :, :3] = np.random.default_rng(3).standard_normal((KNOWN, 3))
    return three


def test_power_falls_with_the_cube_of_the_frequency_from_where_the_released_ones_end() -> None:
    texture, released = Texture(SHAPE, KNOWN, 0.7), factors()[0]
    detail = (texture.deviation(released) * texture(np.eye(54, dtype=np.float32))).astype(np.float64)
    coefficients = detail @ cosine_basis(SHAPE, 54).T
    variances, cubes = (coefficients**2).sum(axis=0), cubed_frequencies()
    assert variances[:KNOWN].max() < 1e-8  # what is released is left alone
    scaled = variances[KNOWN:] * cubes[KNOWN:]
    assert np.allclose(scaled, scaled[0], rtol=1e-3)
    law = 0.7 * (released[KNOWN // 2 :] ** 2).sum() / (1 / cubes[KNOWN // 2 : KNOWN]).sum()
    assert scaled[0] == pytest.approx(law, rel=1e-3)
    # Coefficients do not go together, and what a pixel varies is what is said.
    assert np.allclose(coefficients.T @ coefficients, np.diag(variances), atol=1e-4 * variances.max())
    assert np.allclose((detail**2).sum(axis=0), texture.deviation(released) ** 2 * texture.variances, rtol=1e-4)


def test_in_color_detail_is_as_strong_as_said_and_leaves_released_frequencies_alone() -> None:
    shape, released = (4, 3, 3), np.eye(10, dtype=np.float32)
    texture = Texture(shape, 10, 0.7)
    detail = (texture.deviation(released) * texture(np.eye(36, dtype=np.float32))).astype(np.float64)
    variances = ((detail @ cosine_basis(shape, 36).T) ** 2).sum(axis=0)
    assert variances[:10].max() < 1e-8
    places = lowest_frequencies(shape)
    cubes = np.array([(math.hypot(u / 4, v / 3) * (2 if c else 1)) ** 3 for u, v, c in places[10:]])
    assert np.allclose(variances[10:] * cubes, variances[10] * cubes[0], rtol=1e-3)
    assert np.allclose((detail**2).sum(axis=0), texture.deviation(released) ** 2 * texture.variances, rtol=1e-4)


def test_pixels_stay_as_bright_as_released_and_a_class_without_directions_stays_still() -> None:
    """With detail and without. 20,000 images a class; a share of 20,000 within six deviations, 2e-9."""
    shares = np.stack([np.linspace(0.9, 0.2, 54), np.linspace(0.4, 0.0, 54)])
    high, detail = cosine_basis(SHAPE, 54)[KNOWN:], []
    for options in ({}, {"texture": 20.0}):
        network = GaussianImages(SHAPE, 2, KNOWN, 2.4, levels=2, **options)
        network.start_from(Moments(np.zeros((2, KNOWN)), factors(2)), np.stack([shares, shares]))
        x = network.draw(np.tile([0, 1], 20_000), np.random.default_rng(2), {})
        assert x.min() >= 0 and x.max() <= 1
        for level in range(2):
            assert (x[::2] > level / 2).mean(axis=0) == pytest.approx(shares[level], abs=6 * 0.5 / math.sqrt(20_000))
        still = x[1::2]
        assert (still == still[:1]).all()  # nothing is known to vary: one image, of medians
        assert np.array_equal(still[0] > 0, shares[0] > 0.5)
        detail.append((x[::2] @ high.T).var(axis=0).sum())
    assert detail[1] > 1.2 * detail[0]
