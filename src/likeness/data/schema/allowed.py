"""The values that a condition allows in one column, in the words of ``sample.where`` and of the schema's rules.

A condition is one value, a range, a comparison, null for missing, or a list or set of these. A range is a pair in
Python and ``30..40`` in a text. Both ends belong to it, and one of them may be open: ``30..``. A comparison is
``< 15``.
"""

import math
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError
from likeness.core.text import normal_text
from likeness.core.typed import check_allowed
from likeness.data.schema.column import Column

_RANGE = ".."
_MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # what is no text and means missing: of Python, numpy and pandas
_COMPARISON = re.compile(r"\s*(<=|>=|<|>)\s*(.+?)\s*")
MARGIN = 1e-6  # of a step: two numbers this near are one value of a rounded column
Range = tuple[float, float]


@dataclass(frozen=True)
class Allowed:
    """The values that a condition allows.

    Attributes:
        indices: of the allowed categories.
        ranges: of allowed numbers in units of the column; both ends belong to them, and may be infinite.
        missing: whether the value may be missing.
    """

    indices: frozenset[int] = frozenset()
    ranges: tuple[Range, ...] = ()
    missing: bool = False

    def restrict_to(self, column: Column) -> "Allowed":
        """Restrict it to a column: ranges within the bounds, ascending and apart, ends that are values."""
        if column.is_categorical:
            return self
        lower, upper = column.bounds
        ranges: list[Range] = []
        for low, high in sorted(self.ranges):
            low, high = max(low, lower), min(high, upper)
            if column.is_integral:
                low, high = math.ceil(low), math.floor(high)
            if ranges and low <= _next_number(ranges[-1][1], math.inf, column):
                ranges[-1] = ranges[-1][0], max(high, ranges[-1][1])
            elif low <= high:
                ranges.append((low, high))
        return Allowed(ranges=tuple(ranges), missing=self.missing)

    def complement(self, column: Column) -> "Allowed":
        """Every value of a column that is not allowed."""
        missing = column.nullable and not self.missing
        if column.is_categorical:
            return Allowed(frozenset(range(len(column.categories))) - self.indices, missing=missing)
        ends = [end for low_high in self.restrict_to(column).ranges for end in low_high]
        lows = [-math.inf, *(_next_number(high, math.inf, column) for high in ends[1::2])]
        highs = [*(_next_number(low, -math.inf, column) for low in ends[::2]), math.inf]
        return Allowed(ranges=tuple(zip(lows, highs, strict=True)), missing=missing).restrict_to(column)

    def intersect(self, other: "Allowed", column: Column) -> "Allowed":
        """Give the values that both allow."""
        pairs = [(max(a[0], b[0]), min(a[1], b[1])) for a in self.ranges for b in other.ranges]
        ranges = tuple((low, high) for low, high in pairs if low <= high)
        return Allowed(self.indices & other.indices, ranges, self.missing and other.missing).restrict_to(column)

    @property
    def is_nothing(self) -> bool:
        """Tell whether no value is allowed."""
        return not (self.indices or self.ranges or self.missing)

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give for each value the nearest allowed number, or the first allowed category; missing if nothing else is."""
        if self.indices:
            return np.full(len(values), float(min(self.indices)))
        if not self.ranges:
            return np.full(len(values), np.nan)
        start = np.where(np.isnan(values), self.ranges[0][0], values)
        options = np.stack([np.clip(start, low, high) for low, high in self.ranges])
        best: NDArray[np.float64] = options[np.abs(options - start).argmin(axis=0), np.arange(len(start))]
        return best

    def holds(self, values: NDArray[np.float64], column: Column) -> NDArray[np.bool_]:
        """Tell which values are allowed: indices of categories or numbers, NaN for missing."""
        if column.is_categorical:
            inside = np.isin(values, list(self.indices))
        else:
            margin = MARGIN * (step_of(column) or 0.0)
            inside = np.zeros(len(values), dtype=bool)
            for low, high in self.ranges:
                inside |= (values >= low - margin) & (values <= high + margin)
        return np.where(np.isnan(values), self.missing, inside)


def read(value: Any, column: Column, key: str) -> Allowed:
    """Read a condition on a column with public categories: see the words of this module.

    Raises:
        ParamsError: naming the key, the value and the rule.
    """
    values = alternatives(value)
    missing, present = None in values, [item for item in values if item is not None]
    if not values:
        raise ParamsError(f"{key} is an empty list. Give a value, a range, or leave it out.")
    if missing and not column.nullable:
        raise ParamsError(f"{key} asks for missing values, but '{column.name}' is not nullable. Give other values.")
    ordered = not column.is_categorical or column.ordered
    if any(isinstance(item, tuple) and (len(item) != 2 or not ordered) for item in present):
        raise ParamsError(f"{key} must be a list for several values. A pair is a range of what has an order.")
    if column.is_categorical:
        return Allowed(
            frozenset(index for item in present for index in _category_indices(item, column, key)), missing=missing
        )
    return Allowed(ranges=tuple(_numbers(item, column, key) for item in present), missing=missing)


def alternatives(value: Any) -> list[Any]:
    """The values and ranges of a condition, missing ones as None."""
    value = _scalar(value)
    values = sorted(value, key=str) if isinstance(value, Set) else value
    return [
        tuple(map(_scalar, item)) if isinstance(item, tuple) else _scalar(item)
        for item in (values if isinstance(values, list | range) else [values])
    ]


def _scalar(value: Any) -> Any:
    """A value of Python for one of numpy, a list for an array, and None for each value that means missing."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if not isinstance(value, str) and str(value) in _MISSING else value


