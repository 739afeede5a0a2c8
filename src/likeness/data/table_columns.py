"""Columns beside those of a table, rows in steps, and the type of texts.

Pixel columns of images as one block of bytes: an image is then one thing to read, type, hash, write and encode.

A typed table with images begins with its pixel columns, of dtype ``uint8``. pandas holds them as one array. A private
file holds them as one column, a cell of bytes for each image.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.extras import is_old_pandas, pa, text_dtype

OLD_PANDAS = is_old_pandas()
TEXT: Any = text_dtype()
"""The type of texts in a table."""


def with_columns(table: pd.DataFrame, columns: Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """The table with these columns, new ones last. Names are no keyword arguments, since one may be ``self``."""
    result = table.copy(deep=False)
    for name, values in columns.items():
        result[name] = values
    return result


def equal_chunks(tables: "Iterable[pa.Table]", rows: int) -> "Iterator[pa.Table]":
    """Rows in tables of one size, whatever that of the given ones. The last one may be smaller, and empty if alone."""
    held, passed = None, False
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        while len(held) >= rows:
            yield held.slice(0, rows)
            held, passed = held.slice(rows), True
    if held is not None and (len(held) or not passed):
        yield held


def has_few_values(cells: "pa.Array") -> bool:
    """Guess by the first cells whether values come again. Equal whole numbers and days are found fast anyway."""
    first, kind = cells[:4096], cells.type
    return pa.types.is_integer(kind) or pa.types.is_temporal(kind) or 2 * len(first.unique()) <= len(first)


PIXEL = np.dtype(np.uint8)


def leading_pixels(frame: pd.DataFrame) -> list[str]:
    """Names of the columns of bytes with which a frame begins. Only pixels are bytes in a typed table."""
    indices = np.flatnonzero((frame.dtypes != PIXEL).to_numpy())
    return frame.columns[: indices[0] if len(indices) else None].tolist()


def matrix(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[np.generic]:
    """Columns of one dtype as an array, shape (n, columns): without a copy where they begin the frame."""
    first = frame.iloc[:, : len(names)]
    return (first if first.columns.tolist() == list(names) else frame[list(names)]).to_numpy()


def with_pixels(values: NDArray[np.generic], names: Sequence[str], table: pd.DataFrame) -> pd.DataFrame:
    """A table that begins with pixel columns of these names. ``values`` (n, pixels) share their memory with it."""
    return pd.concat([pd.DataFrame(values, table.index, list(names), copy=False), table], axis=1)
