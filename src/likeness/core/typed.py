"""Typed settings: a frozen dataclass from a YAML mapping. An error names each value that does not fit.

A section of params.yaml is a subclass of :class:`Section`. Each of its fields is a :func:`setting`: default, help and
allowed range stand beside each other, and nowhere else.
"""

import dataclasses
import functools
import math
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from likeness.core.errors import ParamsError
from likeness.core.text import LONGEST, choices, code_points, did_you_mean, excerpt, fault_of, texts_in

T = TypeVar("T")
_hints: Callable[[Any], dict[str, Any]] = functools.cache(typing.get_type_hints)

INSTEAD = {
    "evaluate.card": " The public page says at no cost what the table keeps. Delete the key.",
    "evaluate.learning_curve_sizes": " Draw tables of several sizes with sample.rows. Delete the key.",
}
"""What serves in the place of a setting that some project may still name."""


def setting(
    default: Any = MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    options: Iterable[str] = (),
    rule: str = "",
    longest: int | None = LONGEST,
) -> Any:
    """A field of a section.

    Args:
        default: the value where params.yaml has no such key; a function makes it. Without one, the key is required.
        help: what the key means, for the comments of ``likeness params``.
        least: smallest allowed number; of a list, for each of its items. None is not compared.
        most: largest allowed number.
        above: number that the value is greater than.
        below: number that the value is less than.
        options: the only allowed words.
        rule: the range in words, in the place of the generated ones.
        longest: most characters of a text, in one line without controls; None: any text of several lines.
    """
    ends = least, most, above, below
    metadata = {"help": help, "range": ends, "options": tuple(options), "rule": rule, "longest": longest}
    if isinstance(default, Callable):  # type: ignore[arg-type]
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Section:
    """A section of params.yaml, whose values lie in the ranges of their settings.

    A section, and a method, may name its ``everyday`` settings. All others then stand under ``METHOD.expert``.
    """

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if not _fits(value, item.metadata):
                shown = list(value) if isinstance(value, tuple) else value
                raise OutOfRangeError(f"{item.name} must be {rule_of(item)}, got {shown!r}")


class OutOfRangeError(ParamsError):
    """A value of a section is out of range; :func:`build` adds the section's place in params.yaml."""


def _fits(value: Any, metadata: Mapping[str, Any]) -> bool:
    options = metadata.get("options")
    least, most, above, below = metadata.get("range", (None,) * 4)
    if options and value not in options:
        return False
    return all(
        (least is None or number >= least)
        and (most is None or number <= most)
        and (above is None or number > above)
        and (below is None or number < below)
        for number in (value if isinstance(value, tuple) else (value,))
        if isinstance(number, int | float)
    )


def rule_of(item: "dataclasses.Field[Any]") -> str:
    """Say what a setting must be; empty where its type says all."""
    metadata = item.metadata
    if metadata.get("rule") or metadata.get("options"):
        return str(metadata["rule"] or f"one of {', '.join(metadata['options'])}")
    least, most, above, below = (None if end is None else f"{end:,}" for end in metadata.get("range", (None,) * 4))
    if above is not None and below is not None:
        return f"between {above} and {below}"
    if least is not None and (most is not None or below is not None):
        return f"from {least} to {most if most is not None else f'less than {below}'}"
    low = f"greater than {above}" if above is not None else f"at least {least}" if least is not None else ""
    high = f"less than {below}" if below is not None else f"at most {most}" if most is not None else ""
    return " and ".join(filter(None, (low, high)))


