"""``likeness check``: what is missing, and what a run would cost, before anything is spent."""

import contextlib
from typing import Annotated

import typer

from likeness.cli.console import say, say_json
from likeness.core.errors import LikenessError, ParamsError, SchemaError, no_project
from likeness.core.paths import ProjectPaths
from likeness.preflight.cost import refusal_ahead
from likeness.preflight.downstream_checks import refusals
from likeness.preflight.faults import examine, of_params
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report


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
    if not report.passed:
        raise typer.Exit(1)


def report_of(rows: int | None) -> Report:
    """All faults of this folder and, if there is none, the forecast of a run with so many training records."""
    examined = examine()
    project, faults, foreseen, refusal = examined.project, examined.faults, None, ""
    if project is not None:
        with contextlib.suppress(SchemaError):  # which is among the faults
            faults = (*faults, *map(of_params, refusals(project)))
    if project is not None and not faults:
        try:
            foreseen = forecast(project, rows)
            refusal = refusal_ahead(project)
        except LikenessError as error:
            faults, foreseen = (of_params(error),), None
    return Report(faults, examined.notes, foreseen, refusal)
