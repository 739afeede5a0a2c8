"""Settings of ``moments``: shares, brightness, coefficients, detail, and the network beside the copula."""

import math
from dataclasses import dataclass, field

from likeness.config.typed import allowed, require
from likeness.methods.settings import MOST_FEATURES, NetworkTraining, require_limit


@dataclass(frozen=True)
class Shares:
    """Section ``moments.plan.shares``: parts of ρ, summing to 1; those of levels and of Fourier features are 0 where
    there are none."""

    class_counts: float = 0.03
    norms: float = 0.02
    level_counts: float = 0.02
    levels: float = 0.23
    embedding: float = 0.7
    fourier: float = 0.0


@dataclass(frozen=True)
class PlanSettings:
    """Section ``moments.plan``."""

    shares: Shares = field(default_factory=Shares)


@dataclass(frozen=True)
class Fourier:
    """Section ``moments.auxiliary.fourier``: DP-MERF's features, for a network that makes half of the images.

    Attributes:
        num_frequencies: 0 for none, and no network. lengthscale: in units of the unit cube. seed: public.
    """

    num_frequencies: int = 0
    lengthscale: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        count, where = self.num_frequencies, "moments.auxiliary.fourier"
        require(0 <= count <= MOST_FEATURES, f"{where}.num_frequencies", count, f"from 0 to {MOST_FEATURES:,}")
        good = 0 < self.lengthscale < math.inf
        require(good, f"{where}.lengthscale", self.lengthscale, "greater than 0")


@dataclass(frozen=True)
class Auxiliary:
    """Section ``moments.auxiliary``.

    Attributes:
        cells: of the histograms of norms, from 0 to that of a white image, and of shares of pixels above levels.
        levels: of brightness, from 0, whose shares of images are released for every pixel; 0 for none, and pixels
            that are clipped to [0, 1].
        fourier: features for a network beside the copula; off by default.
    """

    cells: int = 64
    levels: int = 4
    fourier: Fourier = field(default_factory=Fourier)

    def __post_init__(self) -> None:
        """Check ranges."""
        require(2 <= self.cells <= 1024, "moments.auxiliary.cells", self.cells, "from 2 to 1024")
        require(0 <= self.levels <= 16, "moments.auxiliary.levels", self.levels, "from 0 to 16")


@dataclass(frozen=True)
class Privatize:
    """Section ``moments.privatize``.

    Attributes:
        num_coefficients: the lowest frequencies that are looked at; at most as many as pixels are used.
        first_share: of the squared norm, for first moments.
    """

    num_coefficients: int = 100
    first_share: float = 0.3
    max_coordinates: int = 20_000_000

    def __post_init__(self) -> None:
        """Check ranges."""
        count, share = self.num_coefficients, self.first_share
        require(1 <= count <= 2000, "moments.privatize.num_coefficients", count, "from 1 to 2000")
        require(0 < share < 1, "moments.privatize.first_share", share, "between 0 and 1")
        require_limit("moments", self.max_coordinates)


@dataclass(frozen=True)
class ImageNetwork(NetworkTraining):
    """Section ``moments.train.network``: as section ``merf.train`` of images."""

    iterations: int = 1200
    batch_size: int = 500
    latent_dim: int = 10
    hidden: tuple[int, ...] = (200,)
    schedule: str = "cosine"
    class_weighting: str = "joint"

    def __post_init__(self) -> None:
        """A convolutional network has one hidden layer."""
        super().__post_init__()
        allowed("moments.train.network.network", self.network, ("auto", "convolutional"))
        require(len(self.hidden) == 1, "moments.train.network.hidden", list(self.hidden), "one width")


@dataclass(frozen=True)
class TrainMoments:
    """Section ``moments.train``: more iterations than 0 make up for what pixels between 0 and 1 do to the moments.

    Attributes:
        texture: strength of detail in frequencies beyond the released ones; 1 goes on as these end, 0 is none.
        network: that of ``moments.auxiliary.fourier``, where it has frequencies.
    """

    iterations: int = 0
    batch_size: int = 1000
    learning_rate: float = 0.001
    schedule: str = "cosine"
    texture: float = 1.0
    network: ImageNetwork = field(default_factory=ImageNetwork)

    def __post_init__(self) -> None:
        """Check ranges."""
        require(0 <= self.texture <= 100, "moments.train.texture", self.texture, "from 0 to 100")
        require(self.iterations >= 0, "moments.train.iterations", self.iterations, "at least 0")
        require(self.batch_size >= 2, "moments.train.batch_size", self.batch_size, "at least 2")
        require(self.learning_rate > 0, "moments.train.learning_rate", self.learning_rate, "greater than 0")
        allowed("moments.train.schedule", self.schedule, ("constant", "cosine"))
