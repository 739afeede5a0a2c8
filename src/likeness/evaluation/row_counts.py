"""Scores of classifiers that learn from few and from many synthetic rows.

More rows help until the table has no more information. Vinaroz et al. (DP-HP, ICML 2022), figure 3, go from 60 rows to
60,000. Their private generators reach their best scores at 3,000 to 6,000 rows.
"""

from collections.abc import Callable, Sequence

import pandas as pd

from likeness.core import rng
from likeness.data.schema.schema import Schema
from likeness.evaluation.images import Shape
from likeness.evaluation.utility import metrics_of, train_on_synthetic_test_on_real

PAPER = (60, 300, 600, 3_000, 6_000, 30_000, 60_000)
"""Numbers of rows, from a thousandth of MNIST to all of it."""

QUICK = {"classification": ("logistic_regression",), "regression": ("ridge",)}
"""Estimator of the stage by task: it learns in seconds."""


def scores_by_rows(
    synthetic: pd.DataFrame,
    test_df: pd.DataFrame,
    schema: Schema,
    seed: int,
    counts: Sequence[int] = PAPER,
    classifiers: Sequence[str] | None = None,
    repeats: int = 1,
    max_workers: int = 2,
    progress: Callable[[str], None] | None = None,
    shape: Shape | None = None,
) -> pd.DataFrame:
    """Scores of estimators that learn from the first rows of a public random order.

    Args:
        synthetic: typed table to learn from.
        test_df: typed real rows that no model learned from.
        schema: public schema of both.
        seed: public seed of the orders and the estimators.
        counts: numbers of rows; those above the table's are skipped.
        classifiers: names from the registry of the task; None: all.
        repeats: number of orders, each with new estimators.
        max_workers: estimators at a time.
        progress: called with a count and a name as each estimator ends, and with no score.
        shape: height and width if rows are images; None: as in the schema.

    Returns:
        Columns ``rows``, ``repeat``, ``classifier`` and the scores of the task.
    """
    metrics = list(metrics_of(schema.task))
    tables = [pd.DataFrame(columns=["rows", "repeat", "classifier", *metrics])]
    for repeat in range(repeats):
        order = rng.public(seed, f"evaluation.row_counts.{repeat}").permutation(len(synthetic))
        for count in sorted({count for count in counts if count <= len(synthetic)}):
            scores = train_on_synthetic_test_on_real(
                synthetic.iloc[order[:count]],
                test_df,
                schema,
                rng.public_seed(seed, f"evaluation.row_counts.{repeat}"),
                classifiers,
                max_workers,
                None if progress is None else lambda name, count=count: progress(f"{count} rows: {name}"),  # type: ignore[misc]
                shape,
            )
            tables.append(scores.assign(rows=count, repeat=repeat)[["rows", "repeat", "classifier", *metrics]])
    return pd.concat(tables[1:], ignore_index=True) if len(tables) > 1 else tables[0]
