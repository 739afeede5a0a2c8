"""Train on synthetic, test on real: the worth of a table for learning.

Scores come in two kinds. ``*_hard`` come from predicted classes, as in the papers' code; this ROC AUC is the balanced
accuracy. ``*_score`` come from the classifier's ranking. Of two classes the last one of the schema is positive. Of more
classes, AUC and average precision are one-vs-rest, averaged over the classes of the test rows. F1 is weighted by class
frequency. Regression has ``r2`` and ``rmse``, on the label in units of its public range after its public transform.

A bad generator may produce one class only. This is no error: each classifier is then constant and scores as chance (ROC
AUC 0.5, average precision = share of the class in the test rows). Some estimators cannot learn from fewer than 10 rows,
or from fewer than two a class on average; such tables score as chance too.

Two scores give meaning to that of a synthetic table. The ceiling is that of the real training table. The floor is that
of the shuffled baseline (:func:`shuffle_columns`). Both come from real rows: internal.

By default two estimators run at a time, each on one thread of BLAS and OpenMP. The heavy parts (trees, BLAS) release
the interpreter lock, and threads share the features. Features are float32, (n, d).
"""

import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from likeness.core import rng
from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.evaluation.classifiers import CLASSIFIERS, REGRESSORS, SLOWEST_FIRST, Factory, check_installed, select

Array = NDArray[Any]

_OF_RANKINGS = ("roc_auc_hard", "roc_auc_score", "average_precision_hard", "average_precision_score")
CLASSIFICATION_METRICS = (*_OF_RANKINGS, "f1", "accuracy")
REGRESSION_METRICS = ("r2", "rmse")

FEWEST_ROWS = 10
"""Fewest rows for a fit. With fewer, the prediction is the majority class or the mean label."""


def metrics_of(task: str) -> tuple[str, ...]:
    """Names of the scores of a task; empty for ``none``."""
    return {"classification": CLASSIFICATION_METRICS, "regression": REGRESSION_METRICS}.get(task, ())


def auc_error(labels: "pd.Series[Any]") -> float:
    """Two standard errors of a ROC AUC of two classes, at most, by its test rows alone.

    Its variance is at most AUC (1 − AUC) over the rows of the smaller class (Birnbaum and Klose 1957), so 1/4 over
    these rows.

    Args:
        labels: classes of the test rows, at least one.
    """
    counts = labels.value_counts()
    return float(counts[counts > 0].min() ** -0.5)


def features_and_label(df: pd.DataFrame, schema: Schema) -> tuple[Array, Array]:
    """Features (n, d) float32 and label (n,): class index int64, or the encoded numeric label in [0, 1].

    The encoder counts a numeric label among the features, since it is generated like one. It is removed here.

    Raises:
        DataError: the schema has no label.
    """
    encoder = Encoder(schema)
    codes = encoder.encode(df)
    x = encoder.expand(codes).astype(np.float32)
    if schema.task == "classification":
        return x, encoder.labels(codes)
    label = schema.label_column
    if schema.task != "regression" or label is None:
        raise DataError(f"schema {schema.name}: task {schema.task} has no label to learn. Set task and label.")
    keep = np.ones(x.shape[1], bool)
    for block in encoder.layout.blocks:
        if block.column == label.name:
            keep[block.start : block.stop] = False
    return x[:, keep], codes[label.name].to_numpy(np.float64)


def decision_scores(model: Any, x: Array, classes: Array, num_classes: int) -> Array:
    """One score a class (n, num_classes) of a fitted classifier; larger is more probable, and an unseen class is last.

    Naive Bayes gives log odds. Its probabilities are products over many columns. For two thirds of Adult's test rows
    they round to exactly 0 and 1, so rows that it can rank would count as ties.

    Args:
        model: fitted on labels 0..len(classes)-1.
        x: features (n, d).
        classes: schema class index of each label of the model, sorted.
        num_classes: number of classes in the schema.
    """
    if hasattr(model, "predict_joint_log_proba"):
        # In float32, the type of the features, such logarithms are whole numbers apart.
        seen = log_odds(np.asarray(model.predict_joint_log_proba(x.astype(np.float64)), np.float64))
    elif hasattr(model, "predict_proba"):
        seen = np.asarray(model.predict_proba(x), np.float64)
    else:
        seen = np.asarray(model.decision_function(x), np.float64)
        if seen.ndim == 1:
            seen = np.stack([-seen, seen], axis=1)
    seen = np.nan_to_num(seen)
    scores = np.full((len(x), num_classes), seen.min())
    scores[:, classes] = seen
    return scores


def log_odds(joint: Array) -> Array:
    """Log odds of each class against the others (n, C), from the logarithms of joint probabilities (n, C), C ≥ 2.

    They grow with the posterior probability, and differ long after it has rounded to 0 or 1.
    """
    others = [logsumexp(np.delete(joint, label, axis=1), axis=1) for label in range(joint.shape[1])]
    odds: Array = joint - np.stack(others, axis=1)
    return odds


def one_vs_rest(truth: Array, scores: Array, metric: Callable[[Array, Array], float]) -> float:
    """A ranking metric for class scores (n, C): of the last class if C = 2, else the mean over classes in ``truth``.

    Where no class splits the test rows there is nothing to rank: 0.5.
    """
    num_classes = scores.shape[1]
    candidates = [num_classes - 1] if num_classes == 2 else range(num_classes)
    splitting = [label for label in candidates if 0 < np.sum(truth == label) < len(truth)]
    values = [float(metric(truth == label, scores[:, label])) for label in splitting]
    return float(np.mean(values)) if values else 0.5


