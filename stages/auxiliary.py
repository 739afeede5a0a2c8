"""auxiliary: release the private statistics that the method asks for first.

Reads: data/plan, data/private. Writes: data/released/auxiliary/*.safetensors. Spends: the plan's auxiliary shares.
"""

from likeness.artifacts import AUXILIARY, PLAN, context, method, open_ledger_to_spend, provenance, read_json
from likeness.params import Params
from likeness.privacy.plan import Plan
from likeness.release.door import release
from likeness.rows import private_rows
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Ask the door for each auxiliary query."""
    plan, ledger = Plan.from_dict(read_json(PLAN)), open_ledger_to_spend(params)
    dataset, read = private_rows(params, ledger.id)
    AUXILIARY.mkdir(parents=True, exist_ok=True)
    for query in method(params).auxiliary_queries(context(params)):
        data = release(query, plan, dataset, ledger, read, provenance(params))
        (AUXILIARY / f"{query.name}.safetensors").write_bytes(data)


if __name__ == "__main__":
    run_stage("auxiliary", main)
