"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from pathlib import Path
from typing import Any

from likeness.data.private_tables import write_private_chunks
from likeness.data.source.row_digests import SourceDigest
from likeness.pipeline.history_rows import write_histories
from likeness.pipeline.ingest import training_digest, typed_rows
from likeness.pipeline.private_rows import manifest_of
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Write the typed table with its split; its manifest has keyed digests of the training rows and of the source."""
    if project.histories is not None:
        write_histories(project, project.histories)
        return
    ledger = project.ledger
    source = SourceDigest(SourceDigest.key_of(ledger.key))

    def made(written: Path) -> dict[str, Any]:
        digest, count = training_digest(project, written)
        manifest = manifest_of(project.params, ledger.id, digest, count, [source.digest()])
        ledger.check_owner(manifest["identity"], digest, manifest["rows_digests"])  # the door does it too, but later
        return manifest

    with project.engine() as engine:
        write_private_chunks(typed_rows(project, engine, source), project.paths.table, made)
