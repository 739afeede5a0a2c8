"""account: compose all releases of the run, and state the guarantee.

The ledger is no file that DVC may know: ``fingerprint`` tells of its changes. A clone without one checks what is here.
"""

from likeness.core.paths import write_json
from likeness.pipeline.account import account, account_elsewhere
from likeness.pipeline.project import Project
from likeness.release.released import ledger_is_absent
from likeness.report.statement import statement


def main(project: Project) -> None:
    """Fail if the total exceeds the target, or if ledger, releases, generator and table do not belong together."""
    paths, ledger = project.paths, project.params.ledger.location(project.root)
    try:
        is_elsewhere = project.frames is None and ledger_is_absent(*ledger)  # a caller's rows are spent on here
        privacy = account_elsewhere(project) if is_elsewhere else account(project)
    except BaseException:
        for path in (paths.privacy, paths.statement, paths.report):
            path.unlink(missing_ok=True)  # what an earlier run stated must not stay
        raise
    write_json(paths.privacy, privacy)
    paths.statement.write_bytes(statement(privacy).encode())
