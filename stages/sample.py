"""sample: write the synthetic table.

Reads: data/models, data/schema. Writes: data/synthetic/synthetic.parquet and .csv. Spends: nothing, however many rows.
"""

from likeness.artifacts import GENERATOR, load_schema
from likeness.data.encoding import Encoder
from likeness.generators.saved import SavedGenerator
from likeness.params import Params
from likeness.stage import run_stage
from likeness.synthetic import conditions, write_synthetic


def main(params: Params) -> None:
    """Draw rows and decode them to the original columns."""
    schema, sample = load_schema(params), params.sample
    label, cells = conditions(sample.where, schema)
    x, labels = SavedGenerator.load(GENERATOR).draw(sample.rows, sample.seed, label, cells)
    write_synthetic(Encoder(schema).decode(x, labels), sample)


if __name__ == "__main__":
    run_stage("sample", main)
