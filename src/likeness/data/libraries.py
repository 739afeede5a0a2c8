"""Table libraries, and what differs between versions of pandas."""

from typing import Any

from likeness.core.lazy import pa, pc, pd

__all__ = ["pa", "pc", "pd"]


def is_old_pandas() -> bool:
    """Whether pandas is older than 3: its texts are objects."""
    return int(pd.__version__.partition(".")[0]) < 3


def text_dtype() -> Any:
    """Of texts with NaN for missing: ``str`` of pandas 3. In pandas 2 ``str`` makes texts of missing cells."""
    return pd.StringDtype("pyarrow_numpy") if is_old_pandas() else pd.StringDtype(na_value=float("nan"))
