"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from pathlib import Path
from typing import Any

from likeness.artifacts import TABLE, engine, open_ledger, open_schema
from likeness.data.digests import SourceDigest
from likeness.data.tables import write_private_chunks
from likeness.ingestion import training_digest, typed_rows
from likeness.params import Params
from likeness.rows import card
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Write the typed table with its split, and on its card keyed digests of its training rows and of the source."""
    schema, ledger = open_schema(params), open_ledger(params)
    source = SourceDigest(SourceDigest.key_of(ledger.key))

    def made(written: Path) -> dict[str, Any]:
        return card(params, ledger.id, *training_digest(written, params, schema, ledger), source.digest())

    with engine(params) as own:
        write_private_chunks(typed_rows(params, schema, own, source), TABLE, made)


if __name__ == "__main__":
    run_stage("ingest", main)
