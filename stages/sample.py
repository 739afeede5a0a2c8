"""sample: write the synthetic table.

Reads: data/models, data/released/categories, data/schema. Writes: data/synthetic/synthetic.parquet and .csv.
Spends: nothing, however many rows.
"""

from likeness.artifacts import GENERATOR, load_schema
from likeness.generators.saved import SavedGenerator
from likeness.params import Params
from likeness.stage import run_stage
from likeness.synthetic import draw, write_synthetic


def main(params: Params) -> None:
    """Draw rows and decode them to the original columns."""
    sample = params.sample
    saved, schema = SavedGenerator.load(GENERATOR), load_schema(params)
    write_synthetic(draw(saved, schema, sample.rows, sample.seed, sample.where), sample)


if __name__ == "__main__":
    run_stage("sample", main)
