"""Methods: that of the core, and those of its wings, found by entry points: :data:`METHODS` is their only list.

A name that the list does not have may be that of a plug-in (:mod:`likeness.methods.plugins`).
"""

from collections import ChainMap
from pathlib import Path
from typing import Any

from likeness.config.params import Params
from likeness.core.errors import ParamsError
from likeness.core.hashing import json_value
from likeness.core.text import did_you_mean, normal_texts
from likeness.core.typed import build, check_allowed, merge_expert
from likeness.core.wings import Wings
from likeness.methods import plugins
from likeness.methods.base import Context, Method
from likeness.methods.marginals.method import Marginals

METHODS: Wings[type[Method]] = Wings(plugins.GROUP, {Marginals.name: Marginals})
DEFAULT = Marginals.name

__all__ = [
    "DEFAULT",
    "METHODS",
    "Context",
    "Method",
    "distribution_of",
    "known_methods",
    "method_from",
    "method_named",
    "resolved",
]


def known_methods() -> ChainMap[str, type[Method]]:
    """All methods by name: :data:`METHODS`, loaded when asked for, and plug-ins that settings named."""
    return ChainMap(METHODS, plugins.loaded_methods())  # type: ignore[arg-type]  # nobody writes to it


def method_named(name: str, key: str = "method") -> type[Method]:
    """The class of a method. A plug-in is imported now.

    Args:
        name: of the method.
        key: that holds it, for messages.

    Raises:
        ParamsError: no method has that name, or its plug-in is broken.
        MissingPackageError: its wing is not installed, or it is a plug-in that nobody here trusts.
    """
    METHODS.check_installed(name, f"method '{name}'")
    return METHODS[name] if name in METHODS else _plugin(name, key).kind


def distribution_of(name: str) -> str:
    """Name and version of the distribution of a plug-in; empty for a method of Likeness."""
    return "" if METHODS.is_ours(name) else _plugin(name, "method").distribution


def code_of(name: str) -> tuple[Path, ...]:
    """Files and folders with the code of a plug-in; none for a method of Likeness."""
    return () if METHODS.is_ours(name) else _plugin(name, "method").code


def _plugin(name: str, key: str) -> plugins.Plugin:
    plugins.check_trusted(name)
    check_allowed(key, name, [*METHODS, *plugins.installed_names()])
    return plugins.load(name, known_methods())


def method_from(params: Params) -> Method:
    """The method that params.yaml chooses, from its section; a missing key or section takes the defaults.

    Raises:
        ParamsError: no method has that name, or its section is wrong.
    """
    kind = method_named(params.method)
    unknown = sorted(name for name in set(params.sections) - {params.method} if not METHODS.is_ours(name))
    if unknown and (others := set(unknown).difference(plugins.installed_names())):
        first = min(others)
        close = did_you_mean(str(first), METHODS)
        raise ParamsError(
            f"params.yaml: {first} is not a section.{close or ' Remove it.'} Methods: {', '.join(METHODS)}"
        )
    section = normal_texts(params.sections.get(params.method) or {})  # it may name columns
    expert = isinstance(section, dict) and "expert" in section
    return build(kind, merge_expert(kind, section) if expert else section, params.method)


def resolve_settings(params: Params) -> dict[str, Any]:
    """All settings of a run as YAML holds them, defaults included: the shared sections, and that of the method.

    Raises:
        ParamsError: the method's section is wrong.
    """
    values: dict[str, Any] = json_value(params)
    del values["sections"]
    return {**values, params.method: json_value(method_from(params))}
