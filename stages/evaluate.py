"""evaluate: compare the synthetic table with real held-out rows. What it writes is NOT private.

Reads: data/private/table.parquet, data/synthetic. Writes: reports/internal. Spends: nothing, because it stays inside.
"""

import pandas as pd

from likeness.config.params import Params
from likeness.core.paths import INTERNAL, SYNTHETIC, TABLE
from likeness.data.private_tables import sample_private
from likeness.data.schema.private_categories import closed
from likeness.pipeline.private_rows import BESIDE, SPLIT
from likeness.pipeline.released import load_schema
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.schema import open_schema
from likeness.report.internal import evaluate


def main(params: Params) -> None:
    """Score against the ceiling (real training rows) and the floor (shuffled columns)."""
    own, schema = params.evaluate, load_schema(params)
    table = closed(sample_private(TABLE, own.real_rows, own.seed), open_schema(params), schema)
    beside = [name for name in BESIDE if name in table]
    train, test = (table[table[SPLIT] == part].drop(columns=beside) for part in ("train", "test"))
    evaluate(
        train,
        test,
        pd.read_parquet(SYNTHETIC.with_suffix(".parquet")),
        schema,
        own,
        INTERNAL,
        classifiers=own.classifiers,
        max_rows=own.max_rows,
    )


if __name__ == "__main__":
    run_stage("evaluate", main)
