r"""The numbers of the public page about the table: from released values, the public schema and synthetic rows. Free.

*Expected error of a pair.* Its estimated cells have errors with standard deviations :math:`\sigma_c`, in records. The
mean of :math:`|X|` for a normal X is :math:`\sigma \sqrt{2 / \pi}`. So the total variation of the estimated table from
the true one has a mean of :math:`\sum_c \sigma_c / (\sqrt{2 \pi} N)` for N records.

*Residual of a pair.* A cell with noisy count y and variance v has s of n synthetic rows. The model's count is
:math:`m = s N / n`, and its variance as a sample of rows is :math:`m N / n`. If the model were the truth, the squares
:math:`(y - m)^2 / (v + m N / n)` of k cells would sum to a chi-square of k degrees of freedom. A pair does not fit if
such a sum, or a larger one, has a chance below :data:`FALSE_ALARM` divided by the number of pairs. So a page of a right
model names a pair with a chance of at most :data:`FALSE_ALARM`. The model saw the noise, so smaller sums are usual.
Rows of histories share the weight 1 of their person. Such a weight in a cell lies between 0 and 1, so
:math:`m N / n` is at least its variance, and fewer pairs seem not to fit.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from likeness.data.encoding.dtypes import to_dtypes
from likeness.data.schema.constrained_tables import forward_transform, violation_counts
from likeness.data.schema.kinds.categories import formulas_in
from likeness.data.schema.schema import Schema
from likeness.inference.estimates import Answers, Question
from likeness.inference.measurements import Measurements, measurements
from likeness.inference.terms import Table
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.report.charts import MOST_MAPPED, Cell, chart, fact
from likeness.report.formats import MOST_LISTED, number

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_PREVIEWED = 40
FALSE_ALARM = 0.001
"""Chance that a page names a pair that fits. The normal and independent errors of cells are an approximation."""
SHOWN = ["estimate", "low", "high", "unreliable"]
"""Columns of estimates that the page shows."""
_QUANTILES = {"lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75}
_MISSING = "(missing)"


@dataclass
class SyntheticCounts:
    """Synthetic rows in the cells of a release. Each of m rows that share a contribution counts 1/m, as there.

    Attributes:
        columns: rows in each cell of a column.
        tables: rows in each cell of each released table, in its order.
        rows: how many there are.
    """

    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    tables: list[NDArray[np.float64]] = field(default_factory=list)
    rows: float = 0.0

    @classmethod
    def from_chunks(cls, measured: Measurements, chunks: Iterable[Records]) -> "SyntheticCounts":
        """Count encoded synthetic rows."""
        sizes = {name: axis.size for name, axis in measured.axes.items()}
        columns = {name: np.zeros(size) for name, size in sizes.items()}
        counts = cls(columns, [np.zeros(table.counts.shape) for table in measured.tables])
        for chunk in chunks:
            weights = np.ones(len(chunk.x)) if chunk.shared_by is None else 1 / chunk.shared_by
            cells = measured.cells
            indices = {name: cells[name].cell_indices(chunk.x) if name in cells else chunk.labels for name in sizes}
            for name, total in counts.columns.items():
                total += np.bincount(indices[name], weights, sizes[name])
            for table, sums in zip(measured.tables, counts.tables, strict=True):
                if table.columns:
                    flat = np.ravel_multi_index([indices[name] for name in table.columns], sums.shape)
                    sums += np.bincount(flat, weights, sums.size).reshape(sums.shape)
            counts.rows += float(weights.sum())
        return counts


def table_section(
    schema: Schema,
    released: Iterable[Released],
    total: float | None,
    table: "DataFrame",
    synthetic: Iterable[Records] | None,
) -> dict[str, Any]:
    """The part of the public page about the table, ready to print.

    Args:
        schema: of the table, with released categories and rules.
        released: all files of the run.
        total: the number of records where it is public.
        table: typed synthetic rows.
        synthetic: the rows as the release counts them; None where they answer to a condition.
    """
    answers, counts = compare_release(schema.model_schema, released, total, synthetic)
    typed = None if counts is None else forward_transform(table, schema)
    numbers = print_numbers(schema.model_schema, answers, counts, typed)
    return {
        "source": schema.source,
        "numbers": numbers,
        "compared": numbers["misfits"] is not None,
        "rules": list(violation_counts(table, schema).items()),
        "previews": [preview(table.head(MOST_LISTED), schema)],
        "sheet": [],
        "size": [(len(table), "rows")],
        "names": [schema.model_schema.names],
        "words": {"columns": "Every column", "rows": "rows", "records": "records"},
        "parts": [],
    }


def preview(table: "DataFrame", schema: Schema, caption: str = "The") -> dict[str, Any]:
    """A few rows, ready to print; ``caption`` begins their title."""
    rows = texts(table, schema)
    more = max(0, len(schema.names) - MOST_PREVIEWED)
    escaped = any(map(formulas_in, schema.columns))
    return {"caption": caption, "header": rows[0], "rows": rows[1:], "more_columns": more, "escaped": escaped}


def texts(table: "DataFrame", schema: Schema) -> list[list[str]]:
    """A few rows as texts, the names of the columns first, as the CSV of the table has them."""
    text = to_dtypes(table, schema).iloc[:, :MOST_PREVIEWED].to_csv(index=False, lineterminator="\n")
    return list(csv.reader(io.StringIO(text, newline="")))


def compare_release(
    schema: Schema, released: Iterable[Released], total: float | None, synthetic: Iterable[Records] | None
) -> tuple[Answers, SyntheticCounts | None]:
    """Estimates from a release, and synthetic rows in its cells.

    Args:
        schema: of the modeled columns, with released categories.
        released: all files of the run.
        total: the number of records where it is public.
        synthetic: encoded synthetic rows; None where they answer to a condition, so that the release is no match.

    Raises:
        ReleaseError: a file does not fit its receipt or the schema.
    """
    measured = measurements(schema, sorted(released, key=lambda file: file.receipt.query), total)
    counts = None if synthetic is None else SyntheticCounts.from_chunks(measured, synthetic)
    return Answers(measured), None if counts is None or not counts.rows else counts


def print_numbers(
    schema: Schema, answers: Answers, counts: SyntheticCounts | None, table: "DataFrame | None" = None
) -> dict[str, Any]:
    """Charts, numbers and errors, ready to print.

    Args:
        schema: of the modeled columns.
        answers: of the release.
        counts: synthetic rows in its cells.
        table: typed synthetic rows of these columns, whose means stand beside the estimates; None: they do not.
    """
    measured = answers.measured
    shares = {name: answers.frame(Question((name,))) for name in measured.axes}
    charts = [_chart(answers, name, shares[name], counts, table) for name in schema.names if name in shares]
    first = list(measured.axes)[:MOST_MAPPED]
    pairs = [pair for pair in combinations(first, 2) if measured.terms.is_measured(pair)]
    noise = {"columns": [expected_error(measured, (name,)) for name in shares]}
    noise["pairs"] = [expected_error(measured, pair) for pair in pairs]
    cells = np.concatenate([cell_errors(measured, (name,)).ravel() for name in shares] or [np.zeros(1)])
    return {
        "records": number(max(0, round(measured.terms.total))),
        "columns": charts,
        "counted": sum(len(column["numbers"]) for column in charts),
        "unreliable": sum(text.startswith("(") for column in charts for _, text, *_ in column["numbers"]),
        "outside": [column["name"] for column in charts if column["outside"]],
        "missed": sum(column["missed"] for column in charts),
        "cells": sum(column["cells"] for column in charts),
        "worst": max(charts, key=lambda column: column["missed"])["name"] if charts else "",
        "careful": [name for name, frame in shares.items() if frame["unreliable"].mean() > 0.5],
        "max_cv": Question.max_cv,
        "without": [name for name in schema.names if name not in shares],
        "noise": {key: float(np.mean(errors)) for key, errors in noise.items() if errors},
        "off": number(math.ceil(NormalDist().inv_cdf(0.975) * float(np.median(cells)))) if cells.any() else None,
        "joint": joint(measured),
        "misfits": None if counts is None else misfits(measured, counts),
    }


def expected_error(measured: Measurements, names: tuple[str, ...]) -> float:
    """Expected total variation of the estimated table of some columns from the true one, from the noise alone.

    It is 1 at most, as of any two tables.
    """
    scale = math.sqrt(2 * math.pi) * max(1.0, measured.terms.total)
    return min(1.0, float(cell_errors(measured, names).sum()) / scale)


def cell_errors(measured: Measurements, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Standard deviation of the noise in the estimated count of each cell of some columns."""
    forms = {name: np.eye(measured.axes[name].size) for name in names}
    errors: NDArray[np.float64] = np.sqrt(np.maximum(measured.terms.covariance(forms, forms), 0))
    return errors


