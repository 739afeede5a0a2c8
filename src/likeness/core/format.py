"""The format of plans, receipts, ledgers and bundles: what a reader must know, and what it refuses by name."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from likeness.core.errors import ArtifactError

FORMAT = 0
"""0 while format 1 is open: version 0.1.0 seals it, and no file of format 0 is read as format 1."""
RECIPE = 1
"""How settings and rows become a release. It is part of plan, receipt and key, and a project keeps that of its first
release. Raise it when the same settings ask another query, when equal schema and rows give other vectors, or when the
same query on the same vectors gives another sum, but for rounding that no noise would let through."""
COHORT = "[1-9][0-9]{0,4}-[1-9][0-9]{0,4}"
"""Pattern of a composition group: first and last night of a cohort (:mod:`likeness.privacy.cohorts`)."""
COUNTED = re.compile(r"(?:postgres|spark) [0-9a-f]{64}", re.ASCII)
"""A backend that counts the rows in their database, and SHA-256 of SQL or of a pass that gives the counts."""
HERE = "local"
"""The backend that counts rows in this process."""
KNOWN: dict[str, Any] = {
    "format": FORMAT,
    "recipe": RECIPE,
    "group": re.compile(f"|{COHORT}"),
    "backend": re.compile(f"{HERE}|{COUNTED.pattern}", re.ASCII),
}
"""The values that this version reads, or their pattern. ``group``: of releases whose costs do not add up; empty for a
release about everybody. ``backend``: what counts the rows: :data:`HERE`, or a database by :data:`COUNTED`."""


class Content(dict[str, Any]):
    """A mapping of a JSON file. A key that it lacks is refused in words."""

    def __init__(self, value: Mapping[str, Any], where: str) -> None:
        """Take the keys of a mapping; ``where`` names its file, for messages."""
        super().__init__(value)
        self.where = where

    def __missing__(self, key: str) -> Any:
        """Refuse a file of another version."""
        fault = f"key '{key}' of format {FORMAT} is missing"
        raise ArtifactError(f"{self.where}: {fault}. Install the Likeness that wrote it.")


def json_content(text: str | bytes, where: str) -> Any:
    """A value of a JSON file, its mappings as :class:`Content`.

    Args:
        text: the JSON.
        where: name of the file, for messages.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(text, object_hook=lambda value: Content(value, where))


def check_known(value: Mapping[str, Any], keys: Iterable[str], where: str, error: type[Exception]) -> None:
    """Refuse what another version of Likeness wrote, by the name of what is unknown.

    Args:
        value: what was read; ``requires`` lists the parts that a reader must know.
        keys: those of :data:`KNOWN` that it must have.
        where: its file or record.
        error: the kind of refusal.

    Raises:
        Exception: of this kind.
    """
    unknown = [f"{key} {value.get(key)!r}" for key in keys if not _is_known(KNOWN[key], value.get(key))]
    unknown += [f"part {part!r}" for part in value.get("requires", ())]
    if unknown:
        raise error(f"{where}: this version does not know {unknown[0]}. Install the Likeness that wrote it.")


def _is_known(expected: Any, value: Any) -> bool:
    if isinstance(expected, re.Pattern):
        return type(value) is str and expected.fullmatch(value) is not None
    return repr(value) == repr(expected)
