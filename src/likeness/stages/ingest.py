"""ingest: read the source against the public schema, type it, split it, bound the rows of each person."""

from likeness.core.paths import write_random
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Write the typed rows with their split; the manifest has keyed digests of the training rows and of the source.

    Rows that stay in their database are not written: only the manifest is.
    """
    _ = project.written_schema  # or refused
    if project.counts is None:
        project.written_model.ingest(project.sources, project.ledger, project.paths)
    else:
        project.counts.ingest(project.ledger, project.paths)
    write_random(project.paths.typed_done)
