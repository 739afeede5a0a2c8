"""PEARL: a private characteristic function, and a critic over its frequencies (Liew, Takahashi and Ueno 2022)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from likeness.core.typed import Section, require, setting
from likeness.data.encoding.layout import Layout
from likeness.features.base import FeatureMap
from likeness.features.column_marginals import Constant
from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context, class_counts_query
from likeness.methods.settings import FREE, MAP_SEED, MOST_FEATURES, NetworkTraining
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import BucketPairs, PositionPairs
from likeness.release.released import Released
from likeness_papers.networks.network_method import EmbeddingMethod
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.modal_map import Modal
from likeness_papers.pearl.mode import Modes
from likeness_papers.pearl.mode_statistics_map import ModeStatistics
from likeness_papers.pearl.modes import Mixture
from likeness_papers.pearl.pair_distance_map import PairDistance

if TYPE_CHECKING:
    import torch

    from likeness_papers.networks.latent import LatentGenerator
    from likeness_papers.networks.objective import Critic
    from likeness_papers.pearl.modal_generator import ModalGenerator

DISTANCE = "mean_pairwise_distance"
_MOST_PAIRS = 2**24
_CRITIC = (
    0.01,  # learning rate of the paper
    1.05,  # sigma stays within this factor of sigma_0; chosen on a public look-alike (Census)
    0.5,  # least share of the frequencies that still count, so that no few of them decide all
)


def modal_generator() -> "type[ModalGenerator]":
    """The network of split rows; imported when it is needed."""
    from likeness_papers.pearl.modal_generator import ModalGenerator

    return ModalGenerator


@dataclass(frozen=True)
class Shares:
    """Section ``pearl.plan.shares``: parts of ρ, summing to 1; ``mixture`` is that of all steps together."""

    class_counts: float = setting(0.05, "of records by class")
    mean_pairwise_distance: float = setting(0.05, "of the mean distance, which scales the frequencies")
    embedding: float = setting(0.9, "of the characteristic function")
    mixture: float = setting(0.0, "of all steps of the mixture together; 0 without one")


@dataclass(frozen=True)
class PlanSettings:
    """Section ``pearl.plan``."""

    shares: Shares = setting(Shares(), "of rho; sum 1")


@dataclass(frozen=True)
class Auxiliary(Section):
    """Section ``pearl.auxiliary``."""

    num_pairs: int = setting(4096, "pairs for the mean distance; power of two")
    mixture: Mixture = setting(Mixture(), "modes of numeric columns by DP-EM: see docs/pearl.md, shares as there")

    def __post_init__(self) -> None:
        """Buckets are addressed by bits."""
        power = 1 <= self.num_pairs <= _MOST_PAIRS and self.num_pairs & (self.num_pairs - 1) == 0
        require(power, "pearl.auxiliary.num_pairs", self.num_pairs, f"a power of two, at most {_MOST_PAIRS:,}")


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``pearl.privatize``."""

    num_frequencies: int = setting(1000, "k; paper: 1,000 for tables", least=1, most=MOST_FEATURES)


@dataclass(frozen=True)
class TrainPearl(NetworkTraining):
    """Section ``pearl.train``."""

    everyday: ClassVar = ("iterations", "critic")
    critic: bool = setting(True, "false is the paper's ablation")


