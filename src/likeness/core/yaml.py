"""YAML that a person writes: one reader, whose refusals name file, line and remedy."""

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from likeness.core.errors import LikenessError
from likeness.core.text import excerpt


def load_written(text: str) -> Any:
    """The content of YAML that a program wrote, by libyaml where that is there: it takes a tenth of the time.

    Raises:
        YAMLError: it is not YAML.
    """
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class UniqueKeys(yaml.SafeLoader):
    """Safe YAML without a mapping that gives a key twice. PyYAML itself takes the last one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping, refused at its second equal key."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"'{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        return node


@lru_cache(maxsize=16)
def _parse_once(text: str, loader: type[yaml.SafeLoader]) -> Any:
    """The content of a text: every stage of a run reads the same files. libyaml is fast, and dies of deep nesting."""
    return yaml.load(text, Loader=loader)


def parse_yaml(text: str, where: object, error: type[LikenessError], loader: type[yaml.SafeLoader] = UniqueKeys) -> Any:
    """The content of a text in YAML, unchecked. ``error`` is the kind of refusal, ``where`` the name in its message.

    Raises:
        LikenessError: it is not YAML.
    """
    try:
        return copy.deepcopy(_parse_once(text, loader))  # type: ignore[arg-type] # a class has a hash
    except RecursionError:
        raise error(f"{where}: nests lists or mappings too deep. Write it flat.") from None
    except (yaml.YAMLError, ValueError) as fault:  # a ValueError: a date that does not exist
        mark, problem = getattr(fault, "problem_mark", None), getattr(fault, "problem", None) or fault
        line = f" in line {mark.line + 1}" if mark else ""
        raise error(f"{where}: is not valid YAML{line}: {excerpt(problem)}. Correct it.") from None


def read_yaml(path: Path, error: type[LikenessError], loader: type[yaml.SafeLoader] = UniqueKeys) -> Any:
    """The content of a file, as :func:`parse_yaml`.

    Raises:
        LikenessError: the file cannot be read, or is not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise error(f"{path}: cannot be read ({fault.strerror}). Give the path of a YAML file.") from None
    except UnicodeDecodeError:
        raise error(f"{path}: is not UTF-8 text. Save it in UTF-8.") from None
    return parse_yaml(text, path, error, loader)
