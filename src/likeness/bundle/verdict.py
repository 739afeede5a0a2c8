"""The result of a check: right, wrong with a reason, or not testable here."""

from dataclasses import dataclass

MOST_WORDS = 200
"""Most characters of a text that a person chose."""
VERSION = "[0-9][0-9A-Za-z.+!_-]{0,40}"
"""Pattern of a library's version."""


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
