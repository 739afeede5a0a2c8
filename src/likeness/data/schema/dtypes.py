"""Dtypes of a frame's columns as words of the schema: ``int16``, ``boolean``, ``category[int64, ordered]``.

A dtype is public and changes no released number: it is read when rows are written, and never before. ``frame.dtypes``
says it, and no value.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from likeness.core.extras import pd
from likeness.core.text import fold_case

FALSE_WORDS = ("false", "no", "f", "n", "0")
TRUE_WORDS = ("true", "yes", "t", "y", "1")
NUMBERS = {"0.0": "0", "1.0": "1"}  # as a CSV of floats writes them
DEFAULT_WORDS = ("false", "true")


def canonical_word(text: str, categories: tuple[str, ...]) -> str:
    """The column's own word for a text that spells false or true; any other text as it is."""
    if text in categories or len(categories) != 2:
        return text
    word = NUMBERS.get(text, fold_case(text))
    if word in (*FALSE_WORDS, fold_case(categories[0])):
        return categories[0]
    return categories[1] if word in (*TRUE_WORDS, fold_case(categories[1])) else text


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
CLOCK = r"(?!24)\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"  # some versions of Python take 24:00 too
MOMENT = rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[ T]{CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?"
_NANOSECONDS = datetime(1677, 9, 22), datetime(2262, 4, 11)
_DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}  # of a span of time, which is a number of seconds
_LARGEST = {"float16": 65504.0, "halffloat": 65504.0, "float32": 3.4028234663852886e38, "float": 3.4028234663852886e38}
_MOST_DIGITS = 76  # of a decimal of Arrow
_UNIT = r"\[(?:s|ms|us|ns)"
_FAMILIES = {
    "truth": r"bool(?:ean|\[pyarrow\])?",
    "whole": r"u?int(?:8|16|32|64)(?:\[pyarrow\])?|U?Int(?:8|16|32|64)",
    "real": r"float(?:16|32|64)|Float(?:32|64)|(?:halffloat|float|double)\[pyarrow\]"
    r"|decimal(?:32|64|128|256)\(\d{1,2}, -?\d{1,2}\)\[pyarrow\]",
    "text": r"object|str(?:\[python\])?|string(?:\[(?:python|pyarrow)\])?|(?:utf8|large_string|string_view)\[pyarrow\]",
    "moment": rf"datetime64{_UNIT}(?:, [\w/+:-]+)?\]|timestamp{_UNIT}(?:, tz=[\w/+:-]+)?\]\[pyarrow\]"
    r"|date(?:32\[day\]|64\[ms\])\[pyarrow\]",
    "clock": rf"time(?:32|64){_UNIT}\]\[pyarrow\]",
    "span": rf"timedelta64{_UNIT}\]|duration{_UNIT}\]\[pyarrow\]",
}
EXAMPLES = dict(
    truth="bool", whole="int64", real="float32", text="str", moment="datetime64[us]", span="timedelta64[us]",
    clock="time64[us][pyarrow]",
)  # fmt: skip
_CATEGORY = re.compile(r"category(?:\[(?P<element>.+?)(?P<ordered>, ordered)?\])?", re.ASCII)
_DICTIONARY = re.compile(
    r"dictionary<values=(?P<element>.+), indices=(?P<index>u?int\d+), ordered=(?P<ordered>[01])>\[pyarrow\]", re.ASCII
)


@dataclass(frozen=True)
class Dtype:
    """The word for a dtype, taken apart.

    Attributes:
        element: the dtype of the values; of the categories, where the values are categories.
        family: truth, whole, real, text, moment, clock or span: the values that the element holds.
        container: ``category``, ``dictionary`` (Arrow's form of it), or empty.
        ordered: whether the categories have an order.
        index: Arrow's type of the places in a dictionary.
    """

    element: str
    family: str
    container: str = ""
    ordered: bool = False
    index: str = ""


def parse_dtype(text: str) -> Dtype | None:
    """The parts of a dtype's word; None where the text is no such word."""
    if match := _CATEGORY.fullmatch(text):
        element = match["element"] or "str"
        family = _family(element)
        return Dtype(element, family, "category", match["ordered"] is not None) if family else None
    if match := _DICTIONARY.fullmatch(text):
        element = "utf8[pyarrow]" if match["element"] == "string" else f"{match['element']}[pyarrow]"
        family = _family(element)
        return Dtype(element, family, "dictionary", match["ordered"] == "1", match["index"]) if family else None
    family = _family(text)
    return Dtype(text, family) if family else None


