"""DP-MERF: random Fourier features of mixed tables, by class (Harder, Adamczewski and Park 2021)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from likeness.config.typed import require
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.merf.fourier_map import MixedFourierFeatures
from likeness.methods.network_method import TwoQueryMethod
from likeness.methods.settings import MOST_FEATURES, NetworkTraining
from likeness.release.query import Query
from likeness.release.released import Released


@dataclass(frozen=True)
class Privatize:
    """Section ``merf.privatize``."""

    num_frequencies: int = 1000
    lengthscale: float | tuple[float, ...] = 0.5
    lengthscale_weights: tuple[float, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        good = 1 <= self.num_frequencies <= MOST_FEATURES
        require(good, "merf.privatize.num_frequencies", self.num_frequencies, f"from 1 to {MOST_FEATURES:,}")
        own = self.lengthscale if isinstance(self.lengthscale, tuple) else (self.lengthscale,)
        good = bool(own) and all(0 < value < math.inf for value in own)
        require(good, "merf.privatize.lengthscale", self.lengthscale, "greater than 0, one or a list")
        rule = f"at least one for each of {len(own)} length scales"
        require(self.num_frequencies >= len(own), "merf.privatize.num_frequencies", self.num_frequencies, rule)
        if self.lengthscale_weights is not None:
            good = isinstance(self.lengthscale, tuple) and len(self.lengthscale_weights) == len(own)
            good = good and all(0 < value < math.inf for value in self.lengthscale_weights)
            rule = "a list of numbers greater than 0, one for each of a list of length scales"
            require(good, "merf.privatize.lengthscale_weights", self.lengthscale_weights, rule)


@dataclass(frozen=True)
class Merf(TwoQueryMethod):
    """Fourier features of the numeric columns beside scaled one-hot columns; class weights from noisy counts."""

    name: ClassVar[str] = "merf"
    maps: ClassVar = (MixedFourierFeatures,)
    train: NetworkTraining = field(default_factory=NetworkTraining)
    privatize: Privatize = field(default_factory=Privatize)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The mixed map; its length scale is a public setting, never a median of private distances."""
        layout = context.layout
        feature = MixedFourierFeatures(
            num_frequencies=self.privatize.num_frequencies,
            lengthscale=self.privatize.lengthscale,
            seed=self.privatize.seed,
            numeric=tuple(int(column) for column in layout.numeric_columns),
            categorical=tuple(int(column) for column in layout.onehot_columns),
            num_categorical=sum(block.kind == "onehot" for block in layout.blocks),
            lengthscale_weights=self.privatize.lengthscale_weights or (),
        )
        return Query(EMBEDDING, "privatize", feature, num_groups=layout.num_classes)
