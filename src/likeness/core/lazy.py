"""Heavy libraries, each loaded at its first use: a module may name them at its top."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import torch
else:

    class _Library:
        """A module in the place of its import."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    pd, pa, pc, pq = map(_Library, ("pandas", "pyarrow", "pyarrow.compute", "pyarrow.parquet"))
    torch = _Library("torch")

__all__ = ["pa", "pc", "pd", "pq", "torch"]
