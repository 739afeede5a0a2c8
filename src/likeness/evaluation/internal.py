"""The comparison with real rows: synthetic table, ceiling and floor, scored alike, written to ``reports/internal``.

NOT private: nothing of it may be published. Each file is padded with random text, so that the hash that a pipeline
stores of it says nothing about the rows, and the size nothing but its order of magnitude.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from likeness import rng
from likeness.data.schema import Schema
from likeness.evaluation import figures
from likeness.evaluation.controls import shuffle_columns
from likeness.evaluation.histograms import histograms
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.padding import padded_csv, padded_json
from likeness.evaluation.utility import metrics_of, train_on_synthetic_test_on_real
from likeness.params import Evaluate

FILES = ("metrics.json", "scores.csv", "marginals.csv", "histograms.png", "correlations.png", "scores.png")
"""What :func:`evaluate` writes, always all of it."""

CHARTED = {
    "classification": ("roc_auc_score", "roc_auc_hard", "average_precision_score", "f1"),
    "regression": ("r2", "rmse"),
}


def evaluate(
    real_train: pd.DataFrame,
    real_test: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    settings: Evaluate,
    out_dir: Path | str,
    *,
    classifiers: Sequence[str] | None = None,
    max_rows: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Score the synthetic table against its ceiling and floor and write :data:`FILES`.

    Estimators learn from the synthetic rows, the real training rows (ceiling) and the same rows with shuffled columns
    (floor), and are tested on the held-out rows. Marginals of the same three are compared with those of the held-out
    rows, so the ceiling of the marginals is the sampling error between two real tables.

    Args:
        real_train: typed rows that the generator was (privately) trained on.
        real_test: typed held-out rows, the reference of every number.
        synthetic: typed rows of the generator.
        schema: public schema of all three.
        settings: section ``evaluate`` of params.yaml.
        out_dir: usually ``reports/internal``.
        classifiers: names of the estimators; None means all of the task.
        max_rows: most rows of a table that estimators see, drawn by the public seed; None means all. Marginals take all
            rows.
        progress: called with a short text without any number as each estimator ends.

    Raises:
        DataError: a table has no rows.
    """
    tables = {"synthetic": synthetic, "real": real_train, "shuffled": shuffle_columns(real_train, settings.seed)}
    metrics = metrics_of(schema.task)
    scores, marginals = [], []
    for name, table in tables.items():
        if schema.task != "none":
            rows = train_on_synthetic_test_on_real(
                _at_most(table, max_rows, settings.seed, name),
                _at_most(real_test, max_rows, settings.seed, "test"),
                schema,
                settings.seed,
                classifiers,
                settings.workers,
                None if progress is None else lambda text, name=name: progress(f"{name}: {text}"),  # type: ignore[misc]
            )
            scores.append(rows.assign(table=name))
        rows = marginal_table(
            real_test, table, schema, bins=settings.bins, max_tuples=settings.max_tuples, seed=settings.seed
        )
        marginals.append(rows.assign(table=name))
    columns = ["table", "classifier", *metrics, "seconds"]
    score_table = pd.concat(scores)[columns] if scores else pd.DataFrame(columns=columns)
    marginal_rows = pd.concat(marginals)[["table", "order", "columns", "total_variation"]]

    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    out.chmod(0o700)  # also where it was there already
    (out / "scores.csv").write_bytes(padded_csv(score_table))
    (out / "marginals.csv").write_bytes(padded_csv(marginal_rows))
    (out / "histograms.png").write_bytes(histograms(real_train, synthetic, schema))
    (out / "correlations.png").write_bytes(figures.correlations(real_train, synthetic, schema, settings.bins))
    (out / "scores.png").write_bytes(figures.score_chart(score_table, CHARTED.get(schema.task, ())))
    summary = {
        "not_private": True,
        "reference": "held-out real rows",
        **_summary(score_table, marginal_rows, metrics),
    }
    (out / "metrics.json").write_bytes(padded_json(summary))


def _summary(scores: pd.DataFrame, marginals: pd.DataFrame, metrics: Sequence[str]) -> dict[str, Any]:
    """Means over the estimators of each table, and over the marginals of each table and order."""
    by_table = scores.groupby("table", sort=False)[list(metrics)].mean() if len(scores) else scores.set_index("table")
    by_order = marginals.groupby(["table", "order"], sort=False)["total_variation"].mean().unstack()
    return {
        "scores": {str(name): {key: float(row[key]) for key in metrics} for name, row in by_table.iterrows()},
        "marginals": {
            str(name): {str(order): float(value) for order, value in row.items() if value == value}
            for name, row in by_order.iterrows()
        },
    }


def _at_most(table: pd.DataFrame, max_rows: int | None, seed: int, purpose: str) -> pd.DataFrame:
    if max_rows is None or len(table) <= max_rows:
        return table
    chosen = rng.public(seed, f"evaluation.rows.{purpose}").choice(len(table), max_rows, replace=False)
    return table.iloc[sorted(chosen)]
