"""Moments: second moments of images' low frequencies by class, how bright each pixel is, and a Gaussian copula."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likeness.core.errors import ParamsError, PlanError
from likeness.core.rng import public
from likeness.core.typed import require, setting
from likeness.features.column_marginals import Constant
from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context, Method, class_weights
from likeness.methods.settings import FREE, TrainingSettings, check_limit, with_memory
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released
from likeness_images.moments.answers import Answers, StandIns
from likeness_images.moments.clusters_map import ClassHalves
from likeness_images.moments.cosine_map import CosineMoments, CosineNorms
from likeness_images.moments.levels_map import CosineLevels, LevelCounts
from likeness_images.moments.settings import (
    CENTERED_SHARE,
    CLUSTER_COUNTS,
    COUNTED_SHARE,
    FIRST,
    FIRST_LEVELS,
    LEVEL_COUNTS,
    LEVELS,
    LOOK_SHARE,
    NORMS,
    Auxiliary,
    PlanSettings,
    Privatize,
    TrainMoments,
)

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Trained
    from likeness_images.moments.gaussian_images import GaussianImages

_BYTES = 130  # of memory a coordinate, in the door and after it
_DRAWN = 100  # images of each class, for the loss


def gaussian_images() -> "type[GaussianImages]":
    """The copula; imported when it is needed."""
    from likeness_images.moments.gaussian_images import GaussianImages

    return GaussianImages


@dataclass(frozen=True)
class Moments(Method):
    """Noisy moments of clipped cosine coefficients, shares of images above levels, and a Gaussian copula a class."""

    name: ClassVar[str] = "moments"
    everyday: ClassVar = ("auxiliary", "privatize", "train")
    maps: ClassVar = (ClassHalves, CosineLevels, CosineMoments, CosineNorms, LevelCounts)
    queries: ClassVar = {
        CLASS_COUNTS: (Constant,),
        NORMS: (CosineNorms,),
        LEVEL_COUNTS: (LevelCounts,),
        FIRST_LEVELS: (CosineLevels,),
        FIRST: (CosineMoments,),
        CLUSTER_COUNTS: (Constant,),
        LEVELS: (CosineLevels,),
        EMBEDDING: (CosineMoments,),
    }
    generators: ClassVar = {"gaussian_images": gaussian_images}
    plan: PlanSettings = setting(PlanSettings())
    auxiliary: Auxiliary = setting(Auxiliary())
    privatize: Privatize = setting(Privatize())
    train: TrainMoments = setting(TrainMoments(), FREE)

    def __post_init__(self) -> None:
        """Levels have shares of ρ, and no levels have none."""
        levels, shares = self.auxiliary.levels, self.plan.shares
        for name, share in ((LEVEL_COUNTS, shares.level_counts), (LEVELS, shares.levels)):
            key = f"moments.plan.shares.{name}"
            if levels:
                rule = f"between 0 and 1 while moments.auxiliary.levels is {levels}: they are paid for"
                require(0 < share < 1, key, share, rule)
            else:
                require(share == 0, key, share, "0 while moments.auxiliary.levels is 0: there are none")
        if not levels:
            texture, rule = self.train.texture, "0 while moments.auxiliary.levels is 0: detail would be gray there"
            require(texture == 0, "moments.train.texture", texture, rule)
            center = self.auxiliary.center
            require(center != "classes", "moments.auxiliary.center", center, "black or gray while levels is 0")
        alike = "false while moments.auxiliary.splits is above 0: a part of a class need not look alike in a mirror"
        require(not (self.train.mirror and self.auxiliary.splits), "moments.train.mirror", self.train.mirror, alike)

    def shares(self, context: Context) -> list[QueryShare]:
        """Order shares as the queries. A first look and its levels are parts of the shares of moments and levels."""
        shares, auxiliary = self.plan.shares, self.auxiliary
        parts = (LOOK_SHARE, COUNTED_SHARE) if auxiliary.splits else (0.0, 0.0)
        centered = CENTERED_SHARE * shares.levels if auxiliary.class_levels == FIRST_LEVELS else 0.0
        each = {
            CLASS_COUNTS: shares.class_counts,
            NORMS: shares.norms,
            LEVEL_COUNTS: shares.level_counts,
            LEVELS: shares.levels - centered,
            FIRST_LEVELS: centered,
            FIRST: parts[0] * shares.embedding,
            CLUSTER_COUNTS: parts[1] * shares.embedding,
        }
        embedding = QueryShare(EMBEDDING, "privatize", shares.embedding * (1 - sum(parts)))
        return [*(QueryShare(name, "auxiliary", each[name]) for name in (CLASS_COUNTS, *auxiliary.queries)), embedding]

    def check(self, context: Context) -> None:
        """Images only, and no more coordinates than allowed."""
        if context.schema.image is None:
            raise PlanError("moments needs images, and the schema has no image. Use marginals, which takes tables.")
        dimension = StandIns(self.auxiliary, self.privatize, context, {}).query(EMBEDDING).dimension
        limit = self.privatize.max_coordinates
        remedy = "Lower moments.privatize.num_coefficients" + " or moments.auxiliary.splits" * bool(
            self.auxiliary.splits
        )
        check_limit("moments", dimension, limit, remedy, with_memory(dimension, _BYTES))
        shares = context.layout.num_classes * self.auxiliary.clusters * self.auxiliary.levels * context.layout.width
        what = "shares of images above levels, by class and pixel"
        check_limit("moments", shares, limit, "Lower moments.auxiliary.levels", what)

    def _answers(self, context: Context, released: Mapping[str, Released]) -> Answers:
        return Answers(self.auxiliary, self.privatize, context, released)

    def _queries(self, answers: Answers) -> Iterator[Query]:
        """Those of the auxiliary stage, in order."""
        return map(answers.query, (CLASS_COUNTS, *self.auxiliary.queries))

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """Counts by class, the histograms of norms and of shares above levels, and by class where those pixels are."""
        return self._queries(self._answers(context, released))

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Moments by class, clipped at about the median norm of all images, as the noisy histogram has it."""
        return self._answers(context, auxiliary).query(EMBEDDING)

    def planned_queries(self, context: Context) -> list[Query]:
        """Plan queries with stand-ins for all that is read off answers."""
        answers = StandIns(self.auxiliary, self.privatize, context, {})
        return [*self._queries(answers), answers.query(EMBEDDING)]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Say where the bounds come from."""
        answers = self._answers(context, auxiliary)
        origin = {"black": "", "gray": " from gray", "classes": " from the mean of its class"}[self.auxiliary.center]
        notes = [
            f"Coefficients of an image{origin} are clipped to norm {answers.norm_bound:.4g}, about the median, read "
            f"off the noisy `{NORMS}`."
        ]
        if self.auxiliary.levels:
            notes.append(
                f"Images with more than {answers.share:.4g} of their pixels above levels, about the median, read off "
                f"the noisy `{LEVEL_COUNTS}`, count less."
            )
        if self.auxiliary.splits:
            clusters = sum(answers.halves.active)
            notes.append(f"Classes are split into {clusters} clusters in all, by directions of the noisy `{FIRST}`.")
        return notes

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "GaussianImages":
        """A Gaussian of coefficients for each class."""
        return self._copula(self._answers(context, auxiliary))

    def _copula(self, answers: Answers) -> "GaussianImages":
        sizes, auxiliary, train = (answers.shape, answers.classes, answers.size), self.auxiliary, self.train
        changes = train.warp, train.variety
        return gaussian_images()(
            *sizes, answers.norm_bound, auxiliary.levels, train.texture, auxiliary.clusters, *changes
        )

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """The copula in closed form."""
        from likeness.generators.base import Trained, environment

        answers = self._answers(context, auxiliary)
        copula, estimates = self._copula(answers), answers.estimates(embedding, self.train.mirror)
        origins = np.repeat(answers.origins, self.auxiliary.clusters, axis=0)
        moved = replace(estimates, means=estimates.means + origins / copula.bound)
        copula.start_from(moved, answers.shares_above(self.train.mirror), answers.weights)
        with threadpool_limits(compute.threads):
            distance = self._distance(copula, answers, estimates.features(answers.moments.first_share))
        if not math.isfinite(distance):
            raise ParamsError("the closed form has no finite loss: the noise is too large. Raise privacy.epsilon.")
        return Trained(copula, environment(), [(0, distance)])

    def _distance(self, copula: "GaussianImages", answers: Answers, clusters: NDArray[np.float64]) -> float:
        """Squared distance of the denoised moments of clusters from those of drawn images, weighed by class."""
        weights, feature = class_weights(answers.released[CLASS_COUNTS]), answers.moments
        labels = np.repeat(np.arange(len(weights)), _DRAWN)
        images = copula.draw(labels, public(answers.context.seed, "train.latent"), {})
        if self.auxiliary.is_class_centered:
            images = np.hstack([images, np.eye(len(weights))[labels]])
        drawn = np.stack([feature(part).mean(axis=0) for part in np.split(images, len(weights))])
        target = (answers.weights[:, :, None] * clusters.reshape(*answers.weights.shape, -1)).sum(axis=1)
        return float((weights[:, None] ** 2 * (target - drawn) ** 2).sum())

    @property
    def training(self) -> TrainingSettings:
        """The copula needs no step."""
        return TrainingSettings(0, 1, 0.0)
