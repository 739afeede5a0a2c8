"""The verifier: it computes again all that it can, and believes nothing else in a bundle.

It needs no ledger and no private file. Plan and queries come from the settings, sensitivities from the maps'
specifications, and ε from dp-accounting, or from autodp where dp-accounting is missing. The account comes from receipts
and ledger, the generator from the released values, and the table from the generator. A check that cannot run says so,
and does not count as passed.
"""

from collections.abc import Callable
from pathlib import Path

from likeness.bundle import files
from likeness.bundle.files import Bundle, opened
from likeness.bundle.verdict import Check, Untestable, Wrong
from likeness.core.errors import LikenessError, MissingPackageError
from likeness.synthesizer.published import draw
from likeness.verify import ledger, noise, outputs, receipts

__all__ = ["CHECKS", "Check", "draw", "opened", "verify"]

CHECKS: dict[str, Callable[[Bundle], str]] = {
    "files": files.files,
    "checksums": files.checksums,
    "form": files.form,
    "plan": receipts.plan,
    "sensitivity": receipts.sensitivity,
    "epsilon": receipts.epsilon,
    "account": receipts.account,
    "statement": outputs.texts,
    "ledger chain": ledger.chain,
    "ledger entries": ledger.entries,
    "lifetime": ledger.lifetime,
    "noise": noise.noise,
    "generator": outputs.generator,
    "training": outputs.training,
    "table": outputs.table,
    "card": outputs.card,
    "rules": outputs.rules,
}
"""Each check returns one sentence, or raises. The order is that of the verdict."""


FIRST = {
    **dict.fromkeys(("training", "table"), ("form", "plan", "ledger entries", "generator")),
    "card": ("form", "plan", "ledger entries", "generator", "table"),
}
"""Checks that a long computation waits for: a hostile setting could ask for anything."""


def verify(path: Path, retrain: bool = False) -> list[Check]:
    """Run all checks of a bundle.

    Args:
        path: a folder or a zip file.
        retrain: train the generator again from the released values. Else a check says that its weights are believed.

    Raises:
        ArtifactError: the path is missing, is no bundle, or holds a file that is not regular.
    """
    with opened(path) as folder:
        first = _one("files", files.files, Bundle(folder))
        if not first.passed:  # no other check reads files that do not belong
            return [first, *(Check(name, None, "not done: see files") for name in list(CHECKS)[1:])]
        verdict = {"files": first}
        for name, check in list(CHECKS.items())[1:]:
            wrong = [other for other in FIRST.get(name, ()) if verdict[other].passed is False]
            if wrong:
                verdict[name] = Check(name, None, f"not done: see {', '.join(wrong)}")
            else:
                verdict[name] = _one(name, check, Bundle(folder, retrain))
        return list(verdict.values())


def _one(name: str, check: Callable[[Bundle], str], bundle: Bundle) -> Check:
    try:
        return Check(name, True, check(bundle))
    except (Untestable, MissingPackageError) as reason:
        return Check(name, None, str(reason))
    except (Wrong, LikenessError) as reason:
        return Check(name, False, str(reason))
    except Exception as error:  # any error that a stranger's file causes is a verdict about the file
        return Check(name, False, f"cannot be read ({type(error).__name__}: {error})")
