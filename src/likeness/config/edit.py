"""Values of params.yaml changed in place: other lines and their comments stay as they are."""

import io
from collections.abc import Mapping
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from likeness.config.explain import yaml_value
from likeness.config.load import section_in
from likeness.core.errors import ParamsError
from likeness.core.hashing import json_value
from likeness.core.paths import ProjectPaths
from likeness.core.yaml import parse_yaml

_PARAMS = ProjectPaths.params
_QUESTION = "# ? "
_NULL = "tag:yaml.org,2002:null"  # the library would write nothing
_COLUMN = 34  # where a new comment begins


def edit_text(text: str, changes: Mapping[str, Any], questions: Mapping[str, str]) -> str:
    """The text with other values. A new key stands before the last one: comments below a section may not be its own.

    Args:
        text: of params.yaml.
        changes: values by dotted name.
        questions: what a person must decide, by dotted name. The comment of that key becomes a question.

    Raises:
        ParamsError: two sections are one by an alias, a section is none, or the text is not YAML.
    """
    writer, wanted = YAML(), json_value(parse_yaml(text, _PARAMS, ParamsError))  # a copy without aliases
    writer.width, writer.preserve_quotes = 2**31, True
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.representer.add_representer(type(None), lambda dumper, _: dumper.represent_scalar(_NULL, "null"))
    content, written = writer.load(text), io.StringIO()
    for name, value in changes.items():
        *path, last = name.split(".")
        section, goal = content, wanted
        section.fa.set_block_style()  # comments need lines
        for key in path:
            goal[key] = section_in(goal, key)
            section, goal = _put(section, key, section.get(key) or CommentedMap()), goal[key]
            section.fa.set_block_style()
        goal[last] = value
        _put(section, last, writer.load(yaml_value(value)))
        _ask(section, last, questions.get(name, ""))
    writer.dump(content, written)
    if yaml.safe_load(written.getvalue()) != wanted:
        names = ", ".join(sorted({name.partition(".")[0] for name in changes}))
        raise ParamsError(f"params.yaml: write out what stands behind an alias in {names}.")
    return written.getvalue()


def _put(section: CommentedMap, key: str, value: Any) -> Any:
    if key not in section:
        section.insert(max(0, len(section) - 1), key, value)
    section[key] = value
    return value


def _ask(section: CommentedMap, key: str, question: str) -> None:
    """Make the comment of a key a question, or no question."""
    token = section.ca.items[key][2] if key in section.ca.items else None
    comment, end, rest = ("", "", "") if token is None else token.value.partition("\n")
    comment = comment.replace(_QUESTION, "# ", 1)
    if question:
        comment = f"{_QUESTION}{comment.removeprefix('#').lstrip() or question}"
    if token is not None:
        token.value = comment + end + rest
    elif comment:
        section.yaml_add_eol_comment(comment, key, column=_COLUMN)
