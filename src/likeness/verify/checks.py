"""All checks of the verifier, in their order, and the program that makes them in a process of its own."""

import json
import math
import os
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from likeness.bundle import files
from likeness.bundle.files import Bundle, open_bundle
from likeness.bundle.verdict import Check, run_check
from likeness.core.errors import ArtifactError
from likeness.core.files import machine_memory
from likeness.core.messages import show_messages
from likeness.methods import plugins
from likeness.verify import account, ledger, noise, outputs, receipts

__all__ = ["CHECKS", "checks_of", "send"]

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
    "table": outputs.table,
    "rules": outputs.rules,
    "training": outputs.training,
}
"""Each check returns one sentence, or raises. The training, which may take longest, is last."""

_LEDGER = ("ledger chain", "ledger entries", "ledger costs")
FIRST = {
    **dict.fromkeys(("epsilon", "noise"), ("sensitivity",)),
    **dict.fromkeys(("ledger entries", "ledger costs", "lifetime"), ("ledger chain",)),
    "account": ("plan", "sensitivity", "epsilon", *_LEDGER),
    "statement": ("account",),
    **dict.fromkeys(("training", "table"), ("form", "plan", *_LEDGER, "generator")),
}
"""Checks that must not be wrong before another: its numbers come from theirs, or it computes whatever settings ask."""


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
    for name in CHECKS:
        earlier = [verdict[other] for other in ("files", *FIRST.get(name, ())) if other in verdict]
        wrong = [other.name for other in earlier if other.passed is False]
        if wrong:  # no check reads files that do not belong
            verdict[name] = Check(name, None, f"not done: see {', '.join(wrong)}")
        else:
            with plugins.only(trusted):
                verdict[name] = run_check(name, CHECKS[name], bundle)
        yield verdict[name]


def send(path: str, retrain: bool, most_minutes: float, shows: bool, trusted: Collection[str]) -> None:
    """Make the checks in a started process, and write each to the standard output, where nothing else is written.

    A text in place of a check says why the path is no bundle.
    """
    if shows:
        show_messages()
    _bound_memory()
    with os.fdopen(os.dup(1), "w") as sent:
        os.dup2(2, 1)
        try:
            with open_bundle(Path(path)) as folder:
                for check in checks_of(folder, retrain, most_minutes, trusted):
                    sent.write(json.dumps([check.name, check.passed, check.text]) + "\n")
                    sent.flush()
        except ArtifactError as error:
            sent.write(json.dumps(str(error)) + "\n")


def _bound_memory() -> None:
    """Let no array be larger than the memory of the machine: else the system would end other processes, too."""
    most = machine_memory()
    if most < math.inf and find_spec("resource") is not None:
        limits = import_module("resource")
        _, hard = limits.getrlimit(limits.RLIMIT_DATA)
        soft = int(most) if hard == limits.RLIM_INFINITY else min(int(most), hard)
        limits.setrlimit(limits.RLIMIT_DATA, (soft, hard))
