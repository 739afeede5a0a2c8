"""``likeness bundle``: what may be published."""

from pathlib import Path
from typing import Annotated

import typer

from likeness.bundle.write import write_bundle
from likeness.cli.console import JSON, say, say_json
from likeness.pipeline.account import account
from likeness.pipeline.project import Project


def bundle(
    target: Annotated[Path, typer.Argument(help="A new folder, or a new file that ends in .zip.")] = Path("bundle"),
    open_others: Annotated[
        bool,
        typer.Option("--open-others", help="Publish the names of the other populations in the ledger, and only these."),
    ] = False,
    as_json: JSON = False,
) -> None:
    """Put everything that may be published about the last run in one place, and nothing else.

    A verifier can test the lifetime cost only with --open-others, or if the ledger holds no other population.
    """
    project = Project.load()
    names = write_bundle(project, account(project), target, open_others)
    if as_json:
        say_json({"bundle": str(target), "files": names})
    else:
        say(f"{target}: {len(names)} files. Verify it anywhere: likeness verify {target}")
