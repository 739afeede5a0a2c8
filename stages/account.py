"""account: compose what was really released, and state it.

Reads: data/released, data/plan, data/models/generator, data/synthetic, the ledger.
Writes: reports/privacy.json, reports/PRIVACY_STATEMENT.md. Spends: nothing.
Runs every time, because the ledger is not a file that DVC may know.
"""

from likeness.config.params import Params
from likeness.core.errors import LikenessError
from likeness.core.paths import PLAN, PRIVACY, REPORT, STATEMENT, read_json, write_json
from likeness.pipeline.account import account
from likeness.pipeline.open_ledger import open_ledger
from likeness.pipeline.run_stage import run_stage
from likeness.privacy.plan import Plan
from likeness.report.statement import statement


def main(params: Params) -> None:
    """Fail if the total exceeds the target, or ledger, releases, generator and table do not belong together."""
    try:
        privacy = account(params, Plan.from_dict(read_json(PLAN)), open_ledger(params))
    except LikenessError:
        for path in (PRIVACY, STATEMENT, REPORT):
            path.unlink(missing_ok=True)  # a refusal must not leave what an earlier run stated
        raise
    write_json(PRIVACY, privacy)
    STATEMENT.write_text(statement(privacy))


if __name__ == "__main__":
    run_stage("account", main)