def condition_setting(value: Any) -> Any:
    """A condition as settings have it: null, texts and numbers, ranges as texts, and lists of these."""
    plain = [
        _RANGE.join("" if end is None else str(end) for end in item)
        if isinstance(item, tuple)
        else item
        if item is None or isinstance(item, int | float)
        else str(item)
        for item in alternatives(value)
    ]
    return plain[0] if len(plain) == 1 else plain


def step_of(column: Column) -> float | None:
    """The distance of two values of a column that is rounded, or of two places of categories."""
    return (
        1.0
        if column.is_integral or column.is_categorical
        else None
        if column.decimals is None
        else 10.0**-column.decimals
    )


def _category_indices(value: Any, column: Column, key: str) -> Sequence[int]:
    """Places of the categories that a value means; of an ordered column, also those of a range or a comparison."""
    text = column.type.spelling(normal_text(str(value)), column)
    if column.ordered and text not in column.categories and (_ends(value) or _parse_comparison(value)):
        low, high = _numbers(value, column, key)
        return range(int(max(low, 0)), int(min(high, len(column.categories) - 1)) + 1)
    check_allowed(key, text, column.categories)
    return [column.categories.index(text)]


def _ends(value: Any) -> tuple[Any, Any] | None:
    """Both ends of a range, None where one is open; None for a single value."""
    if isinstance(value, tuple) and len(value) == 2:
        return value
    if isinstance(value, str) and _RANGE in value:
        low, _, high = value.partition(_RANGE)
        return low.strip() or None, high.strip() or None
    return None


def _parse_comparison(value: Any) -> tuple[str, str] | None:
    """Sign and word of a comparison; None for anything else."""
    match = _COMPARISON.fullmatch(normal_text(value)) if isinstance(value, str) else None
    return None if match is None else (match[1], match[2])


def _numbers(value: Any, column: Column, key: str) -> Range:
    """Both ends of a value, a range or a comparison in units of the column; infinite where one is open."""
    comparison = _parse_comparison(value)
    if comparison is not None:
        return _one_sided_range(*comparison, column, key)
    low, high = _ends(value) or (value, value)
    ends = _number(low, "lower", column, key), _number(high, "upper", column, key)
    if ends[0] > ends[1]:
        raise ParamsError(f"{key}: the range {value} ends before it begins. Exchange its ends.")
    return ends


def _one_sided_range(sign: str, word: str, column: Column, key: str) -> Range:
    """The range that a comparison means. ``<`` and ``>`` leave the number itself out, and a day all of its hours."""
    number = _number(word, "lower" if sign in ("<", ">=") else "upper", column, key)
    if sign in ("<", ">"):
        number = _next_number(number, -math.inf if sign == "<" else math.inf, column)
    return (-math.inf, number) if sign[0] == "<" else (number, math.inf)


def _next_number(number: float, towards: float, column: Column) -> float:
    """The next number that a column can hold."""
    step = step_of(column)
    return math.nextafter(number, towards) if step is None else number + math.copysign(step, towards)


def _number(value: Any, end: str, column: Column, key: str) -> float:
    if value is None:
        return -math.inf if end == "lower" else math.inf
    if column.is_categorical:
        word = normal_text(str(value))
        check_allowed(key, word, column.categories)
        return float(column.categories.index(word))
    if isinstance(value, str) and column.type.numeric_source:
        try:
            value = float(value)
        except ValueError:
            raise ParamsError(
                f"{key} must be a number, a range like 30..40, or a list of these, got {value!r}"
            ) from None
    bound = column.type.parse_bound(end, value)
    if isinstance(bound, str):
        raise ParamsError(f"{key} {bound}")
    return bound
