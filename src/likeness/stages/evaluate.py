"""evaluate: compare the synthetic table with real held-out rows. What it writes is NOT private.

Reads: data/private/table.parquet, data/synthetic. Writes: reports/internal. Spends: nothing, because it stays inside.
"""

from likeness.data.private_tables import read_manifest, sample_private
from likeness.data.schema.categories import closed
from likeness.pipeline.history_rows import STRANGERS, written_histories
from likeness.pipeline.private_rows import BESIDE, SPLIT
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import read_synthetic
from likeness.pipeline.written_tables import read_tables
from likeness.report.internal import evaluate, evaluate_histories


def main(project: Project) -> None:
    """Score against the ceiling (real training rows) and the floor (shuffled columns)."""
    settings, schema, paths = project.params.evaluate, project.schema, project.paths
    if project.histories is not None:
        drawn, real = read_tables(project), written_histories(project)
        unknown = read_manifest(paths.table)[STRANGERS]
        evaluate_histories(project.histories, real, drawn, settings.seed, paths.internal, unknown)
        return
    rows = sample_private(paths.table, settings.real_rows, settings.seed)
    table = closed(rows, project.written_schema, schema)
    beside = [name for name in BESIDE if name in table]
    train, test = (table[table[SPLIT] == part].drop(columns=beside) for part in ("train", "test"))
    evaluate(
        train,
        test,
        read_synthetic(paths.synthetic, schema),
        schema,
        settings,
        paths.internal,
        classifiers=settings.classifiers,
        max_rows=settings.max_rows,
    )
