"""Columns beside those of a table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


def with_columns(table: "DataFrame", columns: "Mapping[str, Any] | DataFrame") -> "DataFrame":
    """The table with these columns, new ones last. Names are no keyword arguments, since one may be ``self``."""
    result = table.copy(deep=False)
    for name, values in columns.items():
        result[name] = values
    return result
