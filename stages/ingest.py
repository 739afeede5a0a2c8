"""ingest: read the source against the public schema, type it, split it, bound the rows of each person.

Reads: the private source, data/schema. Writes: data/private/table.parquet. Spends: nothing.
"""

from pathlib import Path
from typing import Any

from likeness.config.params import Params
from likeness.core.paths import TABLE
from likeness.data.private_tables import write_private_chunks
from likeness.data.source.row_digests import SourceDigest
from likeness.pipeline.card import card
from likeness.pipeline.ingest import training_digest, typed_rows
from likeness.pipeline.open_ledger import open_ledger
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.schema import open_schema
from likeness.pipeline.source import engine


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
