"""Columns beside those of a table, and the type of texts in it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from likeness.data.libraries import is_old_pandas, text_dtype

OLD_PANDAS = is_old_pandas()
TEXT: Any = text_dtype()
"""The type of texts in a table."""


def with_columns(table: pd.DataFrame, columns: Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """The table with these columns, new ones last. Names are no keyword arguments, since one may be ``self``."""
    result = table.copy(deep=False)
    for name, values in columns.items():
        result[name] = values
    return result
