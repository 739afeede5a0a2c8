"""The verifier: believes nothing in a bundle that it can compute.

It needs no ledger, no private file and no autodp. Plan and queries come from the settings, sensitivities from the maps'
specifications, ε from dp-accounting, the account from receipts and ledger, the generator from the released values, the
table from the generator. A check that cannot be made says so and is not counted as passed.
"""

from collections.abc import Callable
from pathlib import Path

from likeness.core.errors import LikenessError
from likeness.verify import files, ledger, noise, outputs, receipts
from likeness.verify.files import Bundle, opened
from likeness.verify.outputs import draw
from likeness.verify.verdict import Check, Untestable, Wrong

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
}
"""Each check says in a sentence what it found, or raises; in the order of the verdict."""


FIRST = dict.fromkeys(("training", "table"), ("form", "plan", "ledger entries", "generator"))
"""Checks that compute for long are made only where these are not wrong: a hostile setting could ask for anything."""


def verify(path: Path, retrain: bool = False) -> list[Check]:
    """All checks of a bundle.

    Args:
        path: a folder or a zip file.
        retrain: train the generator again from the released values; else its weights are believed, and a check says so.

    Raises:
        ArtifactError: there is nothing at the path, it is no bundle, or it holds what is no regular file.
    """
    with opened(path) as folder:
        first = _one("files", files.files, Bundle(folder))
        if not first.passed:  # what does not belong is not looked into
            return [first, *(Check(name, None, "not made: see files") for name in list(CHECKS)[1:])]
        verdict = {"files": first}
        for name, check in list(CHECKS.items())[1:]:
            wrong = [other for other in FIRST.get(name, ()) if verdict[other].passed is False]
            if wrong:
                verdict[name] = Check(name, None, f"not made: see {', '.join(wrong)}")
            else:
                verdict[name] = _one(name, check, Bundle(folder, retrain))
        return list(verdict.values())


def _one(name: str, check: Callable[[Bundle], str], bundle: Bundle) -> Check:
    try:
        return Check(name, True, check(bundle))
    except Untestable as reason:
        return Check(name, None, str(reason))
    except (Wrong, LikenessError) as reason:
        return Check(name, False, str(reason))
    except Exception as error:  # whatever a stranger's file makes of our code is a verdict about the file
        return Check(name, False, f"cannot be read ({type(error).__name__}: {error})")
