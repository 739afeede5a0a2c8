"""Methods of other distributions: entry points of the group ``likeness.methods``, each loaded when settings name it."""

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from likeness.config.params import Params
from likeness.core.errors import MissingPackageError, ParamsError
from likeness.core.wings import DISTRIBUTION as OURS
from likeness.features.base import Map
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.base import Method

GROUP = "likeness.methods"
DISTRIBUTION = r"[A-Za-z0-9][A-Za-z0-9._-]{0,59} [0-9][0-9A-Za-z.+_-]{0,59}"
"""Pattern of the name and version of a distribution in receipts."""


@dataclass(frozen=True)
class Plugin:
    """A method of another distribution.

    Attributes:
        kind: its class.
        distribution: name and version.
        code: file or folders of its top-level module.
    """

    kind: type[Method]
    distribution: str
    code: tuple[Path, ...]


_LOADED: dict[str, Plugin] = {}
_TRUSTED: ContextVar[Collection[str] | None] = ContextVar("trusted", default=None)


@contextmanager
def only(names: Collection[str]) -> Iterator[None]:
    """Load no plug-ins but these, whatever a file of a stranger names."""
    before = _TRUSTED.set(names)
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def installed_names() -> list[str]:
    """Names of all plug-ins. It imports none."""
    return sorted({point.name for point in _points()})


def _normal(name: str) -> str:
    """The name of a distribution, in which installers tell no sign and no case apart."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _points() -> list[EntryPoint]:
    """The entry points of other distributions."""
    points = entry_points(group=GROUP)
    return [point for point in points if point.dist is None or _normal(point.dist.metadata["Name"]) != OURS]


def loaded_methods() -> dict[str, type[Method]]:
    """Plug-ins in memory, by name."""
    return {name: plugin.kind for name, plugin in _LOADED.items() if _trusts(name)}


def _trusts(name: str) -> bool:
    names = _TRUSTED.get()
    return names is None or name in names


def check_trusted(name: str) -> None:
    """Refuse a plug-in that only a stranger names.

    Raises:
        MissingPackageError: nobody here trusts it.
    """
    if not _trusts(name):
        raise MissingPackageError(
            f"the method '{name}' is none of Likeness. If you trust the code of its plug-in, install it and run: "
            "likeness verify --trust-plugin NAME"
        )


def load(name: str, methods: Mapping[str, type[Method]]) -> Plugin:
    """Import an installed plug-in once.

    Args:
        name: in the settings.
        methods: methods in memory.

    Raises:
        ParamsError: several distributions offer it, it cannot be imported, or it is no method of its own.
    """
    if name not in _LOADED:
        points = [point for point in _points() if point.name == name]
        offers = ", ".join(sorted(f"{point.dist.name} {point.dist.version}" for point in points if point.dist))
        if len(points) > 1:
            raise ParamsError(f"method '{name}': several distributions offer it: {offers}. Uninstall all but one.")
        try:
            kind = points[0].load()
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise ParamsError(f"method '{name}': {offers} cannot be imported: {cause}. Repair the plug-in.") from error
        if fault := _fault(name, kind, offers, methods):
            raise ParamsError(f"method '{name}': {offers} {fault}. Repair the plug-in.")
        top = sys.modules[points[0].module.partition(".")[0]]
        _LOADED[name] = Plugin(kind, offers, tuple(map(Path, getattr(top, "__path__", [top.__file__]))))
    return _LOADED[name]


def _fault(name: str, kind: type[Method], distribution: str, methods: Mapping[str, type[Method]]) -> str:
    """Say what makes an object no plug-in, as the end of a sentence; empty if it is one."""
    if not re.fullmatch(DISTRIBUTION, distribution):
        return "has a name or version that receipts cannot hold"
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        return "must give a subclass of likeness.methods.Method"
    if kind.name != name or not re.fullmatch("[a-z0-9_]{1,60}", name):
        return f"must give the method the name '{name}', in small letters, digits and underscores"
    if name in {item.name for item in fields(Params)}:
        return "takes the name of a section of the settings"
    shared: tuple[type[Map], ...] = (ColumnMarginals, Constant)
    maps = {feature.name: feature for feature in (*shared, *(m for method in methods.values() for m in method.maps))}
    generators = {key: load for method in methods.values() for key, load in method.generators.items()}
    taken = [feature.name for feature in kind.maps if maps.get(feature.name, feature) is not feature]
    taken += [key for key, load in kind.generators.items() if generators.get(key, load) is not load]
    return f"takes the name of a map or generator that exists: {', '.join(taken)}" if taken else ""
