"""preprocess: encode rows one by one: unit cube for numbers, codes for categories."""

from likeness.core.engine import threads
from likeness.core.paths import row_set_file, write_random
from likeness.data.private_tables import read_manifest, write_private_chunks
from likeness.pipeline.ingest import encoded_rows
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    written = project.written_model.encodings
    for prefix, (schema, encoding) in project.model.encodings.items():
        table = row_set_file(project.paths.table, prefix)
        ingested = read_manifest(table)
        rows = encoded_rows(table, written[prefix][0], schema, ingested, threads())
        manifest = {**ingested, "encoding": encoding}
        encoded = row_set_file(project.paths.encoded, prefix)
        write_private_chunks(rows, encoded, lambda manifest=manifest: manifest)  # type: ignore[misc]
    write_random(project.paths.encoded_done)
