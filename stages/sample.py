"""sample: write the synthetic table.

Reads: data/models, data/released/categories, data/schema. Writes: data/synthetic/synthetic.parquet and .csv.
Spends: nothing, however many rows.
"""

from likeness.config.params import Params
from likeness.core.paths import GENERATOR
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.released import load_schema
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.synthetic_table import draw, write_synthetic


def main(params: Params) -> None:
    """Draw rows and decode them to the original columns."""
    sample = params.sample
    saved, schema = SavedGenerator.load(GENERATOR), load_schema(params)
    write_synthetic(draw(saved, schema, sample.rows, sample.seed, sample.where), sample)


if __name__ == "__main__":
    run_stage("sample", main)
