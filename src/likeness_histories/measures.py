"""How far the histories of one table of people are from those of another.

All measures start from the two row sets of :mod:`likeness_histories.row_sets`. Cells are those of
:mod:`likeness.evaluation.marginals`, so their edges are public. Each distance is a total variation: 0 for equal
shares, 1 for tables without a common cell. Another half of the real people shows the ceiling. :func:`shuffle_row_sets`
makes the floor: its numbers of events and its single columns are real, and nothing depends on anything.

Numbers about real people are private. They belong into ``reports/internal/`` alone.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.files import make_private_folder
from likeness.data.schema.column import Column
from likeness.data.schema.row_sets import GAP, NUMBER, STEP
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import with_columns
from likeness.evaluation.marginals import cells, total_variation
from likeness.report.formats import number
from likeness.report.internal import FILES
from likeness_histories.row_sets import HistoryRows, rows_of_tables, steps_of
from likeness_histories.schema import HistorySchema

Measures = dict[str, float]

_FOLDS = 3
_FEWEST = 2 * _FOLDS


def history_distances(schema: HistorySchema, real: HistoryRows, other: HistoryRows, bins: int = 16) -> Measures:
    """Mean total variation of each group of marginals; a group without marginals or rows is left out.

    Args:
        schema: public.
        real: the reference.
        other: what is compared with it.
        bins: cells of a numeric column.

    Returns:
        ``lengths``, ``first_events``, ``last_events``, ``transitions`` (a column before and after), ``gaps``,
        ``person_and_first_event`` (pairs of their columns, the number of events among them),
        ``person_and_next_event`` and ``events_by_step`` (the k-th event by k).
    """
    person = [column.name for column in schema.person_columns]
    first = [f"first {column.name}" for column in schema.time_varying]
    events = [f"next {column.name}" for column in schema.states]
    pairs = [(f"last {column.name}", f"next {column.name}") for column in schema.states]
    gap = [(GAP,)] if schema.order is not None else []
    steps, _ = with_steps(schema, real)
    groups: dict[str, tuple[Schema, str, list[tuple[str, ...]]]] = {
        "lengths": (schema.first_rows, "people", [(NUMBER,)]),
        "first_events": (schema.first_rows, "people", [(name,) for name in first]),
        "last_events": (schema.first_rows, "last", [(name,) for name in first if name != f"first {schema.order}"]),
        "transitions": (schema.next_rows, "transitions", list(pairs)),
        "gaps": (schema.next_rows, "transitions", list(gap)),
        "person_and_first_event": (schema.first_rows, "people", [(x, y) for x in person for y in (NUMBER, *first)]),
        "person_and_next_event": (schema.next_rows, "transitions", [(x, y) for x in person for y in events]),
        "events_by_step": (steps, "steps", [(STEP, name) for name in events]),
    }
    sets = [
        {
            "people": rows.people,
            "transitions": rows.transitions,
            "steps": with_steps(schema, rows)[1],
            "last": _with_last_event(schema, rows),
        }
        for rows in (real, other)
    ]
    measures = {}
    for group, (table, rows_of, marginals) in groups.items():
        a, b = (tables[rows_of] for tables in sets)
        if marginals and len(a) and len(b):
            measures[group] = _mean_distance(a, b, table, marginals, bins)
    return measures


def _mean_distance(
    a: pd.DataFrame, b: pd.DataFrame, schema: Schema, marginals: Iterable[tuple[str, ...]], bins: int
) -> float:
    (codes_a, sizes), (codes_b, _) = cells(a, schema, bins), cells(b, schema, bins)
    numbers = [[schema.names.index(name) for name in names] for names in marginals]
    return float(np.mean([total_variation(codes_a, codes_b, sizes, chosen) for chosen in numbers]))


def with_steps(schema: HistorySchema, rows: HistoryRows) -> tuple[Schema, pd.DataFrame]:
    """Transitions with each step as a class of its own, and their schema."""
    column = Column(STEP, "categorical", categories=tuple(map(str, range(1, schema.most_events))), ordered=True)
    columns = tuple(column if each.name == STEP else each for each in schema.next_rows.columns)
    steps = column.to_typed(steps_of(rows.numbers) - 1)
    return replace(schema.next_rows, columns=columns), with_columns(rows.transitions, {STEP: steps.array})


def _with_last_event(schema: HistorySchema, rows: HistoryRows) -> pd.DataFrame:
    """Rows of people with the last event in place of the first; the order, which transitions lack, stays the first."""
    table = rows.people.copy()
    persons, at = np.unique(rows.numbers[::-1], return_index=True)
    indices = len(rows.numbers) - 1 - at
    for column in schema.states:
        first = table[f"first {column.name}"].copy()
        first.iloc[persons] = rows.transitions[f"next {column.name}"].iloc[indices].array
        table[f"first {column.name}"] = first
    return table


def shuffle_row_sets(rows: HistoryRows, seed: int) -> HistoryRows:
    """The floor: each column of both row sets in a public random order of its own."""
    random = rng.public(seed, "evaluation.histories.shuffled")

    def mix(table: pd.DataFrame) -> pd.DataFrame:
        orders = {name: random.permutation(len(table)) for name in table}
        return pd.DataFrame({name: table[name].array.take(order) for name, order in orders.items()})

    return HistoryRows(mix(rows.people), mix(rows.transitions), rows.numbers)


def summaries(schema: HistorySchema, rows: HistoryRows, bins: int = 16) -> NDArray[np.float64]:
    """A few numbers of each person, shape (people, features).

    They are the cells of the person's row, and the mean and the deviation of the cells of the transitions.
    """
    of_person, _ = cells(rows.people, schema.first_rows, bins)
    codes, _ = cells(rows.transitions, schema.next_rows, bins)
    count = np.bincount(rows.numbers, minlength=len(of_person))
    features = [of_person.astype(np.float64)]
    for column in codes.T.astype(np.float64):
        sums = [np.bincount(rows.numbers, column**power, len(of_person)) for power in (1, 2)]
        mean, square = (total / np.maximum(count, 1) for total in sums)
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        features += [np.where(count > 0, values, -1.0)[:, None] for values in (mean, deviation)]
    return np.hstack(features)


def discrimination(schema: HistorySchema, real: HistoryRows, other: HistoryRows, seed: int = 0) -> float:
    """ROC AUC of a classifier that tells people of both tables apart by :func:`summaries`; 0.5 is the best.

    Three folds, each judged by a classifier of the other two. Equally many people of each table take part. NaN where
    a table has fewer than six.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    size = min(len(real.people), len(other.people))
    if size < _FEWEST:
        return float("nan")
    random = rng.public(seed, "evaluation.histories.discrimination")
    parts = []
    for rows in (real, other):
        features = summaries(schema, rows)
        parts.append(features[random.choice(len(features), size, replace=False)])
    labels = np.repeat([0, 1], size)
    number = rng.public_seed(seed, "evaluation.histories.discrimination") % 2**32  # scikit-learn takes 32 bits
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=number)
    judge = HistGradientBoostingClassifier(max_iter=50, random_state=number)
    scores = cross_val_predict(judge, np.vstack(parts), labels, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(labels, scores))


