"""The comparison with real rows: synthetic table, ceiling and floor, scored alike, written to ``reports/internal``.

NOT private: do not publish any of it, nor hashes or sizes of these files. Tables and images have files of equal names;
see :mod:`likeness.report.internal` for their content.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from likeness.config.params import Evaluate
from likeness.core.files import make_private_folder
from likeness.core.messages import progress
from likeness.data.schema.constrained_tables import violation_counts
from likeness.data.schema.schema import Schema
from likeness.evaluation.classifiers import MOST_TABLE_ROWS, Factory, select
from likeness.evaluation.details import details, neighbors
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import (
    auc_error,
    metrics_of,
    sample_rows,
    shuffle_columns,
    train_on_synthetic_test_on_real,
)

Tables = Mapping[str, pd.DataFrame]
"""``synthetic``, ``real`` (training rows, the ceiling) and ``shuffled`` (the shuffled baseline, the floor)."""

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Comparison:
    """A comparison with the held-out rows.

    Attributes:
        marginals: columns ``table``, ``order``, ``columns`` and ``total_variation``.
        distances: by table and name.
        figures: PNG bytes by file name without its suffix.
    """

    marginals: pd.DataFrame
    distances: dict[str, dict[str, float]]
    figures: dict[str, bytes]


def compare_tables(real_test: pd.DataFrame, tables: Tables, schema: Schema, settings: Evaluate) -> Comparison:
    """Compare tables: marginals of one to four columns, and L1 of all pairs."""
    drawn = schema, ORDERS, settings.bins, settings.max_tuples, settings.seed
    marginals = {name: marginal_table(real_test, table, *drawn) for name, table in tables.items()}
    distances = {}
    for name, rows in marginals.items():
        pairs = rows.query("order == 2")["total_variation"]
        # Total variation is half of the L1 distance.
        distances[name] = {"pairs_l1": 2 * float(pairs.mean())} if len(pairs) else {}
    return Comparison(join_marginals(marginals), distances, {})


def join_marginals(marginals: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The marginals of several tables as one frame with the name of each table."""
    rows = pd.concat(table.assign(table=name) for name, table in marginals.items())
    return rows[["table", "order", "columns", "total_variation"]]


FILES = ("metrics.json", "scores.csv", "marginals.csv")
"""The files of :func:`evaluate`, which always writes all of them. Images have pictures beside them."""


@dataclass(frozen=True)
class Measures:
    """The way in which tables of one kind are scored.

    Attributes:
        estimators: by name; None: the default of the task.
        most: rows of a table that estimators see, drawn by the public seed, unless ``evaluate.max_rows`` is set.
        compare: the comparison with the held-out rows.
        detailed: whether columns, pairs, groups and neighbors are compared too.
    """

    estimators: Mapping[str, Factory] | None = None
    most: int = MOST_TABLE_ROWS
    compare: Callable[[pd.DataFrame, Tables, Schema, Evaluate], Comparison] = compare_tables
    detailed: bool = True


def evaluate(
    real_train: pd.DataFrame,
    real_test: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    settings: Evaluate,
    out_dir: Path | str,
    measures: Measures | None = None,
    halved: bool = False,
) -> None:
    """Score the synthetic table against its ceiling and floor and write :data:`FILES`.

    Estimators learn from the synthetic rows, the real training rows (ceiling) and these with shuffled columns (floor).
    They are tested on the held-out rows. Marginals and distances of the three compare with the held-out rows too, so
    their ceiling is the sampling error between two real tables.

    Args:
        real_train: typed rows that the generator was (privately) trained on.
        real_test: typed held-out rows, the reference of every number.
        synthetic: typed rows of the generator.
        schema: public schema of all three.
        settings: section ``evaluate`` of params.yaml.
        out_dir: usually ``reports/internal/evaluation``.
        measures: how they are scored; None: as tables.
        halved: no row was held out, so both real tables are halves of the training rows.

    Raises:
        DataError: a table has no rows.
    """
    measures = measures or Measures()
    tables = {"synthetic": synthetic, "real": real_train, "shuffled": shuffle_columns(real_train, settings.seed)}
    scores = _scores(tables, real_test, schema, settings, measures)
    comparison = measures.compare(real_test, tables, schema, settings)
    summary: dict[str, Any] = {"not_private": True, "halved": halved, "image": not measures.detailed}
    summary |= _means(scores, comparison, metrics_of(schema.task))
    if schema.task == "classification":
        summary["auc_error"] = auc_error(_held_out(real_test, settings, measures)[schema.label])
    if measures.detailed:
        # Where both halves trained, a copy of either is as near as a copy of the other.
        near = None if halved else neighbors(tables, real_test, schema, settings.neighbor_rows, settings.seed)
        summary["details"] = {**details(tables, real_test, schema, settings.bins), "neighbors": near}
    if schema.rules:
        rows = {"synthetic": synthetic, "real": pd.concat([real_train, real_test])}
        summary["rules"] = {name: violation_counts(table, schema) for name, table in rows.items()}
    _write(Path(out_dir), summary, scores, comparison)


def _held_out(real_test: pd.DataFrame, settings: Evaluate, measures: Measures) -> pd.DataFrame:
    """The held-out rows that estimators are tested on."""
    return sample_rows(real_test, settings.max_rows or measures.most, settings.seed, "test")


def _scores(
    tables: Tables, real_test: pd.DataFrame, schema: Schema, settings: Evaluate, measures: Measures
) -> pd.DataFrame:
    """Scores of the estimators of each table; empty without a task."""
    held_out, metrics, seed = _held_out(real_test, settings, measures), metrics_of(schema.task), settings.seed
    columns = ["table", "classifier", *metrics, "seconds"]
    if not metrics:
        return pd.DataFrame(columns=columns)
    estimators = select(schema.task) if measures.estimators is None else measures.estimators
    scores, done = [], itertools.count(1)
    with progress("evaluate", len(tables) * len(estimators)) as step:  # estimators end in several threads
        for name, table in tables.items():

            def note(text: str, name: str = name) -> None:
                step(next(done), f"{name}: {text}")

            rows = sample_rows(table, settings.max_rows or measures.most, seed, name)
            frame = train_on_synthetic_test_on_real(rows, held_out, schema, seed, estimators, settings.workers, note)
            scores.append(frame.assign(table=name)[columns])
    return pd.concat(scores)


def _write(out: Path, summary: Mapping[str, Any], scores: pd.DataFrame, comparison: Comparison) -> None:
    """Write :data:`FILES` into a folder, and the pictures of images."""
    make_private_folder(out)
    scores.to_csv(out / "scores.csv", index=False)
    comparison.marginals.to_csv(out / "marginals.csv", index=False)
    for name, png in comparison.figures.items():
        (out / f"{name}.png").write_bytes(png)
    (out / "metrics.json").write_bytes(json.dumps(summary, indent=1).encode())


def _means(scores: pd.DataFrame, comparison: Comparison, metrics: Sequence[str]) -> dict[str, Any]:
    """Means over the estimators of each table, over the marginals of each table and order, and the distances."""
    by_table = scores.groupby("table", sort=False)[list(metrics)].mean() if len(scores) else scores.set_index("table")
    by_order = comparison.marginals.groupby(["table", "order"], sort=False)["total_variation"].mean().unstack()
    return {
        "estimators": scores["classifier"].unique().tolist(),
        "scores": {str(name): {key: float(row[key]) for key in metrics} for name, row in by_table.iterrows()},
        "marginals": {
            str(name): {str(order): float(value) for order, value in row.items() if value == value}
            for name, row in by_order.iterrows()
        },
        "distances": comparison.distances,
    }
