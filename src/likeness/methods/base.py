"""Methods: which queries, which maps, which objective. One folder holds one method."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError
from likeness.core.messages import LOG
from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.features.base import CellMap, Map
from likeness.features.column_marginals import Constant
from likeness.methods.expected import Expected
from likeness.methods.settings import TrainingSettings
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachRecord
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Generator, Trained

CLASS_COUNTS = "class_counts"
EMBEDDING = "embedding"
BYTES_A_COORDINATE = 130
"""Of memory, measured in the noise and in the objective."""


@dataclass(frozen=True)
class Context:
    """Public facts that every method may use; ``num_records`` is public under replace_one, else None."""

    schema: Schema
    adjacency: str
    num_records: int | None
    seed: int

    @cached_property
    def layout(self) -> Layout:
        """Columns of an encoded row."""
        return Layout.from_schema(self.schema)


class Measured(NamedTuple):
    """The expected accuracy of one kind of number, before anything is released.

    Attributes:
        of: in words.
        noise: standard deviation of its noise, in records.
        average: the share of the records that it has on average; None where that says nothing.
        ruled: whether the rule of thumb for the number of records is applied to it.
    """

    of: str
    noise: float
    average: float | None
    ruled: bool


class Method(ABC):
    """A method. Subclasses are frozen dataclasses of their settings in params.yaml.

    Attributes:
        name: in params.yaml, and in the registry of methods.
        maps: feature maps that belong to this method alone.
        row_maps: those of them that need rows here, see :meth:`reasons_for_rows`.
        queries: its grammar: patterns of the names of all queries that any of its settings ask, each with the maps that
            it may ask; none: those of the method. The verifier believes no others.
        generators: those that it may build, by their name: functions that import them, since some need PyTorch.
        any_category: whether ``sample.where`` may give other columns than the label.
        learns_functions: whether it learns how one column determines another, for a rule without a table.
    """

    name: ClassVar[str]
    maps: ClassVar[tuple[type[Map], ...]] = ()
    row_maps: ClassVar[tuple[type[Map], ...]] = ()
    queries: ClassVar[Mapping[str, tuple[type[Map], ...]]] = {CLASS_COUNTS: (Constant,), EMBEDDING: ()}
    generators: ClassVar[Mapping[str, Callable[[], Any]]]
    any_category: ClassVar[bool] = False
    learns_functions: ClassVar[bool] = False

    @classmethod
    def allows(cls, name: str, stage: str, feature: str) -> bool:
        """Tell whether the grammar has a query of this name, in this stage, that asks the map of this name."""
        maps = next((maps or cls.maps for form, maps in cls.queries.items() if re.fullmatch(form, name)), ())
        return feature in {kind.name for kind in maps} and stage == ("privatize" if name == EMBEDDING else "auxiliary")

    def reasons_for_rows(self) -> list[str]:
        """Reasons why rows have to come, and cannot be counted where they are. None by default."""
        return []

    @abstractmethod
    def shares(self, context: Context) -> list[QueryShare]:
        """The queries and their shares of ρ, sum 1, in the order in which they are released."""

    def check_device(self, device: str) -> None:
        """Refuse a device that this machine does not have, before anything is spent. By default only the CPU is used.

        Raises:
            ParamsError: saying which device to use.
        """
        if device not in ("auto", "cpu"):
            LOG.warning("train.device is %s, but %s trains on the CPU only.", device, self.name)

    def check(self, context: Context) -> None:
        """Refuse what could not be released, before anything is spent. Nothing by default.

        Raises:
            PlanError: saying why.
        """
        return None

    @abstractmethod
    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterable[Query]:
        """Queries of the auxiliary stage, one after the other.

        The caller adds each answer to ``released``, under its query's name, before it takes the next query. So a query
        may depend on earlier answers, and never on rows.
        """

    def ask(self, context: Context, answer: Callable[[Query], Released]) -> dict[str, Released]:
        """All answers of the auxiliary stage, in order."""
        released: dict[str, Released] = {}
        for query in self.auxiliary_queries(context, released):
            released[query.name] = answer(query)
        return released

    @abstractmethod
    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The query of the privatize stage. May depend on released values, never on rows."""

    def planned_queries(self, context: Context) -> list[Query]:
        """Every query, before anything is released: for forecasts.

        A stand-in replaces a query that depends on released values. Its share of ρ is equal, and it has as many
        coordinates at least. Where an answer may lead to another map, it stands for the larger one.
        """
        return [*self.auxiliary_queries(context, {}), self.embedding_query(context, {})]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Sentences for the statement on what was read off released values. None by default."""
        return []

    def hints(self, schema: Schema) -> list[str]:
        """Give the notes of ``likeness check`` on settings and a schema without faults. None by default."""
        return []

    def measures(self, query: Query, sigma: float, context: Context, private: Collection[str]) -> Iterator[Measured]:
        """Describe how well one of :meth:`planned_queries` measures the records. By default its map says it.

        ``sigma`` is the standard deviation of a coordinate's noise; ``private`` names columns with private categories.
        """
        if not isinstance(query.contributions, EachRecord):
            return  # of pairs of records, whose number is a setting
        classes = query.num_groups
        by_class = ", by class" if classes > 1 else ""
        if query.width == 1:
            of = "share of a class" if classes > 1 else "number of records, as a share"
            yield Measured(of, sigma, 1 / classes, True)
        elif isinstance(query.feature, CellMap):
            # A cell of its part: a record in it counts the part's bound.
            for part in query.bounded_parts:
                noise = sigma / math.sqrt(part.norm_bound_squared)
                yield Measured(f"share in one of {part.width} cells{by_class}", noise, 1 / (classes * part.width), True)
        else:
            size = min(math.sqrt(part.norm_bound_squared / part.width) for part in query.bounded_parts)
            of = f"coordinate of the mean embedding{by_class}, in units of its size"
            yield Measured(of, sigma / size, 1 / classes, True)

    def forecast_accuracy(
        self, context: Context, sigmas: Mapping[str, float], rows: int, private: Collection[str]
    ) -> Expected | None:
        """Forecast which relations and shares survive the noise; None without a forecast.

        Args:
            context: public facts.
            sigmas: standard deviation of a coordinate's noise, by the names of :meth:`planned_queries`.
            rows: number of records, public or approximate.
            private: names of columns with private categories, of whose relations nobody can know.
        """
        return None

    def coarser(self) -> Self | None:
        """The recipe with fewer cells of a number; None where it has no such setting."""
        return None

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float | None:
        """Estimate the multiplications of one training step, forward; None without an estimate.

        ``coordinates`` holds those of each query, by its name.
        """
        return None

    @abstractmethod
    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "Generator":
        """An untrained generator. Its shape may depend on released values."""

    def blueprint(self, context: Context, auxiliary: Mapping[str, Released]) -> "Generator":
        """An untrained generator without memory for its weights: only its specification counts."""
        return self.build_generator(context, auxiliary)

    @abstractmethod
    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """Build a generator and train it against the released values."""

    def replicable(self, generator: "Generator") -> "Generator":
        """The generator, if it knows the expected value of each release (:mod:`likeness_margins.replicates`).

        Raises:
            ParamsError: by default it does not.
        """
        raise ParamsError(f"{self.name} makes no replicates: its model gives no expected counts. Use method marginals.")

    def refit(
        self,
        context: Context,
        auxiliary: Mapping[str, Released],
        embedding: Released,
        generator: "Generator",
        compute: "Compute",
    ) -> "Generator":
        """A generator fitted to releases that are drawn again; it starts from one fitted to the real ones."""
        raise NotImplementedError

    def fixed_answers(self, context: Context) -> frozenset[str]:
        """Names of auxiliary queries to whose answers, as released, replicates are fitted: such as those of bins.

        Classes of a replicate come from redrawn counts all the same.
        """
        return frozenset()

    def drop_penalty(self) -> Self:
        """The recipe without a pull of the fit towards independence: estimates have less bias and more variance."""
        return self

    def adapt_to_histories(self, row_sets: Sequence[Sequence[str]] = ()) -> Self:
        """The recipe for people with histories, whose generator knows a row given a part of it.

        Args:
            row_sets: names of the columns of people, and of transitions; empty: settings that name columns stay
                unchecked.

        Raises:
            ParamsError: by default there is none.
        """
        raise ParamsError(f"{self.name} makes no histories: its model knows no next event. Use method marginals.")

    @property
    @abstractmethod
    def training(self) -> TrainingSettings:
        """The settings of its training."""


def together(context: Context) -> EachRecord:
    """Terms of a query about the records of all classes together. Without classes the key stays that of each record."""
    return AllRecords() if context.layout.num_classes > 1 else EachRecord()


def class_counts_query(context: Context) -> Query:
    """Counts of records by class. Under add_remove_one their sum also estimates the number of records."""
    return Query(CLASS_COUNTS, "auxiliary", Constant(), num_groups=context.layout.num_classes)


def class_weights(released: Released) -> NDArray[np.float64]:
    """Class weights π from noisy counts, shape (num_classes,).

    Post-processing: a count is raised to one standard deviation of its noise, and to 1. So a small class is rare, not
    absent, and no weight is negative. Then the weights are scaled to sum to 1.
    """
    counts = np.maximum(released.values[:, 0], max(1.0, released.noise_std))
    weights: NDArray[np.float64] = counts / counts.sum()
    return weights


def number_of_records(context: Context, released: Released) -> float:
    """n: public under replace_one, else the sum of the noisy class counts, at least 1."""
    if context.num_records is not None:
        return float(context.num_records)
    return max(1.0, math.fsum(released.values[:, 0].tolist()))