def evaluate_histories(
    schema: HistorySchema,
    real: Mapping[str, HistoryRows],
    drawn: Mapping[str, pd.DataFrame],
    seed: int,
    out_dir: Path,
    unknown: int,
    halved: bool = False,
) -> None:
    """Write the distances of three tables from held-out people: synthetic, ceiling and floor.

    Args:
        schema: public.
        real: rows of training people and of held-out ones, by part.
        drawn: both synthetic tables with their keys, by name.
        seed: public.
        out_dir: usually ``reports/internal/evaluation``.
        unknown: number of events that name nobody among the people.
        halved: nobody was held out, so both real parts are halves of the training people.
    """
    synthetic = rows_of_tables(schema, **drawn)
    compared = {"synthetic": synthetic, "real": real["train"], "shuffled": shuffle_row_sets(real["train"], seed)}
    measures = {}
    for name, rows in compared.items():
        judged = {"discrimination": discrimination(schema, real["test"], rows, seed)}
        measures[name] = {**history_distances(schema, real["test"], rows), **judged}
    others, ours = ("reference", "other") if halved else ("held-out", "training")
    summary = {
        "scores": {},
        "marginals": {},
        "distances": measures,
        "halved": halved,
        "unit": "people",
        "caption": f"Total variation from {others} people, 0 to 1; smaller is better. Real are {ours} people. Shuffled "
        "people have shuffled columns. Discrimination: the AUC of a classifier that tells real histories from these; "
        ".5 is best.",
        "notes": [f"Events that name nobody among the people are left out: {number(unknown)}."],
    }
    metrics, *tables = FILES
    make_private_folder(out_dir)
    (out_dir / metrics).write_bytes(json.dumps(summary, indent=1).encode())
    for name in tables:
        (out_dir / name).write_bytes(b"")  # no classifier and no marginal of histories
