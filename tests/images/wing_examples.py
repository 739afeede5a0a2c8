"""What contract tests try of images: small settings of each method, and each map small and large."""

from dataclasses import replace

import numpy as np

from likeness.features.base import FeatureMap
from likeness_images.moments.clusters_map import ClassHalves
from likeness_images.moments.cosine_map import CosineMoments, CosineNorms
from likeness_images.moments.estimates import Moments
from likeness_images.moments.gaussian_images import GaussianImages
from likeness_images.moments.levels_map import CosineLevels, LevelCounts

ONLY_IMAGES = ("moments",)
SMALL: dict[str, dict[str, dict[str, object]]] = {
    "moments": {"privatize": {"num_coefficients": 12}},
    "moments with clusters": {"auxiliary": {"splits": 2}, "privatize": {"num_coefficients": 12}},
    "moments from classes": {"auxiliary": {"center": "classes", "splits": 1}, "privatize": {"num_coefficients": 12}},
    "moments from gray": {
        "auxiliary": {"center": "gray"},
        "privatize": {"num_coefficients": 12},
        "train": {"mirror": True},
    },
}

EXAMPLES: dict[str, tuple[FeatureMap, int]] = {
    "class_halves": (
        ClassHalves(
            (2, 3), 4, 1.3, 2, (127, 0, 0, 0, 50, 100, -50, 30, 0, 90, -90, 0, 0, 0, 0, 0), (60.0, 31.5, 0.25, 0.0)
        ),
        6,
    ),
    "cosine_levels": (CosineLevels((2, 3), 4, 3, 0.4), 6),
    "cosine_moments": (CosineMoments((2, 3), 4, 1.3, 0.3), 6),
    "cosine_norms": (CosineNorms((2, 3), 5, 8), 6),
    "level_counts": (LevelCounts((2, 3), 5, 8), 6),
}

LARGE: dict[str, tuple[FeatureMap, int]] = {
    "class_halves": (
        ClassHalves(
            (6, 6, 3),
            60,
            4.7,
            4,
            tuple(place * 37 % 255 - 127 for place in range(2_400)),
            tuple(map(float, range(-20, 20))),
        ),
        108,
    ),
    "cosine_levels": (CosineLevels((6, 6, 3), 60, 4, 0.3), 108),
    "cosine_moments": (CosineMoments((6, 6, 3), 60, 4.7, 0.3), 108),
    "cosine_norms": (CosineNorms((6, 6, 3), 60, 64), 108),
    "level_counts": (LevelCounts((6, 6, 3), 4, 64), 108),
}

# Maps of images measured from gray, or from a center of their class, which follows the pixels.
MORE: list[tuple[FeatureMap, int]] = [
    (replace(feature, gray=True), inputs)
    for maps in (EXAMPLES, LARGE)
    for feature, inputs in maps.values()
    if hasattr(feature, "gray")
] + [
    (replace(feature, centers=tuple(place * 37 % 90 - 40 for place in range(2 * feature.num_coefficients))), inputs + 2)
    for maps in (EXAMPLES, LARGE)
    for feature, inputs in maps.values()
    if isinstance(feature, CosineMoments | CosineNorms)
]
DOOR: dict[str, list[FeatureMap]] = {}
OUTER = [CosineMoments((10, 10), 60, 4.7, 0.3)]


def copula() -> GaussianImages:
    """A generator of 4 × 6 pixels and two classes."""
    made = GaussianImages((4, 6), 2, 10, 2.0, levels=1, texture=1.0)
    made.start_from(Moments(np.zeros((2, 10)), np.stack([np.eye(10)] * 2)), np.full((2, 1, 24), 0.5))
    return made


IMAGE_GENERATORS = {"moments": copula}
# A method, its network and its generator: what learns colors.
COLORED = [("moments", "", "gaussian_images")]
