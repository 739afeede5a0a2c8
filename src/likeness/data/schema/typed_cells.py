"""Numbers, dates and times of typed columns: read from texts, and written. Each cell by itself."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.data.schema.column_facts import ColumnFacts
from likeness.data.schema.dates import number_of

_SHORTEST = r"^(?P<sign>-?)(?P<whole>\d+)\.?(?P<part>\d*)e?\+?(?P<power>-?\d*)$"


def numbers_of_texts(texts: "pd.Series[Any]", column: ColumnFacts) -> NDArray[np.float64]:
    """Days or seconds, shape (n,); NaN where a text is missing or not a date.

    Each text is read by itself. pandas chooses one resolution for a column: one cell with nanoseconds then makes a cell
    of the year 1600 unreadable.
    """
    numbers = {text: number_of(column.kind, text, column.format, column.bounds) for text in texts.dropna().unique()}
    return texts.map(numbers).to_numpy(dtype=np.float64, na_value=np.nan)


def typed_dates(numbers: NDArray[np.float64], column: ColumnFacts) -> "pd.Series[Any]":
    """A typed column from days or seconds, NaN for missing: Arrow's dates, or its times in milliseconds.

    Parquet has no seconds, so a column of seconds would come back with another type.
    """
    missing = np.isnan(numbers)
    whole = np.where(missing, 0, numbers).astype(np.int64)
    if column.kind == "date":
        values = pa.array(whole.astype(np.int32), mask=missing).cast(pa.date32())
    else:
        values = pa.array(whole * 1000, mask=missing).cast(pa.timestamp("ms"))
    return pd.Series(pd.arrays.ArrowExtensionArray(values))


def numbers_of_dates(values: "pd.Series[Any]", column: ColumnFacts) -> NDArray[np.float64]:
    """Days or seconds of a typed column, shape (n,); NaN where missing."""
    moments = values.astype("datetime64[s]").to_numpy()
    days_or_seconds = moments.astype("datetime64[D]") if column.kind == "date" else moments
    return np.where(np.isnat(moments), np.nan, days_or_seconds.astype(np.int64))


def number_texts(numbers: pa.DoubleArray) -> pa.StringArray:
    """Each number as ``15e-1``: a whole number that does not end with 0, and the power of ten. Zero is ``0e0``.

    The digits are the fewest that are read back as the same float64. PostgreSQL, DuckDB and Java print these digits,
    each in its own notation, and this one follows from all.

    Args:
        numbers: finite, without missing ones.
    """
    shortest = pc.add(numbers, 0.0).cast(pa.string())  # one zero, whatever its sign
    read = pc.extract_regex(shortest, _SHORTEST)
    sign, whole, part, power = (pc.struct_field(read, [name]) for name in ("sign", "whole", "part", "power"))
    digits = pc.ascii_ltrim(pc.binary_join_element_wise(whole, part, ""), "0")
    short = pc.ascii_rtrim(digits, "0")
    shift = pc.subtract(pc.subtract(pc.utf8_length(digits), pc.utf8_length(short)), pc.utf8_length(part))
    exponent = pc.add(pc.if_else(pc.equal(power, ""), "0", power).cast(pa.int64()), shift.cast(pa.int64()))
    short = pc.if_else(pc.equal(short, ""), "0", short)
    return pc.binary_join_element_wise(sign, short, "e", exponent.cast(pa.string()), "")