@dataclass(frozen=True)
class Pearl(EmbeddingMethod):
    """Characteristic function of the encoded row by class, at frequencies scaled to a private mean distance."""

    name: ClassVar[str] = "pearl"
    everyday: ClassVar = ("privatize", "train")
    maps: ClassVar = (CharacteristicFunction, Modal, ModeStatistics, PairDistance)
    queries: ClassVar = {
        CLASS_COUNTS: (Constant,),
        "mixture_[0-9]{1,5}": (ModeStatistics,),
        DISTANCE: (PairDistance, Modal),
        EMBEDDING: (CharacteristicFunction, Modal),
    }
    generators: ClassVar = {**EmbeddingMethod.generators, "modal": modal_generator}
    plan: PlanSettings = setting(PlanSettings())
    auxiliary: Auxiliary = setting(Auxiliary())
    privatize: Privatize = setting(Privatize())
    train: TrainPearl = setting(TrainPearl(), FREE)

    def __post_init__(self) -> None:
        """A mixture has a share of ρ, and no mixture has none."""
        share, components = self.plan.shares.mixture, self.auxiliary.mixture.components
        key = "pearl.plan.shares.mixture"
        if self.auxiliary.mixture.is_on:
            rule = f"between 0 and 1 while pearl.auxiliary.mixture.components is {components}: its steps are paid for"
            require(0 < share < 1, key, share, rule)
        else:
            require(share == 0, key, share, "0 while pearl.auxiliary.mixture.components is 1: there is no mixture")

    def check(self, context: Context) -> None:
        """Refuse what a network cannot make, and numbers without modes."""
        self.auxiliary.mixture.check(context)
        super().check(context)

    def shares(self, context: Context) -> list[QueryShare]:
        """Class counts, the steps of the mixture, mean pairwise distance, embedding."""
        shares = self.plan.shares
        return [
            QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
            *self.auxiliary.mixture.shares(shares.mixture),
            QueryShare(DISTANCE, "auxiliary", shares.mean_pairwise_distance),
            QueryShare(EMBEDDING, "privatize", shares.embedding),
        ]

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """Counts by class, the steps of the mixture, and the distance within random pairs of split rows."""
        yield class_counts_query(context)
        yield from self.auxiliary.mixture.queries(context, released)
        yield self._distance(context, self.auxiliary.mixture.modes(released))

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The characteristic function by class, frequencies N(0, σ₀²) with σ₀ one over the mean distance."""
        modes = self.auxiliary.mixture.modes(auxiliary)
        return self._embedding(context, modes, 1 / mean_distance(auxiliary[DISTANCE]))

    def planned_queries(self, context: Context) -> list[Query]:
        """Plan queries with the mixture's public starting modes, and a scale of 1: neither changes a bound."""
        mixture = self.auxiliary.mixture
        start = mixture.start(context)
        queries = [class_counts_query(context), *mixture.plan_queries(context), self._distance(context, start)]
        return [*queries, self._embedding(context, start, 1.0)]

    def _distance(self, context: Context, modes: tuple[Modes, ...]) -> Query:
        pairs = self.auxiliary.num_pairs
        terms = BucketPairs(pairs) if context.num_records is None else PositionPairs(pairs, MAP_SEED)
        feature = PairDistance(round(_split(context.layout, modes).diameter ** 2))
        return Query(DISTANCE, "auxiliary", _map_split_rows(feature, context.layout, modes), contributions=terms)

    def _embedding(self, context: Context, modes: tuple[Modes, ...], scale: float) -> Query:
        width = _split(context.layout, modes).width
        feature = CharacteristicFunction(self.privatize.num_frequencies, width, scale, MAP_SEED)
        whole = _map_split_rows(feature, context.layout, modes)
        return Query(EMBEDDING, "privatize", whole, num_groups=context.layout.num_classes)

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "LatentGenerator":
        """The papers' network, of split rows where there are modes."""
        modes, train = self.auxiliary.mixture.modes(auxiliary), self.train
        if not modes:
            return super().build_generator(context, auxiliary)
        return modal_generator()(context.layout, modes, train.latent_dim, train.hidden, train.sampling)

    def trained_feature(self, feature: FeatureMap) -> FeatureMap:
        """The rows of the network are split already."""
        return feature.inner if isinstance(feature, Modal) else feature

    def critic(self, feature: FeatureMap, device: "torch.device") -> "Critic | None":
        """The paper's critic over the frequencies, unless ``critic: false``."""
        from likeness_papers.pearl.critic import FrequencyCritic

        if not self.train.critic:
            return None
        assert isinstance(feature, CharacteristicFunction)
        return FrequencyCritic(feature, *_CRITIC, device)


def mean_distance(released: Released) -> float:
    """Mean pairwise distance from the noisy sums of distances and pairs; post-processing.

    It is clipped to [1/20, 1] of the diameter, so that noise gives no impossible scale.
    """
    total, pairs = (float(value) for value in released.values[0])
    ratio = total / max(pairs, 1.0)
    feature = released.receipt.feature
    diameter = math.sqrt(int(feature.get("inner", feature)["diameter_squared"]))
    return diameter * min(1.0, max(0.05, ratio))


def _split(layout: Layout, modes: tuple[Modes, ...]) -> Layout:
    return layout.with_modes({column.place: column.size for column in modes})


def _map_split_rows(feature: FeatureMap, layout: Layout, modes: tuple[Modes, ...]) -> FeatureMap:
    """A map of split rows as a map of encoded rows; unchanged where nothing is split."""
    return Modal(layout.width, modes, feature) if modes else feature
