"""Reference pages that follow from the code: commands, keys of params.yaml, keys of a schema.

Run: ``python scripts/docs_reference.py``. It prints the pages. The site makes them while it is built.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from likeness.cli.app import app
from likeness.config.explain import Key, keys, summary
from likeness.config.params import Params
from likeness.data.schema.column import KINDS, Column
from likeness.data.schema.column_keys import DROP, keys_of
from likeness.data.schema.computed import Derived
from likeness.data.schema.rules import KINDS as RULES
from likeness.data.schema.schema import KEYS, Schema
from likeness.methods import METHODS

_ATTRIBUTES = re.compile(r"^Attributes:\n((?:    .*\n|\n)*)", re.MULTILINE)
_ONE = re.compile(r"(?:^|\. )([a-z_]+(?:, [a-z_]+)*): ", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def commands_page() -> str:
    """Every command of ``likeness`` with its arguments and options."""
    import typer

    text = ["# Commands", "This page lists every command and its options. `likeness COMMAND --help` prints the same."]
    for name, command in commands(typer.main.get_command(app)):
        usage = [_metavar(item) for item in command.params if item.name != "help"]
        text += [f"## {name}", _plain(command.help), "```bash\n" + " ".join([name, *usage]) + "\n```"]
        rows = [_parameter(item) for item in command.params if item.name != "help"]
        if rows:
            text.append(_table(("argument or option", "meaning", "default"), rows))
    return "\n\n".join(text) + "\n"


def commands(command: Any, name: str = "likeness") -> Iterator[tuple[str, Any]]:
    """All commands that do something, with their whole names, in the order of ``--help``."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    for word in inner or ():
        child = command.get_command(None, word)
        if not child.hidden:
            yield from commands(child, f"{name} {word}")


def _metavar(item: Any) -> str:
    """An argument or option as it stands in a line of usage."""
    if item.param_type_name == "argument":
        return item.name.upper() if item.required else f"[{item.name.upper()}]"
    return item.opts[0] if item.required else f"[{item.opts[0]}]"


def _parameter(item: Any) -> tuple[str, str, str]:
    """One line of a command's table."""
    option = item.param_type_name == "option"
    name = ", ".join(item.opts) if option else item.name.upper()
    default = "" if item.default is None or callable(item.default) else str(item.default)
    shown = "required" if item.required else "" if default in ("False", "()", "Sentinel.UNSET") else f"`{default}`"
    return f"`{name}`", _plain(item.help), shown if default or item.required else ""


def params_page() -> str:
    """Every key of ``params.yaml`` with its default and meaning: first those of every method, then each method's."""
    text = [
        "# Keys of params.yaml",
        "This page lists every key, its default and its meaning. "
        "`likeness params METHOD` prints a section as it may stand in the file.",
    ]
    for name, section in [("", Params), *METHODS.items()]:
        if name:
            text += [f"## Method {name}", _plain(summary(section))]
        groups: dict[str, list[tuple[str, ...]]] = {}
        for key in keys(section, name):
            part = ".".join(key.name.split(".")[: 1 + bool(name)])
            shown = "*must be written*" if key.default is None else f"`{key.default}`"
            if key.name != "sections":
                groups.setdefault(part, []).append((f"`{key.name}`", shown, _meaning(key)))
        for part, rows in groups.items():
            text += [f"##{'#' * bool(name)} {part}", _table(("key", "default", "meaning"), rows)]
    return "\n\n".join(text) + "\n"


def _meaning(key: Key) -> str:
    """What a key means and what it must be."""
    rule = f"Must be {_plain(key.rule)}" if key.rule else ""
    return " ".join(f"{part.rstrip('.')}." for part in (_plain(key.help), rule) if part)


def schema_page() -> str:
    """Every key of a schema file, and every key of each kind of column."""
    top, column = _attributes(Schema), _attributes(Column)
    top["derived"] = "New names, each with the difference of two columns that it is."
    column |= {
        "kind": f"One of {', '.join(f'`{kind}`' for kind in (*KINDS, DROP))}.",
        "reason": "Why the column is dropped, in words.",
        "bounds": "`private`: released with a part of the budget, in the place of lower and upper.",
        "categories": column["categories"] + " `private`: released above a threshold.",
    }
    rules = [(f"`{kind.kind}`", inspect.getdoc(kind) or "") for kind in (*RULES.values(), Derived)]
    text = [
        "# Keys of a schema",
        "This page lists every key of a schema file. [How to write one](../own-data.md#2-the-schema).",
        "## The file",
        _table(("key", "meaning"), [(f"`{key}`", _plain(top.get(key, ""))) for key in KEYS]),
        "## A column",
        _table(
            ("key", "kinds", "meaning"),
            [(f"`{key}`", _kinds(key), _plain(column.get(key, ""))) for key in column_keys()],
        ),
        "## A rule",
        _table(("key", "meaning"), [(kind, _plain(text.split("\n\nAttributes")[0])) for kind, text in rules]),
    ]
    return "\n\n".join(text) + "\n"


def column_keys() -> list[str]:
    """Every key that a column of some kind may have."""
    return list(dict.fromkeys(key for kind in (*KINDS, DROP) for key in keys_of(kind)))


def _kinds(key: str) -> str:
    """The kinds of column that may have a key."""
    having = [kind for kind in (*KINDS, DROP) if key in keys_of(kind)]
    return "all" if len(having) > len(KINDS) else ", ".join(f"`{kind}`" for kind in having)


def _attributes(holder: type) -> dict[str, str]:
    """What a docstring says of each attribute below ``Attributes:``, also of two that share a line."""
    said: dict[str, str] = {}
    for base in reversed(holder.__mro__):
        found = _ATTRIBUTES.search((inspect.getdoc(base) or "") + "\n")
        if base is object or found is None:
            continue
        block = re.sub(r"\n +", " ", inspect.cleandoc(found[1]))
        parts = _ONE.split(block)
        for names, text in zip(parts[1::2], parts[2::2], strict=True):
            said |= dict.fromkeys(names.split(", "), text.strip())
    return said


def _plain(text: str | None) -> str:
    """Text of a docstring as Markdown that fits into a cell of a table."""
    return re.sub(r"``(.+?)``", r"`\1`", _ROLE.sub(r"`\1`", (text or "").strip())).replace("|", r"\|")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in line)} |" for line in lines)


PAGES = {
    "reference/commands.md": commands_page,
    "reference/params.md": params_page,
    "reference/schema-keys.md": schema_page,
}
"""Page of the site, and what makes it."""


def main() -> None:
    """Print all pages."""
    for make in PAGES.values():
        print(make())


if __name__ == "__main__":
    main()
