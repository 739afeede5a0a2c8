"""DP-NTK: gradients of a random network as features (Yang, Adamczewski, Sutherland, Li and Park 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from likeness.config.typed import allowed, require
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.network_method import TwoQueryMethod
from likeness.methods.ntk.tangent_map import ARCHITECTURES, NetworkTangent, block_sizes
from likeness.methods.settings import (
    NetworkTraining,
    require_limit,
    with_memory,
    within_limit,
)
from likeness.release.query import Query
from likeness.release.released import Released

_BYTES = 100  # of memory a coordinate, in the door and in training


@dataclass(frozen=True)
class Privatize:
    """Section ``ntk.privatize``."""

    architecture: str = "fc_1l"
    widths: tuple[int, ...] = (800,)
    seed: int = 0
    max_coordinates: int = 20_000_000

    def __post_init__(self) -> None:
        """Check ranges."""
        allowed("ntk.privatize.architecture", self.architecture, ARCHITECTURES)
        count = ARCHITECTURES[self.architecture]
        right = len(self.widths) == count and min(self.widths) >= 1
        rule = f"a list of {count} of at least 1 for {self.architecture}"
        require(right, "ntk.privatize.widths", list(self.widths), rule)
        require_limit("ntk", self.max_coordinates)


@dataclass(frozen=True)
class TrainNtk(NetworkTraining):
    """Section ``ntk.train``."""

    iterations: int = 2000
    batch_size: int = 1000


@dataclass(frozen=True)
class Ntk(TwoQueryMethod):
    """Normalized gradient of a random public network by class; class weights from noisy counts."""

    name: ClassVar[str] = "ntk"
    maps: ClassVar = (NetworkTangent,)
    multiplications_a_coordinate: ClassVar[int] = 2
    train: TrainNtk = field(default_factory=TrainNtk)
    privatize: Privatize = field(default_factory=Privatize)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The gradient by class. The network sees an image as an image, and a table's row as it is encoded."""
        settings, groups = self.privatize, context.layout.num_classes
        shape = (context.schema.image if settings.architecture == "cnn_2l" else None) or (context.layout.width,)
        # Counted before a network is drawn that no memory may hold.
        dimension = groups * sum(a * b for a, b in block_sizes(settings.architecture, settings.widths, shape))
        remedy = "Lower ntk.privatize.widths"
        within_limit("ntk", dimension, settings.max_coordinates, remedy, with_memory(dimension, _BYTES))
        feature = NetworkTangent(settings.architecture, settings.widths, shape, settings.seed)
        return Query(EMBEDDING, "privatize", feature, num_groups=groups)
