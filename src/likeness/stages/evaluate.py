"""evaluate: compare the synthetic table with real held-out rows. What it writes is NOT private.

Reads: data/private/typed, data/synthetic. Writes: reports/internal. Spends: nothing: it stays inside.
"""

from likeness.core.files import make_private_folder
from likeness.pipeline.project import Project
from likeness.report.pages import write_internal


def main(project: Project) -> None:
    """Compare with real training rows and with shuffled ones, where nothing depends on anything."""
    make_private_folder(project.paths.internal)
    halved = not project.params.ingest.split.holds_out
    project.model.evaluate(project.written_schema, project.tables, project.params.evaluate, project.paths, halved)
    write_internal(project.root, project.params.privacy.population)
