"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from likeness.artifacts import TABLE, engine, open_ledger, open_schema
from likeness.data.tables import write_private_chunks
from likeness.ingestion import training_digest, typed_rows
from likeness.params import Params
from likeness.rows import card
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Write the typed table with its split, and on its card the keyed digest of its training rows."""
    schema, ledger = open_schema(params), open_ledger(params)
    with engine(params) as own:
        rows = typed_rows(params, schema, own)
        write_private_chunks(
            rows, TABLE, lambda written: card(params, ledger.id, *training_digest(written, schema, ledger.key))
        )


if __name__ == "__main__":
    run_stage("ingest", main)
