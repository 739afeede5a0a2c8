"""``likeness params``: every setting with its default and its help, as YAML for params.yaml."""

import typing
from collections.abc import Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness.config.explain import defaults, keys, with_help
from likeness.config.load import check_params, read_content, section_in
from likeness.config.params import Params
from likeness.core.errors import ParamsError
from likeness.core.paths import ProjectPaths
from likeness.core.text import choices, did_you_mean
from likeness.methods import DEFAULT, METHODS, known_methods, method_named, resolve_settings
from likeness.methods.plugins import installed_names

_QUESTIONS = {("privacy",): ("population", "?"), ("ingest", "unit"): ("max_rows", 1)}
"""What `likeness init` leaves to a person, by section: the key, and a value in its place."""


def params(
    section: Annotated[
        str | None, typer.Argument(help="A method or a section: its defaults. Without it: all settings of this folder.")
    ] = None,
) -> None:
    """Print settings with their help texts, ready for params.yaml."""
    if section is None:
        standard = {**defaults(Params), "method": DEFAULT, DEFAULT: defaults(METHODS[DEFAULT])}
        values = _settings_of(ProjectPaths.params) if ProjectPaths.params.exists() else standard
        typer.echo(with_help(Params, values, known_methods()))
        return
    hints = {name: hint for name, hint in typing.get_type_hints(Params).items() if is_dataclass(hint)}
    methods = [*METHODS, *installed_names()]
    if section not in (*methods, *hints):
        listed = choices(section, (*methods, *hints), "Methods and sections")
        raise ParamsError(f"'{section}' is no method or section.{listed}")
    if section in methods:
        values = {section: defaults(method_named(section))}
        typer.echo(with_help(Params, values, known_methods()).lstrip("\n"))
    else:
        typer.echo(with_help(Params, {section: defaults(Params)[section]}).lstrip("\n"))


def no_option(option: str, names: Iterable[str]) -> str:
    """Explain an unknown option: it is a setting of params.yaml, or perhaps mistyped."""
    settings = [key.name for where, section in {"": Params, **METHODS}.items() for key in keys(section, where)]
    name = option.lstrip("-").replace("-", "_")
    if matches := [setting for setting in settings if setting.rpartition(".")[2] == name]:
        return f"No such option: {option}. It is a setting of params.yaml: {', '.join(matches)}."
    return f"No such option: {option}.{did_you_mean(option, names)}"


def _settings_of(path: Path) -> dict[str, Any]:
    """All settings of a project. What a person has yet to decide is null: who decides looks settings up."""
    content, undecided = read_content(path), list[tuple[tuple[str, ...], str]]()
    for names, (key, instead) in _QUESTIONS.items():
        section: Any = content
        for name in names:
            section = section_in(section, name)
        if section and section.get(key) is None:
            section[key] = instead
            undecided.append((names, key))
    settings = check_params(content, path)
    values = resolve_settings(settings)
    values[settings.method]["expert"] = (settings.sections.get(settings.method) or {}).get("expert", {})
    for names, key in undecided:
        section = values
        for name in names:
            section = section[name]
        section[key] = None
    return values
