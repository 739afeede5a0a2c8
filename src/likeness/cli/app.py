"""The command line: ``likeness summary``, ``bundle``, ``verify`` and ``sample``. Other commands are modules."""

import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness import __version__
from likeness.cli import run as cli_run
from likeness.cli.console import App, say, say_json
from likeness.cli.estimate import estimate
from likeness.cli.init_and_check import register
from likeness.cli.ledger import ledger_app
from likeness.cli.new import new
from likeness.cli.params import params
from likeness.cli.run import JSON
from likeness.core.errors import LikenessError, ParamsError, no_project
from likeness.core.extras import missing
from likeness.core.messages import show_messages
from likeness.core.paths import ProjectPaths
from likeness.core.remote import ending
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import place_refusal, storage_refusal

# A traceback with local variables could show a key or a row.
app = App(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(ledger_app, name="ledger")
app.command()(new)
register(app)  # init and check
app.command()(params)
app.command()(cli_run.run)
app.command()(cli_run.compare)
app.command()(estimate)


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


@app.command()
def summary(as_json: JSON = False) -> None:
    """Print the results of the last run: their places, their cost and their scores."""
    from likeness.cli.summary import summary_json, summary_text

    if not ProjectPaths.params.exists():
        raise ParamsError(no_project(ProjectPaths.params))
    say_json(summary_json(ProjectPaths())) if as_json else say(summary_text(ProjectPaths()))


@app.command("bundle")
def bundle_(
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
    from likeness.bundle.write import write_bundle

    names = write_bundle(Project.load(), target, open_others)
    if as_json:
        say_json({"bundle": str(target), "files": names})
    else:
        say(f"{target}: {len(names)} files. Verify it anywhere: likeness verify {target}")


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="A bundle: a folder or a zip file.")],
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train the generator again too. It takes as long as the training.")
    ] = False,
    most_minutes: Annotated[
        float | None, typer.Option(min=0.1, help="Stop after so many minutes: the rest is not tested. Default: 120.")
    ] = None,
    trust_plugin: Annotated[
        list[str] | None, typer.Option(help="A method of another distribution whose code may run; several times.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Recompute every claim of a bundle.

    Exit code 0: everything was recomputed and is right. 1: something is wrong. 2: this is no bundle. 3: nothing is
    wrong, but not everything could be tested.
    """
    from likeness.verify import MOST_MINUTES
    from likeness.verify import verify as checks_of

    checks = checks_of(path, retrain, most_minutes or MOST_MINUTES, trust_plugin or ())
    say_json([vars(check) for check in checks]) if as_json else say(cli_run.checks_text(checks))
    code = cli_run.give_verdict(checks, as_json)
    if code:
        raise typer.Exit(code)


@app.command()
def sample(
    path: Annotated[Path, typer.Argument(help="A bundle (a folder or a zip file), or a project's folder.")],
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows, at no cost of privacy; by default the noisy count.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Public; the same seed gives the same rows.")] = 0,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=VALUE, COLUMN=30..40, or COLUMN= for missing; several times. Quote a name with = as in CSV."
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option(min=2, help="Draw NAME_0.csv, the base, and as many tables under new draws of the noise."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Draw more rows from a bundle, a saved synthesizer or a project with its generator, on any machine.

    Replicates show how far noise moves a result: analyze them and the table, and pool the results (likeness.combine).
    Of people with histories it draws so many people, into NAME_people.csv and NAME_events.csv.
    """
    from likeness.bundle.files import opened
    from likeness.pipeline.where import pairs
    from likeness.synthesizer.published import Published

    if ending(out) not in (".csv", ".parquet"):
        raise LikenessError(f"--out {out} must end in .csv or .parquet. Give another name.")
    if not out.parent.is_dir():
        raise LikenessError(f"--out {out}: {out.parent} is not a folder. Make it, or give another path.")
    given = pairs(where or [])
    written = []
    with opened(path) as folder:
        published = Published.read(folder)
        draws: Iterable[Mapping[str, Any]] = (
            [published.tables(rows, seed, given)]
            if replicates is None
            else published.replicates(rows, seed, given, replicates)
        )
        for place, tables in enumerate(draws):
            stem = out.stem if replicates is None else f"{out.stem}_{place}"
            for name, table in tables.items():
                file = out.with_stem(f"{stem}_{name}" if len(tables) > 1 else stem)
                table.to_csv(file, index=False) if ending(file) == ".csv" else table.to_parquet(file, index=False)
                facts = {"rows": len(table), "seed": seed, "where": given, "columns": list(table.columns)}
                written.append({"file": str(file), **facts})
    if as_json:
        say_json(written[0] if len(written) == 1 else written)
    else:
        say("\n".join(f"{one['file']}: {one['rows']:,} rows" for one in written))


def main() -> None:
    """Entry point. Errors raised on purpose, bad paths and full disks show a message and no traceback."""
    show_messages()
    try:
        app()
    except LikenessError as error:
        say(f"likeness: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        refusal = storage_refusal(error) or place_refusal(error) or missing(error, "this command")
        if refusal is None:  # a fault of ours, which may quote what a stranger wrote
            say(traceback.format_exc(), err=True)
            sys.exit(1)
        say(f"likeness: {refusal}", err=True)
        sys.exit(2)
