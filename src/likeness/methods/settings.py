"""Settings that several methods share."""

from dataclasses import dataclass
from typing import Any, ClassVar

from likeness.core.errors import ParamsError, PlanError
from likeness.core.extras import torch
from likeness.core.typed import Section, require, setting

SAMPLING = ("argmax", "categorical")
"""How a category is chosen from the softmax of a network."""


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training.

    Attributes:
        iterations: gradient steps; 0 for a closed form.
        batch_size: rows a step.
        learning_rate: of Adam.
        schedule: ``constant`` (the papers) or ``cosine`` decay to zero.
        tolerance: part of the loss; see :func:`likeness.methods.marginals.training.minimize`. 0: all iterations.
    """

    iterations: int
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    tolerance: float = 0.0

    @property
    def usual_iterations(self) -> int:
        """Steps of a usual fit, for forecasts: one that may end early seldom needs more."""
        return min(self.iterations, _USUAL) if self.tolerance > 0 else self.iterations


def choose_device(name: str) -> "torch.device":
    """``auto`` takes CUDA, then MPS, then the CPU.

    Raises:
        ParamsError: this machine does not have the device.
    """
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(device for device in ("cuda", "mps", "cpu") if has[device]))
    if name not in has:
        raise ParamsError(f"train.device must be one of auto, {', '.join(has)}, got {name!r}")
    if not has[name]:
        raise ParamsError(f"train.device is {name}, which this machine does not have. Use auto.")
    return torch.device(name)


MOST_FEATURES = 10_000_000
"""Most features of a map that draws a frequency or a weight for each."""
MAP_SEED = 0
"""Of public random maps. Noise makes every release different, so another draw of a map says nothing new."""
FREE = "free: only released values are read"
_MOST_LAYERS = 64
_USUAL = 400  # steps of a fit that may end early
_MOST_COORDINATES = 10**9  # no limit may be above it: more takes more than a hundred gigabytes


@dataclass(frozen=True)
class NoSettings:
    """A section of every method in which this method has nothing to set."""


@dataclass(frozen=True)
class TwoQueryShares:
    """Sections ``METHOD.plan.shares`` of methods that release class counts and an embedding; they sum to 1."""

    class_counts: float = setting(help="of records by class")
    embedding: float = setting(help="of the mean embedding")


@dataclass(frozen=True)
class TwoQueryPlan:
    """Sections ``METHOD.plan`` of such methods."""

    shares: TwoQueryShares = setting(help="of rho; sum 1")


SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True)
class NetworkTraining(Section):
    """Sections ``METHOD.train``: network, loss and optimizer."""

    everyday: ClassVar[tuple[str, ...]] = ("iterations",)
    iterations: int = setting(4000, "gradient steps", least=1)
    batch_size: int = setting(1100, "synthetic rows a step", least=2)
    learning_rate: float = setting(0.01, "of Adam", above=0)
    latent_dim: int = setting(32, "random numbers behind a row", least=1)
    hidden: tuple[int, ...] = setting((256, 256), "widths of hidden layers; a convolutional network has one")
    schedule: str = setting("constant", "of the learning rate: constant | cosine", options=SCHEDULES)
    class_weighting: str = setting(
        "per_class", "per_class: match each class's own distribution | joint", options=("joint", "per_class")
    )
    sampling: str = setting(
        "categorical", "categorical: drawn from the softmax | argmax: the most probable", options=SAMPLING
    )
    network: str = setting(
        "auto",
        "auto (convolutional for images) | fully_connected | convolutional | residual (18 layers, for images)",
        options=("auto", "fully_connected", "convolutional", "residual"),
    )
    channels: tuple[int, ...] = setting(
        (16, 8), "of a convolutional network's two smaller resolutions; a residual one has the first everywhere"
    )

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        most = len(self.hidden) <= _MOST_LAYERS
        require(most, "train.hidden", f"{len(self.hidden)} layers", f"a list of at most {_MOST_LAYERS} widths")
        sizes = len(self.channels) == 2 and min(self.channels) >= 1
        require(sizes, "train.channels", list(self.channels), "two numbers, at least 1")

    @property
    def loop(self) -> TrainingSettings:
        """The part that the training loop needs."""
        return TrainingSettings(self.iterations, self.batch_size, self.learning_rate, self.schedule)


IMAGE_TRAINING: dict[str, Any] = {
    "batch_size": 500,
    "schedule": "cosine",
    "latent_dim": 10,
    "hidden": (200,),
    "class_weighting": "joint",
}
"""Defaults of a network for images, which have ten classes of about equal size."""


def coordinates(default: int, memory: str = "") -> Any:
    """The setting ``METHOD.privatize.max_coordinates``."""
    return setting(default, f"refuse a larger release{memory}", least=1, most=_MOST_COORDINATES)


def check_limit(method: str, count: int, limit: int, remedy: str, what: str = "coordinates") -> None:
    """Refuse a release of more than ``METHOD.privatize.max_coordinates``, before anything of its size is made.

    ``remedy`` says what to lower, "Lower METHOD.privatize.bins"; ``what`` says what is counted.

    Raises:
        PlanError: count is above limit.
    """
    if count > limit:
        raise PlanError(
            f"{method} would release {count:,} {what}, more than {method}.privatize.max_coordinates {limit:,}. "
            f"{remedy}, or raise the limit."
        )


def with_memory(count: int, each: int) -> str:
    """Name what is counted, with its memory at ``each`` bytes: for :func:`check_limit`."""
    return f"coordinates (about {each * count / 1e9:.1f} GB of memory)" if count < 10**15 else "coordinates"


def one_each(values: float | tuple[float, ...], count: int, key: str, what: str) -> tuple[float, ...]:
    """A setting that is one number for all, or one for each of ``count``.

    Raises:
        PlanError: a list of another length.
    """
    numbers = values if isinstance(values, tuple) else (values,) * count
    if len(numbers) != count:
        raise PlanError(
            f"{key} has {len(numbers)} numbers, but the table has {count} {what}. Give one number, or one for each."
        )
    return numbers
