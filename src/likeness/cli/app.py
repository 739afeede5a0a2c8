"""The command line. A command's module is loaded when that command is asked for."""

import ast
import sys
import traceback
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from likeness import __version__
from likeness.cli.console import App, say
from likeness.core.errors import LikenessError
from likeness.core.extras import missing
from likeness.core.messages import show_messages
from likeness.core.refusals import place_refusal, storage_refusal

COMMANDS = {
    "new": "new:new",
    "init": "init:init",
    "check": "check:check",
    "doctor": "check:doctor",
    "params": "params:params",
    "sql": "check:sql",
    "run": "run:run",
    "estimate": "estimate:estimate",
    "summary": "summary:summary",
    "bundle": "bundle:bundle",
    "verify": "verify:verify",
    "sample": "sample:sample",
    "ledger": "ledger:ledger_app",
}
"""Where each command is: a module of this package, and a function or a group in it."""
_PACKAGE = "likeness.cli"


class _Commands(TyperGroup):
    def __init__(self, **options: Any) -> None:
        """Names, in the order of help."""
        super().__init__(**options)
        self.commands.update(dict.fromkeys(COMMANDS))  # type: ignore[arg-type]  # not loaded

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, loaded; None: there is none of that name."""
        if cmd_name not in COMMANDS or super().get_command(ctx, cmd_name):
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"{_PACKAGE}.{module}"), name)
        if not isinstance(command, typer.Typer):
            single = App(add_completion=False)
            single.command(cmd_name)(command)
            command = single
        return typer.main.get_command(command)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Help with what the sources say of each command: to load all of them takes seconds."""
        self.commands = {name: TyperCommand(name, help=_help(path)) for name, path in COMMANDS.items()}
        super().format_help(ctx, formatter)


def _help(path: str) -> str | None:
    """The docstring of a command, or that of the module of a group."""
    module, _, name = path.partition(":")
    tree = ast.parse(files(_PACKAGE).joinpath(f"{module}.py").read_text(encoding="utf-8"))
    functions = [part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == name]
    return ast.get_docstring(functions[0] if functions else tree)


# A traceback with local variables could show a key or a row.
app = App(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"likeness {__version__}")
        raise typer.Exit


@app.callback(help="Differentially private synthetic data.")
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Differentially private synthetic data."""


def main() -> None:
    """Entry point. Errors raised on purpose, bad paths and full disks show a message and no traceback."""
    show_messages()
    try:
        app()
    except LikenessError as error:
        say(f"likeness: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        refusal = storage_refusal(error) or place_refusal(error) or missing(error, "this command")
        if refusal is None:  # a fault of ours, which may quote what a stranger wrote
            say(traceback.format_exc(), err=True)
            sys.exit(1)
        say(f"likeness: {refusal}", err=True)
        sys.exit(2)
