"""Columns beside those of a table, rows in steps, and the type of texts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from likeness.data.libraries import is_old_pandas, pa, text_dtype

OLD_PANDAS = is_old_pandas()
TEXT: Any = text_dtype()
"""The type of texts in a table."""


def with_columns(table: pd.DataFrame, columns: Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """The table with these columns, new ones last. Names are no keyword arguments, since one may be ``self``."""
    result = table.copy(deep=False)
    for name, values in columns.items():
        result[name] = values
    return result


def of_one_size(tables: "Iterable[pa.Table]", rows: int) -> "Iterator[pa.Table]":
    """Rows in tables of one size, whatever that of the given ones. The last one may be smaller, and empty if alone."""
    held, passed = None, False
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        while len(held) >= rows:
            yield held.slice(0, rows)
            held, passed = held.slice(rows), True
    if held is not None and (len(held) or not passed):
        yield held
