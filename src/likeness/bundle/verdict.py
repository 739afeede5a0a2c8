"""The result of a check: right, wrong with a reason, or not testable here."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from likeness.core.errors import LikenessError, MissingPackageError
from likeness.core.text import LONGEST as MOST_WORDS
from likeness.core.text import excerpt

__all__ = ["MOST_WORDS", "VERSION", "Check", "Untestable", "Wrong", "require", "run_check"]

T = TypeVar("T")

VERSION = (
    r"[0-9]{1,8}(?:\.[0-9]{1,8}){0,4}(?:(?:a|b|rc|\.post|\.dev)[0-9]{1,14}){0,3}"
    r"(?:\+[0-9A-Za-z]{0,14}(?:[._-][0-9A-Za-z]{1,14}){0,3})?"
)
"""Pattern of a library's version, as PEP 440 writes it. Anything may stand behind its plus."""
_MOST_REASON = 2000  # characters
_MEMORY = re.compile("alloc|memory|too big|too large|maximum allowed|overflow", re.IGNORECASE)


@dataclass(frozen=True)
class Check:
    """One line of the verdict; ``passed`` is None where the check could not run."""

    name: str
    passed: bool | None
    text: str


class Wrong(Exception):  # noqa: N818 (a verdict about a file, and no error of the program)
    """A check that did not pass, with the reason."""


class Untestable(Exception):  # noqa: N818 (as Wrong)
    """A check that cannot run here, with the reason."""


def require(condition: bool, reason: str) -> None:
    """Raise :class:`Wrong` for a reason, unless the condition holds."""
    if not condition:
        raise Wrong(reason)


def run_check(name: str, check: Callable[[T], str], bundle: T) -> Check:
    """Run a check on a bundle. Its text is one line without controls: a stranger wrote parts of the bundle."""
    try:
        passed, text = True, check(bundle)
    except (Untestable, MissingPackageError) as reason:
        passed, text = None, str(reason)
    except (Wrong, LikenessError) as reason:
        passed, text = False, str(reason)
    except Exception as error:  # any error that a stranger's file causes is a verdict about the file
        if _needs_memory(error):
            passed, text = None, "it needs more memory than there is. Run the check on a larger machine"
        else:
            passed, text = False, f"cannot be read ({type(error).__name__}: {excerpt(error)})"
    return Check(name, passed, excerpt(text, _MOST_REASON))


def _needs_memory(error: Exception) -> bool:
    """Tell whether an array did not fit: numpy and torch say so by several errors."""
    worded = isinstance(error, RuntimeError | ValueError) and not isinstance(error, RecursionError)
    return isinstance(error, MemoryError | OverflowError) or (worded and bool(_MEMORY.search(str(error))))
