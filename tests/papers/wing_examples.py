"""What contract tests try of the papers: small settings of each method, and each map small and large."""

import torch

from likeness.features.base import FeatureMap
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.merf_ae.encoded_map import EncodedFourier
from likeness_papers.networks.images import ImageGenerator
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.modal_map import Modal
from likeness_papers.pearl.mode import Modes
from likeness_papers.pearl.mode_statistics_map import ModeStatistics
from likeness_papers.pearl.pair_distance_map import PairDistance

ONLY_IMAGES = ("merf_ae",)
NETWORK = {"iterations": 200, "batch_size": 256, "hidden": [32, 32]}
SMALL: dict[str, dict[str, dict[str, object]]] = {
    "hp": {"train": NETWORK},
    "merf": {"privatize": {"num_frequencies": 200}, "train": NETWORK},
    "merf_ae": {"privatize": {"num_frequencies": 200, "code": 64}, "train": {**NETWORK, "network": "fully_connected"}},
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
EXAMPLES: dict[str, tuple[FeatureMap, int]] = {
    "characteristic": (CharacteristicFunction(30, 5, 0.4, seed=1), 5),
    "encoded_fourier": (EncodedFourier(20, 3.0, 1, (2, 3), 4, 5, channels=3, encoder_seed=1), 6),
    "hermite": (
        HermiteFeatures((0, 1), (1,), ((3, 6),), (0.7, 0.99), (6.0, 1.0), 12, 4, ((0, 1), (1, 2), (0, 1, 2)), 0.6),
        6,
    ),
    "mixed_fourier": (MixedFourierFeatures(20, 0.5, 1, numeric=(0, 1), categorical=(2, 3, 4), num_categorical=1), 5),
    "modal": (Modal(5, MODES, CharacteristicFunction(30, 10, 0.4, seed=1)), 5),
    "mode_statistics": (ModeStatistics(MODES), 5),
    "pair_distance": (PairDistance(4), 8),
    "tangent": (NetworkTangent("fc_2l", (7, 6), (5,), seed=1), 5),
}

LARGE: dict[str, tuple[FeatureMap, int]] = {
    "characteristic": (CharacteristicFunction(1_000, 100, 0.4, seed=1), 100),
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
    "mixed_fourier": (MixedFourierFeatures(1_000, 0.5, 1, tuple(range(60)), tuple(range(60, 100)), 10), 100),
    "modal": (Modal(100, MANY_MODES, CharacteristicFunction(1_000, 250, 0.4, seed=1)), 100),
    "mode_statistics": (ModeStatistics(MANY_MODES), 100),
    "pair_distance": (PairDistance(100), 200),
    "tangent": (NetworkTangent("cnn_2l", (6, 20), (10, 10), seed=1), 100),
}
MORE: list[tuple[FeatureMap, int]] = [(Modal(5, MODES, PairDistance(9)), 10)]
OUTER = [
    NetworkTangent("fc_1l", (300,), (100,), seed=1),
    NetworkTangent("fc_2l", (150, 40), (100,), seed=1),
    NetworkTangent("cnn_2l", (6, 40), (100,), seed=1),
    NetworkTangent("cnn_2l", (6, 40), (10, 10), seed=1),
]
# What the tests of the door sum: rows of four coordinates, two of them one-hot; two such rows; rows of five; and two
# numbers, the mark of the second, and two categories.
FEW_MODES = (Modes(0, False, (0.4, 0.6), (0.2, 0.8), (0.05, 0.1)), Modes(1, False, (0.5,) * 2, (0.3, 0.6), (0.02, 0.2)))
OF_RECORDS = CharacteristicFunction(12, 4, 1.5, seed=0), MixedFourierFeatures(9, (0.05, 0.5, 3.0), 0, (0, 1), (2, 3), 1)
ALL_PAIRS = tuple((i, j) for i in range(4) for j in range(i + 1, 4))
DOOR: dict[str, list[FeatureMap]] = {
    "records": [
        *OF_RECORDS,
        HermiteFeatures((0, 1), (), ((2, 4),), (0.7, 0.99), (6.0, 1.0), 6, 4, ((0, 1), (1, 2)), 0.75),
        Modal(4, FEW_MODES, CharacteristicFunction(12, 8, 1.5, seed=0)),
        ModeStatistics(FEW_MODES),
    ],
    "pairs of records": [PairDistance(4), Modal(4, FEW_MODES, PairDistance(8))],
    "outer products": [
        NetworkTangent("fc_1l", (6,), (8,), seed=0),
        NetworkTangent("fc_2l", (6, 4), (8,), seed=0),
        NetworkTangent("cnn_2l", (2, 4), (8,), seed=0),
    ],
    "products of columns": [
        HermiteFeatures((0, 1), (1,), ((3, 5), (5, 8)), (0.7, 0.9), (6.0, 1.0), 2 * order, order, ALL_PAIRS, share)
        for share, order in ((0.8, 3), (1.0, 3), (0.3, 8))
    ],
}


def network() -> ImageGenerator:
    """An untrained network of 4 × 6 pixels and two classes."""
    torch.manual_seed(0)
    return ImageGenerator((4, 6), 2, 3, 8, (4, 2)).eval()


IMAGE_GENERATORS = {"merf": network}
# A method, its network and its generator: what learns colors.
COLORED = [("ntk", "auto", "image"), ("ntk", "residual", "residual_images")]
