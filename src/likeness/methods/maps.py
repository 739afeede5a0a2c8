"""Every feature map by its name: those that methods share, and those of each method."""

from collections.abc import Mapping
from typing import Any

from likeness.core.errors import ReleaseError
from likeness.features.base import FeatureMap, Map
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods import DEFAULT, METHODS, known_methods, method_named

SHARED: tuple[type[Map], ...] = (ColumnMarginals, Constant)
MAPS: dict[str, Any] = {kind.name: kind for kind in (*SHARED, *(m for method in METHODS.values() for m in method.maps))}


def known_maps() -> dict[str, Any]:
    """:data:`MAPS`, and the maps of plug-ins in memory."""
    return {**{kind.name: kind for method in known_methods().values() for kind in method.maps}, **MAPS}


def from_spec(spec: Mapping[str, Any], method: str = DEFAULT) -> FeatureMap:
    """Build a map from its public specification; that of a map of a map holds the inner specification.

    Args:
        spec: the specification.
        method: that asked for the map. If it is a plug-in, the map may be its own.

    Raises:
        ReleaseError: this version has no such map.
        MissingPackageError: it may be that of a plug-in that nobody here trusts.
    """
    arguments = {key: _argument(value, method) for key, value in spec.items()}
    name = arguments.pop("map", None)
    if name not in MAPS:
        method_named(method)
    kinds = known_maps()
    if name not in kinds:
        raise ReleaseError(f"this version has no feature map '{name}'. Maps: {', '.join(sorted(kinds))}")
    feature: FeatureMap = kinds[name](**arguments)
    return feature


def _argument(value: Any, method: str) -> Any:
    if isinstance(value, Mapping):
        return from_spec(value, method)
    return tuple(value) if isinstance(value, list) else value
