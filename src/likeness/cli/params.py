"""``likeness params``: every setting with its default and its help, as YAML for params.yaml."""

import typing
from dataclasses import is_dataclass
from typing import Annotated

import typer

from likeness.config.explain import defaults, with_help
from likeness.config.load import read_params
from likeness.config.params import Params
from likeness.core.errors import ParamsError
from likeness.core.paths import ProjectPaths
from likeness.core.text import choices
from likeness.methods import DEFAULT, METHODS, known_methods, method_named, resolved
from likeness.methods.plugins import installed


def params(
    section: Annotated[
        str | None, typer.Argument(help="A method or a section: its defaults. Without it: all settings of this folder.")
    ] = None,
) -> None:
    """Print settings with their help texts, ready for params.yaml."""
    if section is None:
        here = ProjectPaths.params
        values = {**defaults(Params), "method": DEFAULT, DEFAULT: defaults(METHODS[DEFAULT])}
        if here.exists():
            given = read_params(here)
            values = resolved(given)
            values[given.method]["expert"] = (given.sections.get(given.method) or {}).get("expert", {})
        typer.echo(with_help(Params, values, known_methods()))
        return
    hints = {name: hint for name, hint in typing.get_type_hints(Params).items() if is_dataclass(hint)}
    methods = [*METHODS, *installed()]
    if section not in (*methods, *hints):
        words = choices(section, (*methods, *hints), "Methods and sections")
        raise ParamsError(f"'{section}' is no method or section.{words}")
    if section in methods:
        values = {section: defaults(method_named(section))}
        typer.echo(with_help(Params, values, known_methods()).lstrip("\n"))
    else:
        typer.echo(with_help(Params, {section: defaults(Params)[section]}).lstrip("\n"))
