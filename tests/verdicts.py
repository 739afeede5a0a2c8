"""The verifier's checks without a process of their own, whose start takes seconds."""

from pathlib import Path

from likeness.bundle.files import open_bundle
from likeness.bundle.verdict import Check
from likeness.verify import MOST_MINUTES
from likeness.verify.checks import checks_of


def verify(path: Path, retrain: bool = False) -> list[Check]:
    """As :func:`likeness.verify.verify`, in this process."""
    with open_bundle(path) as folder:
        return list(checks_of(folder, retrain, MOST_MINUTES))
