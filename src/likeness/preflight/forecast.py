"""The forecast of a run's cost and noise, from the schema and the settings alone. It spends nothing and opens no row.

A person gives the number of records, public or approximate. It is never counted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from likeness.config.params import Params
from likeness.core.bounds import rows_per_unit
from likeness.data.schema.schema import Schema
from likeness.methods.base import BYTES_A_COORDINATE, Context, Method
from likeness.methods.expected import RELATION, Expected
from likeness.methods.row_set import RowSet
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.plan import Plan
from likeness.release.partition_selection import partition_queries
from likeness.release.private_bounds import bounds_query
from likeness.release.request import noise_scale

MOST_NOISE = 0.25
"""The rule: the standard error of the noise is at most this part of an average share."""
RULE = (
    "enough records: the standard error of the noise is at most a quarter of the share that an average class, and an "
    "average cell of every column, holds (of the root mean square of a coordinate, for methods without cells)"
)
_MANY = 10**9  # records with which noise hides no cells of pairs
_BETTER = 0.95
_STEP, _MULTIPLICATION = 5e-3, 1.1e-10  # seconds of one core, with the gradient; from evidence/results/papers.csv
_BASE_BYTES = 0.6e9  # Python with its libraries


@dataclass(frozen=True)
class Measure:
    """The accuracy of one kind of number.

    Attributes:
        of: its name in words.
        noise: standard deviation of its noise, in records.
        average: its average share; None where that says nothing.
        error: standard error of the share for the given number of records; None without that number.
        records: the fewest records for which :data:`RULE` holds; None if the rule does not apply.
    """

    of: str
    noise: float
    average: float | None
    error: float | None
    records: int | None


@dataclass(frozen=True)
class QueryForecast:
    """One query. ``sigma`` is the noise on every coordinate of its sum, in units of the feature."""

    query: str
    coordinates: int
    sensitivity: float
    noise_multiplier: float
    sigma: float
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class CategoriesForecast:
    """A column whose categories are private.

    Attributes:
        column: its name.
        threshold: the smallest noisy number of records that is released. A category with exactly that many records is
            released with probability one half.
        sigma: of the noise, in records.
        nearly_always: number of records from which on the probability of a release is 97.7 % or more.
        delta: bound on the probability that a value of only one person is released.
        most: number of categories at most.
    """

    column: str
    threshold: float
    sigma: float
    nearly_always: int
    delta: float
    most: int


@dataclass(frozen=True)
class BoundsForecast:
    """The columns whose bounds are private.

    Attributes:
        columns: their names.
        sigma: of the noise in each cell of their histograms, in records.
        share: of ρ.
    """

    columns: tuple[str, ...]
    sigma: float
    share: float


@dataclass(frozen=True)
class Remedy:
    """A change of the settings that would leave more.

    Attributes:
        words: what to change, and its price.
        expected: what noise would leave then.
    """

    words: str
    expected: Expected


@dataclass(frozen=True)
class Forecast:
    """A run, before it is run.

    Attributes:
        rows_of_a_person: the most that are used; every sigma grows with it.
        rows: the given number of training records; None without one.
        categories: columns whose categories are private. Width and queries assume as many categories as ``most`` and
            the number of records allow. Each column needs records for two categories. The rule does not apply to their
            cells, whose number nobody knows yet.
        bounds: columns whose bounds are private; None: there are none.
        queries: all others.
        records: the fewest for which the rule holds everywhere.
        expected: what noise leaves of each sort of rows; none without a number of records, or if the method says none.
        relation_records: the fewest with which a relation of :data:`likeness.methods.expected.RELATION` survives in the
            middle pair; None if the method says none.
        remedies: what would leave more, for the first sort of rows.
        memory_bytes: rough, within a factor of two, as are ``training_seconds`` and ``evaluation_seconds``, which are
            None if there is no estimate.
    """

    method: str
    epsilon: float
    delta: float
    rho: float
    rows_of_a_person: int
    rows: int | None
    width: int
    queries: tuple[QueryForecast, ...]
    records: int
    memory_bytes: float
    training_seconds: float | None
    evaluation_seconds: float | None
    categories: tuple[CategoriesForecast, ...] = ()
    bounds: BoundsForecast | None = None
    expected: tuple[Expected, ...] = ()
    relation_records: int | None = None
    remedies: tuple[Remedy, ...] = ()


def forecast(project: Project, rows: int | None = None) -> Forecast:
    """Forecast the run that params.yaml asks for, with so many training records, public or approximate.

    Raises:
        LikenessError: the settings contradict each other.
    """
    params, plan, recipe = project.params, project.plan, project.method
    rows = rows if rows is not None else params.privacy.num_records
    categories = tuple(_categories(project, plan))
    row_sets = project.row_sets_of(project.written_schema.with_stand_ins(_most_released(params, categories, rows)))
    facts = row_sets[0].context
    queries = tuple(_queries(project, row_sets, rows))
    coordinates = {query.query: query.coordinates for query in queries}
    drawn = params.sample.rows if isinstance(params.sample.rows, int) else rows
    model, numbers = project.written_model, (rows or 0, drawn or 0)
    cells = len(facts.schema.columns) * model.bytes_a_column(*numbers, params.evaluate)
    judged = None
    if rows is not None and drawn is not None and facts.schema.task != "none":
        judged = model.evaluation_seconds(*numbers, facts.layout.width, params.evaluate)
    many = [_expect_row_set(project, recipe, row_set, plan.rho, _MANY) for row_set in row_sets]
    expected = [
        None if rows is None else _expect_row_set(project, recipe, row_set, plan.rho, rows) for row_set in row_sets
    ]
    return Forecast(
        method=params.method,
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        rho=plan.rho,
        rows_of_a_person=1 if row_sets[0].is_per_person else rows_per_unit(plan.unit),
        rows=rows,
        width=facts.layout.width,
        queries=queries,
        records=max(
            [measure.records or 1 for query in queries for measure in query.measures]
            + [2 * column.nearly_always for column in categories]  # two categories: the least that tells rows apart
        ),
        memory_bytes=_BASE_BYTES + max(BYTES_A_COORDINATE * max(coordinates.values()), cells),
        training_seconds=training_seconds(recipe, facts, coordinates),
        evaluation_seconds=judged,
        categories=categories,
        bounds=_bounds(project, plan),
        expected=tuple(accuracy for accuracy in expected if accuracy is not None),
        relation_records=max(
            (math.ceil(_MANY * accuracy.detectable / RELATION) for accuracy in many if accuracy), default=None
        ),
        remedies=() if rows is None else tuple(_remedies(project, row_sets, expected[0], rows)),
    )


def _expect_row_set(project: Project, recipe: Method, row_set: RowSet, rho: float, rows: int) -> Expected | None:
    """Forecast what noise leaves of rows, if their queries and those of others cost ρ together; None without noise."""
    if math.isinf(rho):
        return None
    shares = {share.query: share.share for share in row_set.shares(recipe)}
    adjacency = Adjacency(project.params.privacy.adjacency)
    sigmas = {}
    for query in recipe.planned_queries(row_set.context):
        scoped = row_set.scope(query)
        square = scoped.sensitivity_squared(adjacency, project.plan.unit)
        sigmas[query.name] = math.sqrt(square / (2 * rho * shares[scoped.name])) * 2.0**-scoped.lattice_bits
    private = frozenset(column.name for column in project.written_schema.open_columns)
    return recipe.forecast_accuracy(row_set.context, sigmas, rows, private)


def _remedies(project: Project, row_sets: Sequence[RowSet], now: Expected | None, rows: int) -> Iterator[Remedy]:
    """Changes that would leave more of relations or shares."""
    if now is None:
        return
    privacy, plan, recipe, first = project.params.privacy, project.plan, project.method, row_sets[0]
    schema, columns = first.context.schema, first.context.schema.feature_columns
    doubled = plan.rho * rho_for(2 * privacy.epsilon, privacy.delta) / rho_for(privacy.epsilon, privacy.delta)
    changes: list[tuple[str, Method, Schema, float]] = [
        (f"epsilon {2 * privacy.epsilon:g}, for a weaker promise", recipe, schema, doubled)
    ]
    if len(row_sets) == 1:
        coarser = recipe.coarser()
        if coarser is not None and any(not column.is_categorical for column in columns):
            changes.append(("half the cells of a number, for coarser numbers", coarser, schema, plan.rho))
        if len(columns) > 3:
            half = {column.name for column in columns[: (len(columns) + 1) // 2]} | {schema.label}
            smaller = replace(schema, columns=tuple(each for each in schema.columns if each.name in half), rules=())
            changes.append(("half of the columns", recipe, smaller, plan.rho))
        if first.context.layout.num_classes > 1:
            unlabeled = replace(schema, label=None, task="none")
            changes.append(("no label, for a table that predicts it less well", recipe, unlabeled, plan.rho))
    for change, method, other, rho in changes:
        then = _expect_row_set(project, method, replace(first, context=replace(first.context, schema=other)), rho, rows)
        if then is None or then.detectable > 1:  # no relation would survive
            continue
        if then.detectable < _BETTER * now.detectable or then.pair_distance < _BETTER * now.pair_distance:
            yield Remedy(change, then)


def _queries(project: Project, row_sets: Sequence[RowSet], rows: int | None) -> Iterator[QueryForecast]:
    """The noise of each query, and the accuracy of what it measures."""
    params, plan, recipe = project.params, project.plan, project.method
    private = frozenset(column.name for column in project.written_schema.open_columns)
    pairs = [(row_set, query) for row_set in row_sets for query in recipe.planned_queries(row_set.context)]
    for row_set, planned in pairs:
        context, query = row_set.context, row_set.scope(planned)
        square = query.sensitivity_squared(Adjacency(params.privacy.adjacency), plan.unit)
        sensitivity, multiplier = math.sqrt(square) * 2.0**-query.lattice_bits, plan.query(query.name).noise_multiplier
        sigma = sensitivity * multiplier
        measures = tuple(
            Measure(
                of,
                noise,
                average,
                None if rows is None else noise / rows,
                max(1, math.ceil(noise / (MOST_NOISE * average))) if ruled and average else None,
            )
            for of, noise, average, ruled in recipe.measures(query, sigma, context, private)
        )
        yield QueryForecast(query.name, query.dimension, sensitivity, multiplier, sigma, measures)


def _most_released(params: Params, categories: Sequence[CategoriesForecast], rows: int | None) -> int:
    """The most categories of a column that are released: each needs as many records as the threshold."""
    reached = [int(rows / column.threshold) for column in categories if rows is not None and column.threshold > 0]
    return max(1, min([params.categories.most, *reached]))


def _categories(project: Project, plan: Plan) -> Iterator[CategoriesForecast]:
    for query in partition_queries(project.written_schema, plan, project.params.categories.most):
        scale, step = noise_scale(query, plan), 2.0**query.lattice_bits
        threshold, sigma = query.threshold(scale, plan.unit) / step, scale / step
        often = math.ceil(threshold + 2 * sigma)
        yield CategoriesForecast(query.column, threshold, sigma, often, query.delta_keys, query.most)


def _bounds(project: Project, plan: Plan) -> BoundsForecast | None:
    schema = project.written_schema
    if not schema.unbounded_columns:
        return None
    query, names = bounds_query(schema), tuple(column.name for column in schema.unbounded_columns)
    return BoundsForecast(names, noise_scale(query, plan) * 2.0**-query.lattice_bits, plan.query(query.name).share)


def training_seconds(recipe: Method, facts: Context, coordinates: Mapping[str, int]) -> float | None:
    """Rough training time on one core, from the coordinates of each query by its name; None without an estimate."""
    iterations = recipe.training.usual_iterations
    if iterations == 0:
        return 0.0
    multiplications = recipe.multiplications(facts, coordinates)
    return None if multiplications is None else iterations * (_STEP + _MULTIPLICATION * multiplications)
