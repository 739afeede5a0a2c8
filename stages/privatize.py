"""privatize: release the embedding, in one pass.

Reads: data/plan, data/released/categories, data/released/auxiliary, data/private.
Writes: data/released/embedding.safetensors. Spends: the plan's embedding share.
"""

from likeness.artifacts import (
    AUXILIARY,
    EMBEDDING,
    PLAN,
    category_files,
    context,
    engine,
    method,
    open_ledger_to_spend,
    provenance,
    read_json,
)
from likeness.params import Params
from likeness.privacy.plan import Plan
from likeness.release.door import release
from likeness.release.released import check_known, load_folder
from likeness.rows import private_rows
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Ask the door for the embedding."""
    check_known([*category_files(), *sorted(AUXILIARY.glob("*.safetensors"))], params.ledger.home, params.ledger.url)
    query = method(params).embedding_query(context(params), load_folder(AUXILIARY))
    plan, ledger = Plan.from_dict(read_json(PLAN)), open_ledger_to_spend(params)
    dataset, read = private_rows(params, ledger.id)
    with engine(params) as own:
        EMBEDDING.write_bytes(release(query, plan, dataset, ledger, read, provenance(params), own))


if __name__ == "__main__":
    run_stage("privatize", main)
