"""The verifier: it computes again all that it can, and believes nothing else in a bundle.

It needs no ledger and no private file. Plan and queries come from the settings, sensitivities from the maps'
specifications, and ε from dp-accounting, or from autodp where dp-accounting is missing. The account comes from receipts
and ledger, the generator from the released values, and the table from the generator. A check that cannot run says so,
and does not count as passed.
"""

import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from likeness.bundle import files
from likeness.bundle.files import Bundle, open_bundle
from likeness.bundle.verdict import Check, run_check
from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths
from likeness.core.text import excerpt
from likeness.core.typed import check_allowed
from likeness.methods import plugins
from likeness.verify import account, ledger, noise, outputs, process, receipts

__all__ = ["CHECKS", "MOST_MINUTES", "Check", "checks_of", "verify"]

CHECKS: dict[str, Callable[[Bundle], str]] = {
    "files": files.files,
    "checksums": files.checksums,
    "form": files.form,
    "plan": account.plan,
    "sensitivity": receipts.sensitivity,
    "epsilon": account.epsilon,
    "ledger chain": ledger.chain,
    "ledger entries": ledger.entries,
    "ledger costs": ledger.costs,
    "lifetime": account.lifetime,
    "account": account.account,
    "statement": outputs.texts,
    "noise": noise.noise,
    "generator": outputs.generator,
    "training": outputs.training,
    "table": outputs.table,
    "rules": outputs.rules,
}
"""Each check returns one sentence, or raises. The order is that of the verdict."""

_LEDGER = ("ledger chain", "ledger entries", "ledger costs")
FIRST = {
    **dict.fromkeys(("epsilon", "noise"), ("sensitivity",)),
    **dict.fromkeys(("ledger entries", "ledger costs", "lifetime"), ("ledger chain",)),
    "account": ("plan", "sensitivity", "epsilon", *_LEDGER),
    "statement": ("account",),
    **dict.fromkeys(("training", "table"), ("form", "plan", *_LEDGER, "generator")),
}
"""Checks that must not be wrong before another: its numbers come from theirs, or it computes whatever settings ask."""

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
    for name in trusted:
        check_allowed("trusted", name, plugins.installed_names())
    if ProjectPaths(path).params.exists():
        remedy = "Run `likeness bundle FILE.zip` there, and verify FILE.zip."
        raise ArtifactError(f"{excerpt(path)} is a project, no bundle. {remedy}")
    with open_bundle(path) as folder:
        done, reason = process.checks_within(folder, retrain, most_minutes, trusted)
    verdict = {check.name: check for check in done}
    for name in (name for name in _check_order() if name not in verdict):
        verdict[name] = Check(name, None, reason)
        reason = reason if reason.startswith("not done") else f"not done: see {name}"
    return [verdict[name] for name in CHECKS]


def checks_of(
    folder: Path, retrain: bool = False, most_minutes: float = math.inf, trusted: Collection[str] = ()
) -> Iterator[Check]:
    """Each check of a bundle when it is done, in this process.

    Args:
        folder: a bundle.
        retrain: see :func:`verify`.
        most_minutes: a training with a longer forecast does not start.
        trusted: see :func:`verify`.
    """
    verdict, bundle = dict[str, Check](), Bundle(folder, retrain, most_minutes)
    for name in _check_order():
        earlier = [verdict[other] for other in ("files", *FIRST.get(name, ())) if other in verdict]
        wrong = [other.name for other in earlier if other.passed is False]
        if wrong:  # no check reads files that do not belong
            verdict[name] = Check(name, None, f"not done: see {', '.join(wrong)}")
        else:
            with plugins.only(trusted):
                verdict[name] = run_check(name, CHECKS[name], bundle)
        yield verdict[name]


def _check_order() -> list[str]:
    """The checks in the order in which they are made: the training, which may take longest, is last."""
    return sorted(CHECKS, key=lambda name: name == "training")
