"""track: mirror the run to MLflow, once, from files.

Scores on real rows are left out unless tracking.internal_metrics is true.
"""

from likeness.core.paths import write_json
from likeness.pipeline.project import Project
from likeness.tracking.run import track


def main(project: Project) -> None:
    """Log, and note where."""
    write_json(project.paths.tracking, track(project))
