"""What the core asks of the wing that mirrors runs: functions of a project, each by an entry point.

``track`` logs a run, and gives what ``reports/tracking.json`` holds. ``run_witnesses`` gives the ledger's head at each.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from likeness.core.wings import Wings

if TYPE_CHECKING:
    from likeness.pipeline.project import Project

TRACKING: Wings[Callable[["Project"], Any]] = Wings("likeness.tracking", {})
