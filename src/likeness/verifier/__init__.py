"""The verifier: believes nothing in a bundle that it can compute.

It needs no ledger, no private file and no autodp: sensitivities come from the maps' specifications, ε from
dp-accounting, the table from the generator. A check that cannot be made says so and is not counted as passed.
"""

from collections.abc import Callable
from pathlib import Path

from likeness.errors import LikenessError
from likeness.verifier import bins, files, ledger, noise, outputs, receipts, scales
from likeness.verifier.files import Bundle, opened
from likeness.verifier.outputs import draw
from likeness.verifier.verdict import Check, Untestable, Wrong

__all__ = ["CHECKS", "Check", "draw", "opened", "verify"]

CHECKS: dict[str, Callable[[Bundle], str]] = {
    "files": files.files,
    "checksums": files.checksums,
    "sensitivity": receipts.sensitivity,
    "epsilon": receipts.epsilon,
    "account": receipts.account,
    "statement": outputs.texts,
    "ledger chain": ledger.chain,
    "ledger entries": ledger.entries,
    "noise": noise.noise,
    "bins": bins.bins,
    "scales": scales.scales,
    "generator": outputs.generator,
    "table": outputs.table,
}
"""Each check says in a sentence what it found, or raises; in the order of the verdict."""


def verify(path: Path) -> list[Check]:
    """All checks of a bundle, a folder or a zip file.

    Raises:
        ArtifactError: there is nothing at the path, or it is neither.
    """
    with opened(path) as folder:
        return [_one(name, check, Bundle(folder)) for name, check in CHECKS.items()]


def _one(name: str, check: Callable[[Bundle], str], bundle: Bundle) -> Check:
    try:
        return Check(name, True, check(bundle))
    except Untestable as reason:
        return Check(name, None, str(reason))
    except (Wrong, LikenessError) as reason:
        return Check(name, False, str(reason))
    except (
        OSError,
        KeyError,
        IndexError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        MemoryError,
        RuntimeError,
    ) as error:
        return Check(name, False, f"cannot be read ({type(error).__name__}: {error})")
