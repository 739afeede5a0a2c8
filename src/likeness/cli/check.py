"""``likeness check``: what is missing, and what a run would cost, before anything is spent."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from likeness.cli.console import JSON, say, say_json
from likeness.core.errors import DataError, LikenessError, ParamsError, SchemaError, no_project
from likeness.core.paths import ProjectPaths
from likeness.pipeline.project import Project
from likeness.preflight.cost import refusal_ahead
from likeness.preflight.doctor import examine_places
from likeness.preflight.downstream_checks import refusals
from likeness.preflight.faults import examine, params_fault
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report
from likeness.release.query import Query
from likeness.release.released import Released, load_answers


def check(
    rows: Annotated[
        int | None, typer.Option(min=1, help="Number of training records, public or approximate. It is never counted.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """List all faults, and forecast cost and noise. Spends nothing, opens no row. Exit code 0 or 1."""
    if not ProjectPaths.params.exists():
        raise ParamsError(no_project(ProjectPaths.params))
    report = report_of(rows)
    say_json(report.to_dict()) if as_json else say(report.text())
    if not report.passes:
        raise typer.Exit(1)


def report_of(rows: int | None) -> Report:
    """All faults of this folder and, if there is none, the forecast of a run with so many training records."""
    examined = examine()
    project, faults, foreseen, refusal = examined.project, examined.faults, None, ""
    if project is not None:
        with contextlib.suppress(SchemaError):  # which is among the faults
            faults = (*faults, *map(params_fault, refusals(project)))
    if project is not None and not faults:
        try:
            foreseen = forecast(project, rows)
            refusal = refusal_ahead(project)
        except LikenessError as error:
            faults, foreseen = (params_fault(error),), None
    return Report(faults, examined.notes, foreseen, refusal)


def doctor(as_json: JSON = False) -> None:
    """Look at ledger, anchor, locks, disks and servers, and name what is wrong with each. Changes nothing.

    Exit code 0, or 1 if something is wrong.
    """
    findings = list(examine_places(Path()))
    if as_json:
        say_json([finding._asdict() for finding in findings])
    else:
        say("\n".join(f"{'WRONG' if fault else 'well '}  {name}{fault and f': {fault}'}" for name, fault in findings))
    if any(finding.fault for finding in findings):
        raise typer.Exit(1)


def sql() -> None:
    """Print the SQL that types, hashes and counts the rows where they are. It runs none of it and spends nothing.

    First the statement of the stages fingerprint and ingest, then those of each query. Before a run only queries that
    depend on no answer are known. Receipts have the SHA-256 that stands above each. Exit code 2 if
    rows come.
    """
    project = Project.load()
    if project.counts is None:
        raise DataError("ingest.rows is come, so the rows of the source are read here. Set ingest.rows: stay.")
    complete = not project.written_schema.open_columns or bool(project.paths.category_files)
    for text in project.counts.script(project.schema if complete else None, _queries(project) if complete else ()):
        say(text)
    if not complete:
        say("\n-- Later queries depend on the released categories.")


def _queries(project: Project) -> Iterator[tuple[int, Query]]:
    """The queries of a method, each with the index of its row set, up to the first one without an answer."""
    answers = load_answers(project.paths.auxiliary_files)
    for index, row_set in enumerate(project.row_sets):
        released: dict[str, Released] = {}
        for query in project.method.auxiliary_queries(row_set.context, released):
            scoped = row_set.scope(query)
            yield index, scoped
            if scoped.name not in answers:
                say(f"\n-- Later queries depend on the answer of {scoped.name}.")
                break
            released[query.name] = answers[scoped.name]
        else:
            yield index, row_set.scope(project.method.embedding_query(row_set.context, released))
