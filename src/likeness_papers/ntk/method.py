"""DP-NTK: gradients of a random network as features (Yang, Adamczewski, Sutherland, Li and Park 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from likeness.core.typed import Section, require, setting
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.settings import FREE, MAP_SEED, NetworkTraining, check_limit, coordinates, with_memory
from likeness.release.query import Query
from likeness.release.released import Released
from likeness_papers.networks.network_method import TwoQueryMethod
from likeness_papers.ntk.tangent_map import ARCHITECTURES, NetworkTangent, block_sizes

_BYTES = 100  # of memory a coordinate, in the door and in training


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``ntk.privatize``."""

    everyday: ClassVar = ("architecture", "widths")
    architecture: str = setting(
        "fc_1l", "fc_1l | fc_2l | cnn_2l (convolution and dense layer): the random network", options=ARCHITECTURES
    )
    widths: tuple[int, ...] = setting(
        (800,), "one a layer: noise grows with its root; paper: 800 for images, 10 to 3,000 for tables"
    )
    max_coordinates: int = coordinates(20_000_000, f": about {_BYTES} bytes of memory each")

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        count = ARCHITECTURES[self.architecture]
        right = len(self.widths) == count and min(self.widths) >= 1
        rule = f"a list of {count} of at least 1 for {self.architecture}"
        require(right, "ntk.privatize.widths", list(self.widths), rule)


@dataclass(frozen=True)
class Ntk(TwoQueryMethod):
    """Normalized gradient of a random public network by class; class weights from noisy counts."""

    name: ClassVar[str] = "ntk"
    maps: ClassVar = (NetworkTangent,)
    multiplications_a_coordinate: ClassVar[int] = 2
    multiplications_a_value: ClassVar[float] = 0
    privatize: Privatize = setting(Privatize())
    train: NetworkTraining = setting(NetworkTraining(iterations=2000, batch_size=1000), FREE)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The gradient by class. A convolutional network sees an image as a picture."""
        settings, groups = self.privatize, context.layout.num_classes
        shape = (context.schema.image if settings.architecture == "cnn_2l" else None) or (context.layout.width,)
        # Counted before drawing a network that may not fit in memory.
        dimension = groups * sum(a * b for a, b in block_sizes(settings.architecture, settings.widths, shape))
        remedy = "Lower ntk.privatize.widths"
        check_limit("ntk", dimension, settings.max_coordinates, remedy, with_memory(dimension, _BYTES))
        feature = NetworkTangent(settings.architecture, settings.widths, shape, MAP_SEED)
        return Query(EMBEDDING, "privatize", feature, num_groups=groups)
