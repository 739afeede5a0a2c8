"""ingest: read the source against the public schema, type it, split it.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from likeness.artifacts import TABLE, load_schema, open_ledger, source_path
from likeness.data.digests import typed_digest
from likeness.data.sources import read_source
from likeness.data.tables import write_private
from likeness.params import Params
from likeness.rows import SPLIT, card, split_parts
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Write the typed table with its split, and on its card the keyed digest of its training rows."""
    schema, ledger = load_schema(params), open_ledger(params)
    table, column = read_source(source_path(params), schema, params.ingest.split.column)
    parts = split_parts(params, schema, table, column)
    train = table[parts == "train"]
    digest = typed_digest(train, schema, ledger.key)
    write_private(table.assign(**{SPLIT: parts}), TABLE, card(params, ledger.id, digest, len(train)))


if __name__ == "__main__":
    run_stage("ingest", main)