def joint(measured: Measurements) -> dict[str, Any]:
    """The released tables of three or more columns: how many, the columns of all, the part that noise moves."""
    wide = [table for table in measured.tables if len(table.columns) > 2]
    tables = {frozenset(table.columns): table for table in sorted(wide, key=lambda each: -each.variance)}.values()
    errors = [table.counts.size * math.sqrt(table.variance / math.tau) for table in tables]
    return {
        "count": len(tables),
        "columns": [name for name in measured.axes if tables and all(name in table.columns for table in tables)],
        "noise": min(1.0, float(np.mean(errors or [0.0])) / max(1.0, measured.terms.total)),
    }


def misfits(measured: Measurements, counts: SyntheticCounts) -> dict[str, Any]:
    """Released tables of several columns that the synthetic rows do not fit within the noise, worst first."""
    rows, wide, scale = [], set[frozenset[str]](), measured.terms.total / counts.rows
    pairs = [
        (table, synthetic)
        for table, synthetic in zip(measured.tables, counts.tables, strict=True)
        if len(table.columns) > 1 and table.variance > 0
    ]
    total, cells = 0.0, 0
    for table, synthetic in pairs:
        model = synthetic * scale
        residuals = (table.counts - model) / np.sqrt(table.variance + model * scale)
        squares = float((residuals**2).sum())
        total, cells = total + squares, cells + residuals.size
        if chdtrc(residuals.size, squares) * len(pairs) < FALSE_ALARM:
            cell = np.unravel_index(np.abs(residuals).argmax(), residuals.shape)
            text = _cell(measured, table, cell)
            wide |= {frozenset(table.columns)} if len(table.columns) > 2 else set()
            rows.append((squares / residuals.size, " × ".join(table.columns), text, float(residuals[cell])))
    rows.sort(key=lambda row: (-row[0], row[1]))
    shown = [
        (names, cell, f"{math.sqrt(mean):.2f}", f"{worst:+.1f}".replace("-", "−"))
        for mean, names, cell, worst in rows[:MOST_LISTED]
    ]
    return {
        "tested": len(pairs),
        "count": len(rows),
        "joint": len(wide),
        "rows": shown,
        "excess": total / max(1, cells),
    }


