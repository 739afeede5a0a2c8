"""What a check says: right, wrong with a reason, or that it cannot be made here."""

from dataclasses import dataclass

MOST_WORDS = 200
"""Characters of a text that a person chose."""
VERSION = "[0-9][0-9A-Za-z.+!_-]{0,40}"
"""How a library's version is written."""


@dataclass(frozen=True)
class Check:
    """One line of the verdict. ``passed`` is None where the check could not be made."""

    name: str
    passed: bool | None
    text: str


class Wrong(Exception):
    """A check that did not pass, with the reason."""


class Untestable(Exception):
    """A check that cannot be made here, with the reason."""


def require(condition: bool, reason: str) -> None:
    """Raise :class:`Wrong` for a reason, unless the condition holds."""
    if not condition:
        raise Wrong(reason)