def classification_scores(truth: Array, predicted: Array, scores: Array) -> dict[str, float]:
    """All of :data:`CLASSIFICATION_METRICS` for class indices (n,), predictions (n,) and class scores (n, C)."""
    from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

    num_classes = scores.shape[1]
    hard = np.eye(num_classes)[predicted]
    average = "binary" if num_classes == 2 else "weighted"
    return {
        "roc_auc_hard": one_vs_rest(truth, hard, roc_auc_score),
        "roc_auc_score": one_vs_rest(truth, scores, roc_auc_score),
        "average_precision_hard": one_vs_rest(truth, hard, average_precision_score),
        "average_precision_score": one_vs_rest(truth, scores, average_precision_score),
        "f1": float(f1_score(truth, predicted, average=average, zero_division=0)),
        "accuracy": float(accuracy_score(truth, predicted)),
    }


def fit_and_score(
    factory: Factory, seed: int, train: tuple[Array, Array], test: tuple[Array, Array], num_classes: int
) -> dict[str, float]:
    """Fit one estimator and score it; ``num_classes`` = 0 means regression."""
    from sklearn.metrics import r2_score

    (x, y), (x_test, y_test) = train, test
    if num_classes == 0:
        constant = len(y) < FEWEST_ROWS
        predicted = np.full(len(y_test), y.mean()) if constant else factory(seed).fit(x, y).predict(x_test)
        predicted = np.nan_to_num(np.asarray(predicted, np.float64))
        error = float(np.sqrt(np.mean((predicted - y_test) ** 2)))
        return {"r2": float(r2_score(y_test, predicted)) if len(y_test) > 1 else 0.0, "rmse": error}
    classes, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) == 1 or len(y) < max(FEWEST_ROWS, 2 * len(classes)):
        predicted = np.full(len(y_test), classes[counts.argmax()])
        return classification_scores(y_test, predicted, np.eye(num_classes)[predicted])
    model = factory(seed).fit(x, labels)
    predicted = classes[np.asarray(model.predict(x_test), np.int64)]
    return classification_scores(y_test, predicted, decision_scores(model, x_test, classes, num_classes))


def train_on_synthetic_test_on_real(
    train_df: pd.DataFrame,
    test_df: pd.DataFrame,
    schema: Schema,
    seed: int,
    estimators: Mapping[str, Factory] | None = None,
    max_workers: int = 2,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """One row per estimator: ``classifier``, the scores of the task, ``seconds`` (fit and predict, wall clock).

    Args:
        train_df: typed table to learn from: synthetic, or a baseline.
        test_df: typed real rows that no model learned from.
        schema: public schema of both.
        seed: public seed of the estimators.
        estimators: by name; None: the default of the task.
        max_workers: estimators at a time.
        progress: called with the name of each estimator as it ends, and with no score.

    Raises:
        DataError: the schema has no label, a table has no rows, or an estimator failed.
        MissingPackageError: the library of an estimator is not installed.
    """
    chosen = select(schema.task) if estimators is None else estimators
    check_installed(chosen)
    if not len(train_df) or not len(test_df):
        raise DataError("utility: a table has no rows. Give a training and a test table of at least one row.")
    train, test = features_and_label(train_df, schema), features_and_label(test_df, schema)
    num_classes = len(schema.classes) if schema.task == "classification" else 0

    def judge(name: str, factory: Factory) -> dict[str, float | str]:
        # OpenMP limits are per thread, BLAS limits per process: hence one limit here and one around the pool.
        with threadpool_limits(1):
            begun = time.perf_counter()
            estimator_seed = rng.public_seed(seed, f"evaluation.{name}") % 2**32
            try:
                scores = fit_and_score(factory, estimator_seed, train, test, num_classes)
            except Exception as error:  # the text of a library's error may hold values of real rows
                fault = f"{name} failed on a table ({type(error).__name__})"
                raise DataError(f"utility: {fault}. Remove it from evaluate.classifiers.") from None
            seconds = time.perf_counter() - begun
        if progress is not None:
            progress(name)
        return {"classifier": name, **scores, "seconds": seconds}

    added = [name for name in chosen if name not in CLASSIFIERS and name not in REGRESSORS]
    first = [*added, *(name for name in SLOWEST_FIRST if name in chosen)]
    order = [*first, *(name for name in chosen if name not in first)]
    with threadpool_limits(1), warnings.catch_warnings():
        # Bad synthetic tables give unconverged fits and empty classes, and the warnings may hold values.
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(max_workers=max_workers) as pool:
            running = {name: pool.submit(judge, name, chosen[name]) for name in order}
            rows = [running[name].result() for name in chosen]
    return pd.DataFrame(rows, columns=["classifier", *metrics_of(schema.task), "seconds"])


def shuffle_columns(df: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A copy of a table whose columns are permuted independently, the label too; kinds and index stay.

    It is the shuffled baseline. All 1-way marginals are exact and all dependence is gone. A synthetic table that scores
    no better has learned histograms alone. The baseline has real values, so no program writes it to disk.

    Args:
        df: typed table (n rows).
        seed: public seed; each column has a separate stream, named by the column.
    """
    streams = {name: rng.public(seed, f"evaluation.shuffle.{name}") for name in df.columns}
    columns = {name: df[name].take(stream.permutation(len(df))).set_axis(df.index) for name, stream in streams.items()}
    return pd.DataFrame(columns, index=df.index, columns=df.columns)


def sample_rows(table: pd.DataFrame, most: int | None, seed: int, purpose: str) -> pd.DataFrame:
    """Draw at most ``most`` rows, by the public seed for one purpose, in table order; None: all."""
    if most is None or len(table) <= most:
        return table
    chosen = rng.public(seed, f"evaluation.rows.{purpose}").choice(len(table), most, replace=False)
    return table.iloc[sorted(chosen)]
