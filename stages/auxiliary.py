"""auxiliary: release the private statistics that the method asks for first.

Reads: data/plan, data/released/categories, data/private. Writes: data/released/auxiliary/*.safetensors.
Spends: the plan's auxiliary shares.
"""

from likeness.config.params import Params
from likeness.core.paths import AUXILIARY
from likeness.pipeline.open_ledger import open_ledger_to_spend
from likeness.pipeline.private_rows import private_rows
from likeness.pipeline.project import context, load_plan, method
from likeness.pipeline.provenance import provenance as who
from likeness.pipeline.released import check_categories
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.source import engine
from likeness.release.door import release
from likeness.release.query import Query
from likeness.release.released import Released, from_bytes


def main(params: Params) -> None:
    """Ask the door for each auxiliary query in turn: it may depend on the answers before it."""
    check_categories(params)
    plan, ledger = load_plan(), open_ledger_to_spend(params)
    dataset, read = private_rows(params, ledger.id)
    AUXILIARY.mkdir(parents=True, exist_ok=True)

    def answer(query: Query) -> Released:
        data = release(query, plan, dataset, ledger, read, who(params), own)
        (AUXILIARY / f"{query.name}.safetensors").write_bytes(data)
        return from_bytes(data, query.name)

    with engine(params) as own:
        method(params).ask(context(params), answer)


if __name__ == "__main__":
    run_stage("auxiliary", main)
