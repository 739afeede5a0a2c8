"""Cosine coefficients of images: the basis, moments, levels and cells, each image by itself."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.fft import dctn

from likeness.core.errors import ReleaseError
from likeness_images.moments.cosine_map import CosineMoments, CosineNorms, cosine_basis, lowest_frequencies
from likeness_images.moments.levels_map import CosineLevels, LevelCounts

SHAPE = (6, 9)


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, math.prod(SHAPE)))


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
