"""Marginals: single columns, products of all pairs, and cells of those that show much; and a mixture fitted to them."""

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likeness.core import rng
from likeness.core.errors import PlanError
from likeness.core.messages import progress
from likeness.core.text import code_span
from likeness.core.typed import Section, setting
from likeness.data.schema.rules import learned_pairs
from likeness.data.schema.schema import Schema
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.base import (
    BYTES_A_COORDINATE,
    CLASS_COUNTS,
    EMBEDDING,
    Context,
    Measured,
    Method,
    class_counts_query,
    class_weights,
)
from likeness.methods.expected import Expected
from likeness.methods.marginals.column_steps import ColumnSteps
from likeness.methods.marginals.columns import USUAL_CELLS, is_fine, lattice_of, step_of
from likeness.methods.marginals.forecast import expected_noise
from likeness.methods.marginals.objective import (
    CountedTable,
    MarginalObjective,
    Measurement,
    Products,
    Singles,
)
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts, denoise_products
from likeness.methods.marginals.pieces import pieces_of
from likeness.methods.marginals.relations.acceptance import CHOICES, KEPT, RELATIONS, SHARES
from likeness.methods.marginals.relations.tables import RelationCandidates, RelationCells
from likeness.methods.marginals.release_state import (
    COLUMNS,
    FINER,
    HISTOGRAMS,
    PRODUCTS,
    SECOND,
    STEPS,
    ReleaseState,
    mean_of,
)
from likeness.methods.marginals.structural_zeros import StructuralZeros
from likeness.methods.marginals.training import minimize
from likeness.methods.marginals.workload import HistoryWorkload, Workload, measures_of_cells
from likeness.methods.settings import FREE, NoSettings, TrainingSettings, check_limit, with_memory
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Generator, Trained
    from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture

_SHARES = {  # of ρ
    CLASS_COUNTS: 0.03,
    STEPS: 0.02,
    HISTOGRAMS: 0.07,
    FINER: 0.05,
    COLUMNS: 0.22,
    PRODUCTS: 0.15,
    SECOND: 0.2,
    EMBEDDING: 0.26,
}
_HISTORY_BINS = 10  # most cells of a number of histories
_RATE, _REFIT_RATE = 0.2, 0.1  # of Adam: of the fit, and of a replicate
_REFIT = 200  # steps of a replicate


def product_mixture() -> "type[ProductMixture]":
    """The mixture of products; imported when it is needed."""
    from likeness.methods.marginals.mixture import ProductMixture

    return ProductMixture


@dataclass(frozen=True)
class AskedRelations(Section):
    """Section ``marginals.auxiliary``."""

    relations: str = setting(
        "none",
        "found: what most rows keep between columns is chosen and repaired | none: where an exception is a secret",
        options=("found", "none"),
    )


@dataclass(frozen=True)
class TrainMixture(Section):
    """Section ``marginals.train``."""

    iterations: int = setting(2000, "most gradient steps", least=1)
    num_components: int = setting(400, "products in the mixture", least=1)
    kl_penalty: float = setting(
        0.8,
        "keeps columns independent where the release does not say otherwise; 0: believe noise",
        least=0,
        below=math.inf,
        rule="at least 0, and finite",
    )
    tolerance: float = setting(
        0.001,
        "twenty steps that lower the mean loss by a smaller part stand still; 0: all steps",
        least=0,
        below=1,
    )


_GRAMMAR: Mapping[str, tuple[type[Any], ...]] = {
    CLASS_COUNTS: (Constant,),
    STEPS: (ColumnSteps,),
    **dict.fromkeys((HISTOGRAMS, FINER, COLUMNS), (ColumnMarginals,)),
    PRODUCTS: (PairProducts,),
    SECOND: (PairProducts, PairMarginals),
    CHOICES: (RelationCandidates, PairProducts),
    **dict.fromkeys((RELATIONS, KEPT), (RelationCells, PairProducts)),
    EMBEDDING: (PairMarginals,),
}


