"""preprocess: encode rows one by one: unit cube for numbers, codes for categories.

Reads: data/private/table.parquet, data/schema. Writes: data/private/encoded.parquet. Spends: nothing.
"""

from likeness.artifacts import ENCODED, TABLE, load_schema
from likeness.data.encoding import Encoder
from likeness.data.tables import read_private, write_private
from likeness.params import Params
from likeness.rows import SPLIT, encoded_card
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Each row's codes depend on that row and on public knowledge only."""
    schema, table = load_schema(params), read_private(TABLE)
    codes = Encoder(schema).encode(table).assign(**{SPLIT: table[SPLIT].to_numpy()})
    write_private(codes, ENCODED, encoded_card(schema))


if __name__ == "__main__":
    run_stage("preprocess", main)
