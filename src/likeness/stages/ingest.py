"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from typing import Any

from likeness.data.private_tables import write_private_chunks
from likeness.pipeline.history_rows import write_histories
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Write the typed table with its split; its manifest has keyed digests of the training rows and of the source."""
    if project.histories is not None:
        write_histories(project, project.histories)
        return
    ledger, rows = project.ledger, IngestedRows(project.params, project.written_schema)

    def made() -> dict[str, Any]:
        manifest = rows.manifest(project.params, ledger.id, ledger.key)
        # The door does it too, but later.
        ledger.check_owner(manifest["identity"], manifest["digest"], manifest["rows_digests"])
        return manifest

    with project.engine() as engine:
        write_private_chunks(typed_rows(project, rows, engine), project.paths.table, made)
