"""What a run would cost and give, from the schema and the settings alone: nothing is spent and no row is opened.

The number of records is what a person says it is, publicly or about; it is never counted.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from likeness.config.params import Params
from likeness.core.bounds import rows_per_unit
from likeness.features.base import CellMap
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import EMBEDDING, Context, Method
from likeness.methods.hp.method import Hp
from likeness.methods.marginals.method import BYTES_A_COORDINATE, Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.moments.method import FOURIER, Moments
from likeness.methods.network_method import EmbeddingMethod
from likeness.methods.ntk.method import Ntk
from likeness.methods.settings import NetworkTraining
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.release.door import noise_scale
from likeness.release.keys import key_queries
from likeness.release.query import Query
from likeness.release.records import EachRecord

MOST_NOISE = 0.25
"""The rule: the noise's standard error is at most this part of what is measured, where that has an average size."""
RULE = (
    "enough records: the standard error of the noise is at most a quarter of the share that an average class, and an "
    "average cell of every column, holds (of the root mean square of a coordinate, for methods without cells)"
)
# Seconds of one core, fitted to the quickest runs in benchmarks/results/papers.csv: of a component and a cell of the
# mixture in a step; of a step; of a row and a weight of a fully connected network, a pixel of a convolutional one; of a
# row and a feature's product with an input, a sine or cosine, a coordinate of a tangent; of a step and a degree of the
# Hermite recursion, and of a row, column and degree.
_CELL = 4e-10
_STEP, _WEIGHT, _PIXEL = 5e-3, 1.1e-10, 2.9e-7
_PRODUCT, _WAVE, _TANGENT = 2.9e-11, 3.3e-9, 1.9e-10
_DEGREE, _HERMITE = 6e-5, 4.8e-9
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
            for of, noise, average, ruled in _measures(query, sigma, facts, recipe, private)
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


def _measures(
    query: Query, sigma: float, facts: Context, recipe: Method, private: Collection[str]
) -> Iterator[tuple[str, float, float, bool]]:
    """(what, noise in records, average share, held to the rule) of what a query measures of the records."""
    if not isinstance(query.terms, EachRecord):
        return  # of pairs of records, whose number is a setting
    classes, feature = query.num_groups, query.feature
    by_class = ", by class" if classes > 1 else ""
    if isinstance(feature, PairMarginals):
        yield from _cells(feature, sigma, classes, facts, private)
    elif isinstance(feature, ColumnMarginals) and isinstance(recipe, Marginals):
        # Half of the cells are below the edge in the middle; an edge may be wrong by a part of a bin.
        cells, bins = max(column.size for column in feature.columns), recipe.privatize.bins
        if recipe.auxiliary.quantiles.edges == "equal_width":
            yield f"share in one of {cells} cells, where noise alone is evened out", sigma, 1 / cells, False
            return
        yield f"share below an edge among {cells} cells, against that of a bin", sigma * cells**0.5 / 2, 1 / bins, True
    elif query.width == 1:
        yield ("share of a class" if classes > 1 else "number of records, as a share"), sigma, 1 / classes, True
    elif isinstance(feature, CellMap):
        # A cell of its part: a record in it counts the part's bound.
        for part in feature.parts:
            bound = math.sqrt(part.norm_bound_squared)
            yield f"share in one of {part.width} cells{by_class}", sigma / bound, 1 / (classes * part.width), True
    else:
        size = min(math.sqrt(part.norm_bound_squared / part.width) for part in feature.parts)
        yield f"coordinate of the mean embedding{by_class}, in units of its size", sigma / size, 1 / classes, True


def _cells(
    feature: PairMarginals, sigma: float, classes: int, facts: Context, private: Collection[str]
) -> Iterator[tuple[str, float, float, bool]]:
    """A cell of a pair as it is released; and the column whose own cells are known worst.

    A cell of one column is the sum over the other column's cells in each of its pairs; it is so measured as often as
    the column has pairs, and the mean weighs each by its precision. Single cells of pairs are not held to the rule: the
    generator is fitted to all of them at once. Nor are columns with private categories: how many of theirs will be kept
    is not known, and those that are clear a threshold.
    """
    sizes = [column.size for column in feature.columns]
    weights = [float(part.norm_bound_squared) for part in feature.parts[: len(feature.sizes)]]
    precision = [0.0] * len(sizes)
    for (i, j), weight in zip(feature.asked, weights, strict=True):
        precision[i] += weight / sizes[j]
        precision[j] += weight / sizes[i]
    noise = [sigma / math.sqrt(own) for own in precision]
    names, by_class = [column.name for column in facts.schema.feature_columns], ", by class" if classes > 1 else ""
    cells = sum(a * b for a, b in feature.sizes) / len(weights)
    yield (
        f"share in a cell of a pair of columns{by_class}",
        sigma / math.sqrt(min(weights)),
        1 / (classes * cells),
        False,
    )
    if feature.tables:
        tables = feature.parts[len(weights) :]
        cells = sum(part.width for part in tables) / len(tables)
        noise_of_one = sigma / math.sqrt(feature.squared_table_weight)
        yield f"share in a cell of a named table{by_class}", noise_of_one, 1 / (classes * cells), False
    listed = [place for place, name in enumerate(names) if name not in private]
    if listed:
        worst = max(listed, key=lambda place: noise[place] * sizes[place])
        of = f"share in a cell of '{names[worst]}', the hardest column{by_class}"
        yield of, noise[worst], 1 / (classes * sizes[worst]), True


def _training_seconds(recipe: Method, facts: Context, coordinates: Mapping[str, int]) -> float | None:
    """Of one core; coordinates of each query by its name."""
    training = recipe.training
    if training.iterations == 0:
        return 0.0
    if isinstance(recipe, Marginals):
        # Products of components with cells, forward and back, of every pair and table in every class.
        return training.iterations * _CELL * recipe.train.num_components * coordinates[EMBEDDING]
    if isinstance(recipe, Moments) and FOURIER in coordinates:
        return _network_seconds(recipe.train.network, facts, _waves(facts, coordinates[FOURIER]))
    if not isinstance(recipe, EmbeddingMethod):
        return None
    if isinstance(recipe, Hp):
        order, width = recipe.privatize.order, facts.layout.width
        return training.iterations * _DEGREE * order + _network_seconds(recipe.train, facts, _HERMITE * order * width)
    if isinstance(recipe, Ntk):
        features = _TANGENT * coordinates[EMBEDDING] / facts.layout.num_classes
    else:
        features = _waves(facts, coordinates[EMBEDDING])
    return _network_seconds(recipe.train, facts, features)


def _waves(facts: Context, coordinates: int) -> float:
    """Seconds that sines and cosines of frequencies take for a row."""
    own = coordinates / facts.layout.num_classes
    return _WAVE * own + _PRODUCT * facts.layout.width * own / 2


def _network_seconds(train: NetworkTraining, facts: Context, features: float) -> float:
    """Of batches of rows through a network, whose features take so many seconds a row, forward and back."""
    hidden, width = [train.latent_dim, *train.hidden], facts.layout.width
    if facts.schema.image is not None and train.network != "fully_connected":
        row = _PIXEL * width
    else:
        row = _WEIGHT * sum(a * b for a, b in zip(hidden, [*hidden[1:], width], strict=True))
    return train.iterations * (_STEP + train.batch_size * (row + features))
