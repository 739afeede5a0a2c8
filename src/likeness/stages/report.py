"""report: one self-contained page for the public."""

from typing import Any

from likeness.pipeline.datasets.model import MOST_COMPARED
from likeness.pipeline.project import Project
from likeness.pipeline.written_tables import synthetic_tables
from likeness.release.released import load_released
from likeness.report.pages import write_report


def main(project: Project) -> None:
    """Render from files."""
    write_report(project.root, _table(project))


def _table(project: Project) -> dict[str, Any]:
    """The part about the tables, from public files alone."""
    tables, released = synthetic_tables(project), [load_released(path) for path in project.paths.released_files]
    most = None if project.params.sample.where else MOST_COMPARED
    return project.model.section(released, project.params.privacy.num_records, tables, most)
