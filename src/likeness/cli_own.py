"""Commands for a person's own table: ``likeness init`` drafts its schema, ``likeness check`` says what is missing."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from likeness.errors import LikenessError
from likeness.params import ONE_PERSON, Ingest

_ENDINGS = (".csv.gz", ".csv", ".parquet")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(init)
    app.command()(check)


def init(
    source: Annotated[
        str,
        typer.Argument(
            help="A .csv, .csv.gz or .parquet file with a header, a folder of .parquet files, or a database's URL."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Short name of the table; the file's own by default.")] = None,
    label: Annotated[str | None, typer.Option(help="The column to be predicted, if there is one.")] = None,
    person: Annotated[
        str | None, typer.Option(help="The column that says whose row it is, if a person may have several rows.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="Of a database: SELECT ..., or the name of a table.")] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="A completed schema, as of an earlier year: it answers for columns of the same name."),
    ] = None,
) -> None:
    """Draft the public schema of your own table, and point params.yaml to it. A person completes the draft."""
    from likeness.data.databases import Database
    from likeness.data.schema import Schema, read_mapping
    from likeness.own.draft import draft_schema
    from likeness.own.guess import kinds_of, kinds_of_query
    from likeness.own.settings import with_values

    params = Path("params.yaml")
    if not params.is_file():
        raise LikenessError("params.yaml is missing. Run this in the folder of a clone of the project.")
    if "://" in source and not query:
        raise LikenessError("A database needs --query: the name of a table, or one SELECT in quotes.")
    found = Ingest(source, "", query=query)
    database = Database(source, query or "") if found.from_database else None
    file = Path(source).name if database is None else database.name
    ending = next((ending for ending in _ENDINGS if file.endswith(ending)), Path(file).suffix)
    name = file.removesuffix(ending) if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise LikenessError(f"'{name}' cannot name a table: letters, digits, - and _ only. Give --name.")
    target = Path("data/schema") / f"{name}.yaml"
    if target.exists():
        raise LikenessError(f"{target} exists and is not overwritten. Give --name, or delete it.")
    kinds = kinds_of(Path(source)) if database is None else kinds_of_query(database)
    known = None
    if answers is not None:
        Schema.load(answers)  # complete, or refused
        known = read_mapping(answers)
    text = draft_schema(name, kinds, label, person, known)
    several = None if person is None else {"column": person, "max_rows": None}
    changed = with_values(
        params.read_text(encoding="utf-8"),
        {
            "ingest.source": Path(source).as_posix() if database is None else source,
            "ingest.query": query,
            "ingest.schema": target.as_posix(),
            "ingest.split": {"test_fraction": 0.2, "seed": 0},
            "ingest.unit": several,
            "privacy.identity": None,
            **({} if several is None else {"privacy.unit": ONE_PERSON}),
        },
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    params.write_text(changed, encoding="utf-8")
    typer.echo(
        f"{target}: a draft. Its column names come from the header and its kinds are guesses; every '# ?' in it "
        f"({text.count('  # ? ')}) is a question to you, to be answered from public knowledge, because it is published "
        "with the results.\n"
        "params.yaml: ingest is set, privacy.identity is a question too"
        + (", and ingest.unit.max_rows" if several else "; if a person may have several rows, see ingest.unit")
        + ". Keep the table itself out of git.\n"
        "Then: likeness check"
    )


def check(
    rows: Annotated[int | None, typer.Option(min=1, help="Training records: public, or about. Never counted.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say all that is missing or wrong, and forecast cost and noise. Spends nothing, opens no row. Exit code 0 or 1."""
    from likeness.own.faults import Fault, examine
    from likeness.own.forecast import forecast
    from likeness.own.report import Report

    project = examine()
    faults, foreseen = project.faults, None
    if project.params is not None and not faults:
        try:
            foreseen = forecast(project.params, rows)
        except LikenessError as error:
            faults = (Fault("params.yaml", str(error)),)
    report = Report(faults, project.notes, foreseen)
    typer.echo(json.dumps(report.to_dict(), indent=1) if as_json else report.text())
    if not report.passed:
        raise typer.Exit(1)
