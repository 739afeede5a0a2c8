"""Typed settings: a frozen dataclass from what YAML gave. Whatever does not fit is refused by name."""

import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from likeness.core.errors import ParamsError

T = TypeVar("T")


def build(cls: type[T], mapping: Any, where: str) -> T:
    """Make a settings dataclass from a mapping, recursively.

    Args:
        cls: a frozen dataclass. mapping: what YAML gave. where: dotted path for messages, empty at the top.

    Raises:
        ParamsError: an unknown or missing key, or a value of the wrong type.
    """
    if not isinstance(mapping, Mapping):
        raise ParamsError(f"{where} must be a section with settings, got {mapping!r}")
    known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
    for key in mapping:
        if key not in known:
            raise ParamsError(f"{_join(where, key)} is not a setting. Settings: {', '.join(known)}")
    hints = typing.get_type_hints(cls)
    values = {}
    for name, item in known.items():
        if name in mapping:
            values[name] = _convert(mapping[name], hints[name], _join(where, name))
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ParamsError(f"{_join(where, name)} is missing")
    return cls(**values)


def _convert(value: Any, hint: Any, where: str, also: str = "") -> Any:
    """Check one value against its type. YAML reads ``1e-5`` as text and ``.inf`` as a number; both are numbers here.

    Args:
        also: what else it may be, for the message.
    """
    if is_dataclass(hint):
        return build(hint, value, where)  # type: ignore[arg-type]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        if value is None and type(None) in arguments:
            return None
        lists = any(typing.get_origin(hint) is tuple for hint in arguments)
        return _convert(value, _chosen(value, arguments), where, " or a list" if lists else "")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ParamsError(f"{where} must be a list, got {value!r}")
        return tuple(_convert(item, arguments[0], f"{where}[{place}]") for place, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ParamsError(f"{where} must be a mapping from names to values, got {value!r}")
        return value
    if hint is float and not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ParamsError(f"{where} must be a number{also}, got {value!r}") from None
        except OverflowError:  # whole numbers have no largest one, floats have
            raise ParamsError(f"{where} must be a number below 1e308 in size, got a longer one") from None
        if math.isnan(number):
            raise ParamsError(f"{where} must be a number, got {value!r}")
        return number
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ParamsError(f"{where} must be of type {hint.__name__}{also}, got {value!r}")
    return value


def _chosen(value: Any, hints: tuple[Any, ...]) -> Any:
    """The one of several types that a value is checked against: a list's if it is a list, else the first other one."""
    lists = [hint for hint in hints if typing.get_origin(hint) is tuple]
    if lists and isinstance(value, list | tuple):
        return lists[0]
    return next((hint for hint in hints if hint is not type(None) and hint not in lists), hints[0])


def require(condition: bool, key: str, value: Any, rule: str) -> None:
    """Refuse a value by name."""
    if not condition:
        raise ParamsError(f"{key} must be {rule}, got {value!r}")


def allowed(key: str, value: str, names: Iterable[str]) -> None:
    """Refuse a name that is not in the list."""
    names = list(names)
    if value not in names:
        raise ParamsError(f"{key} must be one of {', '.join(names)}, got {value!r}")


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)
