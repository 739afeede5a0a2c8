"""Settings that several recipes share. Defaults are those of the shipped params.yaml; a test keeps them the same."""

from dataclasses import dataclass, field

from likeness.config.typed import allowed, require
from likeness.core.errors import PlanError
from likeness.generators.settings import SAMPLING, TrainingSettings

MOST_FEATURES = 10_000_000
"""Of one map that draws a frequency or a weight for each of them."""
_MOST_LAYERS = 64
_MOST_COORDINATES = 10**9  # no limit may be above it: more takes more than a hundred gigabytes


@dataclass(frozen=True)
class NoSettings:
    """A section that a stage of every method has, where this method has nothing to set."""


@dataclass(frozen=True)
class TwoQueryShares:
    """Sections ``METHOD.plan.shares`` of methods that release class counts and an embedding; they sum to 1."""

    class_counts: float = 0.05
    embedding: float = 0.95


@dataclass(frozen=True)
class TwoQueryPlan:
    """Sections ``METHOD.plan`` of such methods."""

    shares: TwoQueryShares = field(default_factory=TwoQueryShares)


@dataclass(frozen=True)
class NetworkTraining:
    """Sections ``METHOD.train``: network, loss and optimizer.

    Attributes:
        network: ``auto`` (convolutional for images), ``fully_connected`` or ``convolutional``.
        hidden: widths of the hidden layers; a convolutional network has one.
        channels: of a convolutional network's two smaller resolutions.
        sampling: of categories from a softmax: ``categorical`` or ``argmax``, see :class:`TabularGenerator`.
    """

    iterations: int = 4000
    batch_size: int = 1100
    learning_rate: float = 0.01
    latent_dim: int = 32
    hidden: tuple[int, ...] = (256, 256)
    schedule: str = "constant"
    class_weighting: str = "per_class"
    class_weight_floor: float = 0.05
    sampling: str = "categorical"
    network: str = "auto"
    channels: tuple[int, ...] = (16, 8)

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.iterations >= 1, "train.iterations", self.iterations, "at least 1")
        require(self.batch_size >= 2, "train.batch_size", self.batch_size, "at least 2")
        require(self.learning_rate > 0, "train.learning_rate", self.learning_rate, "greater than 0")
        require(self.latent_dim >= 1, "train.latent_dim", self.latent_dim, "at least 1")
        most = len(self.hidden) <= _MOST_LAYERS
        require(most, "train.hidden", f"{len(self.hidden)} layers", f"a list of at most {_MOST_LAYERS} widths")
        require(0 < self.class_weight_floor <= 1, "train.class_weight_floor", self.class_weight_floor, "in (0, 1]")
        allowed("train.schedule", self.schedule, ("constant", "cosine"))
        allowed("train.class_weighting", self.class_weighting, ("joint", "per_class"))
        allowed("train.sampling", self.sampling, SAMPLING)
        allowed("train.network", self.network, ("auto", "fully_connected", "convolutional"))
        sizes = len(self.channels) == 2 and min(self.channels) >= 1
        require(sizes, "train.channels", list(self.channels), "two numbers, at least 1")

    @property
    def loop(self) -> TrainingSettings:
        """The part that the training loop needs."""
        return TrainingSettings(self.iterations, self.batch_size, self.learning_rate, self.schedule)


def require_limit(method: str, value: int) -> None:
    """Check ``METHOD.privatize.max_coordinates``."""
    rule = f"from 1 to {_MOST_COORDINATES:,}"
    require(1 <= value <= _MOST_COORDINATES, f"{method}.privatize.max_coordinates", value, rule)


def within_limit(method: str, count: int, limit: int, remedy: str, what: str = "coordinates") -> None:
    """Refuse a release that is too long, before anything of its size is made.

    Args:
        count: of coordinates. limit: ``METHOD.privatize.max_coordinates``.
        remedy: what to lower, "Lower METHOD.privatize.bins". what: is counted, with what that means in brackets.

    Raises:
        PlanError: count is above limit.
    """
    if count > limit:
        raise PlanError(
            f"{method} would release {count:,} {what}, more than {method}.privatize.max_coordinates {limit:,}. "
            f"{remedy}, or raise the limit."
        )


def with_memory(count: int, each: int) -> str:
    """What is counted, with the memory that so many take at so many bytes each: for :func:`within_limit`."""
    return f"coordinates (about {each * count / 1e9:.1f} GB of memory)" if count < 10**15 else "coordinates"


def one_each(values: float | tuple[float, ...], count: int, key: str, what: str) -> tuple[float, ...]:
    """A setting that is one number for all, or one for each of ``count``.

    Raises:
        PlanError: a list of another length.
    """
    own = values if isinstance(values, tuple) else (values,) * count
    if len(own) != count:
        raise PlanError(
            f"{key} has {len(own)} numbers, the table has {count} {what}. Give one number, or one for each."
        )
    return own
