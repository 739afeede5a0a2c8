"""What a method is: which queries, which maps, which objective. A recipe, one folder a method."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from likeness.config.training import TrainingSettings
from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.features.base import CellMap, Map
from likeness.features.constant import Constant
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachRecord
from likeness.release.released import Released

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from likeness.generators.latent import Generator
    from likeness.generators.training import Objective

CLASS_COUNTS = "class_counts"
EMBEDDING = "embedding"
BYTES_A_COORDINATE = 130
"""Of memory, measured in the noise and in the objective."""


@dataclass(frozen=True)
class Context:
    """Public facts that every recipe may use.

    Attributes:
        schema: columns of the table. adjacency: as text. num_records: public under replace_one, else None.
        seed: public seed of the run.
    """

    schema: Schema
    adjacency: str
    num_records: int | None
    seed: int

    @cached_property
    def layout(self) -> Layout:
        """Columns of an encoded row."""
        return Layout.from_schema(self.schema)


class Measured(NamedTuple):
    """How well one kind of number is measured, before anything is released.

    Attributes:
        of: in words.
        noise: standard deviation of its noise, in records.
        average: the share of the records that it has on average.
        ruled: whether the rule of thumb for the number of records is applied to it.
    """

    of: str
    noise: float
    average: float
    ruled: bool


class PublicFile(NamedTuple):
    """A public file beside the settings that a map is made from."""

    path: Path
    sha256: str


class Method(ABC):
    """A recipe. Subclasses are frozen dataclasses of their own settings in params.yaml.

    Attributes:
        name: in params.yaml, and in the registry of methods.
        maps: feature maps that belong to this method alone.
        any_category: whether ``sample.where`` may give other columns than the label.
        public_names: names that its public files have in a bundle.
    """

    name: ClassVar[str]
    maps: ClassVar[tuple[type[Map], ...]] = ()
    any_category: ClassVar[bool] = False
    public_names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def generators(cls) -> "tuple[type[Generator], ...]":
        """The generators that it may build. A function, since they need a tensor library."""

    @abstractmethod
    def shares(self, context: Context) -> list[QueryShare]:
        """The queries and their shares of ρ, sum 1, in the order in which they are released."""

    def check(self, context: Context) -> None:
        """Refuse, before anything is spent, what could not be released later. Nothing by default.

        Raises:
            PlanError: saying why.
        """
        return None

    @abstractmethod
    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterable[Query]:
        """Queries of the auxiliary stage, one after the other.

        Args:
            released: answers by the name of their query. Whoever asks adds each answer before taking the next query,
                so that a query may depend on the answers before it, and never on rows.
        """

    def ask(self, context: Context, answer: Callable[[Query], Released]) -> dict[str, Released]:
        """All answers of the auxiliary stage, asked for in turn."""
        released: dict[str, Released] = {}
        for query in self.auxiliary_queries(context, released):
            released[query.name] = answer(query)
        return released

    @abstractmethod
    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The query of the privatize stage. May depend on released values, never on rows."""

    def foreseen_queries(self, context: Context) -> list[Query]:
        """Every query, before anything is released: for forecasts.

        Where a query depends on released values, a stand-in with the same coordinates, bounds and sensitivity.
        """
        return [*self.auxiliary_queries(context, {}), self.embedding_query(context, {})]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """What the statement shall say about what was read off released values, in sentences. Nothing by default."""
        return []

    def at(self, root: Path) -> Self:
        """The recipe with public files that it names below a project's folder. By default it names none."""
        return self

    def public_files(self) -> dict[str, PublicFile]:
        """Public files, by their name in a bundle. None by default."""
        return {}

    def measures(self, query: Query, sigma: float, context: Context, private: Collection[str]) -> Iterator[Measured]:
        """How well one of :meth:`foreseen_queries` measures the records. By default its map says it.

        Args:
            query: the query.
            sigma: standard deviation of the noise on a coordinate.
            context: public facts.
            private: columns with private categories.
        """
        if not isinstance(query.terms, EachRecord):
            return  # of pairs of records, whose number is a setting
        classes = query.num_groups
        by_class = ", by class" if classes > 1 else ""
        if query.width == 1:
            yield Measured(
                "share of a class" if classes > 1 else "number of records, as a share", sigma, 1 / classes, True
            )
        elif isinstance(query.feature, CellMap):
            # A cell of its part: a record in it counts the part's bound.
            for part in query.parts:
                noise = sigma / math.sqrt(part.norm_bound_squared)
                yield Measured(f"share in one of {part.width} cells{by_class}", noise, 1 / (classes * part.width), True)
        else:
            size = min(math.sqrt(part.norm_bound_squared / part.width) for part in query.parts)
            of = f"coordinate of the mean embedding{by_class}, in units of its size"
            yield Measured(of, sigma / size, 1 / classes, True)

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float | None:
        """About how many multiplications one step of the training takes, forward. None where nobody knows.

        Args:
            context: public facts.
            coordinates: of each query, by its name.
        """
        return None

    @abstractmethod
    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "Generator":
        """An untrained generator. Its shape may depend on released values."""

    @abstractmethod
    def build_objective(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, device: "torch.device"
    ) -> "Objective":
        """What the generator is trained against."""

    def start(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, generator: "Generator"
    ) -> None:
        """Give the untrained generator a better start from released values. Nothing by default."""
        return None

    def trained(self, generator: "Generator") -> "torch.nn.Module":
        """The part of the generator that the objective is for; all of it by default."""
        return generator

    @property
    @abstractmethod
    def training(self) -> TrainingSettings:
        """How it is trained."""


def together(context: Context) -> EachRecord:
    """Terms of a query about the records of all classes together.

    Without classes those are the records as they are, under the key that such queries have had from the beginning.
    """
    return AllRecords() if context.layout.num_classes > 1 else EachRecord()


def class_counts_query(context: Context) -> Query:
    """Counts of records by class. Under add_remove_one their sum also estimates the number of records."""
    return Query(CLASS_COUNTS, "auxiliary", Constant(), num_groups=context.layout.num_classes)


def class_weights(released: Released) -> "Tensor":
    """Class weights π from noisy counts, shape (num_classes,), float64.

    Post-processing: a count below one standard deviation of its own noise (and below 1) is raised to it, so that a
    small class is rare rather than absent, and never has a negative weight; then the weights are scaled to sum to 1.
    """
    import torch

    counts = torch.from_numpy(released.values[:, 0].copy()).clamp(min=max(1.0, released.noise_std))
    return counts / counts.sum()


def number_of_records(context: Context, released: Released) -> float:
    """n: public under replace_one, else the sum of the noisy class counts, at least 1."""
    if context.num_records is not None:
        return float(context.num_records)
    return max(1.0, math.fsum(released.values[:, 0].tolist()))
