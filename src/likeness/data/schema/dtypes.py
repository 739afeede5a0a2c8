"""Dtypes of a frame's columns as words of the schema: ``int16``, ``boolean``, ``category[int64, ordered]``.

A dtype is public and changes no released number: it is read when rows are written, and never before. ``frame.dtypes``
says it, and no value.
"""

import re
from dataclasses import dataclass
from typing import Any

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


def parsed(text: str) -> Dtype | None:
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
    """The word of a dtype of pandas, which :func:`parsed` reads. It names no category."""
    import pandas as pd

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


def _family(element: str) -> str:
    return next((name for name, pattern in _FAMILIES.items() if re.fullmatch(pattern, element, re.ASCII)), "")
