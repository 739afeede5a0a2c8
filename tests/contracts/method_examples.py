"""What contract tests try: small settings of every method, options included, and every map small and large.

A new method has its lines here, and nowhere else in the tests.
"""

from dataclasses import replace

from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.features.constant import Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness_images.moments.clusters_map import ClassHalves
from likeness_images.moments.cosine_map import CosineMoments, CosineNorms
from likeness_images.moments.levels_map import CosineLevels, LevelCounts
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.merf_ae.encoded_map import EncodedFourier
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.modal_map import Modal
from likeness_papers.pearl.mode import Modes
from likeness_papers.pearl.mode_statistics_map import ModeStatistics
from likeness_papers.pearl.pair_distance_map import PairDistance

ONLY_IMAGES = ("merf_ae", "moments")
NETWORK = {"iterations": 200, "batch_size": 256, "hidden": [32, 32]}
SMALL: dict[str, dict[str, dict[str, object]]] = {
    "hp": {"train": NETWORK},
    "marginals": {"privatize": {"bins": 10}, "train": {"num_components": 30}},
    "merf": {"privatize": {"num_frequencies": 200}, "train": NETWORK},
    "merf_ae": {"privatize": {"num_frequencies": 200, "code": 64}, "train": {**NETWORK, "network": "fully_connected"}},
    "moments": {"privatize": {"num_coefficients": 12}},
    "moments with clusters": {"auxiliary": {"splits": 2}, "privatize": {"num_coefficients": 12}},
    "moments from classes": {"auxiliary": {"center": "classes", "splits": 1}, "privatize": {"num_coefficients": 12}},
    "moments from gray": {
        "auxiliary": {"center": "gray"},
        "privatize": {"num_coefficients": 12},
        "train": {"mirror": True},
    },
    "ntk": {"privatize": {"widths": [60]}, "train": NETWORK},
    "pearl": {"privatize": {"num_frequencies": 200}, "train": NETWORK},
    "pearl with modes": {
        "plan": {"shares": {"class_counts": 0.05, "mixture": 0.2, "mean_pairwise_distance": 0.05, "embedding": 0.7}},
        "auxiliary": {"mixture": {"components": 3, "iterations": 4, "columns": None}},
        "privatize": {"num_frequencies": 200},
        "train": NETWORK,
    },
}

