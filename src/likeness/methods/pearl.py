"""PEARL: a private characteristic function, and a critic over its frequencies (Liew, Takahashi and Ueno 2022)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from likeness.features import CharacteristicFunction, FeatureMap, PairDistance
from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context, class_counts_query
from likeness.methods.embedding import EmbeddingMethod
from likeness.methods.settings import NetworkTraining
from likeness.params import require
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released
from likeness.release.terms import BucketPairs, PositionPairs

if TYPE_CHECKING:
    import torch

    from likeness.generators.objective import Critic

DISTANCE = "mean_pairwise_distance"


@dataclass(frozen=True)
class Shares:
    """Section ``pearl.plan.shares``: parts of ρ, summing to 1."""

    class_counts: float = 0.05
    mean_pairwise_distance: float = 0.05
    embedding: float = 0.9


@dataclass(frozen=True)
class PlanSettings:
    """Section ``pearl.plan``."""

    shares: Shares = field(default_factory=Shares)


@dataclass(frozen=True)
class Auxiliary:
    """Section ``pearl.auxiliary``."""

    num_pairs: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        """Buckets are addressed by bits."""
        power = self.num_pairs >= 1 and self.num_pairs & (self.num_pairs - 1) == 0
        require(power, "pearl.auxiliary.num_pairs", self.num_pairs, "a power of two")


@dataclass(frozen=True)
class Privatize:
    """Section ``pearl.privatize``."""

    num_frequencies: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.num_frequencies >= 1, "pearl.privatize.num_frequencies", self.num_frequencies, "at least 1")


@dataclass(frozen=True)
class TrainPearl(NetworkTraining):
    """Section ``pearl.train``."""

    critic: bool = True
    critic_learning_rate: float = 0.01
    critic_max_factor: float = 1.05

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        require(self.critic_learning_rate > 0, "train.critic_learning_rate", self.critic_learning_rate, "above 0")
        require(self.critic_max_factor >= 1, "train.critic_max_factor", self.critic_max_factor, "at least 1")


@dataclass(frozen=True)
class Pearl(EmbeddingMethod):
    """Characteristic function of the encoded row by class, at frequencies scaled to a private mean distance."""

    name: ClassVar[str] = "pearl"
    plan: PlanSettings = field(default_factory=PlanSettings)
    train: TrainPearl = field(default_factory=TrainPearl)
    auxiliary: Auxiliary = field(default_factory=Auxiliary)
    privatize: Privatize = field(default_factory=Privatize)

    def shares(self) -> list[QueryShare]:
        """Class counts, mean pairwise distance, embedding."""
        shares = self.plan.shares
        return [
            QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
            QueryShare(DISTANCE, "auxiliary", shares.mean_pairwise_distance),
            QueryShare(EMBEDDING, "privatize", shares.embedding),
        ]

    def auxiliary_queries(self, context: Context) -> list[Query]:
        """Counts by class, and the distance within random pairs at O(n)."""
        pairs = self.auxiliary.num_pairs
        terms = BucketPairs(pairs) if context.num_records is None else PositionPairs(pairs, self.auxiliary.seed)
        diameter_squared = round(context.layout.diameter**2)
        return [class_counts_query(context), Query(DISTANCE, "auxiliary", PairDistance(diameter_squared), terms=terms)]

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The characteristic function by class, frequencies N(0, σ₀²) with σ₀ one over the mean distance."""
        scale = 1 / mean_distance(auxiliary[DISTANCE])
        feature = CharacteristicFunction(
            self.privatize.num_frequencies, context.layout.width, scale, self.privatize.seed
        )
        return Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)

    def critic(self, feature: FeatureMap, device: "torch.device") -> "Critic | None":
        """The paper's critic over the frequencies, unless ``critic: false``."""
        from likeness.generators.critic import FrequencyCritic

        if not self.train.critic:
            return None
        assert isinstance(feature, CharacteristicFunction)
        return FrequencyCritic(feature, self.train.critic_learning_rate, self.train.critic_max_factor, device)


def mean_distance(released: Released) -> float:
    """Mean pairwise distance from the noisy sums of distances and pairs; post-processing.

    Kept within [1/20, 1] of the diameter, so that noise cannot give a zero, negative or impossible scale.
    """
    total, pairs = (float(value) for value in released.values[0])
    ratio = total / max(pairs, 1.0)
    diameter = math.sqrt(int(released.receipt.feature["diameter_squared"]))
    return diameter * min(1.0, max(0.05, ratio))
