"""Detail beyond the released frequencies: its spectrum, its strength, and that brightness stays as released."""

import math

import numpy as np
import pytest

from likeness_images.moments.cosine_map import cosine_basis, lowest_frequencies
from likeness_images.moments.estimates import Moments
from likeness_images.moments.gaussian_images import GaussianImages
from likeness_images.moments.texture import Texture

SHAPE, KNOWN = (6, 9), 20


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
