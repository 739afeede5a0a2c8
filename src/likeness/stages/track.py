"""track: mirror the run to MLflow, once, from files.

Scores on real rows are left out unless tracking.internal_metrics is true.
"""

from likeness.core.paths import write_json
from likeness.pipeline.project import Project
from likeness.pipeline.tracking import TRACKING


def main(project: Project) -> None:
    """Log, and note where."""
    track = TRACKING.need("track", "Stage track needs the part of Likeness that asks MLflow.")
    write_json(project.paths.tracking, track(project))
