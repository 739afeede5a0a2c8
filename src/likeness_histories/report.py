"""The numbers of the public page about people with histories: from what the numbers of a table come from. Free.

People are rows of one table, with the number of events and the first event. Pairs of events that follow each other are
those of another, in which the pairs of a person share the weight 1.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.data.schema.row_sets import GAP, prefix_of
from likeness.inference.estimates import Answers, Question
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.report.charts import Cell, bar, percent_interval, points
from likeness.report.formats import MOST_LISTED, fill_template, percent
from likeness.report.released_numbers import (
    SHOWN,
    SyntheticCounts,
    compare_release,
    labels,
    preview,
    print_numbers,
    texts,
)
from likeness_histories.row_sets import is_end, link_violations, order_numbers
from likeness_histories.schema import NEXT, HistorySchema

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_STATES = 12
"""Cells of a column in a transition matrix. A column with more has none."""

_TEMPLATES = Path(__file__).parent / "templates"


def histories_section(
    schema: HistorySchema,
    released: Iterable[Released],
    total: float | None,
    tables: "Mapping[str, DataFrame]",
    synthetic: Mapping[str, Iterable[Records]] | None,
) -> dict[str, Any]:
    """The part of the public page about both tables, ready to print.

    Args:
        schema: public.
        released: all files of the run.
        total: the number of people where it is public.
        tables: typed synthetic people and events, by name.
        synthetic: rows as the release counts them, by the prefix of their queries; None where they answer to a
            condition.
    """
    sorted_by_rows: dict[str, list[Released]] = {prefix: [] for prefix in schema.row_sets}
    for file in released:
        sorted_by_rows[prefix_of(schema.row_sets, file.receipt.query)].append(file)
    seen = {
        prefix: compare_release(rows, sorted_by_rows[prefix], None if prefix else total, (synthetic or {}).get(prefix))
        for prefix, rows in schema.row_sets.items()
    }
    people = print_numbers(schema.first_rows, *seen[""])
    first = tables["people"].head(MOST_LISTED)
    theirs = tables["events"][tables["events"][schema.person].isin(first[schema.person])]
    written, compares = schema.table_schemas, people["misfits"] is not None
    part = {**_report_section(schema, *seen[NEXT], first, theirs), "compared": compares}
    return {
        "source": schema.events.source,
        "numbers": people,
        "compared": compares,
        "rules": list(link_violations(schema, **tables).items()),
        "previews": [
            preview(first, written["people"], "People: the"),
            preview(theirs.head(2 * MOST_LISTED), written["events"], "Their events: the"),
        ],
        "sheet": [],
        "size": [(len(tables["people"]), "people"), (len(tables["events"]), "events")],
        "names": [rows.model_schema.names for rows in schema.row_sets.values()],
        "words": {"columns": "The people, column by column", "rows": "people", "records": "people"},
        "parts": [
            {"id": "histories", "title": "Histories", "html": fill_template("histories.html.j2", _TEMPLATES, **part)}
        ],
    }


def _report_section(
    schema: HistorySchema, answers: Answers, counts: SyntheticCounts | None, people: "DataFrame", events: "DataFrame"
) -> dict[str, Any]:
    """Show what the release says of events that follow each other, and the first synthetic people."""
    numbers = print_numbers(schema.next_rows, answers, counts)
    states = [column.name for column in schema.states if _has_matrix(answers, column.name)]
    return {
        "numbers": numbers,
        "matrices": [_matrix(schema, answers, counts, name) for name in states],
        "gaps": _gaps(schema, answers, counts),
        "lines": _lines(schema, people, events),
        "ordered": schema.order is not None,
    }


def _pair(name: str) -> tuple[str, str]:
    return f"last {name}", f"next {name}"


def _has_matrix(answers: Answers, name: str) -> bool:
    axes, pair = answers.measured.axes, _pair(name)
    return answers.measured.terms.is_measured(pair) and all(axes[column].size <= MOST_STATES for column in pair)


def _matrix(schema: HistorySchema, answers: Answers, counts: SyntheticCounts | None, name: str) -> dict[str, Any]:
    """Shares of the next cell given the last one, with their intervals; nothing follows an end."""
    last, following = _pair(name)
    measured = answers.measured
    frame = answers.frame(Question((following,), (last,)))
    shape = measured.axes[following].size, measured.axes[last].size
    share, low, high, unreliable = (frame[key].to_numpy().reshape(shape).T for key in SHOWN)
    drawn = None if counts is None else _count_cells(answers, counts, (last, following))
    rows = []
    for row, label in enumerate(labels(measured, last)):
        if label in schema.ends.get(name, ()):
            continue
        of_row = [None] * shape[0] if drawn is None or not drawn[row].sum() else drawn[row] / drawn[row].sum()
        cells = zip(share[row], low[row], high[row], unreliable[row], of_row, strict=True)
        rows.append((label, [_cell(*cell) for cell in cells]))
    return {
        "name": name,
        "open": measured.axes[last].column.is_categorical,
        "across": labels(measured, following),
        "rows": rows,
    }


def _cell(share: float, low: float, high: float, unreliable: bool, synthetic: float | None) -> dict[str, str]:
    dark = share if high - low < 1 else 0  # a wider interval says nothing, and that of NaN is NaN
    return {
        "share": f"({points(share)})" if unreliable else points(share),
        "interval": percent_interval(low, high),
        "synthetic": percent(synthetic),
        "dark": f"{40 * dark:.0f}",
    }


def _count_cells(answers: Answers, counts: SyntheticCounts, names: tuple[str, ...]) -> Any:
    """Synthetic rows in the cells of some columns, from a released table that has all of them."""
    for table, sums in zip(answers.measured.tables, counts.tables, strict=True):
        if set(names) <= set(table.columns):
            axes = [table.columns.index(name) for name in names]
            return np.moveaxis(sums, axes, range(len(names))).sum(axis=tuple(range(len(names), sums.ndim)))
    return None


def _gaps(schema: HistorySchema, answers: Answers, counts: SyntheticCounts | None) -> dict[str, Any] | None:
    """The share of gaps that are at least as long as each edge of their cells."""
    if GAP not in answers.measured.axes or schema.order is None:
        return None
    tails = answers.tails(GAP)
    drawn = [None] * len(tails) if counts is None else np.cumsum(counts.columns[GAP][::-1])[::-1] / counts.rows
    column = schema.next_rows.column(GAP)
    cells = [
        Cell(f"{column.type.label(start)} or more", share, low, high, synthetic, bool(unreliable))
        for (start, share, low, high, unreliable), synthetic in zip(
            tails[["from", *SHOWN]].itertuples(index=False), drawn, strict=True
        )
    ]
    unit = schema.events.column(schema.order).type.unit or f"units of {schema.order}"
    return {"unit": unit, "cells": [bar(cell, 1.0) for cell in cells[1:]]}


def _lines(schema: HistorySchema, people: "DataFrame", events: "DataFrame") -> list[dict[str, Any]]:
    """The synthetic people at the head of the table, each with a line of events on a common scale of 0 to 100."""
    keys = events[schema.person].to_numpy()
    positions = order_numbers(schema, events)
    if schema.order is None:
        positions = (np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")).astype(float)
    spread = (positions.max() - positions.min() or 1.0) if len(positions) else 1.0
    at = 99 * (positions - positions.min()) / spread if len(positions) else positions
    ends, written = is_end(schema, events), schema.table_schemas
    of_events, of_people = texts(events, written["events"]), texts(people, written["people"])
    order = None if schema.order is None else of_events[0].index(schema.order)
    lines = []
    for key, *cells in of_people[1:]:
        rows = np.flatnonzero(keys == int(key))
        marks = [
            {"x": f"{at[row]:.1f}", "end": bool(ends[row]), "text": ", ".join(of_events[row + 1][1:])} for row in rows
        ]
        start = of_events[rows[0] + 1][order] if order is not None and len(rows) else "–"
        lines.append({"who": [key, *cells], "marks": marks, "start": start})
    return lines
