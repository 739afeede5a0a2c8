"""Change single values of params.yaml and no other byte: comments, order and line breaks stay."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from likeness.core.errors import ParamsError

_PLAIN = re.compile(r"[a-z]+[./_-][A-Za-z0-9_./-]*", re.ASCII)  # a path: neither a number nor a word of YAML


def with_values(text: str, values: Mapping[str, Any]) -> str:
    """The text of a YAML file with other values.

    Args:
        text: of the file.
        values: from dotted keys, which exist in the file, to texts, numbers, null or mappings of them.

    Raises:
        ParamsError: the text is no YAML, or a key is not in it.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ParamsError(f"params.yaml is not valid YAML: {' '.join(str(error).split())}") from None
    spans = []
    for key, value in values.items():
        node = _find(root, key)
        start, end = node.start_mark.index, _end(node)
        new = _yaml(value)
        spans.append((start, end, new if start < end else f" {new}"))  # a key without a value has no blank either
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _find(node: Any, key: str) -> Any:
    for name in key.split("."):
        children = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for own, value in children if own.value == name), None)
        if node is None:
            raise ParamsError(f"params.yaml: {key} is missing. Run this in a clone of the project.")
    return node


def _end(node: Any) -> int:
    """Where a value ends. A block of several lines ends, for YAML, at the next key, with the comments between."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return end


def _yaml(value: Any) -> str:
    """A value on one line: JSON, which is YAML, with fewer quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
