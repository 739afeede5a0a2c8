"""Bent images: how far, each by its own numbers, and colors together."""

import json

import numpy as np
import pytest

from likeness.methods.moments.gaussian_images import GaussianImages
from likeness.methods.moments.warp import Warp

STRENGTH = 0.05


@pytest.mark.parametrize("shape", [(24, 36), (24, 36, 3)])
def test_pixels_move_by_the_strength_down_and_across_colors_together(shape: tuple[int, ...]) -> None:
    """A ramp shows displacements away from the border. 400 images: their mean square scatters by about a tenth."""
    warp, z = Warp(shape, STRENGTH), np.random.default_rng(0).standard_normal((400, 32)).astype(np.float32)
    for axis, side in enumerate(shape[:2]):
        places = np.broadcast_to(np.indices(shape)[axis] / side, shape).astype(np.float32)
        bent = warp(np.tile(places.ravel(), (400, 1)), z).reshape(400, *shape)
        moved = (bent - places)[:, 6:-6, 9:-9]
        # The lowest cosines move the middle less than the border.
        assert 0.5 * STRENGTH < np.sqrt((moved**2).mean()) < 1.2 * STRENGTH
        assert np.abs(moved.mean()) < 0.25 * STRENGTH
        if len(shape) == 3:
            assert np.array_equal(bent[..., 0], bent[..., 2])


def test_all_pixels_together_have_the_root_mean_square() -> None:
    fields = Warp((24, 36), STRENGTH)._fields  # squared length over pixels: t² a pixel
    assert (fields.astype(np.float64) ** 2).sum() / (24 * 36) == pytest.approx(STRENGTH**2, rel=1e-4)


def test_an_image_is_bent_by_its_own_numbers_alone() -> None:
    random = np.random.default_rng(1)
    images = random.random((1_500, 30), np.float32)
    warp, z = Warp((5, 6), 0.1), random.standard_normal((1_500, 32)).astype(np.float32)
    bent = warp(images, z)
    assert np.allclose(bent[1_200:1_210], warp(images[1_200:1_210], z[1_200:1_210]), atol=1e-5)
    assert np.allclose(warp(images, np.zeros_like(z)), images, atol=1e-6)
    assert bent.min() >= images.min() and bent.max() <= images.max()


def test_a_tiny_image_has_fewer_numbers() -> None:
    warp = Warp((2, 3), 0.1)
    assert warp.latent_dim == 12
    assert np.isfinite(warp(np.ones((4, 6), np.float32), np.ones((4, 12), np.float32))).all()


def test_a_generator_bends_its_images_and_its_file_says_so() -> None:
    plain, bent = (GaussianImages((10, 10), 1, 20, 2.4, levels=1, warp=warp) for warp in (0.0, STRENGTH))
    for generator in (plain, bent):
        generator.shares[...] = np.linspace(1, 0, 100)
        generator.factors[...] = np.eye(20)
    assert "warp" not in plain.spec()
    again = GaussianImages.from_spec(json.loads(json.dumps(bent.spec())))
    again.load(bent.arrays())
    z = np.random.default_rng(2).standard_normal((50, bent.latent_dim)).astype(np.float32)
    labels = np.zeros(50, np.int64)
    images = again.images(z, labels)
    assert np.array_equal(images, bent.images(z, labels))
    assert bent.warp is not None
    assert np.array_equal(images, bent.warp(plain.images(z[:, : plain.latent_dim], labels), z[:, plain.latent_dim :]))


@pytest.mark.parametrize("warp", [-0.1, 0.6, float("nan")])
def test_a_strength_out_of_range_is_refused(warp: float) -> None:
    with pytest.raises(ValueError, match="warp must be from 0 to"):
        GaussianImages((4, 4), 1, 4, 1.0, levels=1, warp=warp)
