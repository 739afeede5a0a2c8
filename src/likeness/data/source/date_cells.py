"""Columns of dates and times in tables: from texts, to numbers and back. Each cell by itself."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from likeness.data.schema.column import Column
from likeness.data.schema.dates import number_of


def numbers_of_texts(texts: "pd.Series[Any]", column: Column) -> NDArray[np.float64]:
    """Days or seconds, shape (n,); NaN where a text is missing or not a date.

    Each text is read by itself. pandas chooses one resolution for a column: one cell with nanoseconds then makes a cell
    of the year 1600 unreadable.
    """
    numbers = {text: number_of(column.kind, text, column.format, column.bounds) for text in texts.dropna().unique()}
    return texts.map(numbers).to_numpy(dtype=np.float64, na_value=np.nan)


def typed_dates(numbers: NDArray[np.float64], column: Column) -> "pd.Series[Any]":
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


def numbers_of_dates(values: "pd.Series[Any]", column: Column) -> NDArray[np.float64]:
    """Days or seconds of a typed column, shape (n,); NaN where missing."""
    moments = values.astype("datetime64[s]").to_numpy()
    days_or_seconds = moments.astype("datetime64[D]") if column.kind == "date" else moments
    return np.where(np.isnat(moments), np.nan, days_or_seconds.astype(np.int64))