def default_of(item: "dataclasses.Field[Any]") -> Any:
    """The value where the key is missing; :data:`dataclasses.MISSING` where a person must decide."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def build(cls: type[T], mapping: Any, where: str, base: T | None = None) -> T:
    """Make a settings dataclass from a mapping, recursively. A missing key takes its default.

    Args:
        cls: a frozen dataclass.
        mapping: what YAML gave.
        where: dotted path for messages, empty at the top.
        base: defaults that the section has at this place, before those of the class.

    Raises:
        ParamsError: a key is unknown or required, or a value has the wrong type or range.
    """
    if not isinstance(mapping, Mapping):
        raise ParamsError(f"{where} must be a section with settings, got {mapping!r}")
    settings = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
    for key in mapping:
        if key not in settings:
            path = _join(where, key)
            raise ParamsError(f"{path} is not a setting.{INSTEAD.get(path) or choices(key, settings, 'Settings')}")
    hints = _hints(cls)
    values = {}
    for name, item in settings.items():
        is_own = base is None or (mapping and getattr(cls, "is_indivisible", False))
        default = default_of(item) if is_own else getattr(base, name)
        if name in mapping:
            values[name] = _convert(mapping[name], hints[name], _join(where, name), default)
            _check_texts(values[name], _join(where, name), item.metadata.get("longest", LONGEST))
        else:
            values[name] = default
            if default is MISSING:
                if not is_dataclass(hints[name]):
                    raise ParamsError(f"{_join(where, name)} is missing, and it has no default. Give a value.")
                values[name] = build(hints[name], {}, _join(where, name))
    try:
        return cls(**values)
    except OutOfRangeError as error:
        raise ParamsError(_join(where, error)) from None
    except ValueError as error:
        raise ParamsError(f"{where}: {error}") from None


def is_expert(cls: Any, name: str) -> bool:
    """Tell whether params.yaml has a setting of a class under ``METHOD.expert``."""
    return name not in getattr(cls, "everyday", (name,))


def merge_expert(cls: Any, section: Mapping[str, Any]) -> dict[str, Any]:
    """The section of a method as params.yaml has it, with the settings of its ``expert`` in their places.

    Raises:
        ParamsError: an expert setting stands elsewhere, or ``expert`` is no mapping.
    """
    expert = section.get("expert") or {}
    if not isinstance(expert, Mapping):
        raise ParamsError(f"{cls.name}.expert must be a section with settings, got {expert!r}")
    rest = {key: value for key, value in section.items() if key != "expert"}
    _refuse_experts(cls, rest, cls.name, "")
    return _with(rest, expert)


def _refuse_experts(cls: Any, values: Mapping[str, Any], method: str, where: str) -> None:
    hints = _hints(cls)
    for name in (item.name for item in fields(cls) if item.name in values):
        path = _join(where, name)
        if is_expert(cls, name):
            raise ParamsError(f"{method}.{path} is an expert setting. Write it as {method}.expert.{path}.")
        if is_dataclass(hints[name]) and isinstance(values[name], Mapping):
            _refuse_experts(hints[name], values[name], method, path)


def _with(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in others.items() if isinstance(value, Mapping)}
    inner = {key: _with(values[key], value) for key, value in inner.items() if isinstance(values.get(key), Mapping)}
    return {**values, **others, **inner}


def _check_texts(value: Any, where: str, longest: int | None) -> None:
    for name, text in texts_in(value, where) if longest else ():
        if fault := fault_of(text, longest or 0):
            raise ParamsError(f"{excerpt(name)} {fault}")


def _convert(value: Any, hint: Any, where: str, default: Any = None, also: str = "") -> Any:
    """Check one value against its type. YAML reads ``1e-5`` as text and ``.inf`` as a number; both are numbers here.

    ``also`` says in the message what else the value may be.
    """
    if is_dataclass(hint):
        base = default if type(default) is hint else None
        return build(hint, value, where, base)  # type: ignore[arg-type]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        if value is None and type(None) in arguments:
            return None
        lists = any(typing.get_origin(hint) is tuple for hint in arguments)
        return _convert(value, _choose_type(value, arguments), where, default, " or a list" if lists else "")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ParamsError(f"{where} must be a list, got {value!r}")
        if arguments[0] in (int, float) and all(type(item) is arguments[0] and item == item for item in value):
            return tuple(value)
        return tuple(_convert(item, arguments[0], f"{where}[{index}]") for index, item in enumerate(value))
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
    if issubclass(hint, Enum) and value in list(hint):
        return hint(value)
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is None and not also:
        remedy = "Give a value. `likeness check` lists all such questions."
        raise ParamsError(f"{where} is an open question (null). {remedy}")
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ParamsError(f"{where} must be of type {hint.__name__}{also}, got {value!r}")
    return value


def _choose_type(value: Any, hints: tuple[Any, ...]) -> Any:
    """The one of several types that a value is checked against: its own, or the list type, or else the first one."""
    if type(value) in hints:
        return type(value)
    lists = [hint for hint in hints if typing.get_origin(hint) is tuple]
    if lists and isinstance(value, list | tuple):
        return lists[0]
    return next((hint for hint in hints if hint is not type(None) and hint not in lists), hints[0])


def require(condition: bool, key: str, value: Any, rule: str) -> None:
    """Refuse a value by name."""
    if not condition:
        raise ParamsError(f"{key} must be {rule}, got {value!r}")


def check_whole_number(key: str, value: Any, least: int | None = None) -> int:
    """A whole number of Python or numpy.

    Raises:
        ParamsError: the value is none, or is too small.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise ParamsError(f"{key} must be a whole number{'' if least is None else f' from {least}'}, got {value!r}")
    return number


def check_allowed(key: str, value: str, names: Iterable[str]) -> None:
    """Refuse a name that is not in the list."""
    names = list(names)
    if value not in names:
        signs, close = code_points(str(value)), did_you_mean(str(value), names)
        raise ParamsError(f"{key} must be one of {', '.join(names)}, got {value!r}{signs}.{close}")


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)
