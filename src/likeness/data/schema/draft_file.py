"""A schema file as a person reads it: one line a column, or one line a key where a comment asks for more."""

import json
import re
from collections.abc import Mapping
from typing import Any

from likeness.data.booleans import FALSE_WORDS, TRUE_WORDS

Comments = Mapping[tuple[str, str], str]
"""Comments by column and key; the column is empty for keys of the table."""
GUESSED = "# from the data: confirm from public knowledge"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ .-][A-Za-z0-9_]+)*", re.ASCII)
_WORDS_OF_YAML = ("null", "true", "false")
_OTHER_TRUTHS = (*FALSE_WORDS, *TRUE_WORDS, "on", "off")  # texts here, but not to every reader of YAML
_TABLES = ("columns", "people", "events")  # sections of a schema that hold columns
_DRAFT = (
    "# A DRAFT that a person completes. It becomes PUBLIC: all of it must be public knowledge, from a codebook,",
    "# a law, a questionnaire, never from the rows. Answer every question (# ?), confirm every guessed kind,",
    "# and run: likeness check. docs/own-data.md says what each key means.",
    "# One answer to every question of nullable: likeness init --nullable none, or all, or NAME,NAME.",
)
_COMPLETED = (
    "# PUBLIC: all of it must be public knowledge, from a codebook, a law, a questionnaire, never from the rows.",
    "# docs/own-data.md says what each key means.",
)


def schema_yaml(content: Mapping[str, Any], comments: Comments | None = None) -> str:
    """The text of a schema file.

    Args:
        content: of the file, of a table or of histories.
        comments: of a draft; None: the schema is complete.
    """
    said = {place: f"  {comment}" for place, comment in (comments or {}).items()}
    lines = list(_COMPLETED if comments is None else _DRAFT)
    for key, value in content.items():
        if key not in _TABLES:
            lines.append(f"{key}: {_value(value)}{said.get(('', key), '')}")
            continue
        lines.append(f"{key}:")
        for name, spec in value.items():
            if any((name, each) in said for each in spec):
                lines.append(f"  {_key(name)}:")
                lines += [f"    {each}: {_value(item)}{said.get((name, each), '')}" for each, item in spec.items()]
            else:
                lines.append(f"  {_key(name)}: {_value(spec)}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    """A name in YAML, in quotes unless every reader takes it as text."""
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS_OF_YAML:
        return name
    return json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """A value on one line: like JSON, which is YAML, with fewer quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.lower() in _OTHER_TRUTHS else _key(value)
    return json.dumps(value)
