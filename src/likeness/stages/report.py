"""report: one self-contained page for the public, and one with the comparison with real rows.

Reads: reports, data/models/loss.csv, data/released, data/synthetic/synthetic.parquet. Writes: reports/index.html,
reports/metrics.json, reports/figures, and reports/internal/index.html (NOT private). Spends: nothing.
"""

from typing import Any

from likeness.data.rules.tables import to_model
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import read_synthetic
from likeness.release.released import load_released
from likeness.report.pages import write_report
from likeness.report.released_numbers import table_section

MOST_ROWS = 100_000
"""Synthetic rows that are compared with the release: rows are drawn one by one, so the first ones are a sample."""


def main(project: Project) -> None:
    """Render from files."""
    write_report(project.root, _table(project))


def _table(project: Project) -> dict[str, Any]:
    """The part about the table, from public files alone."""
    schema, paths = project.schema, project.paths
    table = read_synthetic(paths.synthetic, schema)
    rows = to_model(table.head(MOST_ROWS), schema)
    chunks = None if project.params.sample.where else encoded_chunks(rows, schema.modeled)
    released = [load_released(path) for path in paths.training_files]
    return table_section(schema, released, project.params.privacy.num_records, table, chunks)
