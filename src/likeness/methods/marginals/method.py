"""Marginals: pairs of columns and named tables by class as one mean embedding, and a mixture fitted to it."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from threadpoolctl import threadpool_limits

from likeness.config.training import TrainingSettings
from likeness.config.typed import Section, require, setting
from likeness.core import rng
from likeness.core.errors import PlanError, ReleaseError
from likeness.core.messages import progress
from likeness.data.encoding.bins import Grid, grid_of
from likeness.data.schema.rules import learned
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.base import (
    BYTES_A_COORDINATE,
    CLASS_COUNTS,
    EMBEDDING,
    Context,
    Measured,
    Method,
    class_counts_query,
    class_weights,
    number_of_records,
)
from likeness.methods.marginals.blocks import Block, one_way_marginals
from likeness.methods.marginals.first_look import MEAN_WEIGHT, PAIRS_FIRST, both, squared_weights
from likeness.methods.marginals.measures import measures_of_cells
from likeness.methods.marginals.pair_contrasts import PairContrasts
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.quantiles import QUANTILES, Quantiles, cells_of_number
from likeness.methods.marginals.workload import MOST_SWAP_ROUNDS, HistoryWorkload, Workload
from likeness.methods.settings import FREE, with_memory, within_limit
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Generator, Trained
    from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
    from likeness.methods.marginals.objective import MarginalObjective
    from likeness.methods.marginals.rare_cells import RareCells
    from likeness.methods.marginals.structural_zeros import StructuralZeros


_HISTORY_BINS, _HISTORY_QUANTILES = 10, 0.12  # most cells of a number of histories, and least share of their edges
_RATE, _REFIT_RATE = 0.2, 0.1  # of Adam: of the fit, and of a replicate or of a second fit
_REFIT = 200  # steps of these
_STRONG_GAIN = 10.0  # weight of a strong pair's target in the second fit, in that of noisy counts


def product_mixture() -> "type[ProductMixture]":
    """The mixture of products; imported when it is needed."""
    from likeness.methods.marginals.mixture import ProductMixture

    return ProductMixture


@dataclass(frozen=True)
class Shares:
    """Section ``marginals.plan.shares``: parts of ρ, summing to 1."""

    class_counts: float = setting(0.03, "of records by class")
    quantiles: float = setting(0.02, "of the histograms of numbers; the embedding has it where there are none")
    embedding: float = setting(0.95, "of pairs and named tables")


@dataclass(frozen=True)
class PlanSettings:
    """Section ``marginals.plan``."""

    shares: Shares = setting(Shares(), "of rho; sum 1")


@dataclass(frozen=True)
class Auxiliary:
    """Section ``marginals.auxiliary``."""

    quantiles: Quantiles = setting(Quantiles(), "histograms of numbers: values lie within their bins as these say")


@dataclass(frozen=True)
class TrainMixture(Section):
    """Section ``marginals.train``."""

    iterations: int = setting(800, "gradient steps", least=1)
    num_components: int = setting(1000, "products in the mixture", least=1)
    kl_penalty: float = setting(
        1.5,
        "keeps columns independent where the release does not say otherwise; 0: believe noise",
        least=0,
        below=math.inf,
        rule="at least 0, and finite",
    )
    kl_hidden: float = setting(
        0.8,
        "factor of the penalty where noise hides the cells of pairs; 1: the penalty as it is",
        above=0,
        most=1,
    )
    kl_adaptive: float = setting(
        0.5,
        "power by which the penalty of a column falls with its dependence; 0: one for all",
        least=0,
        most=1,
    )
    tolerance: float = setting(
        0.001,
        "the fit ends where twenty steps lower the loss by a smaller part; 0: never early",
        least=0,
        below=1,
    )
    swap_rounds: int = setting(
        3,
        "drawn rows swap values until pairs are as frequent as the model says; 0: none",
        least=0,
        most=MOST_SWAP_ROUNDS,
    )


@dataclass(frozen=True)
class Marginals(Method):
    """Noisy counts of pairs and tables of columns by class, and a mixture fitted to them."""

    name: ClassVar[str] = "marginals"
    maps: ClassVar = (PairMarginals, PairContrasts)
    queries: ClassVar = (CLASS_COUNTS, QUANTILES, PAIRS_FIRST, EMBEDDING)
    generators: ClassVar = {"product_mixture": product_mixture}
    any_category: ClassVar[bool] = True
    holds_columns: ClassVar[bool] = False
    learns_functions: ClassVar[bool] = True
    plan: PlanSettings = setting(PlanSettings())
    auxiliary: Auxiliary = setting(Auxiliary())
    privatize: Workload = setting(Workload())
    train: TrainMixture = setting(TrainMixture(), FREE)

    def __post_init__(self) -> None:
        """Quantiles have a share of ρ, and no quantiles have none."""
        share, columns = self.plan.shares.quantiles, self.auxiliary.quantiles.columns
        key = "marginals.plan.shares.quantiles"
        if self.auxiliary.quantiles.on:
            require(
                0 < share < 1, key, share, "between 0 and 1 while marginals.auxiliary.quantiles.columns names columns"
            )
        else:
            require(share == 0, key, share, f"0 while marginals.auxiliary.quantiles.columns is {columns}")

    def shares(self, context: Context) -> list[QueryShare]:
        """Class counts, the histogram of numbers if there is one, embedding; without a histogram it has both shares.

        A first look at the pairs takes its part of the embedding's share.
        """
        shares, look = self.plan.shares, self.privatize.first_share
        parts = [QueryShare(EMBEDDING, "privatize", 1.0)]
        if self._first(context, {}) is not None:
            parts = [QueryShare(PAIRS_FIRST, "auxiliary", look), QueryShare(EMBEDDING, "privatize", 1 - look)]
        histogram = self.auxiliary.quantiles.shares(context, self.privatize.bins, shares.quantiles)
        rest = shares.embedding if histogram else shares.embedding + shares.quantiles
        return [
            QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
            *histogram,
            *(replace(part, share=rest * part.share) for part in parts),
        ]

    def check(self, context: Context) -> None:
        """At least two feature columns, and no more coordinates than allowed."""
        if len(context.schema.feature_columns) < 2:
            raise PlanError("marginals needs at least two feature columns to make a pair. Use method pearl or merf.")
        self.auxiliary.quantiles.check(context, self.privatize.bins)
        self._embedding(context, {})

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float:
        """Products of components with cells, of every pair and table in every class."""
        return 4 * self.train.num_components * coordinates[EMBEDDING]

    def measures(self, query: Query, sigma: float, context: Context, private: Collection[str]) -> Iterator[Measured]:
        """Of bins and of pairs; the rest by its map."""
        if query.name == QUANTILES:
            yield self.auxiliary.quantiles.measure(query, sigma, self.privatize.bins)
        elif query.name == EMBEDDING:
            look = 0.0 if self._first(context, {}) is None else self.privatize.first_share
            yield from measures_of_cells(self._asked(query), sigma, query.num_groups, context, private, look)
        elif query.name == PAIRS_FIRST:
            yield next(measures_of_cells(self._asked(query), sigma, query.num_groups, context, private))
        else:
            yield from super().measures(query, sigma, context, private)

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """Counts by class, the histograms that the quantiles are read from, and a first look at the pairs."""
        yield from self._counts(context)
        if self.privatize.first_share:
            first = self._first(context, self.auxiliary.quantiles.grids(context, released, self.privatize.bins))
            if first is not None:
                yield first

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Pairs of feature columns and the named tables, by class: with a label, pairs are three-way marginals."""
        grids = self.auxiliary.quantiles.grids(context, auxiliary, self.privatize.bins)
        first = self._first(context, grids)
        if first is None:
            return self._embedding(context, grids)
        answer, feature = auxiliary[PAIRS_FIRST], self._asked(first)
        if (dict(answer.receipt.feature), answer.receipt.num_groups) != (first.spec(), first.num_groups):
            raise ReleaseError(f"{PAIRS_FIRST}.safetensors answers another question than params.yaml. Run: dvc repro")
        return self._embedding(context, grids, squared_weights(feature, answer, self.privatize.first_share))

    def foreseen_queries(self, context: Context) -> list[Query]:
        """With bins of equal width: quantiles make as many, and bounds do not depend on cells.

        With even weights after a first look: their sum is fixed.
        """
        first = self._first(context, {})
        even = () if first is None else (MEAN_WEIGHT,) * len(self._asked(first).sizes)
        firsts = [] if first is None else [first]
        return [*self._counts(context), *firsts, self._embedding(context, {}, even)]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Which columns have bins between released quantiles, which pairs there are, and what their budgets follow."""
        notes = self.auxiliary.quantiles.notes(context, auxiliary, self.privatize.bins)
        pairs, every = len(self._pairs(context)), math.comb(len(context.schema.feature_columns), 2)
        if pairs < every:
            notes.append(f"Of {every:,} pairs of columns {pairs:,} are released: each column has a few partners.")
        if self._first(context, {}) is not None:
            notes.append(f"Budgets of pairs of columns follow their dependence in the noisy release `{PAIRS_FIRST}`.")
        return notes

    def hints(self, schema: Schema) -> list[str]:
        """Columns whose values wide bounds would press into one bin, and a first look without effect."""
        return [*self.auxiliary.quantiles.hints(schema), *self.privatize.hints(schema)]

    def _counts(self, context: Context) -> list[Query]:
        return [class_counts_query(context), *self.auxiliary.quantiles.queries(context, self.privatize.bins)]

    def _first(self, context: Context, grids: Mapping[str, Grid | None]) -> Query | None:
        """The first look at the pairs, if there is one."""
        columns = tuple(cells for cells, _ in self._columns(context, grids))
        feature = self.privatize.first(columns, context.schema, self._pairs(context))
        return None if feature is None else Query(PAIRS_FIRST, "auxiliary", feature, context.layout.num_classes)

    def _embedding(self, context: Context, grids: Mapping[str, Grid | None], weights: tuple[int, ...] = ()) -> Query:
        columns = tuple(cells for cells, _ in self._columns(context, grids))
        signed = context.adjacency == Adjacency.ADD_REMOVE_ONE  # a replaced record moves signed features twice as far
        feature = self.privatize.feature(columns, context.schema, self._pairs(context), weights, signed)
        query = Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
        remedy = "Lower marginals.privatize.bins, name smaller tables, merge categories in the schema"
        what = with_memory(query.dimension, BYTES_A_COORDINATE)
        within_limit("marginals", query.dimension, self.privatize.max_coordinates, remedy, what)
        return query

    def _pairs(self, context: Context) -> tuple[tuple[int, int], ...]:
        """Those to release: by cells of equal width, since a released histogram may leave a column fewer."""
        sizes = [cells.size for cells, _ in self._columns(context, {})]
        return self.privatize.pairs(sizes, context.layout.num_classes, context.schema)

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "ProductMixture":
        """A mixture of products over the same cells."""
        layout, columns = context.layout, self.mixture_columns(context, auxiliary)
        sizes = layout.num_classes, self.train.num_components, layout.width
        names = [column.name for column in context.schema.feature_columns]
        functions = [[names.index(name) for name in pair] for pair in learned(context.schema.rules)]
        return product_mixture()(columns, *sizes, self.train.swap_rounds, functions)

    def mixture_columns(self, context: Context, auxiliary: Mapping[str, Released]) -> "list[MixtureColumn]":
        """Cells of each feature column, and how a number is drawn from its bin."""
        from likeness.methods.marginals.mixture import MixtureColumn

        quantiles, bins = self.auxiliary.quantiles, self.privatize.bins
        columns, pieces = [], quantiles.pieces(context, auxiliary, bins)
        cells_and_grids = self._columns(context, quantiles.grids(context, auxiliary, bins))
        for column, (cells, grid) in zip(context.schema.feature_columns, cells_and_grids, strict=True):
            if column.name in pieces:
                fine, firsts, shares = pieces[column.name]
                columns.append(MixtureColumn(cells, fine.edges, fine.lows, fine.highs, firsts, shares))
            else:
                columns.append(MixtureColumn(cells, *(() if grid is None else (grid.edges, grid.lows, grid.highs))))
        return columns

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """Start around the released one-way marginals, and fit all blocks and tables."""
        from likeness.generators.base import Trained, environment
        from likeness.methods.marginals.training import minimize

        settings = self.training
        blocks, weights, _ = self._blocks(context, auxiliary, embedding)
        generator = self.build_generator(context, auxiliary)
        with threadpool_limits(compute.threads), progress(f"train {self.name}", settings.iterations) as step:
            by_class = one_way_marginals(blocks, generator.sizes, weights)
            marginals = class_weights(auxiliary[CLASS_COUNTS]) @ by_class
            generator.start_from(marginals, rng.public(context.seed, "train.weights"))
            objective = self.objective(context, auxiliary, embedding)
            losses = minimize(
                objective,
                generator.logits,
                generator.weights,
                settings,
                lambda iteration, loss: step(iteration, f"loss {loss:.5g}"),
            )
            if self.train.kl_penalty and objective.hidden and embedding.noise_std:
                losses += self._second_fit(context, auxiliary, embedding, generator, losses[-1][0])
        return Trained(generator, environment(), losses)

    def _second_fit(
        self,
        context: Context,
        auxiliary: Mapping[str, Released],
        embedding: Released,
        generator: "ProductMixture",
        steps: int,
    ) -> list[tuple[int, float]]:
        """Move a fitted mixture, in place, until strong pairs have the released strength; losses from ``steps`` on."""
        from likeness.methods.marginals.strong_pairs import strengthened
        from likeness.methods.marginals.training import minimize

        blocks, weights, _ = self._blocks(context, auxiliary, embedding)
        shares = class_weights(auxiliary[CLASS_COUNTS]) * number_of_records(context, auxiliary[CLASS_COUNTS])
        fitted = generator.pairs([(i, j) for i, j, _ in blocks], shares)
        targets = strengthened(blocks, weights, fitted, embedding.noise_std, _STRONG_GAIN)
        objective = self.objective(context, auxiliary, embedding, targets)
        objective.adapt(generator.logits, generator.weights)
        losses = minimize(objective, generator.logits, generator.weights, self._refitting, lambda *_: None)
        return [(steps + iteration, loss) for iteration, loss in losses]

    @property
    def _refitting(self) -> TrainingSettings:
        """Few steps from a fitted mixture."""
        steps = min(_REFIT, self.train.iterations)
        return replace(self.training, iterations=steps, learning_rate=_REFIT_RATE, tolerance=0.0)

    def replicable(self, generator: "Generator") -> "Generator":
        """A mixture of products knows every cell."""
        return generator

    def fixed_answers(self, context: Context) -> frozenset[str]:
        """The histograms that bins come from: another draw of them would make other bins than the release counts."""
        quantiles = self.auxiliary.quantiles
        return frozenset([QUANTILES] if quantiles.moves_bins(context, self.privatize.bins) else [])

    def refit(
        self,
        context: Context,
        auxiliary: Mapping[str, Released],
        embedding: Released,
        generator: "Generator",
        compute: "Compute",
    ) -> "ProductMixture":
        """Few steps from the fitted mixture: new noise moves the optimum a little."""
        from likeness.methods.marginals.training import minimize

        again, start = self.build_generator(context, auxiliary), generator.arrays()
        again.load({name: array.copy() for name, array in start.items()})
        with threadpool_limits(compute.threads):
            objective = self.objective(context, auxiliary, embedding)
            minimize(objective, again.logits, again.weights, self._refitting, lambda *_: None)
        return again

    def unpenalized(self) -> "Marginals":
        """Believe the noise: the penalty makes the effects of small groups too near to those of all."""
        train = replace(self.train, kl_penalty=0.0)
        return MarginalsForEstimates(self.plan, self.auxiliary, self.privatize, train)

    def for_histories(self, row_sets: Sequence[Sequence[str]] = ()) -> "Marginals":
        """Fewer cells, between quantiles, for the noise of people who share a contribution among their events.

        There is no first look: its answer is compared with a query that counts rows and not people. Nor are there
        contrasts: the door does not sum those of a person's rows.
        """
        bins = min(self.privatize.bins, _HISTORY_BINS)
        privatize = HistoryWorkload(**vars(replace(self.privatize, first_share=0.0, basis="pairs", bins=bins)))
        if row_sets:
            privatize.check_columns(row_sets)
        if not self.auxiliary.quantiles.on:
            return replace(self, privatize=privatize)
        quantiles = max(self.plan.shares.quantiles, _HISTORY_QUANTILES)
        rest = (1 - quantiles) / (1 - self.plan.shares.quantiles)
        shares = Shares(rest * self.plan.shares.class_counts, quantiles, rest * self.plan.shares.embedding)
        auxiliary = Auxiliary(replace(self.auxiliary.quantiles, edges="learned"))
        return replace(self, privatize=privatize, auxiliary=auxiliary, plan=PlanSettings(shares))

    def objective(
        self,
        context: Context,
        auxiliary: Mapping[str, Released],
        embedding: Released,
        targets: tuple[list[Block], list[float]] | None = None,
    ) -> "MarginalObjective":
        """Squared residuals of all blocks and tables, in units of their noise; ``targets``: other blocks to fit."""
        from likeness.methods.marginals.objective import MarginalObjective

        feature = self._feature(embedding)
        blocks, weights, rare = self._blocks(context, auxiliary, embedding)
        return MarginalObjective(
            blocks=blocks,
            certain=self._zeros(context, auxiliary),
            sizes=[column.size for column in feature.columns],
            squared_weights=weights,
            class_weights=class_weights(auxiliary[CLASS_COUNTS]),
            records=number_of_records(context, auxiliary[CLASS_COUNTS]),
            noise_std=embedding.noise_std,
            kl_penalty=self.train.kl_penalty,
            kl_hidden=self.train.kl_hidden,
            kl_adaptive=self.train.kl_adaptive,
            tables=list(feature.table_counts(embedding.values)),
            squared_table_weights=feature.squared_table_weights,
            hold_columns=self.holds_columns,
            targets=targets,
            rare=rare,
        )

    def _zeros(self, context: Context, auxiliary: Mapping[str, Released]) -> "StructuralZeros":
        """Cells that the rules of the schema forbid."""
        from likeness.methods.marginals.structural_zeros import StructuralZeros

        grids = self.auxiliary.quantiles.grids(context, auxiliary, self.privatize.bins)
        return StructuralZeros(context.schema, self._columns(context, grids))

    @property
    def training(self) -> TrainingSettings:
        """Section ``marginals.train``."""
        return TrainingSettings(self.train.iterations, 1, _RATE, "cosine", self.train.tolerance)

    def _blocks(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released
    ) -> "tuple[list[Block], list[float], RareCells | None]":
        """Counts of each pair, 0 where a rule says so, with their squared weights: of embedding and first look.

        Cells of single columns that noise hides have believed counts, unless there is no penalty.
        """
        from likeness.methods.marginals.rare_cells import believed

        feature, weight = self._feature(embedding), 0.0
        blocks, weights = list(feature.blocks(embedding.values)), [float(weight) for weight in feature.weights]
        if PAIRS_FIRST in auxiliary:
            first = auxiliary[PAIRS_FIRST]
            weight = (embedding.noise_std / first.noise_std) ** 2 if first.noise_std else 1.0
            earlier = PairMarginals(feature.columns, pairs=feature.pairs).blocks(first.values)
            blocks, weights = both(blocks, weights, earlier, weight)
        zeros = self._zeros(context, auxiliary)
        blocks = zeros.emptied(blocks)
        if not (self.train.kl_penalty and embedding.noise_std):
            return blocks, weights, None
        noises = [embedding.noise_std * math.sqrt(variance) for variance in feature.variances(weight)[1]]
        blocks, rare = believed(blocks, weights, noises, zeros)
        return blocks, weights, rare

    @staticmethod
    def _feature(embedding: Released) -> PairMarginals:
        """The map of the release, from its receipt: a first look that is drawn again would give other budgets."""
        spec = embedding.receipt.feature
        kind = PairContrasts if spec["map"] == PairContrasts.name else PairMarginals
        return kind(**{key: value for key, value in spec.items() if key not in _NOT_MAP})

    @staticmethod
    def _asked(query: Query) -> PairMarginals:
        assert isinstance(query.feature, PairMarginals)
        return query.feature

    def _columns(self, context: Context, grids: Mapping[str, Grid | None]) -> list[tuple[Cells, Grid | None]]:
        """Cells of each feature column, and the grid of a numeric one: the given grid, else equal width."""
        starts = context.layout.starts
        columns: list[tuple[Cells, Grid | None]] = []
        for column in context.schema.feature_columns:
            start = starts[column.name]
            if column.is_categorical:
                columns.append((Cells(start, column.width), None))
            else:
                grid = grids.get(column.name) or grid_of(column, self.privatize.bins)
                columns.append((cells_of_number(column, start, grid), grid))
        return columns


@dataclass(frozen=True)
class MarginalsForEstimates(Marginals):
    """The recipe of replicates, whose one-way marginals by class are those of the release.

    No share is below 0, so noise in cells that are nearly empty can only add to them. The sums of many such cells then
    are too large, by much more than their own noise.
    """

    holds_columns: ClassVar[bool] = True


_NOT_MAP = ("map", "terms")  # words of a query's specification that are no fields of the map
