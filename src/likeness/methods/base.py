"""What a method is: which queries, which map, which objective. A recipe, one file a method."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.features.constant import Constant
from likeness.generators.settings import TrainingSettings
from likeness.methods.settings import TwoQueryShares
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachRecord
from likeness.release.released import Released

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from likeness.generators.training import Objective
    from likeness.methods.saved_generator import Generator

CLASS_COUNTS = "class_counts"
EMBEDDING = "embedding"


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


class Method(ABC):
    """A recipe. Subclasses are frozen dataclasses of their own settings in params.yaml."""

    name: ClassVar[str]
    any_category: ClassVar[bool] = False
    """Whether ``sample.where`` may give other columns than the label."""

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

    def public_files(self) -> dict[str, Path]:
        """Public files beside the settings that the map is made from, by their name in the bundle. None by default."""
        return {}

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


def class_counts_and_embedding(shares: TwoQueryShares) -> list[QueryShare]:
    """Shares of a method that asks for these two."""
    return [
        QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
        QueryShare(EMBEDDING, "privatize", shares.embedding),
    ]


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
