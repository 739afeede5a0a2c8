"""What a run would cost and give, from the schema and the settings alone: nothing is spent and no row is opened.

The number of records is what a person says it is, publicly or about; it is never counted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from likeness.config.params import Params
from likeness.core.bounds import rows_per_unit
from likeness.methods.base import BYTES_A_COORDINATE, Context, Method
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.release.door import noise_scale
from likeness.release.keys import key_queries

MOST_NOISE = 0.25
"""The rule: the noise's standard error is at most this part of what is measured, where that has an average size."""
RULE = (
    "enough records: the standard error of the noise is at most a quarter of the share that an average class, and an "
    "average cell of every column, holds (of the root mean square of a coordinate, for methods without cells)"
)
_STEP, _MULTIPLICATION = 5e-3, 1.1e-10  # seconds of one core, with the gradient; from benchmarks/results/papers.csv
_BASE_BYTES = 0.6e9  # Python with its libraries
_BYTES_A_CELL = 20  # of the rows, where a stage holds all of them; the source is read in chunks
_EVALUATION_SECONDS = 45 / (32_561 * 108)  # a record and coordinate: 12 classifiers on Adult on 2 cores


@dataclass(frozen=True)
class Measure:
    """How well one kind of number is known.

    Attributes:
        of: in words. noise: standard deviation of its noise, in records. average: the share that it has on average.
        error: standard error of the share for the given number of records; None where none was given.
        records: the fewest records for which :data:`RULE` holds; None where it is not applied.
    """

    of: str
    noise: float
    average: float
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
        threshold: a category is released if its noisy number of records is at least this; half of those with as many
            are. sigma: of the noise, in records. nearly_always: released with 97.7 % from so many records on.
        delta: at most so likely is it that a value of one person alone is released.
        most: categories at most.
    """

    column: str
    threshold: float
    sigma: float
    nearly_always: int
    delta: float
    most: int


@dataclass(frozen=True)
class Forecast:
    """A run, before it is run.

    Attributes:
        rows_of_a_person: the most that are used; every sigma is as many times that of one row.
        rows: number of training records as given; None where nobody said.
        categories: columns whose categories are private; width and queries are as if as many were released as ``most``
            and the number of records allow. They need records for two of
            them; the rule is not held against their cells, because how many there will be is not known.
        queries: all others. records: the fewest for which the rule holds everywhere.
        memory_bytes, training_seconds, evaluation_seconds: rough, within a factor of three; None where not known.
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


def forecast(project: Project, rows: int | None = None) -> Forecast:
    """Forecast the run that params.yaml asks for.

    Args:
        rows: number of training records, public or approximate. Under replace_one it is in params.yaml.

    Raises:
        LikenessError: the settings do not go together.
    """
    params, plan, recipe = project.params, project.plan, project.method
    rows = rows if rows is not None else params.privacy.num_records
    categories, schema = tuple(_categories(project, plan)), project.written_schema
    facts = project.context_of(schema.foreseen(_most_kept(params, categories, rows)))
    private = frozenset(column.name for column in schema.open_columns)
    adjacency = Adjacency(params.privacy.adjacency)
    queries = []
    for query in recipe.foreseen_queries(facts):
        sensitivity = math.sqrt(query.sensitivity_squared(adjacency, plan.unit)) * 2.0**-query.lattice_bits
        multiplier = plan.query(query.name).noise_multiplier
        sigma = sensitivity * multiplier
        measures = tuple(
            Measure(
                of, noise, average, None if rows is None else noise / rows, _fewest(noise, average) if ruled else None
            )
            for of, noise, average, ruled in recipe.measures(query, sigma, facts, private)
        )
        queries.append(QueryForecast(query.name, query.dimension, sensitivity, multiplier, sigma, measures))
    coordinates, columns = max(query.coordinates for query in queries), len(facts.schema.columns)
    scored = None if rows is None else min(rows, params.evaluate.max_rows or rows)
    return Forecast(
        method=params.method,
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        rho=plan.rho,
        rows_of_a_person=rows_per_unit(plan.unit),
        rows=rows,
        width=facts.layout.width,
        queries=tuple(queries),
        records=max(
            [measure.records or 1 for query in queries for measure in query.measures]
            + [2 * own.nearly_always for own in categories]  # two categories: the least that tells rows apart
        ),
        memory_bytes=_BASE_BYTES + max(BYTES_A_COORDINATE * coordinates, _BYTES_A_CELL * columns * (rows or 0)),
        training_seconds=_training_seconds(recipe, facts, {query.query: query.coordinates for query in queries}),
        evaluation_seconds=None
        if scored is None or facts.schema.task == "none"
        else scored * facts.layout.width * _EVALUATION_SECONDS,
        categories=categories,
    )


def _most_kept(params: Params, categories: Sequence[CategoriesForecast], rows: int | None) -> int:
    """How many categories of a column are released at most: each needs as many records as the threshold says."""
    room = [int(rows / own.threshold) for own in categories if rows is not None and own.threshold > 0]
    return max(1, min([params.categories.most, *room]))


def _categories(project: Project, plan: Plan) -> Iterator[CategoriesForecast]:
    for query in key_queries(project.written_schema, plan, project.params.categories.most):
        scale, step = noise_scale(query, plan), 2.0**query.lattice_bits
        threshold, sigma = query.threshold(scale, plan.unit) / step, scale / step
        often = math.ceil(threshold + 2 * sigma)
        yield CategoriesForecast(query.column, threshold, sigma, often, query.delta_keys, query.most)


def _fewest(noise: float, average: float) -> int:
    return max(1, math.ceil(noise / (MOST_NOISE * average)))


def _training_seconds(recipe: Method, facts: Context, coordinates: Mapping[str, int]) -> float | None:
    """Of one core; coordinates of each query by its name."""
    iterations = recipe.training.iterations
    if iterations == 0:
        return 0.0
    multiplications = recipe.multiplications(facts, coordinates)
    return None if multiplications is None else iterations * (_STEP + _MULTIPLICATION * multiplications)
