"""``likeness new``: a project in any folder."""

import contextlib
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from likeness.cli.console import say
from likeness.cli.init import check_terminal, init
from likeness.core.errors import LikenessError
from likeness.core.paths import ProjectPaths
from likeness.pipeline.new_project import upgrade_project, write_project


def new(
    folder: Annotated[Path, typer.Argument(help="Of the project; it may exist.")],
    table: Annotated[
        str | None, typer.Option(help="A table, as for `likeness init`: the project names it and copies nothing.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", "-l", help="The column of the table to predict.")] = None,
    ask: Annotated[
        bool, typer.Option("--ask", "-a", help="Ask about its columns here, as `likeness init` does.")
    ] = False,
    columns: Annotated[
        Path | None, typer.Option(help="A CSV with a row for each column, as `likeness init` writes and reads it.")
    ] = None,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Write dvc.yaml, stages and flows of the installed version to a project.")
    ] = False,
) -> None:
    """Make a project for one table. Its logic is that of the installed package.

    It writes params.yaml, dvc.yaml, stages/, flows/, data/ and what git and DVC need. With --table it drafts a schema.
    """
    if upgrade:
        names = upgrade_project(folder)
        say(f"{folder}: {', '.join(names) or 'nothing'} changed.")
        return
    if table is None and (label is not None or ask or columns is not None):
        raise LikenessError("--label, --ask and --columns are about a table. Give --table FILE too.")
    if table is not None and "://" not in table and not Path(table).exists():
        raise LikenessError(f"--table {table} does not exist. Give the path of a table.")
    check_terminal(ask)  # before a folder is made
    is_new = not folder.exists()
    write_project(folder)
    if table is None:
        say(f"{folder}: a project. Then: cd {folder}, likeness init TABLE")
        return
    source = _seen_from(folder, table)
    sheet = None if columns is None else columns.resolve()
    try:
        with contextlib.chdir(folder):
            init(source, label=label, ask=ask, columns=sheet)
    except LikenessError:
        if is_new and not ask:
            shutil.rmtree(folder)  # what stands in it was written just before
        raise
    finally:
        has_schema = any((folder / ProjectPaths.schemas).glob("*.yaml"))
        if folder.exists() and not has_schema:  # stopped, or a sheet to fill in
            options = ["--label", label] if label else []
            options += ["--ask"] if ask else []
            options += ["--columns", str(sheet)] if sheet else []
            again = shlex.join(["likeness", "init", source, *options])
            say(f"{folder} is a project without a table. Then: cd {folder}, {again}", err=True)
    say(f"{folder}: a project. Go on there: cd {folder}")


def _seen_from(folder: Path, table: str) -> str:
    """A table as params.yaml of a project names it: by a path in the folder, or by one from the root."""
    if "://" in table:
        return table
    path, root = Path(table).resolve(), folder.resolve()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
