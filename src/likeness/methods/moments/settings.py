"""Settings of ``moments``: shares, brightness, coefficients, detail, and the network beside the copula."""

import math
from dataclasses import dataclass
from typing import ClassVar

from likeness.config.typed import Section, require, setting
from likeness.methods.settings import IMAGE_TRAINING, MOST_FEATURES, NetworkTraining, coordinates

NORMS = "norms"
LEVEL_COUNTS = "level_counts"
LEVELS = "levels"
FIRST = "moments_first"
FIRST_LEVELS = "levels_first"
CLUSTER_COUNTS = "cluster_counts"
FOURIER = "fourier"
MOST_SPLITS = 4
LOOK_SHARE = 0.15
"""Of the moments' share: a first look, which says where classes split."""
COUNTED_SHARE = 0.03
"""Of it: how many images lie in each cluster."""
CENTERED_SHARE = 0.1
"""Of the levels' share, where classes split: levels of each class, which say its center."""


@dataclass(frozen=True)
class Shares:
    """Section ``moments.plan.shares``: parts of ρ, summing to 1; 0 for levels or Fourier features that are off."""

    class_counts: float = setting(0.03, "of images by class")
    norms: float = setting(0.02, "of a histogram of norms, whose median bounds them")
    level_counts: float = setting(0.02, "of a histogram of pixels above levels; 0 without levels")
    levels: float = setting(0.23, "of images above each level, pixel by pixel; 0 without levels")
    embedding: float = setting(0.7, "of the moments; of a first look at them too, where there are splits")
    fourier: float = setting(0.0, "0 without frequencies below")


@dataclass(frozen=True)
class PlanSettings:
    """Section ``moments.plan``."""

    shares: Shares = setting(Shares(), "of rho; sum 1")


@dataclass(frozen=True)
class Fourier(Section):
    """Section ``moments.auxiliary.fourier``: DP-MERF's features, for a network that makes half of the images."""

    num_frequencies: int = setting(
        0, "0 for none, and no network; 5000 for 28 x 28 pixels", least=0, most=MOST_FEATURES
    )
    lengthscale: float = setting(
        10.0, "of the Gaussian kernel on the unit cube", above=0, below=math.inf, rule="greater than 0"
    )


@dataclass(frozen=True)
class Auxiliary(Section):
    """Section ``moments.auxiliary``."""

    everyday: ClassVar = ("levels", "splits", "center")
    cells: int = setting(
        64, "of histograms of norms and of brightness, whose medians are clipping bounds", least=2, most=1024
    )
    levels: int = setting(
        4,
        "of brightness, counted pixel by pixel; 0, with shares and texture of 0: none, and pixels are clipped",
        least=0,
        most=16,
    )
    splits: int = setting(
        0,
        "of a class in two, and of its parts in two again, where the noise allows; 0: one copula a class",
        least=0,
        most=MOST_SPLITS,
    )
    center: str = setting(
        "black",
        "from what images are measured, at less noise the nearer it is; gray: for photographs; classes: released means",
        options=("black", "gray", "classes"),
    )
    fourier: Fourier = setting(
        Fourier(),
        "DP-MERF's features beside, with a share of their own, for a network that makes half of the images: better "
        "for classifiers, and takes minutes instead of seconds",
    )

    @property
    def gray(self) -> bool:
        """Whether images are measured from gray."""
        return self.center == "gray"

    @property
    def by_class(self) -> bool:
        """Whether images are measured from the mean of their class."""
        return self.center == "classes"

    @property
    def clusters(self) -> int:
        """Most clusters of a class."""
        return 1 << self.splits

    @property
    def class_levels(self) -> str:
        """Name of the query that says the centers of classes: one of its own only where classes split."""
        return FIRST_LEVELS if self.by_class and self.splits else LEVELS

    @property
    def queries(self) -> list[str]:
        """Names in order, after class counts. Levels come first where they say the centers that images begin at."""
        levels = [LEVEL_COUNTS, LEVELS] if self.levels else []
        centers = [LEVEL_COUNTS, self.class_levels] if self.by_class else []
        fourier = [FOURIER] if self.fourier.num_frequencies else []
        clusters = [FIRST, CLUSTER_COUNTS] if self.splits else []
        rest = [name for name in levels if name not in centers]
        return [*centers, NORMS, *fourier, *clusters, *rest]


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``moments.privatize``."""

    everyday: ClassVar = ("num_coefficients",)
    num_coefficients: int = setting(
        100, "lowest frequencies; more show finer strokes under more noise", least=1, most=2000
    )
    first_share: float = setting(0.3, "of the squared norm, for first moments", above=0, below=1)
    max_coordinates: int = coordinates(20_000_000, ": about 130 bytes of memory each")


@dataclass(frozen=True)
class ImageNetwork(NetworkTraining):
    """Section ``moments.train.network``: as section ``merf.train`` of images."""

    def __post_init__(self) -> None:
        """A convolutional network has one hidden layer."""
        super().__post_init__()
        allowed = self.network in ("auto", "convolutional")
        require(allowed, "moments.train.network.network", self.network, "one of auto, convolutional")
        require(len(self.hidden) == 1, "moments.train.network.hidden", list(self.hidden), "one width")


@dataclass(frozen=True)
class TrainMoments(Section):
    """Section ``moments.train``. The copula is a closed form; a network beside it is trained."""

    everyday: ClassVar = ("texture", "warp", "variety", "mirror")
    texture: float = setting(
        1.0, "detail beyond these frequencies, as strong as they end; 0 is none", least=0, most=100
    )
    warp: float = setting(
        0.0,
        "how far images are bent smoothly, in parts of their sides, as handwriting may be; .05: 1.4 of 28 pixels",
        least=0,
        most=0.5,
    )
    variety: float = setting(
        0.0,
        "how much brightness, sharpness and grain vary from image to image, as .3 for photographs",
        least=0,
        most=0.5,
    )
    mirror: bool = setting(False, "images are as probable as their mirror images, left for right, as photographs are")
    network: ImageNetwork = setting(
        ImageNetwork(iterations=1200, **IMAGE_TRAINING), "of fourier, where it has frequencies"
    )
