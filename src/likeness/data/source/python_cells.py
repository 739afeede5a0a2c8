"""Texts of Python objects in cells of frames and databases.

A text depends on its cell alone. A library that types a whole column lets one person's cell retype all others: a date
before times of day removes the hours from all rows.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import singledispatch
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from likeness.data.table_columns import TEXT

_EXACT = 2**53  # up to here floats tell whole numbers apart
_MOST_DIGITS = 400  # of a decimal that is written without an exponent
_NO_TEXT = (TypeError, ValueError, OverflowError)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"W": (604_800, 0), "D": (86_400, 0), "h": (3600, 0), "m": (60, 0), "s": (1, 0)} | {
    unit: (1, decimals) for unit, decimals in (("ms", 3), ("us", 6), ("ns", 9), ("ps", 12), ("fs", 15), ("as", 18))
}


def python_texts(cells: Iterable[Any]) -> "pd.Series[str] | None":
    """A column of texts, missing where a cell is missing; None if a cell has no text."""
    try:
        return pd.Series([text_of(cell) for cell in cells], dtype=TEXT)
    except _NO_TEXT:
        return None


def texts_or_missing(cells: Iterable[Any]) -> "pd.Series[str]":
    """A column of texts, missing also where a cell has none. So a cell without a text takes no other one."""
    texts: list[str | None] = []
    for cell in cells:
        try:
            texts.append(text_of(cell))
        except _NO_TEXT:
            texts.append(None)
    return pd.Series(texts, dtype=TEXT)


@singledispatch
def text_of(cell: Any) -> str | None:
    """The text of one cell, None where it is missing. A Parquet column of its type gives this text.

    Raises:
        TypeError: cells of this type have no text.
        ValueError: the cell has no text, as bytes that are not UTF-8.
        OverflowError: the cell has no text, as a time after the year 9999.
    """
    raise TypeError(type(cell).__name__)


def _float(cell: Any) -> str | None:
    number = float(cell)
    if number != number:
        return None
    # The shortest text that the type reads back: 0.1 of 32 bits is 0.1.
    return str(int(number)) if abs(number) < _EXACT and number.is_integer() else str(cell)


def seconds_text(count: int, unit: str) -> str:
    """A span of time in seconds, with decimals where it has any. Units are numpy's, from ``W`` to ``as``.

    Raises:
        ValueError: the unit has no length, as a month.
    """
    if unit not in _UNITS:
        raise ValueError(unit)
    seconds, decimals = _UNITS[unit]
    return f"{Decimal(count * seconds).scaleb(-decimals).normalize():f}"


def _span(cell: "np.timedelta64[Any]") -> str | None:
    unit, step = np.datetime_data(cell.dtype)
    return None if np.isnat(cell) else seconds_text(int(cell.astype(np.int64)) * step, unit)


def _decimal(cell: Decimal) -> str | None:
    """The same text at each scale."""
    if cell.is_nan():
        return None
    if not cell:
        return "0"
    return _short(format(cell, "f")) if abs(cell.adjusted()) < _MOST_DIGITS else str(cell)


def _datetime(cell: datetime) -> str:
    moment = cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    text = moment.isoformat(sep=" ", timespec="microseconds") + f"{getattr(cell, 'nanosecond', 0):03d}"
    return _short(text) + ("" if cell.tzinfo is None else "Z")


def _short(text: str) -> str:
    """A number or time without zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


_TEXTS: dict[tuple[type, ...], Callable[[Any], str | None]] = {
    (type(None), type(pd.NA), type(pd.NaT)): lambda _: None,
    (str, UUID): str,
    (bytes, bytearray, memoryview): lambda cell: bytes(cell).decode(),
    (bool, np.bool_): lambda cell: str(bool(cell)),
    (int, np.integer): lambda cell: str(int(cell)),
    (float, np.floating): _float,
    (Decimal,): _decimal,
    (date,): lambda cell: cell.isoformat(),
    (datetime,): _datetime,
    (time,): lambda cell: _short(cell.replace(tzinfo=None).isoformat(timespec="microseconds")),
    (timedelta,): lambda cell: seconds_text(cell // _MICROSECOND, "us"),
    (pd.Timedelta,): lambda cell: _span(cell.to_timedelta64()),
    (np.datetime64,): lambda cell: None if np.isnat(cell) else _short(str(cell).replace("T", " ")),
    (np.timedelta64,): _span,
}
for _types, _text in _TEXTS.items():
    for _type in _types:
        text_of.register(_type, _text)
