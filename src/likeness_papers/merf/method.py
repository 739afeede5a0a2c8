"""DP-MERF: random Fourier features of mixed tables, by class (Harder, Adamczewski and Park 2021)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from likeness.core.typed import Section, require, setting
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.settings import FREE, MAP_SEED, MOST_FEATURES, NetworkTraining
from likeness.release.query import Query
from likeness.release.released import Released
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.networks.network_method import TwoQueryMethod


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``merf.privatize``."""

    everyday: ClassVar = ("num_frequencies", "lengthscale")
    num_frequencies: int = setting(
        1000, "pairs of cosine and sine; paper: 2,000 features for Adult", least=1, most=MOST_FEATURES
    )
    lengthscale: float | tuple[float, ...] = setting(
        0.5,
        "of the Gaussian kernel on the unit cube, or a list: a sum of kernels in one release; public (the paper's "
        "median heuristic leaks). 784 pixels: 10",
    )

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        scales = self.lengthscale if isinstance(self.lengthscale, tuple) else (self.lengthscale,)
        good = bool(scales) and all(0 < value < math.inf for value in scales)
        require(
            good, "merf.privatize.lengthscale", self.lengthscale, "a number greater than 0, or a list of such numbers"
        )
        rule = f"at least one for each of {len(scales)} length scales"
        require(self.num_frequencies >= len(scales), "merf.privatize.num_frequencies", self.num_frequencies, rule)


@dataclass(frozen=True)
class Merf(TwoQueryMethod):
    """Fourier features of the numeric columns beside scaled one-hot columns; class weights from noisy counts."""

    name: ClassVar[str] = "merf"
    maps: ClassVar = (MixedFourierFeatures,)
    privatize: Privatize = setting(Privatize())
    train: NetworkTraining = setting(NetworkTraining(), FREE)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The mixed map; its length scale is a public setting, never a median of private distances."""
        layout = context.layout
        feature = MixedFourierFeatures(
            num_frequencies=self.privatize.num_frequencies,
            lengthscale=self.privatize.lengthscale,
            seed=MAP_SEED,
            numeric=tuple(int(column) for column in layout.numeric_columns),
            categorical=tuple(int(column) for column in layout.onehot_columns),
            num_categorical=sum(block.kind == "onehot" for block in layout.blocks),
        )
        return Query(EMBEDDING, "privatize", feature, num_groups=layout.num_classes)
