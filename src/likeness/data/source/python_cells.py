"""Texts of Python objects in cells of frames and databases.

A text depends on its cell alone. A library that types a whole column lets one person's cell retype all others: a date
before times of day removes the hours from all rows.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import singledispatch
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

_EXACT = 2**53  # up to here floats tell whole numbers apart
_MICROSECOND = timedelta(microseconds=1)


def python_texts(cells: Iterable[Any]) -> "pd.Series[str] | None":
    """A column of texts, missing where a cell is missing; None if a cell has no text."""
    try:
        return pd.Series([text_of(cell) for cell in cells], dtype="str")
    except (TypeError, ValueError, OverflowError):
        return None


@singledispatch
def text_of(cell: Any) -> str | None:
    """The text of one cell, None where it is missing. A Parquet column of its type gives this text.

    Raises:
        TypeError: cells of this type have no text.
        ValueError: the cell has no text, as bytes that are not UTF-8.
        OverflowError: the cell has no text, as a time after the year 9999.
    """
    raise TypeError(type(cell).__name__)


@text_of.register(type(None))
@text_of.register(type(pd.NA))
@text_of.register(type(pd.NaT))
def _missing(_: Any) -> None:
    return None


@text_of.register
def _text(cell: str) -> str:
    return cell


@text_of.register(bytes)
@text_of.register(bytearray)
@text_of.register(memoryview)
def _bytes(cell: bytes) -> str:
    return bytes(cell).decode()


@text_of.register(bool)
@text_of.register(np.bool_)
def _truth(cell: Any) -> str:
    return str(bool(cell))


@text_of.register(int)
@text_of.register(np.integer)
def _whole(cell: Any) -> str:
    return str(int(cell))


@text_of.register(float)
@text_of.register(np.floating)
def _float(cell: Any) -> str | None:
    number = float(cell)
    if number != number:
        return None
    return str(int(number)) if abs(number) < _EXACT and number.is_integer() else repr(number)


@text_of.register
def _decimal(cell: Decimal) -> str | None:
    return None if cell.is_nan() else str(cell)


@text_of.register
def _date(cell: date) -> str:
    return cell.isoformat()


@text_of.register
def _datetime(cell: datetime) -> str:
    if cell.tzinfo is None:
        return cell.isoformat(sep=" ", timespec="microseconds")
    return cell.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds") + "Z"


@text_of.register
def _time(cell: time) -> str:
    return cell.replace(tzinfo=None).isoformat(timespec="microseconds")


@text_of.register
def _duration(cell: timedelta) -> str:
    return str(cell // _MICROSECOND)


@text_of.register(np.datetime64)
def _moment(cell: np.datetime64) -> str | None:
    return None if np.isnat(cell) else str(cell).replace("T", " ")


@text_of.register(np.timedelta64)
def _count(cell: np.timedelta64) -> str | None:
    return None if np.isnat(cell) else str(cell.astype(np.int64))


@text_of.register
def _uuid(cell: UUID) -> str:
    return str(cell)
