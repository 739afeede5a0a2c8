"""sample: write the synthetic table.

Reads: data/models, data/released (categories, auxiliary), data/schema.
Writes: data/synthetic/synthetic.parquet and .csv. Spends: nothing, however many rows.
"""

from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import draw, write_synthetic


def main(project: Project) -> None:
    """Draw rows and decode them to the original columns."""
    sample, generator = project.sample, SavedGenerator.load(project.paths.generator)
    table = draw(generator, project.schema, sample.rows, sample.seed, sample.where)
    write_synthetic(table, sample, project.paths)
