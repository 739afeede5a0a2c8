"""track: mirror the run to MLflow, once, from files.

Reads: reports, data/models/loss.csv, the ledger's head. Writes: reports/tracking.json, the tracking store.
Spends: nothing; scores on real rows are left out unless tracking.internal_metrics is true.
"""

from likeness.core.paths import write_json
from likeness.pipeline.project import Project
from likeness.tracking.run import track


def main(project: Project) -> None:
    """Log, and note where."""
    write_json(project.paths.tracking, track(project))
