"""Drawn images that are bent and vary: how much, and each by its own numbers."""

import json

import numpy as np
import pytest
from toys import schema_with

from likeness.methods.base import Context
from likeness_images.moments.answers import Answers
from likeness_images.moments.cosine_map import lowest_frequencies
from likeness_images.moments.gaussian_images import GaussianImages
from likeness_images.moments.method import Moments
from likeness_images.moments.settings import Privatize, TrainMoments
from likeness_images.moments.variety import Variety
from likeness_images.moments.warp import Warp

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
        assert 0.5 * STRENGTH < np.sqrt((moved**2).mean()) < 1.2 * STRENGTH and np.abs(moved.mean()) < 0.25 * STRENGTH
        if len(shape) == 3:
            assert np.array_equal(bent[..., 0], bent[..., 2])


def test_a_shift_is_the_same_part_of_both_sides() -> None:
    warp, z = Warp((24, 36), STRENGTH), np.zeros((1, 2, 16), np.float32)
    z[..., 0] = 1
    shifts = []
    for axis, side in enumerate((24, 36)):
        places = (np.indices((24, 36))[axis] / side).astype(np.float32)
        bent = warp(places.reshape(1, -1), z.reshape(1, -1)).reshape(24, 36)
        shifts.append((bent - places)[6:-6, 9:-9])
    assert np.concatenate([shift.ravel() for shift in shifts]) == pytest.approx(shifts[0][0, 0], abs=1e-5)
    assert shifts[0][0, 0] > 0.1 * STRENGTH


def test_down_and_across_are_apart_and_low_cosines_move_most() -> None:
    """Each of the 16 cosines has its own number for either direction, and 1 / (1 + |f|) of the amplitude."""
    warp = Warp((24, 36), STRENGTH)
    ramps = [
        (np.indices((24, 36))[axis] / side).astype(np.float32).reshape(1, -1) for axis, side in enumerate((24, 36))
    ]
    z = np.zeros((1, 32), np.float32)
    z[0, 0] = 1
    down, across = (np.abs(warp(ramp, z) - ramp).max() for ramp in ramps)
    assert down > 0.1 * STRENGTH and across < 1e-6
    lengths = np.linalg.norm(warp._fields.astype(np.float64), axis=1)
    expected = [1 / (1 + np.hypot(*place)) for place in lowest_frequencies((24, 36))[:16]]
    assert lengths / lengths[0] == pytest.approx(expected, rel=1e-3)


def test_the_settings_reach_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    label = {"y": {"kind": "categorical", "categories": ["no", "yes"]}}
    context = Context(schema_with(label, "y", image={"shape": [6, 9]}), "add_remove_one", None, 0)
    monkeypatch.setattr(Answers, "norm_bound", 1.0)  # which a release says
    method = Moments(train=TrainMoments(warp=0.05, variety=0.3), privatize=Privatize(num_coefficients=20))
    spec = method.build_generator(context, {}).spec()
    assert (spec["warp"], spec["variety"]) == (0.05, 0.3)


def test_an_image_is_bent_by_its_own_numbers_alone() -> None:
    random = np.random.default_rng(1)
    images = random.random((1_500, 30), np.float32)
    warp, z = Warp((5, 6), 0.1), random.standard_normal((1_500, 32)).astype(np.float32)
    bent = warp(images, z)
    assert np.allclose(bent[1_200:1_210], warp(images[1_200:1_210], z[1_200:1_210]), atol=1e-5)
    assert np.allclose(warp(images, np.zeros_like(z)), images, atol=1e-6)
    assert bent.min() >= images.min() and bent.max() <= images.max()


@pytest.mark.parametrize("shape", [(24, 36), (24, 36, 3)])
def test_brightness_sharpness_and_grain_vary_each_by_its_number(shape: tuple[int, ...]) -> None:
    variety, size = Variety(shape, 0.3), 24 * 36 * (shape[2:] or (1,))[0]
    even = np.full((4, size), 0.5, np.float32)
    z = np.zeros((4, 3 + size), np.float32)
    z[1, 0], z[2, 1], z[3, 2] = 1, 1, 1
    z[:, 3:] = np.random.default_rng(3).standard_normal(size)
    plain, bright, soft, grainy = variety(even, z)
    assert plain == pytest.approx(0.5, abs=1e-5) and soft == pytest.approx(0.5, abs=1e-5)
    assert bright == pytest.approx(0.5 * np.exp(0.3), abs=1e-5)
    assert grainy == pytest.approx((0.5 + 0.15 * z[3, 3:]).clip(0, 1), abs=1e-5)


def test_a_soft_image_is_blurred_by_a_gaussian_of_its_width_in_each_color_alone() -> None:
    height, width = 40, 30
    variety = Variety((height, width, 3), 0.5)
    point = np.zeros((height, width, 3), np.float32)
    point[20, 15, 1] = 1.0
    z = np.zeros((1, variety.latent_dim), np.float32)
    z[0, 1] = -1.0
    soft = variety(point.reshape(1, -1), z).reshape(height, width, 3)
    assert np.abs(soft[..., [0, 2]]).max() < 1e-5 and soft.sum() == pytest.approx(1, abs=1e-3)
    down, across = np.mgrid[:height, :width]
    for places, center, side in ((down, 20, height), (across, 15, width)):
        assert ((places - center) ** 2 * soft[..., 1]).sum() == pytest.approx((0.1 * 0.5 * side) ** 2, rel=0.02)


def test_a_generator_changes_its_drawn_images_and_its_file_says_so() -> None:
    plain = GaussianImages((10, 10), 1, 20, 2.4, levels=1)
    changed = GaussianImages((10, 10), 1, 20, 2.4, levels=1, warp=STRENGTH, variety=0.3)
    for generator in (plain, changed):
        generator.shares[...] = np.linspace(1, 0, 100)
        generator.factors[...] = np.eye(20)
    assert (plain.spec()["warp"], plain.spec()["variety"]) == (0.0, 0.0)
    again = GaussianImages.from_spec(json.loads(json.dumps(changed.spec())))
    again.load(changed.arrays())
    z = np.random.default_rng(2).standard_normal((50, changed.latent_dim)).astype(np.float32)
    labels = np.zeros(50, np.int64)
    images = again.images(z, labels)
    assert np.array_equal(images, changed.images(z, labels))
    assert changed.warp is not None and changed.variety is not None
    first, bends, varies = np.split(z, [plain.latent_dim, plain.latent_dim + changed.warp.latent_dim], axis=1)
    assert np.array_equal(images, changed.variety(changed.warp(plain.images(first, labels), bends), varies))
    assert images.min() >= 0 and images.max() <= 1


@pytest.mark.parametrize("name", ["warp", "variety"])
@pytest.mark.parametrize("strength", [-0.1, 0.6, float("nan")])
def test_a_strength_out_of_range_is_refused(name: str, strength: float) -> None:
    with pytest.raises(ValueError, match="warp and variety must be from 0 to"):
        GaussianImages((4, 4), 1, 4, 1.0, levels=1, **{name: strength})
