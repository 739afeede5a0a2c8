"""preprocess: encode rows one by one: unit cube for numbers, codes for categories.

Reads: data/private/table.parquet, data/released/categories, data/schema. Writes: data/private/encoded.parquet.
Spends: nothing.
"""

from likeness.config.params import Params
from likeness.core.paths import ENCODED, TABLE
from likeness.data.private_tables import read_manifest, write_private_chunks
from likeness.pipeline.card import encoded_card
from likeness.pipeline.ingest import encoded_rows
from likeness.pipeline.released import load_schema
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.schema import open_schema


def main(params: Params) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    written, schema, ingested = open_schema(params), load_schema(params), read_manifest(TABLE)
    rows = encoded_rows(written, schema, ingested)
    write_private_chunks(rows, ENCODED, lambda _: encoded_card(ingested, schema))


if __name__ == "__main__":
    run_stage("preprocess", main)
