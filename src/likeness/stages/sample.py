"""sample: write the synthetic table, or both of people with histories: .parquet and .csv, of images .npz.

It spends nothing, however many rows.
"""

from likeness.pipeline.project import Project
from likeness.pipeline.written_tables import write_synthetic


def main(project: Project) -> None:
    """Draw rows and decode them to the original columns."""
    saved = project.model.load_generators(project.paths.generator)
    write_synthetic(project, project.model.draw(saved, *project.sample))
