"""What is off as shipped and audited all the same: settings of a method with an option, as the audit asks them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any


def changed(section: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A section with other values; mappings are changed within."""
    inner = {key: isinstance(value, dict) and isinstance(section.get(key), dict) for key, value in changes.items()}
    return {**section, **{key: changed(section[key], own) if inner[key] else own for key, own in changes.items()}}


def option(changes: Mapping[str, Any], paid: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """A method's section with changes; a query that they ask for has a tenth of the budget, from the embedding."""
    section = changed(section, changes)
    if not paid:
        return section
    shares = {**section["plan"]["shares"], paid: 0.1}
    shares["embedding"] = 1 - sum(share for name, share in shares.items() if name != "embedding")
    return {**section, "plan": {"shares": shares}}


_TABLES = [{"columns": ["a"], "weight": 2}, {"columns": ["a", "b", "c"]}]
_SHIPPED: tuple[dict[str, Any], str] = ({}, "")
_CODES = ({"privatize": {"code": 12}}, "")
_CNN = ({"privatize": {"architecture": "cnn_2l", "widths": [4, 8]}}, "")
_OPTIONS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("pearl", "modes", {"auxiliary": {"mixture": {"components": 3, "iterations": 2, "columns": None}}}, "mixture"),
    ("marginals", "tables", {"privatize": {"workload": _TABLES}}, ""),
    ("moments", "clusters", {"auxiliary": {"splits": 2}}, ""),
    ("moments", "gray", {"auxiliary": {"center": "gray"}}, ""),
    ("moments", "centers", {"auxiliary": {"center": "classes", "splits": 1}}, ""),
)

# Of what is off as shipped: method, name, what it makes of the method's section.
OPTIONS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], dict[str, Any]]], ...] = tuple(
    (method, name, partial(option, changes, paid)) for method, name, changes, paid in _OPTIONS
)

# Of images in color: method, what it makes of the method's section.
IN_COLOR: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    method: partial(option, *own)
    for method, own in (("merf", _SHIPPED), ("merf_ae", _CODES), ("moments", _SHIPPED), ("ntk", _CNN))
}
