"""account: compose all releases of the run, and state the guarantee.

Reads: data/released, data/plan, data/models/generator, data/synthetic, the ledger.
Writes: reports/privacy.json, reports/PRIVACY_STATEMENT.md. Spends: nothing.
Runs every time, because the ledger is not a file that DVC may know.
"""

from likeness.core.errors import LikenessError
from likeness.core.paths import write_json
from likeness.pipeline.account import account
from likeness.pipeline.project import Project
from likeness.report.statement import statement


def main(project: Project) -> None:
    """Fail if the total exceeds the target, or if ledger, releases, generator and table do not belong together."""
    paths = project.paths
    try:
        privacy = account(project)
    except LikenessError:
        for path in (paths.privacy, paths.statement, paths.report):
            path.unlink(missing_ok=True)  # a refusal must not leave what an earlier run stated
        raise
    write_json(paths.privacy, privacy)
    paths.statement.write_bytes(statement(privacy).encode())
