"""categories: release the categories of columns where the schema calls them private.

Reads: data/plan, data/private/table.parquet. Writes: data/released/categories. Spends: categories.share of rho and
categories.delta_share of delta; nothing where the schema lists all categories.
"""

from likeness.config.params import Params
from likeness.core.paths import CATEGORIES, write_json
from likeness.pipeline.open_ledger import open_ledger_to_spend
from likeness.pipeline.private_rows import private_keys
from likeness.pipeline.project import load_plan
from likeness.pipeline.provenance import provenance
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.schema import open_schema
from likeness.release.door import release_keys
from likeness.release.keys import key_queries


def main(params: Params) -> None:
    """Ask the door for the keys of each open column."""
    schema, plan = open_schema(params), load_plan()
    queries = key_queries(schema, plan, params.categories.most)
    for old in CATEGORIES.glob("*.safetensors"):
        old.unlink()
    write_json(CATEGORIES / "columns.json", {query.name: query.column for query in queries})
    if not queries:
        return
    ledger = open_ledger_to_spend(params)
    dataset, read = private_keys(params, ledger.id)
    for query in queries:
        data = release_keys(query, plan, dataset, ledger, read(query.column), provenance(params))
        (CATEGORIES / f"{query.name}.safetensors").write_bytes(data)


if __name__ == "__main__":
    run_stage("categories", main)