def dtype_name(dtype: Any) -> str:
    """The word of a dtype of pandas, which :func:`parse_dtype` reads. It names no category."""
    if isinstance(dtype, pd.CategoricalDtype):
        return f"category[{dtype_name(dtype.categories.dtype)}{', ordered' if dtype.ordered else ''}]"
    if isinstance(dtype, pd.StringDtype):
        if dtype.na_value is pd.NA:
            return f"string[{dtype.storage}]"
        return "str[python]" if dtype.storage == "python" else "str"
    return arrow_name(dtype.pyarrow_dtype) if isinstance(dtype, pd.ArrowDtype) else str(dtype)


def arrow_name(kind: Any) -> str:
    """The word of a type of Arrow. Its string is another one than pandas' ``string[pyarrow]``."""
    return "utf8[pyarrow]" if str(kind) == "string" else f"{kind}[pyarrow]"


def value_of_text(text: str, dtype: Dtype) -> Any:
    """The value of a dtype that a text means; None where it means none, or one that the dtype rounds."""
    if dtype.family in ("whole", "real", "span"):
        return value_of_number(Decimal(text), dtype, exact=True) if NUMBER.fullmatch(text) else None
    if dtype.family == "moment":
        if not re.fullmatch(MOMENT, text, re.ASCII):
            return None
        with suppress(ValueError):
            moment = datetime.fromisoformat(text.replace(",", "."))
            whole = moment.time() == time() if re.match("date(?:32|64)", dtype.element) else _has_units(moment, dtype)
            return value_of_moment(moment, dtype) if whole else None
        return None
    if dtype.family == "clock":
        with suppress(ValueError):
            clock = time.fromisoformat(text)
            return clock if _has_units(clock, dtype) else None
        return None
    if dtype.family == "text":
        return text
    word = canonical_word(text, DEFAULT_WORDS)
    return DEFAULT_WORDS.index(word) == 1 if word in DEFAULT_WORDS else None


def value_of_number(number: Decimal, dtype: Dtype, exact: bool = False) -> "bool | float | int | Decimal | None":
    """The value of a dtype of truths, numbers or spans of time that is nearest to a number; None beyond its range.

    ``exact``: None also where a whole number, a decimal or a span would be rounded.
    """
    name = dtype.element.removesuffix("[pyarrow]").lower()
    if dtype.family == "truth":
        return bool(number) if 0 <= number <= 1 else None
    if dtype.family == "real" and not name.startswith("decimal"):
        return float(number) if abs(float(number)) <= _LARGEST.get(name, math.nextafter(math.inf, 0)) else None
    if number.adjusted() > _MOST_DIGITS:
        return None
    digits, scale = map(int, re.findall(r"-?\d+", name)[1:]) if name.startswith("decimal") else (0, 0)
    if dtype.family == "span":
        name, scale = "int64", _DECIMALS[re.findall(r"\[(\w+)\]", dtype.element)[0]]
    high = 10**digits - 1 if digits else 2 ** (int(re.findall(r"\d+", name)[0]) - (name[0] != "u")) - 1
    low = -high if digits else 0 if name[0] == "u" else -high - 1
    units = int(number.scaleb(scale).to_integral_value())
    if not low <= units <= high or (exact and Decimal(units).scaleb(-scale) != number):
        return None
    return Decimal(units).scaleb(-scale) if digits else units


def value_of_moment(moment: datetime, dtype: Dtype) -> "datetime | date | None":
    """A time as a dtype takes it, in UTC, with a zone where the dtype has one; None beyond its years."""
    moment = moment.replace(tzinfo=None) if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    if "[ns" in dtype.element and not _NANOSECONDS[0] <= moment <= _NANOSECONDS[1]:
        return None
    if dtype.element.startswith("date3"):
        return moment.date()
    return moment.replace(tzinfo=UTC) if ", " in dtype.element else moment


def _has_units(moment: datetime | time, dtype: Dtype) -> bool:
    """Tell whether a time is a whole number of the units of a dtype."""
    unit = re.search(r"\[(\w+)", dtype.element)
    return unit is not None and moment.microsecond % 10 ** max(6 - _DECIMALS[unit[1]], 0) == 0


def _family(element: str) -> str:
    return next((name for name, pattern in _FAMILIES.items() if re.fullmatch(pattern, element, re.ASCII)), "")