MODES = (
    Modes(0, False, (0.3, 0.5, 0.2), (0.1, 0.47, 0.83), (0.05, 0.1, 0.02)),
    Modes(2, True, (0.6, 0.4), (0.21, 0.68), (0.12, 0.08)),
)
MANY_MODES = tuple(
    Modes(at, at % 4 == 0, (0.2,) * 5, (0.1, 0.3, 0.5, 0.7, 0.9), (0.01, 0.03, 0.1, 0.2, 0.4)) for at in range(0, 60, 2)
)
# Maps, each with the number of inputs that it takes.
EXAMPLES: dict[str, tuple[FeatureMap, int]] = {
    "characteristic": (CharacteristicFunction(30, 5, 0.4, seed=1), 5),
    "class_halves": (
        ClassHalves(
            (2, 3), 4, 1.3, 2, (127, 0, 0, 0, 50, 100, -50, 30, 0, 90, -90, 0, 0, 0, 0, 0), (60.0, 31.5, 0.25, 0.0)
        ),
        6,
    ),
    "column_marginals": (
        ColumnMarginals((Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2))),
        5,
    ),
    "column_steps": (
        ColumnSteps((Steps(0, -2.0, 8.0, (1.0, 0.5, 0.1)), Steps(1, 0.0, 1e4, (500.0, 100.0), missing=True))),
        5,
    ),
    "constant": (Constant(), 5),
    "cosine_levels": (CosineLevels((2, 3), 4, 3, 0.4), 6),
    "cosine_moments": (CosineMoments((2, 3), 4, 1.3, 0.3), 6),
    "cosine_norms": (CosineNorms((2, 3), 5, 8), 6),
    "encoded_fourier": (EncodedFourier(20, 3.0, 1, (2, 3), 4, 5, channels=3, encoder_seed=1), 6),
    "hermite": (
        HermiteFeatures((0, 1), (1,), ((3, 6),), (0.7, 0.99), (6.0, 1.0), 12, 4, ((0, 1), (1, 2), (0, 1, 2)), 0.6),
        6,
    ),
    "level_counts": (LevelCounts((2, 3), 5, 8), 6),
    "mixed_fourier": (MixedFourierFeatures(20, 0.5, 1, numeric=(0, 1), categorical=(2, 3, 4), num_categorical=1), 5),
    "modal": (Modal(5, MODES, CharacteristicFunction(30, 10, 0.4, seed=1)), 5),
    "mode_statistics": (ModeStatistics(MODES), 5),
    "pair_distance": (PairDistance(4), 8),
    "pair_marginals": (
        PairMarginals(
            (Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2)),
            squared_weights=(1, 2, 3),
            tables=((0, 1, 2),),
            squared_table_weight=0.7,
        ),
        5,
    ),
    "pair_products": (
        PairProducts(
            (Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2)),
            ((0, 0, 0), (0, 0, 1), (0, 1)),
            ((-1.0, 0.25, 1.0), (-0.5, 0.5, 1.0), (1.0, 0.0)),
        ),
        5,
    ),
    "tangent": (NetworkTangent("fc_2l", (7, 6), (5,), seed=1), 5),
}
SOME_PAIRS = PairMarginals(
    (Cells(0, 3, (0.25, 0.55)), Cells(1, 2, (0.45,)), Cells(3, 2)), (1, 3), pairs=((0, 1), (1, 2))
)
# The same maps as large as a real table makes them.
LARGE: dict[str, tuple[FeatureMap, int]] = {
    "characteristic": (CharacteristicFunction(1_000, 100, 0.4, seed=1), 100),
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
    "column_marginals": (
        ColumnMarginals(tuple(Cells(at, 256, tuple(step / 256 for step in range(1, 256))) for at in range(12))),
        100,
    ),
    "column_steps": (ColumnSteps(tuple(Steps(at, 0.0, 10.0, (1.0, 0.5, 0.1, 1e-6)) for at in range(12))), 12),
    "constant": (Constant(), 100),
    "cosine_levels": (CosineLevels((6, 6, 3), 60, 4, 0.3), 108),
    "cosine_moments": (CosineMoments((6, 6, 3), 60, 4.7, 0.3), 108),
    "cosine_norms": (CosineNorms((6, 6, 3), 60, 64), 108),
    "encoded_fourier": (EncodedFourier(1_000, 3.5, 1, (6, 6, 3), 64, 9, channels=8, encoder_seed=1), 108),
    "hermite": (
        HermiteFeatures(
            tuple(range(60)),
            (59,),
            ((61, 81), (81, 100)),
            (0.7,) * 60,
            (6.0,) * 60,
            100,
            20,
            ((0, 1), (3, 60), (60, 61)),
            0.5,
        ),
        100,
    ),
    "level_counts": (LevelCounts((6, 6, 3), 4, 64), 108),
    "mixed_fourier": (MixedFourierFeatures(1_000, 0.5, 1, tuple(range(60)), tuple(range(60, 100)), 10), 100),
    "modal": (Modal(100, MANY_MODES, CharacteristicFunction(1_000, 250, 0.4, seed=1)), 100),
    "mode_statistics": (ModeStatistics(MANY_MODES), 100),
    "pair_distance": (PairDistance(100), 200),
    "pair_marginals": (PairMarginals(tuple(Cells(at, 4, (0.25, 0.55, 0.75)) for at in range(12))), 100),
    "pair_products": (
        PairProducts(
            tuple(Cells(at, 4, (0.25, 0.55, 0.75)) for at in range(30)),
            ((0, 0, 0, 0), (0, 1, 2, 3)) * 15,
            ((-1.0, -0.4, 0.3, 1.0), (1.0, 1.0, 0.0, 1.0)) * 15,
        ),
        100,
    ),
    "tangent": (NetworkTangent("cnn_2l", (6, 20), (10, 10), seed=1), 100),
}
# Maps of images measured from gray, or from a center of their class, which follows the pixels.
FROM_ELSEWHERE: list[tuple[FeatureMap, int]] = [
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
