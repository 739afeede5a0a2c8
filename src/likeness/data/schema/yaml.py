"""Schema files: YAML read and written, and nothing checked."""

import re
from pathlib import Path
from typing import Any, Protocol

import yaml

from likeness.core.errors import SchemaError
from likeness.core.text import shown


class Written(Protocol):
    """A schema of any kind, or a draft of one."""

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        ...


def read_mapping(path: str | Path, aliases: bool = True) -> Any:
    """Content of a schema file, unchecked.

    Args:
        path: path of the file.
        aliases: whether a value may repeat another by its name.

    Raises:
        SchemaError: the file cannot be read, or is not YAML.
    """
    path = Path(path).expanduser()
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_CoreLoader if aliases else _PlainLoader)
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read ({error.strerror}). Give the path of a schema file.") from None
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: is not UTF-8 text. Save it in UTF-8.") from None
    except RecursionError:
        raise SchemaError(f"{path}: nests lists or mappings too deep. Write it flat.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or error
        line = f" in line {mark.line + 1}" if mark else ""
        raise SchemaError(f"{path}: is not valid YAML{line}: {shown(problem)}. Correct it.") from None


def schema_text(schema: Written) -> str:
    """A schema as YAML; :func:`likeness.data.histories.schema.read_schema` reads it back."""
    layout: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None, "width": 120}
    text: str = yaml.dump(schema.to_dict(), Dumper=CoreDumper, **layout)
    return text


class _CoreLoader(yaml.SafeLoader):
    """Safe YAML with the scalars of YAML 1.2 (``No``, ``007`` and ``1994-03-01`` stay text); no key twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (yaml's own class attribute, emptied here)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


class CoreDumper(yaml.SafeDumper):
    """Quotes each text that :class:`_CoreLoader` would take for something else, as ``1e5``."""


for _tag, _pattern, _first in (
    ("null", r"(?:~|null|)$", ["~", "n", ""]),
    ("bool", r"(?:true|false)$", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    for _yaml in (_CoreLoader, CoreDumper):
        _yaml.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


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
