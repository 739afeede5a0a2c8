"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from likeness.artifacts import TABLE, load_schema, open_ledger
from likeness.data.digests import typed_digest
from likeness.data.tables import write_private
from likeness.params import Params
from likeness.rows import SPLIT, card, source_rows, used_rows
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Write the typed table with its split, and on its card the keyed digest of its training rows."""
    schema, ledger = load_schema(params), open_ledger(params)
    table = used_rows(params, schema, *source_rows(params, schema))
    train = table[table[SPLIT] == "train"]
    digest = typed_digest(train, schema, ledger.key)
    write_private(table, TABLE, card(params, ledger.id, digest, len(train)))


if __name__ == "__main__":
    run_stage("ingest", main)
