"""privatize: release the embedding, in one pass.

Reads: data/plan, data/released/categories, data/released/auxiliary, data/private.
Writes: data/released/embedding.safetensors. Spends: the plan's embedding share.
"""

from likeness.config.params import Params
from likeness.core.paths import AUXILIARY, EMBEDDING, PLAN, read_json
from likeness.pipeline.open_ledger import open_ledger_to_spend
from likeness.pipeline.private_rows import private_rows
from likeness.pipeline.project import context, method
from likeness.pipeline.provenance import provenance
from likeness.pipeline.released import category_files
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.source import engine
from likeness.privacy.plan import Plan
from likeness.release.door import release
from likeness.release.released import check_known, load_folder


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
