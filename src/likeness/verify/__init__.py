"""The verifier: it computes again all that it can, and believes nothing else in a bundle.

It needs no ledger and no private file. Plan and queries come from the settings, sensitivities from the maps'
specifications, and ε from dp-accounting, or from autodp where dp-accounting is missing. The account comes from receipts
and ledger, the generator from the released values, and the table from the generator. A check that cannot run says so,
and does not count as passed.
"""

from collections.abc import Collection
from pathlib import Path

from likeness.bundle.verdict import Check
from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths
from likeness.core.text import excerpt
from likeness.core.typed import check_allowed
from likeness.verify.process import checks_within

__all__ = ["MOST_MINUTES", "Check", "verify"]

MOST_MINUTES = 120.0
"""Minutes that all checks of a bundle may take, unless the verifier allows more."""


def verify(
    path: Path, retrain: bool = False, most_minutes: float = MOST_MINUTES, trusted: Collection[str] = ()
) -> list[Check]:
    """Run all checks of a bundle, in a process of their own: a stranger's bundle may ask for any amount of work.

    Args:
        path: a folder or a zip file.
        retrain: train the generator again from the released values. Else a check says that its weights are believed.
        most_minutes: for all checks together. Those that need more time, or more memory than there is, are not tested.
        trusted: plug-ins whose code may run. Without it, checks that need a plug-in are not tested.

    Raises:
        ArtifactError: the path is missing, is a project or no bundle, or holds a file that is not regular.
        ParamsError: a trusted plug-in is not installed.
    """
    if trusted:
        from likeness.methods import plugins  # a verdict needs none of it in this process

        for name in trusted:
            check_allowed("trusted", name, plugins.installed_names())
    if ProjectPaths(path).params.exists():
        remedy = "Run `likeness bundle FILE.zip` there, and verify FILE.zip."
        raise ArtifactError(f"{excerpt(path)} is a project, no bundle. {remedy}")
    done, reason = checks_within(path, retrain, most_minutes, trusted)
    if reason is None:
        return done
    from likeness.verify.checks import CHECKS  # as above

    first, *others = list(CHECKS)[len(done) :]
    return [*done, Check(first, None, reason), *(Check(name, None, f"not done: see {first}") for name in others)]
