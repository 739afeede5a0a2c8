"""One column of the public schema: its kind, its public bounds or categories, and what counts as missing."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likeness.errors import SchemaError

KINDS = ("numeric", "integer", "categorical", "ordinal")
TRANSFORMS = ("none", "log1p")
# The split travels in the private table under this name, so no column may have it.
SPLIT_COLUMN = "__split__"
# Up to here encode and decode give every integer back exactly, under either transform (float64 has 53 bits).
LARGEST_INTEGER = 10**12
_NUMBER_KEYS = ("kind", "lower", "upper", "nullable", "transform", "spikes", "missing_values")
_CATEGORY_KEYS = ("kind", "categories", "other", "nullable", "missing_values")


@dataclass(frozen=True)
class Column:
    """Public knowledge of one column.

    Attributes:
        name: as in the header of the source.
        kind: ``numeric`` | ``integer`` | ``categorical`` | ``ordinal`` (categories in order).
        lower, upper: public bounds in units of the column; None for categories. Values beyond are clipped.
        categories: texts, in order.
        other: the category that takes unknown values; None refuses them.
        nullable: whether a value may be missing.
        transform: ``log1p`` spreads small values: log(1 + value - lower) is scaled instead of the value.
        missing_values: texts that mean missing, beside the empty cell.
        spikes: values that are known to be frequent (no gain, a full working week), within the bounds; methods with
            bins give each a bin of its own.

    Raises:
        SchemaError: naming column and rule.
    """

    name: str
    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    other: str | None = None
    nullable: bool = False
    transform: str = "none"
    missing_values: tuple[str, ...] = ()
    spikes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or self.name == SPLIT_COLUMN:
            raise SchemaError(f"'{self.name}' cannot name a column: it is empty or reserved. Rename the column.")
        if self.kind not in KINDS:
            raise self._error(f"has kind '{self.kind}'. Kinds: {', '.join(KINDS)}.")
        if self.is_categorical:
            self._check_categories()
        else:
            self._check_numbers()

    @property
    def is_categorical(self) -> bool:
        """True for ``categorical`` and ``ordinal``."""
        return self.kind in ("categorical", "ordinal")

    @property
    def width(self) -> int:
        """Number of encoded coordinates: one-hot with a place for missing, or a unit and its missing indicator."""
        return (len(self.categories) if self.is_categorical else 1) + int(self.nullable)

    @property
    def bounds(self) -> tuple[float, float]:
        """``(lower, upper)`` of a numeric or integer column."""
        if self.lower is None or self.upper is None:
            raise self._error("has no bounds: it is categorical.")
        return self.lower, self.upper

    @classmethod
    def from_dict(cls, name: str, spec: Any) -> "Column":
        """Build from a mapping as it stands in the YAML file."""
        if not isinstance(spec, Mapping) or "kind" not in spec:
            raise SchemaError(f"column '{name}' has no kind. Kinds: {', '.join(KINDS)}.")
        kind = str(spec["kind"])
        allowed = _CATEGORY_KEYS if kind in ("categorical", "ordinal") else _NUMBER_KEYS
        for key in spec:
            if kind in KINDS and key not in allowed:
                raise SchemaError(
                    f"column '{name}': {key} is not a key of a {kind} column. Keys: {', '.join(allowed)}."
                )
        nullable = spec.get("nullable", False)
        if not isinstance(nullable, bool):
            raise SchemaError(f"column '{name}': nullable must be true or false.")
        return cls(
            name=name,
            kind=kind,
            lower=_number(name, spec, "lower"),
            upper=_number(name, spec, "upper"),
            categories=_texts(name, spec, "categories"),
            other=None if spec.get("other") is None else str(spec["other"]),
            nullable=nullable,
            transform=str(spec.get("transform", "none")),
            missing_values=_texts(name, spec, "missing_values"),
            spikes=_numbers(name, spec, "spikes"),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form without the name; :meth:`from_dict` reads it back."""
        if self.is_categorical:
            own: dict[str, Any] = {"categories": list(self.categories), "other": self.other}
        else:
            own = {"lower": self.lower, "upper": self.upper, "transform": self.transform}
            own |= {"spikes": list(self.spikes)} if self.spikes else {}
        return {"kind": self.kind, **own, "nullable": self.nullable, "missing_values": list(self.missing_values)}

    def _error(self, rest: str) -> SchemaError:
        return SchemaError(f"column '{self.name}' {rest}")

    def _check_numbers(self) -> None:
        if self.lower is None or self.upper is None:
            raise self._error(
                "has no bounds. Bounds must be public: give lower and upper from the codebook, never from the rows."
            )
        if not self.lower < self.upper or not math.isfinite(self.upper - self.lower):
            raise self._error(f"has bounds {self.lower:g} to {self.upper:g}. They must be finite, lower below upper.")
        if self.transform not in TRANSFORMS:
            raise self._error(f"has transform '{self.transform}'. Transforms: {', '.join(TRANSFORMS)}.")
        if self.kind == "integer":
            whole = self.lower.is_integer() and self.upper.is_integer()
            if not whole or max(abs(self.lower), abs(self.upper)) > LARGEST_INTEGER:
                raise self._error("is integer, so its bounds must be whole numbers up to 10^12. Or use kind numeric.")
        for spike in self.spikes:
            if not self.lower <= spike <= self.upper or (self.kind == "integer" and not spike.is_integer()):
                raise self._error(f"has a spike at {spike:g}. Spikes must lie within the bounds and be of the kind.")

    def _check_categories(self) -> None:
        if not self.categories:
            raise self._error("has no categories. They must be public: list them from the codebook, not from the rows.")
        if len(set(self.categories)) != len(self.categories):
            raise self._error("lists a category twice. Keep one.")
        if any(not text or text != text.strip() for text in self.categories):
            raise self._error("has a category that is empty or has blanks around it. An empty cell is a missing value.")
        if self.other is not None and self.other not in self.categories:
            raise self._error(f"has other '{self.other}', which is not among its categories. Add it.")
        if set(self.missing_values) & set(self.categories):
            raise self._error("has the same text in categories and in missing_values. Keep it in one of them.")


def _number(name: str, spec: Mapping[str, Any], key: str) -> float | None:
    value = spec.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"column '{name}': {key} must be a number.")
    return _float(name, key, value)


def _numbers(name: str, spec: Mapping[str, Any], key: str) -> tuple[float, ...]:
    values = spec.get(key, ())
    if not isinstance(values, list | tuple) or any(
        isinstance(v, bool) or not isinstance(v, int | float) for v in values
    ):
        raise SchemaError(f"column '{name}': {key} must be a list of numbers.")
    return tuple(sorted({_float(name, key, value) for value in values}))


def _float(name: str, key: str, value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise SchemaError(f"column '{name}': {key} holds a number that is too large.") from None


def _texts(name: str, spec: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = spec.get(key, ())
    # Integer codes have one spelling; a float, a date or a truth value has several, so its text must be given.
    if not isinstance(values, list | tuple) or any(isinstance(v, bool) or not isinstance(v, str | int) for v in values):
        raise SchemaError(
            f"column '{name}': {key} must be a list of texts or whole numbers. Put other values in quotes."
        )
    return tuple(str(value) for value in values)
