"""A method of another distribution: the mean of each encoded coordinate by class, in one noisy sum."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from likeness.core.bounds import Part
from likeness.core.typed import build, setting
from likeness.data.encoding.layout import NONE, Conditions, Layout
from likeness.features.base import Map
from likeness.generators.base import Compute, Generator, Trained, environment
from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context, Method, class_counts_query
from likeness.methods.settings import NoSettings, TrainingSettings, TwoQueryPlan, TwoQueryShares
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released


@dataclass(frozen=True)
class Coordinates(Map):
    """φ(x) = x. Each of d coordinates lies in [0, 1], so ‖φ(x)‖² ≤ d, reached by a row of ones."""

    name: ClassVar[str] = "means_coordinates"
    takes_tensors: ClassVar[bool] = False
    size: int

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(self.size, Fraction(self.size), nonnegative=True),)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x


class Independent(Generator):
    """Draws each column by itself: numbers from a beta distribution, categories by their shares."""

    name: ClassVar[str] = "means_independent"
    readers: ClassVar = {"layout": lambda layout: build(Layout, layout, "layout")}

    def __init__(self, layout: Layout) -> None:
        self.layout, self.num_classes = layout, layout.num_classes
        self.means = np.zeros((layout.num_classes, layout.width))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"means": self.means}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self.means = arrays["means"]

    def draw(self, labels: np.ndarray, random: np.random.Generator, conditions: Conditions = NONE) -> np.ndarray:
        self.class_likelihood(conditions)  # refuses all but those on the class
        means = self.means[labels].clip(0.01, 0.99)
        x = random.beta(4 * means, 4 * (1 - means))
        for block in self.layout.blocks:
            if block.kind == "indicator":
                x[:, block.start] = random.random(len(x)) < means[:, block.start]
            elif block.kind == "onehot":
                sums = means[:, block.start : block.stop].cumsum(axis=1)
                chosen = (random.random((len(x), 1)) * sums[:, -1:] > sums).sum(axis=1)
                x[:, block.start : block.stop] = np.eye(block.width)[chosen]
        return x


@dataclass(frozen=True)
class Means(Method):
    """Means of encoded coordinates by class, and columns that are independent given the class."""

    name: ClassVar[str] = "means"
    maps: ClassVar = (Coordinates,)
    generators: ClassVar[Mapping[str, Any]] = {Independent.name: lambda: Independent}
    plan: TwoQueryPlan = setting(TwoQueryPlan(TwoQueryShares(0.1, 0.9)))
    auxiliary: NoSettings = setting(NoSettings(), "nothing to set")
    privatize: NoSettings = setting(NoSettings(), "nothing to set")
    train: NoSettings = setting(NoSettings(), "nothing to set")

    def shares(self, context: Context) -> list[QueryShare]:
        counts, embedding = self.plan.shares.class_counts, self.plan.shares.embedding
        return [QueryShare(CLASS_COUNTS, "auxiliary", counts), QueryShare(EMBEDDING, "privatize", embedding)]

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterable[Query]:
        return [class_counts_query(context)]

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        layout = context.layout
        return Query(EMBEDDING, "privatize", Coordinates(layout.width), num_groups=layout.num_classes)

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> Generator:
        return Independent(context.layout)

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: Compute
    ) -> Trained:
        generator = Independent(context.layout)
        generator.means = embedding.values / np.maximum(auxiliary[CLASS_COUNTS].values, 1)
        return Trained(generator, environment(), [(0, 0.0)])

    @property
    def training(self) -> TrainingSettings:
        return TrainingSettings(0, 1, 0.0)
