"""Columns beside those of a table, and the type of texts in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

OLD_PANDAS = int(pd.__version__.partition(".")[0]) < 3
TEXT: Any = pd.StringDtype("pyarrow_numpy") if OLD_PANDAS else pd.StringDtype(na_value=np.nan)
"""Texts with NaN for missing: ``str`` of pandas 3. In pandas 2 ``str`` makes texts of missing cells."""


def with_columns(table: pd.DataFrame, columns: Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """The table with these columns, new ones last. Names are no keyword arguments, since one may be ``self``."""
    result = table.copy(deep=False)
    for name, values in columns.items():
        result[name] = values
    return result
