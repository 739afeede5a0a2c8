"""Packages that the core does without, or not beside, and heavy libraries that are loaded at their first use."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.core.errors import MissingPackageError

EXTRAS = {
    "torch": "torch",
    **dict.fromkeys(("dvc", "fastapi", "mlflow", "prefect"), "pipeline"),
    **dict.fromkeys(("sklearn", "xgboost"), "evaluate"),
    "dp_accounting": "verify",
    **dict.fromkeys(("psycopg", "sqlglot"), "postgres"),
    "pyspark": "spark",
    "duckdb": "duckdb",
    "openpyxl": "excel",
    **dict.fromkeys(("aiohttp", "fsspec", "s3fs"), "remote"),
}
"""Packages by the name that Python imports, and the extra that brings each one."""


def namesake() -> str:
    """Says that another project's distribution ``likeness`` lies in the environment of this one, else nothing.

    Both install into one folder. So the later one writes over ``__init__.py``, and who uninstalls one breaks the other.
    """
    if not any(Path(__file__).parents[2].glob("likeness-*.dist-info")):  # ours has the name likeness_dp
        return ""
    return (
        "The package likeness of another project lies in the folder of this one. "
        "Run: pip uninstall -y likeness && pip install --force-reinstall --no-deps likeness-dp"
    )


def need(package: str, user: str) -> None:
    """Refuse work of ``user`` that needs a package of :data:`EXTRAS` which is not installed.

    Raises:
        MissingPackageError: it is not installed.
    """
    if find_spec(package) is None:
        raise MissingPackageError(_sentence(package, user))


def need_to_start(package: str, user: str) -> None:
    """Do as :func:`need` in the first line of a script: its end is the message, not an error."""
    if find_spec(package) is None:
        sys.exit(_sentence(package, user))


def missing(error: Exception, user: str) -> str | None:
    """The message about an import that failed for lack of an extra; None for every other error."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return _sentence(package, user) if package in EXTRAS and find_spec(package) is None else None


def _sentence(package: str, user: str) -> str:
    return f"{user} needs {package}, which is not installed. Run: pip install 'likeness-dp[{EXTRAS[package]}]'"


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


def is_old_pandas() -> bool:
    """Tell whether pandas is older than 3: its texts are objects."""
    return int(pd.__version__.partition(".")[0]) < 3


def text_dtype() -> Any:
    """The dtype of texts with NaN for missing: ``str`` of pandas 3. In pandas 2 ``str`` makes missing cells texts."""
    return pd.StringDtype("pyarrow_numpy") if is_old_pandas() else pd.StringDtype(na_value=float("nan"))


__all__ = [
    "EXTRAS",
    "is_old_pandas",
    "missing",
    "namesake",
    "need",
    "need_to_start",
    "pa",
    "pc",
    "pd",
    "pq",
    "text_dtype",
    "torch",
]
