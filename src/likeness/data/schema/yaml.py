"""Schema files: YAML read, and written as a person reads it. Nothing is checked."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from likeness.core.errors import SchemaError
from likeness.core.yaml import UniqueKeys, read_yaml
from likeness.data.schema.dtypes import FALSE_WORDS, TRUE_WORDS

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


def read_mapping(path: str | Path, aliases: bool = True) -> Any:
    """Content of a schema file, unchecked. ``aliases``: whether a value may repeat another by its name.

    Raises:
        SchemaError: the file cannot be read, or is not YAML.
    """
    return read_yaml(Path(path).expanduser(), SchemaError, _CoreLoader if aliases else _PlainLoader)


def schema_text(schema: Any) -> str:
    """A checked schema of a table or of histories; :func:`likeness.pipeline.datasets.read_schema` reads it back."""
    content = schema.to_dict()
    for table in set(content) & set(_TABLES):
        content[table] = {spec["name"]: {key: spec[key] for key in spec if key != "name"} for spec in content[table]}
    return schema_yaml(content)


def schema_yaml(content: Mapping[str, Any], comments: Comments | None = None) -> str:
    """The text of a schema file, of a table or of histories; with comments, of a draft."""
    notes = {path: f"  {comment}" for path, comment in (comments or {}).items()}
    lines = list(_COMPLETED if comments is None else _DRAFT)
    for key, value in content.items():
        if key not in _TABLES:
            lines.append(f"{key}: {_value(value)}{notes.get(('', key), '')}")
            continue
        lines.append(f"{key}:")
        for name, spec in value.items():
            if any((name, each) in notes for each in spec):
                lines.append(f"  {_key(name)}:")
                lines += [f"    {each}: {_value(item)}{notes.get((name, each), '')}" for each, item in spec.items()]
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


class _CoreLoader(UniqueKeys):
    """Safe YAML with the scalars of YAML 1.2: ``No``, ``007`` and ``1994-03-01`` stay text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (yaml's own class attribute, emptied here)


for _tag, _pattern, _first in (
    ("null", r"(?:~|null|)$", ["~", "n", ""]),
    ("bool", r"(?:true|false)$", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


class _PlainLoader(_CoreLoader):
    """YAML without aliases: a few hundred bytes of them can stand for more values than memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            rule = (
                f"*{event.anchor} repeats another value. A schema in a bundle has no aliases: write the value in full"
            )
            raise yaml.composer.ComposerError(None, None, rule, event.start_mark)
        return super().compose_node(parent, index)
