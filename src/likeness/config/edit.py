"""Values of params.yaml changed in place: every other line stays as it is, and so does each comment."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from likeness.config.explain import yaml_value
from likeness.core.errors import ParamsError

_QUESTION = "# ? "
_COLUMN = 34  # where a new comment begins


def edited(text: str, changes: Mapping[str, Any], questions: Mapping[str, str]) -> str:
    """The text with other values. A key that it lacks comes at the end of its section.

    Args:
        text: of params.yaml, one key a line.
        changes: values by dotted name.
        questions: what a person must decide, by dotted name. The comment of that key becomes a question.

    Raises:
        ParamsError: a section stands on one line, in braces, or behind an alias.
    """
    wanted = copy.deepcopy(yaml.safe_load(text))
    for name, value in changes.items():
        path = name.split(".")
        text = _with(text, path, value, questions.get(name, ""))
        section = wanted
        for key in path[:-1]:
            section[key] = section.get(key) or {}
            section = section[key]
        section[path[-1]] = value
    try:
        correct = yaml.safe_load(text) == wanted
    except yaml.YAMLError:
        correct = False
    if not correct:
        names = ", ".join(sorted({name.partition(".")[0] for name in changes}))
        raise ParamsError(f"params.yaml: write each key of {names} on a line of its own, without braces and aliases.")
    return text


def _with(text: str, path: Sequence[str], value: Any, question: str) -> str:
    """The text with one value."""
    lines = text.split("\n")
    section: Any = yaml.compose(text)
    for depth, key in enumerate(path):
        pair = next((pair for pair in section.value if pair[0].value == key), None)
        inner = None if pair is None else pair[1]
        if depth == len(path) - 1 or not isinstance(inner, yaml.MappingNode):
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            break
        section = inner
    if pair is None:
        place, comment, column = _last_line(section) + 1, "", _COLUMN
        start, rest = f"{' ' * section.start_mark.column}{key}:", lines[place:]
    else:
        place, last = pair[0].start_mark.line, _last_line(inner)
        start, rest = lines[place][: pair[0].end_mark.column + 1], lines[last + 1 :]
        comment, column = _comment(lines, pair[0], inner)
    comment = comment.replace(_QUESTION, "# ", 1)
    if question:
        comment = f"{_QUESTION}{comment.removeprefix('#').lstrip() or question}"
    line = f"{start} {yaml_value(value)}"
    line = f"{line:<{max(column, len(line) + 2)}}{comment}" if comment else line
    return "\n".join([*lines[:place], line, *rest])


def _comment(lines: Sequence[str], key: Any, value: Any) -> tuple[str, int]:
    """The comment beside a key or its value, and where it begins."""
    below = value.start_mark.line > key.start_mark.line
    mark = key.end_mark if below else value.end_mark
    column = lines[mark.line].find("#", mark.column) if mark.column or below else -1
    return ("", _COLUMN) if column < 0 else (lines[mark.line][column:], column)


def _last_line(node: Any) -> int:
    """The last line that a value stands on. Marks of blocks end behind the comments that follow."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.line - (end.column == 0 and end.line > node.start_mark.line))
