"""report: one self-contained page for the public, and one with the comparison with real rows.

Reads: reports, data/models/loss.csv, data/released, data/synthetic. Writes: reports/index.html, reports/metrics.json,
reports/figures, and reports/internal/index.html (NOT private). Spends: nothing.
"""

from typing import Any

from likeness.data.schema.ruled_tables import to_model
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import as_released
from likeness.pipeline.written_tables import read_tables
from likeness.release.released import load_released
from likeness.report.history_numbers import histories_section
from likeness.report.pages import write_report
from likeness.report.released_numbers import table_section

MOST_ROWS = 100_000
"""Synthetic rows that are compared with the release: rows are drawn one by one, so the first ones are a sample."""


def main(project: Project) -> None:
    """Render from files."""
    write_report(project.root, _table(project))


def _table(project: Project) -> dict[str, Any]:
    """The part about the table, or about both of histories, from public files alone."""
    schema, histories, total = project.schema, project.histories, project.params.privacy.num_records
    tables, conditions = read_tables(project), project.params.sample.where
    released = [load_released(path) for path in project.paths.training_files]
    if histories is not None:
        counted = None if conditions else as_released(histories, tables, MOST_ROWS)
        return histories_section(histories, released, total, tables, counted)
    (table,) = tables.values()
    rows = to_model(table.head(MOST_ROWS), schema)
    return table_section(schema, released, total, table, None if conditions else encoded_chunks(rows, schema.modeled))
