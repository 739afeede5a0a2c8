"""Marginals: pairs of columns and named tables by class as one mean embedding; a mixture of products fitted to it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

from likeness.data.grid import Grid, grid_of
from likeness.errors import PlanError
from likeness.features.cells import Cells
from likeness.features.pair_marginals import PairMarginals
from likeness.generators.settings import MOST_EXCHANGE_ROUNDS, TrainingSettings
from likeness.methods.base import (
    CLASS_COUNTS,
    EMBEDDING,
    Context,
    Method,
    class_counts_query,
    class_weights,
    number_of_records,
)
from likeness.methods.quantiles import Quantiles, cells_of_number
from likeness.methods.settings import require_limit, with_memory, within_limit
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released
from likeness.typed import allowed, require

if TYPE_CHECKING:
    import torch

    from likeness.generators.mixture import MixtureColumn
    from likeness.generators.saved import Generator
    from likeness.generators.training import Objective

MOST_BINS = 10_000  # of one numeric column: edges are made before the pairs are counted
_LARGEST_WEIGHT = 100  # of a column: beside a pair with ten thousand times the budget, others are noise
_MOST_TABLES = 30_000  # triples of 57 columns: they are listed before their cells are counted


@dataclass(frozen=True)
class Shares:
    """Section ``marginals.plan.shares``: parts of ρ, summing to 1."""

    class_counts: float = 0.03
    quantiles: float = 0.02
    embedding: float = 0.95


@dataclass(frozen=True)
class PlanSettings:
    """Section ``marginals.plan``."""

    shares: Shares = field(default_factory=Shares)


@dataclass(frozen=True)
class Auxiliary:
    """Section ``marginals.auxiliary``."""

    quantiles: Quantiles = field(default_factory=Quantiles)


@dataclass(frozen=True)
class Privatize:
    """Section ``marginals.privatize``.

    Attributes:
        weights: of columns by name, whole numbers, 1 where none is given. A pair gets as many times the budget of an
            unweighted one as the product of its columns' weights says.
    """

    bins: int = 16
    weights: Mapping[str, Any] = field(default_factory=dict)
    tables: str | tuple[tuple[str, ...], ...] = "none"
    tables_share: float = 0.1
    max_coordinates: int = 20_000_000

    NAMES: ClassVar = ("none", "triples")

    def __post_init__(self) -> None:
        """Check ranges."""
        tables, key = self.tables, "marginals.privatize.tables"
        listed = isinstance(tables, tuple) and bool(tables) and all(len({*own}) == len(own) > 2 for own in tables)
        rule = "none, triples, or a list of lists of three different columns or more"
        require(listed or tables in self.NAMES, key, tables, rule)
        good = not listed or len({frozenset(own) for own in tables}) == len(tables)
        require(good, key, tables, "a list in which every table stands once")
        for name, weight in self.weights.items():
            whole = type(weight) is int and 1 <= weight <= _LARGEST_WEIGHT
            require(whole, f"marginals.privatize.weights.{name}", weight, f"a whole number from 1 to {_LARGEST_WEIGHT}")
        # Far beyond these a bound would be less than a step of the lattice, which the door would refuse too late.
        require(0.001 <= self.tables_share <= 0.999, f"{key}_share", self.tables_share, "from 0.001 to 0.999")
        require(2 <= self.bins <= MOST_BINS, "marginals.privatize.bins", self.bins, f"from 2 to {MOST_BINS:,}")
        require_limit("marginals", self.max_coordinates)


@dataclass(frozen=True)
class TrainMixture:
    """Section ``marginals.train``."""

    iterations: int = 800
    learning_rate: float = 0.2
    num_components: int = 1000
    information_price: float = 1.25
    schedule: str = "cosine"
    exchange_rounds: int = 3

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.iterations >= 1, "marginals.train.iterations", self.iterations, "at least 1")
        require(self.learning_rate > 0, "marginals.train.learning_rate", self.learning_rate, "greater than 0")
        require(self.num_components >= 1, "marginals.train.num_components", self.num_components, "at least 1")
        require(self.information_price >= 0, "marginals.train.information_price", self.information_price, "at least 0")
        allowed("marginals.train.schedule", self.schedule, ("constant", "cosine"))
        key, rule = "marginals.train.exchange_rounds", f"from 0 to {MOST_EXCHANGE_ROUNDS}"
        require(0 <= self.exchange_rounds <= MOST_EXCHANGE_ROUNDS, key, self.exchange_rounds, rule)


@dataclass(frozen=True)
class Marginals(Method):
    """Noisy counts of every pair and named table of columns in every class, and the mixture of products behind them."""

    name: ClassVar[str] = "marginals"
    any_category: ClassVar[bool] = True
    plan: PlanSettings = field(default_factory=PlanSettings)
    train: TrainMixture = field(default_factory=TrainMixture)
    auxiliary: Auxiliary = field(default_factory=Auxiliary)
    privatize: Privatize = field(default_factory=Privatize)

    def __post_init__(self) -> None:
        """Quantiles have a share of ρ, and no quantiles have none."""
        share, columns = self.plan.shares.quantiles, self.auxiliary.quantiles.columns
        key = "marginals.plan.shares.quantiles"
        if self.auxiliary.quantiles.on:
            require(0 < share < 1, key, share, "between 0 and 1 while marginals.auxiliary.quantiles.columns names some")
        else:
            require(share == 0, key, share, f"0 while marginals.auxiliary.quantiles.columns is {columns}")

    def shares(self, context: Context) -> list[QueryShare]:
        """Class counts, the histogram of the numbers if there is one, embedding, which has its share if not."""
        shares = self.plan.shares
        histogram = self.auxiliary.quantiles.shares(context, self.privatize.bins, shares.quantiles)
        rest = shares.embedding if histogram else shares.embedding + shares.quantiles
        return [
            QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
            *histogram,
            QueryShare(EMBEDDING, "privatize", rest),
        ]

    def check(self, context: Context) -> None:
        """Two feature columns at least, and no more coordinates than allowed."""
        if len(context.schema.feature_columns) < 2:
            raise PlanError("marginals needs two feature columns at least: there is no pair. Use method pearl or merf.")
        self.auxiliary.quantiles.check(context, self.privatize.bins)
        self._embedding(context, {})

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> list[Query]:
        """Counts by class, and the histograms that the quantiles are read from."""
        return [class_counts_query(context), *self.auxiliary.quantiles.queries(context, self.privatize.bins)]

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """All pairs of feature columns and the named tables, by class: with a label, pairs are three-way marginals."""
        return self._embedding(context, self.auxiliary.quantiles.grids(context, auxiliary, self.privatize.bins))

    def foreseen_queries(self, context: Context) -> list[Query]:
        """With bins of equal width: quantiles make as many, and no cell changes a bound."""
        return [*self.auxiliary_queries(context, {}), self._embedding(context, {})]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Which columns have bins between released quantiles."""
        return self.auxiliary.quantiles.notes(context, auxiliary, self.privatize.bins)

    def _embedding(self, context: Context, grids: Mapping[str, Grid | None]) -> Query:
        columns, tables = tuple(cells for cells, _ in self._columns(context, grids)), self._tables(context)
        share, weights = self.privatize.tables_share, self._squared_weights(context)
        # Of the squared norm, tables together have their share; that of each pair stays as it is.
        pairs = sum(weights) or math.comb(len(columns), 2)
        weight = share / (1 - share) * pairs / len(tables) if tables else 1.0
        feature = PairMarginals(columns, weights, tables, weight)
        query = Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
        fewer = "name fewer marginals.privatize.tables, " if tables else ""
        remedy = f"Lower marginals.privatize.bins, {fewer}merge categories in the schema"
        what = with_memory(query.dimension, BYTES_A_COORDINATE)
        within_limit("marginals", query.dimension, self.privatize.max_coordinates, remedy, what)
        return query

    def _squared_weights(self, context: Context) -> tuple[int, ...]:
        """Of each pair; none where no column has one, as it was before there were weights."""
        names = [column.name for column in context.schema.feature_columns]
        wanted = {str(name): weight for name, weight in self.privatize.weights.items()}
        for name in wanted:
            if name not in names:
                told = "the label: every pair is by class" if name == context.schema.label else "not a column"
                raise PlanError(f"marginals.privatize.weights: '{name}' is {told}. Columns: {', '.join(names)}.")
        products = [wanted.get(a, 1) * wanted.get(b, 1) for a, b in combinations(names, 2)]
        # Only ratios matter: the same question in other words would be another key, and be paid for again.
        smallest = tuple(product // math.gcd(*products) for product in products)
        return smallest if max(smallest) > 1 else ()

    def _tables(self, context: Context) -> tuple[tuple[int, ...], ...]:
        """Places of the columns of each table that is asked beside the pairs."""
        wanted, names = self.privatize.tables, [column.name for column in context.schema.feature_columns]
        if isinstance(wanted, str):
            count = math.comb(len(names), 3) if wanted == "triples" else 0
            if wanted == "triples" and not count:
                raise PlanError("marginals.privatize.tables is triples, and there are two feature columns. Set none.")
            if count > _MOST_TABLES:
                raise PlanError(
                    f"marginals.privatize.tables is triples: of {len(names)} columns these are {count:,} tables, "
                    f"more than {_MOST_TABLES:,}. Name those that matter."
                )
            return tuple(combinations(range(len(names)), 3)) if count else ()
        for name in (name for table in wanted for name in table):
            if name not in names:
                told = "the label: every table is released by class" if name == context.schema.label else "not a column"
                raise PlanError(f"marginals.privatize.tables: '{name}' is {told}. Name some of: {', '.join(names)}.")
        return tuple(sorted(tuple(sorted(names.index(name) for name in table)) for table in wanted))

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "Generator":
        """A mixture of products over the same cells."""
        from likeness.generators.mixture import ProductMixture

        layout, columns = context.layout, self.columns(context, auxiliary)
        sizes = layout.num_classes, self.train.num_components, layout.width
        return ProductMixture(columns, *sizes, self.train.exchange_rounds)

    def columns(self, context: Context, auxiliary: Mapping[str, Released]) -> "list[MixtureColumn]":
        """Cells of each feature column, and how a number is drawn from its bin."""
        from likeness.generators.mixture import MixtureColumn

        quantiles, bins = self.auxiliary.quantiles, self.privatize.bins
        found, pieces = [], quantiles.pieces(context, auxiliary, bins)
        own = self._columns(context, quantiles.grids(context, auxiliary, bins))
        for column, (cells, grid) in zip(context.schema.feature_columns, own, strict=True):
            if column.name in pieces:
                fine, firsts, shares = pieces[column.name]
                found.append(MixtureColumn(cells, fine.edges, fine.lows, fine.highs, firsts, shares))
            else:
                found.append(MixtureColumn(cells, *(() if grid is None else (grid.edges, grid.lows, grid.highs))))
        return found

    def start(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, generator: "Generator"
    ) -> None:
        """Center the components on the released one-way marginals."""
        from likeness.generators.marginal_objective import one_way_marginals
        from likeness.generators.mixture import ProductMixture

        assert isinstance(generator, ProductMixture)
        feature = self._feature(context, auxiliary)
        by_class = one_way_marginals(feature.blocks(embedding.values), generator.sizes, _weights(feature))
        generator.start_from(class_weights(auxiliary[CLASS_COUNTS]) @ by_class)

    def build_objective(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, device: "torch.device"
    ) -> "Objective":
        """Squared residuals of all blocks and tables, in units of their noise."""
        from likeness.generators.marginal_objective import MarginalObjective

        feature = self._feature(context, auxiliary)
        return MarginalObjective(
            blocks=feature.blocks(embedding.values),
            sizes=[column.size for column in feature.columns],
            squared_weights=_weights(feature),
            class_weights=class_weights(auxiliary[CLASS_COUNTS]),
            records=number_of_records(context, auxiliary[CLASS_COUNTS]),
            noise_std=embedding.noise_std,
            information_price=self.train.information_price,
            device=device,
            tables=list(feature.table_counts(embedding.values)),
            squared_table_weight=feature.squared_table_weight,
        )

    @property
    def training(self) -> TrainingSettings:
        """Section ``marginals.train``."""
        return TrainingSettings(self.train.iterations, 1, self.train.learning_rate, self.train.schedule)

    def _feature(self, context: Context, auxiliary: Mapping[str, Released]) -> PairMarginals:
        feature = self.embedding_query(context, auxiliary).feature
        assert isinstance(feature, PairMarginals)
        return feature

    def _columns(self, context: Context, grids: Mapping[str, Grid | None]) -> list[tuple[Cells, Grid | None]]:
        """Cells of each feature column, and the grid of a numeric one: a given one, else of equal width."""
        starts = context.layout.starts
        found: list[tuple[Cells, Grid | None]] = []
        for column in context.schema.feature_columns:
            start = starts[column.name]
            if column.is_categorical:
                found.append((Cells(start, column.width), None))
            else:
                grid = grids.get(column.name) or grid_of(column, self.privatize.bins)
                found.append((cells_of_number(column, start, grid), grid))
        return found


BYTES_A_COORDINATE = 130  # of memory, measured in the noise and in the objective


def _weights(feature: PairMarginals) -> tuple[int, ...]:
    return feature.squared_weights or (1,) * len(feature.sizes)
