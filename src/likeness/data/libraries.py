"""Table libraries, each loaded at its first use: a schema is read without them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
else:

    class _Library:
        """A module in the place of its import."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    pd, pa, pc = map(_Library, ("pandas", "pyarrow", "pyarrow.compute"))

__all__ = ["pa", "pc", "pd"]


def is_old_pandas() -> bool:
    """Whether pandas is older than 3: its texts are objects."""
    return int(pd.__version__.partition(".")[0]) < 3


def text_dtype() -> Any:
    """Of texts with NaN for missing: ``str`` of pandas 3. In pandas 2 ``str`` makes texts of missing cells."""
    return pd.StringDtype("pyarrow_numpy") if is_old_pandas() else pd.StringDtype(na_value=float("nan"))
