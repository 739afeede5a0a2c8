"""preprocess: encode rows one by one: unit cube for numbers, codes for categories.

Reads: data/private/table.parquet, data/released/categories, data/schema. Writes: data/private/encoded.parquet.
Spends: nothing.
"""

from likeness.artifacts import ENCODED, TABLE, load_schema, open_schema
from likeness.data.tables import read_card, write_private_chunks
from likeness.ingestion import encoded_rows
from likeness.params import Params
from likeness.rows import encoded_card
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    written, schema, ingested = open_schema(params), load_schema(params), read_card(TABLE)
    rows = encoded_rows(written, schema, ingested)
    write_private_chunks(rows, ENCODED, lambda _: encoded_card(ingested, schema))


if __name__ == "__main__":
    run_stage("preprocess", main)
