"""sample: write the synthetic table.

Reads: data/models, data/schema. Writes: data/synthetic/synthetic.parquet and .csv. Spends: nothing, however many rows.
"""

from likeness.artifacts import GENERATOR, SYNTHETIC, load_schema
from likeness.data.encoding import Encoder
from likeness.generators.saved import SavedGenerator
from likeness.params import Params
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Draw rows and decode them to the original columns."""
    x, labels = SavedGenerator.load(GENERATOR).draw(params.sample.rows, params.sample.seed)
    table = Encoder(load_schema(params)).decode(x, labels)
    SYNTHETIC.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(SYNTHETIC.with_suffix(".parquet"), index=False)
    table.to_csv(SYNTHETIC.with_suffix(".csv"), index=False)


if __name__ == "__main__":
    run_stage("sample", main)
