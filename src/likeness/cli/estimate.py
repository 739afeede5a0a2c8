"""``likeness estimate``: numbers with margins of error from a bundle."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from pandas import DataFrame

from likeness.bundle.files import open_bundle
from likeness.cli.console import JSON, say, say_json, table
from likeness.core.errors import LikenessError
from likeness.data.schema.kinds import pieces
from likeness.data.schema.row_sets import prefix_with
from likeness.inference.estimates import Question
from likeness.inference.estimates import estimate as answer
from likeness.synthesizer.published import Published

_QUOTES = "Put a name with a comma in double quotes (CSV)."


def estimate(
    path: Annotated[Path, typer.Argument(help="A bundle (a folder or a zip file), or a project's folder.")],
    columns: Annotated[str, typer.Option(help=f"Of the table, as age,sex; for mean and quantile numbers. {_QUOTES}")],
    by: Annotated[str, typer.Option(help="Columns of the groups, as income; shares are then shares of a group.")] = "",
    statistic: Annotated[str, typer.Option(help="share | count | mean | quantile")] = "share",
    quantile: Annotated[float, typer.Option(help="Which one; 0.5 is the median.")] = 0.5,
    level: Annotated[float, typer.Option(help="How often the intervals cover the truth.")] = 0.95,
    sampling: Annotated[
        bool, typer.Option("--sampling", help="Intervals for the population of which the rows are a random sample.")
    ] = False,
    max_cv: Annotated[
        float, typer.Option("--max-cv", help="Coefficient of variation above which a number is marked as unreliable.")
    ] = Question.max_cv,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: JSON = False,
) -> None:
    """Estimate shares, counts, means and quantiles with margins of error, at no cost of privacy.

    It reads the noisy statistics of a bundle, no synthetic rows and no private rows. It checks form and checksums of
    the bundle, and no more: `likeness verify` does.
    """
    if as_csv and as_json:
        raise LikenessError("--csv and --json exclude each other. Give one of them.")
    options = {"statistic": statistic, "quantile": quantile, "level": level, "sampling": sampling, "max_cv": max_cv}
    question = Question.from_columns(filter(None, pieces(columns)), filter(None, pieces(by)), **options)
    with open_bundle(path) as folder:
        published = Published.read(folder)
    schema = published.model.schema
    frame = answer(schema, published.released.values(), question, published.project.params.privacy.num_records)
    if as_json:
        say_json({"question": {"columns": question.columns, "by": question.by, **options}, "rows": _records(frame)})
    elif as_csv:
        say(frame.to_csv(lineterminator="\n").rstrip("\n"))
    else:
        names = [str(name) for name in frame.index.names]
        rows = [[*map(_cell_text, row.values())] for row in _rows(frame)]
        say(table([*names, *frame.columns], rows, text_columns=len(names)))
        if prefix_with(schema.row_sets, (*question.columns, *question.by)):
            say("Of pairs of events that follow each other. Those of a person share the weight 1.")


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Each row with its cell; None for missing."""

    def is_missing(value: Any) -> bool:
        return value is None or (isinstance(value, float) and not math.isfinite(value))

    rows = frame.reset_index().astype(object).to_dict("records")
    return [{str(name): None if is_missing(value) else value for name, value in row.items()} for row in rows]


def _records(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON: the cell, and its numbers."""
    return [{"cell": {name: row.pop(name) for name in map(str, frame.index.names)}, **row} for row in _rows(frame)]


def _cell_text(value: Any) -> str:
    """A value for people: four digits, and all digits before the point; a mark as a word."""
    if isinstance(value, bool):
        return "unreliable" if value else ""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