@dataclass(frozen=True)
class Marginals(Method):
    """Noisy single columns and pairs of columns, and a mixture fitted to them."""

    name: ClassVar[str] = "marginals"
    maps: ClassVar = (ColumnSteps, PairMarginals, PairProducts, RelationCandidates, RelationCells)
    row_maps: ClassVar = (RelationCandidates, RelationCells)
    queries: ClassVar = _GRAMMAR
    generators: ClassVar = {"product_mixture": product_mixture}
    any_category: ClassVar[bool] = True
    learns_functions: ClassVar[bool] = True
    everyday: ClassVar = ("auxiliary", "privatize", "train")
    is_per_person: ClassVar[bool] = False
    plan: NoSettings = setting(NoSettings(), "nothing to set")
    auxiliary: AskedRelations = setting(AskedRelations())
    privatize: Workload = setting(Workload())
    train: TrainMixture = setting(TrainMixture(), FREE)

    def shares(self, context: Context) -> list[QueryShare]:
        """Class counts, steps and histograms of numbers if there are some, columns, products, and the embedding.

        What is not asked leaves its share to the columns, and products leave it to the embedding.
        """
        shares, columns = dict(_SHARES), self._state(context, {}).columns
        if not columns.step_questions:
            shares[COLUMNS] += shares.pop(STEPS)
        if not columns.fine:
            shares[COLUMNS] += shares.pop(HISTOGRAMS) + shares.pop(FINER)
        if self._asks_relations(context):
            part, named = sum(SHARES.values()) / 4, (COLUMNS, PRODUCTS, SECOND, EMBEDDING)
            shares |= {name: shares[name] - part for name in named}
            shares |= {**SHARES, EMBEDDING: shares.pop(EMBEDDING)}
        if self.is_per_person:
            shares[EMBEDDING] += shares.pop(PRODUCTS) + shares.pop(SECOND)
        return [
            QueryShare(name, "privatize" if name == EMBEDDING else "auxiliary", share) for name, share in shares.items()
        ]

    def check(self, context: Context) -> None:
        """Refuse fewer than two feature columns, and more coordinates than allowed."""
        if len(context.schema.feature_columns) < 2:
            raise PlanError("marginals needs at least two feature columns to make a pair. Use method pearl or merf.")
        self.embedding_query(context, {})

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float:
        """Products of components with cells, of every pair and table in every class."""
        return 4 * self.train.num_components * (coordinates[EMBEDDING] + coordinates.get(PRODUCTS, 0))

    def measures(self, query: Query, sigma: float, context: Context, private: Collection[str]) -> Iterator[Measured]:
        """Describe the accuracy of pairs and single columns; the map describes the rest."""
        if query.name in (SECOND, EMBEDDING):
            yield from measures_of_cells(self._pair_marginals(query), sigma, query.num_groups)
        elif query.name == STEPS:
            yield Measured("records whose value has a round step", sigma, None, False)
        elif query.name in (HISTOGRAMS, FINER):
            yield Measured("records in a cell of a number, where noise alone is evened out", sigma, None, False)
        elif query.name == COLUMNS:
            listed = [column for column in context.schema.feature_columns if column.name not in private]
            if listed:
                sizes = [column.width if column.is_categorical else USUAL_CELLS for column in listed]
                size, name = max(sizes), listed[sizes.index(max(sizes))].name
                yield Measured(f"share in a cell of '{name}', the hardest column", sigma, 1 / size, True)
        elif query.name == PRODUCTS:
            yield Measured("mean product of the ranks of two columns", sigma, None, False)
        elif query.name in SHARES:
            yield Measured("records that keep a relation, or mean products again", sigma, None, False)
        else:
            yield from super().measures(query, sigma, context, private)

    def forecast_accuracy(
        self, context: Context, sigmas: Mapping[str, float], rows: int, private: Collection[str]
    ) -> Expected | None:
        """Forecast from the noise of single columns, products and cells. Images have no forecast."""
        if context.schema.image is not None:
            return None
        state, feature = self._state(context, {}), self._pair_marginals(self.embedding_query(context, {}))
        twice = _SHARES[PRODUCTS] / (_SHARES[PRODUCTS] + _SHARES[SECOND])
        return expected_noise(state, feature, context, sigmas, rows, private, twice)

    def coarser(self) -> "Marginals | None":
        """Half the bins of a number."""
        bins = self.privatize.bins // 2
        return replace(self, privatize=replace(self.privatize, bins=bins)) if bins > 1 else None

    def hints(self, schema: Schema) -> list[str]:
        """Say that pairs are chosen, and how to make sure of one."""
        return [
            "cells are released of the pairs of columns that show much. To ask `likeness estimate` about two columns, "
            "name them in marginals.privatize.workload before the run"
        ]

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """Counts by class, steps and histograms of numbers, single columns, and products of ranks and categories."""
        yield class_counts_query(context)
        # What follows from an answer is worked out when it is there, once.
        state = self._new_state(context, released)
        yield from state.columns.queries()
        if not self.is_per_person:
            products = state.products_query()
            self._check_limit(products)
            yield products
            second = state.products_query() if state.hides_cells else self._embedding(context, state)
            yield replace(second, name=SECOND, stage="auxiliary")
        if self._asks_relations(context):
            answered = []
            if state.has(SECOND) and state.relations.is_asked:
                for query in state.relations.queries():
                    answered.append(query.name)
                    yield query
            yield from (replace(products, name=name) for name in SHARES if name not in answered)
        self._keep(context, released, state)

    def reasons_for_rows(self) -> list[str]:
        """Relations are scored on rows."""
        return ["marginals.auxiliary.relations is found"] if self.auxiliary.relations != "none" else []

    def _asks_relations(self, context: Context) -> bool:
        """Tell whether relations are looked for: in tables of single rows."""
        return self.auxiliary.relations != "none" and not self.is_per_person and context.schema.image is None

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Cells of the pairs that show much, named tables, and single columns, by class."""
        return self._embedding(context, self._state(context, auxiliary))

    def _embedding(self, context: Context, state: ReleaseState) -> Query:
        """The query after the products; a state is of one method's settings, and later answers change nothing."""
        if state.embedding is not None:
            return state.embedding
        count = len(context.schema.feature_columns)
        columns = tuple(cells for cells, _ in state.bins)
        shown: tuple[Sequence[float], bool, float] = [math.inf] * math.comb(count, 2), False, 0.0
        if state.has(PRODUCTS):
            ratio = _SHARES[PRODUCTS] / (_SHARES[EMBEDDING] + _SHARES[SECOND]) / math.comb(count, 2)
            shown = state.strengths(), state.hides_cells, state.dependence(PRODUCTS)[1] * math.sqrt(ratio)
        feature = self.privatize.feature(columns, context.schema, context.layout.num_classes, shown)
        query = Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
        self._check_limit(query)
        state.embedding = query
        return query

    def _check_limit(self, query: Query) -> None:
        remedy = "Lower marginals.privatize.bins, name smaller tables, merge categories in the schema"
        amount = with_memory(query.dimension, BYTES_A_COORDINATE)
        check_limit("marginals", query.dimension, self.privatize.max_coordinates, remedy, amount)

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Name the columns with bins from a release, and count the pairs with cells."""
        numbers = [column for column in context.schema.feature_columns if not column.is_categorical]
        fine = ", ".join(code_span(column.name) for column in numbers if is_fine(column, self.privatize.bins))
        text = f"Cells of {fine} follow from the noisy releases `{HISTOGRAMS}`, `{FINER}` and `{COLUMNS}`."
        notes = [text] if fine else []
        if PRODUCTS in auxiliary:
            chosen = len(self._pair_marginals(self.embedding_query(context, auxiliary)).sizes)
            every = math.comb(len(context.schema.feature_columns), 2)
            notes.append(
                f"The noisy release `{PRODUCTS}` chose {chosen:,} of {every:,} pairs, whose cells are released."
            )
        return notes

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "ProductMixture":
        """A mixture of products over the same cells."""
        layout, columns = context.layout, self.mixture_columns(context, auxiliary)
        sizes = layout.num_classes, self.train.num_components, layout.width
        names = [column.name for column in context.schema.feature_columns]
        functions = [[names.index(name) for name in pair] for pair in learned_pairs(context.schema.rules)]
        state, relations = self._state(context, auxiliary), {}
        if KEPT in auxiliary and not _is_of_products(auxiliary[KEPT]):
            uses = state.relations.uses()
            relations = {"operands": state.relations.operands, "uses": uses} if uses else {}
        return product_mixture()(columns, *sizes, functions, relations)

    def mixture_columns(self, context: Context, auxiliary: Mapping[str, Released]) -> "list[MixtureColumn]":
        """Cells of each feature column, and how a number is drawn from its bin."""
        return self._mixture_columns(context, self._state(context, auxiliary))

    def _mixture_columns(self, context: Context, state: ReleaseState) -> "list[MixtureColumn]":
        from likeness.methods.marginals.mixture import MixtureColumn

        columns = []
        for index, (column, (cells, grid)) in enumerate(zip(context.schema.feature_columns, state.bins, strict=True)):
            if grid is None:
                columns.append(MixtureColumn(cells))
            elif not state.has(COLUMNS):
                columns.append(MixtureColumn(cells, grid.edges, grid.lows, grid.highs))
            else:
                single = state.columns.singles[index]
                fine, firsts, shares = pieces_of(column, single, state.bin_starts[index])
                lattice = () if single.step in (None, step_of(column)) else lattice_of(column, single.step)
                columns.append(MixtureColumn(cells, fine.edges, fine.lows, fine.highs, firsts, shares, lattice))
        return columns

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """Start around the released single columns, and fit all that was released."""
        from likeness.generators.base import Trained, environment

        settings, generator = self.training, self.build_generator(context, auxiliary)
        with threadpool_limits(compute.threads), progress(f"train {self.name}", settings.iterations) as step:
            marginals = np.concatenate([*map(np.array, self._state(context, auxiliary).shares)])
            generator.start_from(marginals, rng.public(context.seed, "train.weights"))
            losses = minimize(
                self.objective(context, auxiliary, embedding),
                generator.logits,
                generator.weights,
                settings,
                lambda iteration, loss: step(iteration, f"loss {loss:.5g}"),
            )
        generator.determine(self._tables(auxiliary, embedding))
        return Trained(generator, environment(), losses)

    def replicable(self, generator: "Generator") -> "Generator":
        """A mixture of products knows every cell."""
        return generator

    def fixed_answers(self, context: Context) -> frozenset[str]:
        """Releases that bins come from: another draw of them would make other bins than the embedding counts."""
        return frozenset([CLASS_COUNTS, STEPS, HISTOGRAMS, FINER, COLUMNS, *SHARES])

    def refit(
        self,
        context: Context,
        auxiliary: Mapping[str, Released],
        embedding: Released,
        generator: "Generator",
        compute: "Compute",
    ) -> "ProductMixture":
        """Few steps from the fitted mixture: new noise moves the optimum a little."""
        again, start = self.build_generator(context, auxiliary), generator.arrays()
        again.load({name: array.copy() for name, array in start.items()})
        steps = min(_REFIT, self.train.iterations)
        settings = replace(self.training, iterations=steps, learning_rate=_REFIT_RATE, tolerance=0.0)
        with threadpool_limits(compute.threads):
            objective = self.objective(context, auxiliary, embedding)
            minimize(objective, again.logits, again.weights, settings, lambda *_: None)
        return again

    def drop_penalty(self) -> "Marginals":
        """Believe the noise: the penalty makes the effects of small groups too near to those of all."""
        return replace(self, train=replace(self.train, kl_penalty=0.0))

    def adapt_to_histories(self, row_sets: Sequence[Sequence[str]] = ()) -> "Marginals":
        """Fewer cells, for the noise of people who share a contribution among their events, and cells of all pairs.

        The door does not sum products of a person's rows.
        """
        bins = min(self.privatize.bins, _HISTORY_BINS)
        privatize = HistoryWorkload(**vars(replace(self.privatize, bins=bins)))
        if row_sets:
            privatize.check_columns(row_sets)
        return MarginalsOfHistories(auxiliary=self.auxiliary, privatize=privatize, train=self.train)

    def objective(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released
    ) -> "MarginalObjective":
        """Squared residuals of all releases, in units of their noise."""
        state, feature = self._state(context, auxiliary), self._feature(embedding)
        values, noise_std = _cells(auxiliary, embedding)
        measurement = Measurement(
            [cells.size for cells in feature.columns],
            class_weights(auxiliary[CLASS_COUNTS]),
            state.columns.records,
            noise_std,
            _information([*(answer for name, answer in auxiliary.items() if name not in SHARES), embedding]),
        )
        zeros, blocks = StructuralZeros(context.schema, state.bins), list(feature.blocks(values))
        weighted = zip(zeros.clear_forbidden(blocks), feature.weights, strict=True)
        tables = [
            CountedTable(columns, counts, weight)
            for (columns, counts), weight in zip(
                feature.table_counts(values), feature.squared_table_weights, strict=True
            )
        ]
        named = (PRODUCTS, SECOND, *SHARES)
        of_products = [name for name in named if name in auxiliary and _is_of_products(auxiliary[name])]
        return MarginalObjective(
            measurement,
            [CountedTable((i, j), counts, weight) for (i, j, counts), weight in weighted],
            _singles(state, measurement, [table for table in tables if len(table.columns) == 1]),
            self.train.kl_penalty,
            _products(state, feature, of_products) if of_products else None,
            [table for table in tables if len(table.columns) > 1],
            zeros,
        )

    def _tables(
        self, auxiliary: Mapping[str, Released], embedding: Released
    ) -> dict[tuple[int, int], tuple[NDArray[np.float64], float]]:
        """Released counts of pairs, of all classes together, and the standard deviation of their noise."""
        values, noise_std = _cells(auxiliary, embedding)
        feature = self._feature(embedding)
        blocks = zip(feature.blocks(values), feature.weights, strict=True)
        return {
            (i, j): (counts.sum(axis=0), noise_std * math.sqrt(len(counts) / weight))
            for (i, j, counts), weight in blocks
        }

    @property
    def training(self) -> TrainingSettings:
        """Section ``marginals.train``."""
        return TrainingSettings(self.train.iterations, 1, _RATE, "cosine", self.train.tolerance)

    def _state(self, context: Context, released: Mapping[str, Released]) -> ReleaseState:
        """The state after these answers, made once for all who ask in a run."""
        for question, answers, state in tuple(_LATEST):  # another thread may add some meanwhile
            is_same = question == (type(self), self.privatize, context) and answers.keys() == released.keys()
            if is_same and all(
                answers[name] is answer or answers[name].equals(answer) for name, answer in released.items()
            ):
                return state
        state = self._new_state(context, dict(released))
        self._keep(context, released, state)
        return state

    def _new_state(self, context: Context, released: Mapping[str, Released]) -> ReleaseState:
        """The state after some answers; the budget decides on bins where nobody set them or named tables."""
        usual = self.privatize == Workload() and not learned_pairs(context.schema.rules)
        cells = (_SHARES[SECOND] + _SHARES[EMBEDDING]) / _SHARES[CLASS_COUNTS] if usual else 0.0
        return ReleaseState(context, released, self.privatize.bins, cells)

    def _keep(self, context: Context, released: Mapping[str, Released], state: ReleaseState) -> None:
        """Keep the state for who asks next; of the settings it needs only those of the query."""
        _LATEST.appendleft(((type(self), self.privatize, context), dict(released), state))

    @staticmethod
    def _feature(embedding: Released) -> PairMarginals:
        """The map of the release, from its receipt: products that are drawn again would choose other pairs."""
        spec: dict[str, Any] = dict(embedding.receipt.feature)
        return PairMarginals(**{key: value for key, value in spec.items() if key not in _NOT_MAP})

    @staticmethod
    def _pair_marginals(query: Query) -> PairMarginals:
        assert isinstance(query.feature, PairMarginals)
        return query.feature


@dataclass(frozen=True)
class MarginalsOfHistories(Marginals):
    """The recipe of rows of people, who share one contribution each."""

    is_per_person: ClassVar[bool] = True


def _is_of_products(release: Released) -> bool:
    """Tell whether a release holds products of features, and no cells."""
    return bool(release.receipt.feature["map"] == PairProducts.name)


def _cells(auxiliary: Mapping[str, Released], embedding: Released) -> tuple[NDArray[np.float64], float]:
    """Cells of pairs of all releases of them, and the standard deviation of their noise."""
    second = [auxiliary[SECOND]] if SECOND in auxiliary and not _is_of_products(auxiliary[SECOND]) else []
    return mean_of([embedding, *second])


def _singles(state: ReleaseState, measurement: Measurement, by_class: Sequence[CountedTable]) -> Singles:
    """Single columns of all classes together, and by class where these are released."""
    shares = np.concatenate([*map(np.array, state.shares)]), np.concatenate(state.share_noises)
    if not by_class:
        return Singles(*shares)
    counts = np.concatenate([table.counts for table in by_class], axis=1) / measurement.records
    return Singles(*shares, counts, min(table.squared_weight for table in by_class) / measurement.scale**2)


def _products(state: ReleaseState, feature: PairMarginals, names: Sequence[str]) -> Products:
    """Products of features of all pairs, of these releases."""
    noisy, noise = state.dependence(*names)
    product_map = state.feature
    cells_too = () if state.hides_cells else feature.column_pairs
    blocks, targets, trust = denoise_products(noisy, product_map.pairs, product_map.column_sizes, noise, cells_too)
    contents = [content - mean for content, mean in zip(product_map.contents(), state.means, strict=True)]
    scale = max(noise, 1 / state.columns.records)
    return Products(contents, targets, trust / scale**2, blocks, scale)


def _information(releases: Sequence[Released]) -> float:
    """μ: the root of the sum over releases of their squared norms over the variance of their noise; 0 without noise."""
    from likeness.methods.maps import from_spec

    total = 0.0
    for release in releases:
        spec = {key: value for key, value in release.receipt.feature.items() if key != "terms"}
        norm = float(sum(part.norm_bound_squared for part in from_spec(spec).bounded_parts))
        if not release.noise_std:
            return 0.0
        total += norm / release.noise_std**2
    return math.sqrt(total)


_LATEST: "deque[tuple[tuple[type[Marginals], Workload, Context], dict[str, Released], ReleaseState]]" = deque(maxlen=4)
"""Questions and answers with what they say: with and without answers, of two row sets at most."""
_NOT_MAP = ("map", "terms")  # words of a query's specification that are no fields of the map
