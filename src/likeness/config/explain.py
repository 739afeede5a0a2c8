"""Settings as YAML with their helps as comments, for ``likeness params`` and ``likeness init``."""

import dataclasses
import math
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import MappingProxyType
from typing import Any

import yaml

from likeness.core.hashing import json_value
from likeness.core.text import doc_of
from likeness.core.typed import default_of, is_expert, rule_of

_COLUMN, _WIDTH = 34, 120  # where comments begin, and where lines end
_EXPERT = "what papers sweep, as {train: {...}}; the reference of params.yaml lists it"


@dataclasses.dataclass(frozen=True)
class Key:
    """One key of params.yaml, for a reference of all of them.

    Attributes:
        name: dotted; with ``expert`` after the method, where params.yaml has it there.
        default: as YAML writes it; None where a person must decide.
        help: what it means.
        rule: what it must be; empty where its type says all.
    """

    name: str
    default: str | None
    help: str
    rule: str


def keys(section: Any, where: str, base: Any = None) -> Iterator[Key]:
    """Every key of a dataclass and of the sections inside it, below the dotted name ``where``.

    ``base`` holds the defaults that the section has at this place.
    """
    hints = typing.get_type_hints(section)
    for item in fields(section):
        default = default_of(item) if base is None else getattr(base, item.name)
        name = f"{where}.{item.name}" if where else item.name
        method, _, rest = name.partition(".")
        if is_expert(section, item.name) and not rest.startswith("expert."):
            name = f"{method}.expert.{rest}"
        inner = _inner(hints[item.name])
        if inner is None or default is None:
            text = None if default is MISSING else yaml_value(json_value(default))
            yield Key(name, text, item.metadata.get("help", ""), rule_of(item))
        if inner is not None:
            yield from keys(inner, name, default if is_dataclass(default) else None)


def defaults(section: Any) -> dict[str, Any]:
    """All defaults of a section as YAML holds them; null where a person must decide."""
    hints, values = typing.get_type_hints(section), {}
    for item in fields(section):
        default, hint = default_of(item), hints[item.name]
        required = defaults(hint) if is_dataclass(hint) else None
        values[item.name] = required if default is MISSING else json_value(default)
    return values


def with_help(
    section: Any, values: Mapping[str, Any], others: Mapping[str, Any] = MappingProxyType({}), depth: int = 0
) -> str:
    """Values of a section as YAML, each with its help. A key that a person must decide has the question ``# ?``.

    ``others`` are further sections by name, in the place of a key ``sections``. Keys without a value are left out.
    """
    hints, lines = typing.get_type_hints(section), []
    for item in fields(section):
        if item.name == "sections":
            for name, method in ((name, others[name]) for name in others if name in values):
                lines += ["", *_comment_lines(f"{name}:", summary(method)), with_help(method, values[name], depth=1)]
                if any(".expert." in key.name for key in keys(method, name)):
                    lines += _comment_lines(f"  expert: {yaml_value(values[name].get('expert', {}))}", _EXPERT)
            continue
        if item.name not in values or is_expert(section, item.name):
            continue
        value, help, start = values[item.name], item.metadata.get("help", ""), f"{'  ' * depth}{item.name}:"
        inner = _inner(hints[item.name])
        if inner is not None and value:
            lines += ([""] if depth == 0 else []) + _comment_lines(start, help)
            lines += [with_help(inner, value, depth=depth + 1)]
        else:
            question = "? " if value is None and default_of(item) is MISSING else ""
            lines += _comment_lines(f"{start} {yaml_value(value)}", question + help)
    return "\n".join(lines)


def summary(section: Any) -> str:
    """The first sentence of a docstring on one line."""
    return " ".join(doc_of(section).split("\n\n")[0].split())


def yaml_value(value: Any) -> str:
    """A value on one line."""
    return str(yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=math.inf)).strip()[1:-1]


def _inner(hint: Any) -> Any:
    """The section that a type holds, also one that may be null."""
    return next((part for part in (hint, *typing.get_args(hint)) if is_dataclass(part)), None)


def _comment_lines(start: str, help: str) -> list[str]:
    """A line and its comment, which goes on below where it is long."""
    column = max(_COLUMN, len(start) + 2)
    first, *rest = textwrap.wrap(help, max(_WIDTH - column - 2, 40)) or [""]
    return [f"{start:<{column}}# {first}" if first else start, *(f"{'':<{column}}# {line}" for line in rest)]