def _cell(measured: Measurements, table: Table, cell: Sequence[Any]) -> str:
    return ", ".join(labels(measured, name)[int(at)] for name, at in zip(table.columns, cell, strict=True))


def labels(measured: Measurements, name: str) -> list[str]:
    """The cells of a column in words."""
    return [_MISSING if label is None else label for label in measured.axes[name].labels]


def _chart(
    answers: Answers, name: str, shares: "DataFrame", counts: SyntheticCounts | None, table: "DataFrame | None"
) -> dict[str, Any]:
    """The chart and the numbers of a column, and whether the synthetic mean lies outside of its interval."""
    drawn = [None] * len(shares) if counts is None else (counts.columns[name] / counts.rows).tolist()
    rows = zip(labels(answers.measured, name), shares[SHOWN].itertuples(index=False), drawn, strict=True)
    cells = [
        Cell(label, share, low, high, synthetic, bool(marked)) for label, (share, low, high, marked), synthetic in rows
    ]
    numbers, outside = _numbers(answers, name, table)
    facts = f"mean {numbers[0][1]} · {numbers[0][2]}" if numbers else ""
    column = answers.measured.axes[name].column
    missed = sum(cell.synthetic is not None and not cell.low <= cell.synthetic <= cell.high for cell in cells)
    drawn_chart = chart(name, cells, column.is_categorical, facts)
    return {**drawn_chart, "numbers": numbers, "outside": outside, "missed": missed, "cells": len(cells)}


def _numbers(answers: Answers, name: str, table: "DataFrame | None") -> tuple[list[tuple[str, str, str, str]], bool]:
    """Mean and quartiles of a number with their intervals and those of synthetic rows; none for categories."""
    column = answers.measured.axes[name].column
    if column.is_categorical:
        return [], False
    questions = {"mean": Question((name,), statistic="mean")}
    questions |= {word: Question((name,), statistic="quantile", quantile=q) for word, q in _QUANTILES.items()}
    values = np.empty(0) if table is None else column.numbers(table[name].dropna())
    drawn = [math.nan] * len(questions)
    if len(values):
        drawn = [float(values.mean()), *np.quantile(values, list(_QUANTILES.values())).tolist()]
    rows, outside = [], False
    for (word, question), synthetic in zip(questions.items(), drawn, strict=True):
        estimate, low, high, unreliable = next(answers.frame(question)[SHOWN].itertuples(index=False))
        text = "–" if math.isnan(synthetic) else column.type.label(synthetic)
        rows.append((*fact(word, estimate, low, high, bool(unreliable)), text))
        if word == "mean" and column.type.numeric_source:  # limits of a date are texts
            outside |= not (math.isnan(synthetic) or low <= synthetic <= high)
    return rows, outside
