r"""The numbers of the public page about the table: from released values, the public schema and synthetic rows. Free.

*Expected error of a pair.* Its estimated cells have errors with standard deviations :math:`\sigma_c`, in records. The
mean of :math:`|X|` for a normal X is :math:`\sigma \sqrt{2 / \pi}`. So the total variation of the estimated table from
the true one has a mean of :math:`\sum_c \sigma_c / (\sqrt{2 \pi} N)` for N records.

*Residual of a pair.* A cell with noisy count y and variance v has s of n synthetic rows. The model's count is
:math:`m = s N / n`, and its variance as a sample of rows is :math:`m N / n`. If the model were the truth, the squares
:math:`(y - m)^2 / (v + m N / n)` of k cells would have a mean of 1, and their mean a standard deviation of about
:math:`\sqrt{2 / k}`. A pair does not fit if its mean is more than :data:`LIMIT` of these above 1. The model saw the
noise, so a mean below 1 is usual. Rows of histories share the weight 1 of their person. Such a weight in a cell lies
between 0 and 1, so :math:`m N / n` is at least its variance, and fewer pairs seem not to fit.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.data.encoding.dtypes import in_dtypes
from likeness.data.schema.constrained_tables import violation_counts
from likeness.data.schema.schema import Schema
from likeness.inference.estimates import Answers, Question
from likeness.inference.measurements import Measurements, measurements
from likeness.inference.terms import Table
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.report.formats import MOST_LISTED, heat_map, number, percent

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_CELLS = 24
"""Rows of a histogram: of a column with more cells, those with the largest shares."""
MOST_MAPPED = 60
"""Columns of the heat map. A wider table has the first ones."""
MOST_PREVIEWED = 40
MOST_OPEN = 16
"""A table with more columns has its histograms folded."""
LIMIT = 3.0
SHOWN = ["estimate", "low", "high", "unreliable"]
"""Columns of estimates that the page shows."""
_QUANTILES = {"lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75}
_NOTHING = 1e-6  # a margin of rounding, where no noise was added
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
    def of(cls, measured: Measurements, chunks: Iterable[Records]) -> "SyntheticCounts":
        """Count encoded synthetic rows."""
        sizes = {name: axis.size for name, axis in measured.axes.items()}
        columns = {name: np.zeros(size) for name, size in sizes.items()}
        counts = cls(columns, [np.zeros(table.counts.shape) for table in measured.tables])
        for chunk in chunks:
            weights = np.ones(len(chunk.x)) if chunk.shared_by is None else 1 / chunk.shared_by
            cells = measured.cells
            places = {name: cells[name].places(chunk.x) if name in cells else chunk.labels for name in sizes}
            for name, total in counts.columns.items():
                total += np.bincount(places[name], weights, sizes[name])
            for table, sums in zip(measured.tables, counts.tables, strict=True):
                if table.columns:
                    flat = np.ravel_multi_index([places[name] for name in table.columns], sums.shape)
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
    numbers = printed(schema.modeled, *compared(schema.modeled, released, total, synthetic))
    return {
        "numbers": numbers,
        "compared": numbers["misfits"] is not None,
        "rules": list(violation_counts(table, schema).items()),
        "previews": [] if schema.image is not None else [preview(table.head(MOST_LISTED), schema)],
        "histories": None,
    }


def preview(table: "DataFrame", schema: Schema) -> dict[str, Any]:
    """A few rows, ready to print."""
    rows = texts(table, schema)
    return {"header": rows[0], "rows": rows[1:], "more_columns": max(0, len(schema.names) - MOST_PREVIEWED)}


def texts(table: "DataFrame", schema: Schema) -> list[list[str]]:
    """A few rows as texts, the names of the columns first, as the CSV of the table has them."""
    text = in_dtypes(table, schema).iloc[:, :MOST_PREVIEWED].to_csv(index=False, lineterminator="\n")
    return list(csv.reader(io.StringIO(text, newline="")))


def compared(
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
    measured = measurements(schema, sorted(released, key=lambda one: one.receipt.query), total)
    counts = None if synthetic is None else SyntheticCounts.of(measured, synthetic)
    return Answers(measured), None if counts is None or not counts.rows else counts


def printed(schema: Schema, answers: Answers, counts: SyntheticCounts | None) -> dict[str, Any]:
    """Histograms, numbers and errors, ready to print."""
    measured = answers.measured
    shares = {name: answers.frame(Question((name,))) for name in measured.axes}
    columns = [_column(answers, name, shares[name], counts) for name in schema.names if name in shares]
    pairs = [pair for pair in combinations(list(measured.axes)[:MOST_MAPPED], 2) if measured.terms.measured(pair)]
    errors = {pair: pair_error(measured, pair) for pair in pairs}
    return {
        "records": number(max(0, round(measured.terms.total))),
        "columns": columns,
        "max_cv": Question.max_cv,
        "open": len(columns) <= MOST_OPEN,
        "without": [name for name in schema.names if name not in shares],
        "map": heat_map(list(measured.axes)[:MOST_MAPPED], errors) if errors else None,
        "cut": len(measured.axes) > MOST_MAPPED,
        "noisiest": _noisiest(measured, shares),
        "misfits": None if counts is None else misfits(measured, counts),
    }


def pair_error(measured: Measurements, pair: tuple[str, str]) -> float:
    """Expected total variation of the estimated table of two columns from the true one, from the noise alone.

    It is 1 at most, as of any two tables.
    """
    forms = {name: np.eye(measured.axes[name].size) for name in pair}
    errors = np.sqrt(np.maximum(measured.terms.covariance(forms, forms), 0))
    return min(1.0, float(errors.sum()) / (math.sqrt(2 * math.pi) * max(1.0, measured.terms.total)))


def misfits(measured: Measurements, counts: SyntheticCounts) -> dict[str, Any]:
    """Released tables of several columns that the synthetic rows do not fit within the noise, worst first."""
    rows, tested = [], 0
    for table, synthetic in zip(measured.tables, counts.tables, strict=True):
        if len(table.columns) < 2 or table.variance == 0:
            continue
        tested += 1
        scale = measured.terms.total / counts.rows
        model = synthetic * scale
        residuals = (table.counts - model) / np.sqrt(table.variance + model * scale)
        mean = float((residuals**2).mean())
        if mean > 1 + LIMIT * math.sqrt(2 / residuals.size):
            place = np.unravel_index(np.abs(residuals).argmax(), residuals.shape)
            rows.append((mean, " × ".join(table.columns), _cell(measured, table, place), float(residuals[place])))
    rows.sort(key=lambda row: (-row[0], row[1]))
    shown = [
        (names, f"{math.sqrt(mean):.2f}", cell, f"{worst:+.1f}".replace("-", "−"))
        for mean, names, cell, worst in rows[:MOST_LISTED]
    ]
    return {"tested": tested, "count": len(rows), "rows": shown}


def _cell(measured: Measurements, table: Table, place: Sequence[Any]) -> str:
    return ", ".join(labels(measured, name)[int(at)] for name, at in zip(table.columns, place, strict=True))


def labels(measured: Measurements, name: str) -> list[str]:
    """The cells of a column in words."""
    return [_MISSING if label is None else label for label in measured.axes[name].labels]


def _column(answers: Answers, name: str, shares: "DataFrame", counts: SyntheticCounts | None) -> dict[str, Any]:
    """The histogram and the numbers of a column."""
    rows = [] if counts is None else (counts.columns[name] / counts.rows).tolist()
    cells: list[dict[str, Any]] = [
        {
            "label": label,
            "share": (share, low, high),
            "unreliable": unreliable,
            "synthetic": rows[place] if rows else None,
        }
        for place, (label, (share, low, high, unreliable)) in enumerate(
            zip(labels(answers.measured, name), shares[SHOWN].itertuples(index=False), strict=True)
        )
    ]
    most = sorted(range(len(cells)), key=lambda place: -cells[place]["share"][0])[:MOST_CELLS]
    largest = max((max(cell["synthetic"] or 0, cell["share"][2]) for cell in cells), default=0) or 1.0
    return {
        "name": name,
        "cells": [bar(cells[place], largest) for place in sorted(most)],
        "hidden": len(cells) - len(most),
        "numbers": _numbers(answers, name),
    }


def bar(cell: Mapping[str, Any], largest: float) -> dict[str, Any]:
    """A row of a histogram as texts, and places on a scale of 0 to 100.

    Args:
        cell: ``label``, ``share`` (estimate, low, high), whether it is ``unreliable``, and the ``synthetic`` share.
        largest: the end of the scale.
    """
    share, low, high = (min(max(0.0, end), largest) for end in cell["share"])  # of 0.0 and NaN max takes the first
    text = points(cell["share"][0])
    places = [f"{100 * end / largest:.1f}" for end in (share, low, high - low)]
    synthetic = cell["synthetic"]
    return {
        "label": cell["label"],
        "share": f"({text})" if cell["unreliable"] else text,
        "interval": between(*cell["share"][1:]),
        "synthetic": percent(synthetic),
        "places": places,
        "mark": None if synthetic is None else f"{min(100 * synthetic / largest, 99.2):.1f}",
    }


def between(low: float, high: float) -> str:
    """An interval of shares in percent."""
    return f"{points(low).removesuffix(' %')} to {points(high)}"


def points(share: float) -> str:
    """A share in percent, ``–`` for NaN."""
    return percent(None if math.isnan(share) else share)


def _numbers(answers: Answers, name: str) -> list[tuple[str, str, str]]:
    """Mean and quartiles of a number with their intervals; none for categories."""
    if answers.measured.axes[name].column.is_categorical:
        return []
    questions = {"mean": Question((name,), statistic="mean")}
    questions |= {word: Question((name,), statistic="quantile", quantile=q) for word, q in _QUANTILES.items()}
    frames = {word: answers.frame(question) for word, question in questions.items()}
    return [
        (word, f"({number(estimate)})" if unreliable else number(estimate), f"{number(low)} to {number(high)}")
        for word, frame in frames.items()
        for estimate, low, high, unreliable in frame[SHOWN].itertuples(index=False)
    ]


def _noisiest(measured: Measurements, shares: Mapping[str, "DataFrame"]) -> list[tuple[str, str, str, str]]:
    """Cells of single columns whose margin is largest beside their share."""
    cells = [
        (margin / max(share, 1e-9), f"{name} = {label}", share, margin)
        for name, frame in shares.items()
        for label, share, margin in zip(
            labels(measured, name), frame["estimate"], (frame["high"] - frame["low"]) / 2, strict=True
        )
        if margin > _NOTHING
    ]
    cells.sort(key=lambda cell: (-cell[0], cell[1]))
    return [
        (cell, points(share), f"± {percent(margin)}", f"{ratio:.1f}" if share > 0 and ratio < 1000 else "–")
        for ratio, cell, share, margin in cells[:MOST_LISTED]
    ]
