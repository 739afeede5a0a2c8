"""Settings of ``moments``: shares, brightness, coefficients and detail."""

from dataclasses import dataclass
from typing import ClassVar

from likeness.core.typed import Section, setting
from likeness.methods.settings import coordinates

NORMS = "norms"
LEVEL_COUNTS = "level_counts"
LEVELS = "levels"
FIRST = "moments_first"
FIRST_LEVELS = "levels_first"
CLUSTER_COUNTS = "cluster_counts"
MOST_SPLITS = 4
LOOK_SHARE = 0.15
"""Of the moments' share: a first look, which says where classes split."""
COUNTED_SHARE = 0.03
"""Of it: how many images lie in each cluster."""
CENTERED_SHARE = 0.1
"""Of the levels' share, where classes split: levels of each class, which say its center."""


@dataclass(frozen=True)
class Shares:
    """Section ``moments.plan.shares``: parts of ρ, summing to 1; 0 for levels that are off."""

    class_counts: float = setting(0.03, "of images by class")
    norms: float = setting(0.02, "of a histogram of norms, whose median bounds them")
    level_counts: float = setting(0.02, "of a histogram of pixels above levels; 0 without levels")
    levels: float = setting(0.23, "of images above each level, pixel by pixel; 0 without levels")
    embedding: float = setting(0.7, "of the moments; of a first look at them too, where there are splits")


@dataclass(frozen=True)
class PlanSettings:
    """Section ``moments.plan``."""

    shares: Shares = setting(Shares(), "of rho; sum 1")


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

    @property
    def gray(self) -> bool:
        """Tell whether images are measured from gray."""
        return self.center == "gray"

    @property
    def is_class_centered(self) -> bool:
        """Tell whether images are measured from the mean of their class."""
        return self.center == "classes"

    @property
    def clusters(self) -> int:
        """Most clusters of a class."""
        return 1 << self.splits

    @property
    def class_levels(self) -> str:
        """Name of the query that says the centers of classes: one of its own only where classes split."""
        return FIRST_LEVELS if self.is_class_centered and self.splits else LEVELS

    @property
    def queries(self) -> list[str]:
        """Names in order, after class counts. Levels come first where they say the centers that images begin at."""
        levels = [LEVEL_COUNTS, LEVELS] if self.levels else []
        centers = [LEVEL_COUNTS, self.class_levels] if self.is_class_centered else []
        clusters = [FIRST, CLUSTER_COUNTS] if self.splits else []
        rest = [name for name in levels if name not in centers]
        return [*centers, NORMS, *clusters, *rest]


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
class TrainMoments(Section):
    """Section ``moments.train``. The copula is a closed form."""

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
