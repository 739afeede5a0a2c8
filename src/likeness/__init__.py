"""Likeness: differentially private synthetic data from noisy mean embeddings.

Private rows pass one door once (:mod:`likeness.release`), as noisy sums. Everything after the door is
post-processing: it may run for ever, on any machine, at no further cost in privacy.

``from likeness import Ledger, Schema, Synthesizer`` loads what they need at that moment, and not before (PEP 562).
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from warnings import warn as _warn

from likeness.core.extras import namesake as _namesake

if _TYPE_CHECKING:
    from likeness.core.wings import Wings as _Wings

__version__ = "0.1.0"

__all__ = [
    *(
        "Ledger",
        "Schema",
        "Synthesizer",
        "__version__",
        "compare",
        "draft",
        "from_sdv",
        "running_total",
        "to_sdv",
    ),
]

_HOMES = {
    "Ledger": "likeness.ledger.ledger",
    "Schema": "likeness.data.schema.schema",
    "Synthesizer": "likeness.synthesizer",
    "compare": "likeness.report.tables",
    "draft": "likeness.preflight.sdv",
    "from_sdv": "likeness.preflight.sdv",
    "running_total": "likeness.synthesizer.estimates",
    "to_sdv": "likeness.preflight.sdv",
}


if _namesake():
    _warn(_namesake(), stacklevel=2)


def __getattr__(name: str) -> object:
    """Public names, from the modules where they live. By name: the floors below import this package for its version."""
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    offered = _names_of_wings()
    if name not in offered:
        offered.check_installed(name, f"likeness.{name}")
        raise AttributeError(f"module 'likeness' has no attribute '{name}'")
    return offered[name]


def _names_of_wings() -> "_Wings[object]":
    """Names that wings offer here. It is read where one is asked for."""
    from likeness.core.wings import Wings

    return Wings("likeness.names", {})


def __dir__() -> list[str]:
    """List the names to offer for completion."""
    return sorted([*globals(), *_HOMES, *_names_of_wings()])
