"""auxiliary: release the private statistics that the method asks for first.

Reads: data/plan, data/private. Writes: data/released/auxiliary/*.safetensors. Spends: the plan's auxiliary shares.
"""

from likeness.artifacts import (
    AUXILIARY,
    PLAN,
    context,
    dataset,
    load_schema,
    method,
    open_ledger,
    provenance,
    read_json,
    training_records,
)
from likeness.params import Params
from likeness.privacy.plan import Plan
from likeness.release.door import release
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Ask the door for each auxiliary query."""
    plan, ledger, rows = Plan.from_dict(read_json(PLAN)), open_ledger(params), training_records(load_schema(params))
    AUXILIARY.mkdir(parents=True, exist_ok=True)
    for query in method(params).auxiliary_queries(context(params)):
        data = release(query, plan, dataset(params), ledger, rows, provenance())
        (AUXILIARY / f"{query.name}.safetensors").write_bytes(data)


if __name__ == "__main__":
    run_stage("auxiliary", main)
