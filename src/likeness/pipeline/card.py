r"""The quality card: a few noisy numbers about one synthetic table against the private training rows.

The question depends on the table, which is public once it is drawn. So the card is asked after ``sample``, and another
table is another question at the full cost. The queries are:

- ``card_distances``: mean and worst total variation of columns and of pairs (:mod:`likeness.release.distances`);
- ``card_confusion``: the confusion matrix of a naive Bayes classifier that only synthetic rows trained, a sum by class
  as any other (:mod:`likeness.features.naive_bayes`).

**Intervals** speak of the training rows and of noise alone. Let n be their number, :math:`\hat n` its noisy value with
noise e, T a mean of total variations, and A the mean of :math:`\|c_p - \hat n s_p\|_1` with synthetic shares s. The
total variation of counts over :math:`\hat n` and over n differs by at most :math:`|1/\hat n - 1/n| n / 2`, so
:math:`|A/(2 \hat n) - T| \le |e|/(2 \hat n)`. The released A has noise X, symmetric and independent of e. For such X,
:math:`P(|X + d| > t)` grows with :math:`|d|` (Anderson 1955), so d may be taken as e: the standard error is at most
:math:`\sqrt{\sigma_X^2 + \sigma_e^2}/(2 \hat n)`. The same holds for the worst. An accuracy is a ratio of noisy counts:
its standard error is that of its linear part, and it is left out where a class is too small for that.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.config.params import Card
from likeness.core.errors import LedgerError, PlanError
from likeness.core.hashing import sha256_json
from likeness.data.encoding.bins import grid_of
from likeness.features.cells import Cells
from likeness.features.low_order_marginals import LowOrderMarginals
from likeness.features.naive_bayes import trained
from likeness.ledger.records import Record, base_attempt
from likeness.methods.base import CLASS_COUNTS, Context, Measured, number_of_records
from likeness.privacy.plan import Plan, QueryShare
from likeness.release.distances import DistanceQuery
from likeness.release.query import Query
from likeness.release.released import Released
from likeness.release.request import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.release.door import Door

STAGE = "card"
DISTANCES, CONFUSION = "card_distances", "card_confusion"
CardQuery = Query | DistanceQuery
_MOST_COORDINATES = 20_000_000  # 160 MB of counts
_MOST_SCORES = 20_000  # they stand in the receipt
_NORMAL = 1.959963984540054  # 97.5 % quantile
_ENOUGH = 10  # standard deviations of the noise in a class


def card_shares(card: Card | None, context: Context) -> list[QueryShare]:
    """The queries of a card with their shares of ρ: one part for each measure. None without a card.

    Raises:
        PlanError: the schema has nothing to measure, or too much.
    """
    if card is None:
        return []
    measures, classes = set(card.measures), context.layout.num_classes
    if classes < 2:
        measures -= {"accuracy"}
    if context.schema.image is not None or not measures:
        what = "images" if measures else "a table whose label has no classes"
        raise PlanError(f"evaluate.card has no measure for {what}. Set evaluate.card: null.")
    sizes = [column.size for column in _columns(card, context)]
    pairs = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    if classes * (sum(sizes) + pairs) > _MOST_COORDINATES or classes * (1 + sum(sizes)) > _MOST_SCORES:
        raise PlanError(
            f"evaluate.card counts {classes * (sum(sizes) + pairs):,} cells, more than {_MOST_COORDINATES:,}, or has "
            f"more than {_MOST_SCORES:,} scores. Lower evaluate.card.bins, or set evaluate.card: null."
        )
    each = card.share / len(measures)
    parts = {DISTANCES: len(measures - {"accuracy"}), CONFUSION: len(measures & {"accuracy"})}
    return [QueryShare(name, STAGE, each * count) for name, count in parts.items() if count]


def _distances(card: Card, context: Context) -> DistanceQuery:
    """The query of the distances before there is a table."""
    measures = tuple(measure for measure in card.measures if measure != "accuracy")
    feature = LowOrderMarginals(tuple(_columns(card, context)))
    return DistanceQuery(DISTANCES, STAGE, feature, context.layout.num_classes, measures)


def _confusion(distances: DistanceQuery, counts: NDArray[np.int64]) -> Query:
    """The query of the confusion matrix of a classifier from public counts of the cells of ``distances``."""
    columns = distances.feature.columns
    return Query(CONFUSION, STAGE, trained(columns, counts[:, : sum(one.size for one in columns)]), distances.classes)


def planned_card(card: Card | None, plan: Plan, context: Context) -> list[CardQuery]:
    """The planned queries before there is a table: their bounds and coordinates are those that they will have."""
    if card is None:
        return []
    planned = {query.query for query in plan.queries}
    distances = _distances(card, context)
    nothing = np.zeros((distances.classes, sum(part.width for part in distances.feature.parts)), dtype=np.int64)
    return [query for query in (distances, _confusion(distances, nothing)) if query.name in planned]


def card_measures(query: CardQuery, sigma: float) -> list[Measured]:
    """The figure that a query measures, and its noise; ``sigma`` is that of a coordinate, in records."""
    if isinstance(query, DistanceQuery):
        return [Measured("total variation", sigma / 2, None, False)]
    classes = query.num_groups
    return [Measured("accuracy, at most", sigma * math.sqrt(classes * max(1, classes - 1)), None, False)]


def card_queries(
    card: Card, plan: Plan, context: Context, auxiliary: Mapping[str, Released], table: "DataFrame"
) -> list[CardQuery]:
    """The queries of a card about a synthetic table.

    Args:
        card: the settings.
        plan: which of them are planned.
        context: public facts, with released categories.
        auxiliary: released answers by the name of their query.
        table: the typed synthetic rows of the modeled columns.
    """
    from likeness.pipeline.private_rows import encoded_chunks

    planned = {query.query for query in plan.queries}
    distances = _distances(card, context)
    counts = distances.counts(encoded_chunks(table, context.schema))
    about = distances.about(counts, number_of_records(context, auxiliary[CLASS_COUNTS]))
    return [query for query in (about, _confusion(distances, counts)) if query.name in planned]


def _columns(card: Card, context: Context) -> Iterator[Cells]:
    """Public cells of each feature column."""
    starts = context.layout.starts
    for column in context.schema.feature_columns:
        start = starts[column.name]
        if column.is_categorical:
            yield Cells(start, column.width)
        else:
            grid = grid_of(column, card.bins)
            yield Cells(start, grid.size + int(column.nullable), grid.inner, column.nullable)


def paid_keys(records: Iterable[Record], plan: Plan, dataset: Dataset, name: str) -> list[str]:
    """Keys of all cards on record for a query of this plan about these rows, but for those given up."""
    records = list(records)
    lost = {record.body["key"] for record in records if record.kind == "lost"}
    of_plan = STAGE, name, plan.digest, dataset.digest, base_attempt(dataset.attempt)
    return [
        str(body["key"])
        for body in (record.body for record in records if record.kind == "reserve")
        if (body["stage"], body["query"], body["plan"], body["digest"], base_attempt(body["slot"])) == of_plan
        and body["key"] not in lost
    ]


def check_tables(door: "Door", query: CardQuery, tables: int) -> None:
    """Refuse to pay for another table than those that the settings allow, before anything is spent.

    Raises:
        LedgerError: a card of as many tables is on record.
    """
    keys = paid_keys(door.ledger.records(), door.plan, door.dataset, query.name)
    if sha256_json(door.request(query)[1]) in keys or len(keys) < tables:
        return
    raise LedgerError(
        f"{query.name}: evaluate.card.tables allows {tables}, and {len(keys)} are paid for. This table, or section "
        f"evaluate.card, is another one. Nothing was spent. Restore the settings, or pay rho "
        f"{door.plan.query(query.name).rho:.4g} more for this one: evaluate.card.tables: {len(keys) + 1}"
    )


def card_figures(context: Context, released: Mapping[str, Released]) -> list[dict[str, Any]]:
    """The figures of a card with their 95 % intervals, from released values by the name of their query.

    None without a card.
    """
    distances, confusion = released.get(DISTANCES), released.get(CONFUSION)
    if distances is None and confusion is None:
        return []
    counts = released[CLASS_COUNTS]
    records = number_of_records(context, counts)
    error = 0.0 if context.num_records is not None else counts.noise_std * math.sqrt(len(counts.values))
    figures = [_figure("rows", records, error, math.inf)]
    if distances is not None:
        query = DistanceQuery.from_spec(DISTANCES, STAGE, dict(distances.receipt.feature))
        standard_error = math.hypot(distances.noise_std, error) / (2 * records)
        for (measure, order), value in zip(query.figures, distances.values[0].tolist(), strict=True):
            figures.append(_figure(f"{measure}_{order}_way", value / (2 * records), standard_error, 1.0))
    if confusion is not None:
        figures += _accuracies(confusion)
    return figures


def _accuracies(confusion: Released) -> Iterator[dict[str, Any]]:
    """Accuracy and balanced accuracy of a noisy confusion matrix, if no class is too small for the noise.

    The error of a ratio r of right ones to all m cells of a row is that of ``(1 - r)`` right ones less r others.
    """
    values, sigma = confusion.values, confusion.noise_std
    classes, right, all_rows = len(values), np.diag(values), values.sum(axis=1)
    if all_rows.min() < max(1.0, _ENOUGH * sigma * math.sqrt(classes)):
        return
    share = right.sum() / all_rows.sum()
    cells = classes * ((1 - share) ** 2 + (classes - 1) * share**2)
    yield _figure("accuracy", float(share), sigma * math.sqrt(cells) / float(all_rows.sum()), 1.0)
    shares = right / all_rows
    variances = ((1 - shares) ** 2 + (classes - 1) * shares**2) / all_rows**2
    yield _figure("balanced_accuracy", float(shares.mean()), sigma * math.sqrt(variances.sum()) / classes, 1.0)


def _figure(measure: str, value: float, standard_error: float, most: float) -> dict[str, Any]:
    """A figure within its range, and its interval."""
    low, value, high = (
        min(max(end, 0.0), most) for end in (value - _NORMAL * standard_error, value, value + _NORMAL * standard_error)
    )
    return {"measure": measure, "value": value, "low": low, "high": high}
