"""privatize: release the embedding, in one pass.

Reads: data/plan, data/released/auxiliary, data/private. Writes: data/released/embedding.safetensors.
Spends: the plan's embedding share.
"""

from likeness.artifacts import (
    AUXILIARY,
    EMBEDDING,
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
from likeness.release.released import check_known, load_folder
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Ask the door for the embedding."""
    check_known(sorted(AUXILIARY.glob("*.safetensors")), params.ledger.home)
    query = method(params).embedding_query(context(params), load_folder(AUXILIARY))
    plan, rows = Plan.from_dict(read_json(PLAN)), training_records(load_schema(params))
    EMBEDDING.write_bytes(release(query, plan, dataset(params), open_ledger(params), rows, provenance()))


if __name__ == "__main__":
    run_stage("privatize", main)
