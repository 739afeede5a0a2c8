"""The console of all commands: tables and text that fit a terminal, plain lines without colors elsewhere."""

import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from likeness.core.hashing import json_value
from likeness.core.text import doc_of, escape_controls

_ENDLESS = 100_000  # columns of a pipe or a file, where no line breaks


JSON = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


class App(typer.Typer):
    """Commands whose help is their docstring, also in a Python without docstrings."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a function, as typer does."""
        register = super().command(name, cls=_Command, **options)

        def decorate(function: Any) -> Any:
            doc_of(function)
            return register(function)

        return decorate


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments. An option that is not known may be a setting, or mistyped."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # click's, or that of typer's copy of it
                from likeness.cli.params import no_option  # `likeness --help` waits for no method

                names = [name for option in self.params for name in option.opts]
                error.message, error.possibilities = no_option(error.option_name, names), None  # type: ignore[attr-defined]
            raise


def say(text: str, err: bool = False) -> None:
    """Print text, controls escaped. A terminal breaks long lines between words and indents their rest."""
    typer.echo(wrap_text(escape_controls(text), err), err=err)


def wrap_text(text: str, err: bool = False) -> str:
    """Text with lines that fit a terminal."""
    console = _console(err)
    return "\n".join(_break_line(line, console.width) for line in text.split("\n")) if console.is_terminal else text


def say_json(value: Any) -> None:
    """Print JSON, for scripts. It has no infinity, which is the text ``inf`` as in every document of a run."""
    typer.echo(json.dumps(json_value(value), indent=1))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Rows in columns, as text for standard output. Behind so many columns of words, numbers are aligned right."""
    console = _console()
    grid = Table(box=SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for index, name in enumerate(header):
        grid.add_column(name, justify="left" if index < text_columns else "right", overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines() if line.strip())


def _console(err: bool = False) -> "Console":
    # Without colors, so that no text has an escape sequence of ours, and all others are escaped.
    console = Console(file=sys.stderr if err else sys.stdout, highlight=False, color_system=None)
    if not console.is_terminal:
        console.width = _ENDLESS
    return console


def _break_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
