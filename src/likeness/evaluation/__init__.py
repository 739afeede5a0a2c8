"""What a synthetic table is worth, and the page that says so.

``evaluate`` compares with real rows: its results are internal and NOT private. ``write_report`` reads files only and
writes two pages: a public one that holds no internal number, and an internal one that holds everything.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likeness.evaluation.internal import evaluate
    from likeness.evaluation.report import render, write_report

__all__ = ["evaluate", "render", "write_report"]


def __getattr__(name: str) -> Any:
    # On first use: the report needs no scikit-learn, and nothing else of the package needs either.
    if name == "evaluate":
        from likeness.evaluation.internal import evaluate

        return evaluate
    if name in ("render", "write_report"):
        from likeness.evaluation import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
