"""preprocess: encode rows one by one: unit cube for numbers, codes for categories.

Reads: data/private/table.parquet, data/released/categories, data/schema. Writes: data/private/encoded.parquet.
Spends: nothing.
"""

from likeness.data.private_tables import read_manifest, write_private_chunks
from likeness.pipeline.ingest import encoded_rows
from likeness.pipeline.private_rows import encoded_manifest
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    ingested = read_manifest(project.paths.table)
    rows = encoded_rows(project, ingested)
    write_private_chunks(rows, project.paths.encoded, lambda _: encoded_manifest(ingested, project.schema))
