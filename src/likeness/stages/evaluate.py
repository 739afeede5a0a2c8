"""evaluate: compare the synthetic table with real held-out rows. What it writes is NOT private.

Reads: data/private/typed, data/synthetic. Writes: reports/internal/evaluation. Spends: nothing: it stays inside.
"""

from likeness.core.files import make_private_folder
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Score against the ceiling (real training rows) and the floor (nothing depends on anything)."""
    make_private_folder(project.paths.internal)
    project.model.evaluate(project.written_schema, project.tables, project.params.evaluate, project.paths)
