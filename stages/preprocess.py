"""preprocess: encode rows one by one: unit cube for numbers, codes for categories.

Reads: data/private/table.parquet, data/schema. Writes: data/private/encoded.parquet. Spends: nothing.
"""

from likeness.artifacts import ENCODED, TABLE, load_schema
from likeness.data.encoding import Encoder
from likeness.data.tables import read_with_card, write_private
from likeness.params import Params
from likeness.rows import BESIDE, encoded_card
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    schema = load_schema(params)
    table, ingested = read_with_card(TABLE)
    codes = Encoder(schema).encode(table).assign(**{name: table[name].to_numpy() for name in BESIDE if name in table})
    write_private(codes, ENCODED, encoded_card(ingested, schema))


if __name__ == "__main__":
    run_stage("preprocess", main)
