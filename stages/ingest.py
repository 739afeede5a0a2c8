"""ingest: read the source against the public schema, type it, split it.

Reads: the private source, data/schema. Writes: data/private/table.parquet, data/private/identity.json. Spends: nothing.
"""

from likeness.artifacts import (
    IDENTITY,
    SPLIT,
    TABLE,
    identity_card,
    load_schema,
    open_ledger,
    source_path,
    split_parts,
    write_json,
)
from likeness.data.digests import typed_digest
from likeness.data.sources import read_source
from likeness.data.tables import write_private
from likeness.params import Params
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Write the typed table with its split, and the keyed digest of its training rows."""
    schema, ledger = load_schema(params), open_ledger(params)
    table, column = read_source(source_path(params), schema, params.ingest.split.column)
    parts = split_parts(params, schema, table, column)
    write_private(table.assign(**{SPLIT: parts}), TABLE)
    digest = typed_digest(table[parts == "train"], schema, ledger.key)
    write_json(IDENTITY, identity_card(params, digest, num_records=int((parts == "train").sum())))


if __name__ == "__main__":
    run_stage("ingest", main)
