"""Feature maps: one map a file, its bound proved in its docstring. They know nothing of privacy."""

from collections.abc import Callable, Mapping
from typing import Any

from likeness.core.errors import ReleaseError
from likeness.features.base import CellMap, FeatureMap, MeanMap, OuterMap, PairedMap, width
from likeness.features.column_marginals import ColumnMarginals
from likeness.features.constant import Constant
from likeness.methods.hp.hermite_map import HermiteFeatures
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.merf.fourier_map import MixedFourierFeatures
from likeness.methods.merf_ae.encoded_map import EncodedFourier
from likeness.methods.moments.cosine_map import CosineMoments, CosineNorms
from likeness.methods.moments.levels_map import CosineLevels, LevelCounts
from likeness.methods.ntk.tangent_map import NetworkTangent
from likeness.methods.pearl.characteristic_map import CharacteristicFunction
from likeness.methods.pearl.modal_map import Modal
from likeness.methods.pearl.mode_statistics_map import ModeStatistics
from likeness.methods.pearl.pair_distance_map import PairDistance

MAPS: dict[str, Callable[..., FeatureMap]] = {
    "characteristic": CharacteristicFunction,
    "column_marginals": ColumnMarginals,
    "constant": Constant,
    "cosine_levels": CosineLevels,
    "cosine_moments": CosineMoments,
    "cosine_norms": CosineNorms,
    "encoded_fourier": EncodedFourier,
    "hermite": HermiteFeatures,
    "level_counts": LevelCounts,
    "mixed_fourier": MixedFourierFeatures,
    "modal": Modal,
    "mode_statistics": ModeStatistics,
    "pair_distance": PairDistance,
    "pair_marginals": PairMarginals,
    "tangent": NetworkTangent,
}

__all__ = [
    "MAPS",
    "CellMap",
    "CharacteristicFunction",
    "ColumnMarginals",
    "Constant",
    "CosineLevels",
    "CosineMoments",
    "CosineNorms",
    "EncodedFourier",
    "FeatureMap",
    "HermiteFeatures",
    "LevelCounts",
    "MeanMap",
    "MixedFourierFeatures",
    "Modal",
    "ModeStatistics",
    "NetworkTangent",
    "OuterMap",
    "PairDistance",
    "PairMarginals",
    "PairedMap",
    "from_spec",
    "width",
]


def from_spec(spec: Mapping[str, Any]) -> FeatureMap:
    """Build a map from its public specification; a map of a map has the other's specification within its own.

    Raises:
        ReleaseError: the map is not known to this version.
    """
    arguments = {key: _argument(value) for key, value in spec.items()}
    name = arguments.pop("map", None)
    if name not in MAPS:
        raise ReleaseError(f"feature map '{name}' is not known. Maps: {', '.join(sorted(MAPS))}")
    return MAPS[name](**arguments)


def _argument(value: Any) -> Any:
    if isinstance(value, Mapping):
        return from_spec(value)
    return tuple(value) if isinstance(value, list) else value
