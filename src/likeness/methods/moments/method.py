"""Moments: second moments of images' low frequencies by class, how bright each pixel is, and a Gaussian copula."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likeness.config.training import TrainingSettings
from likeness.config.typed import require, setting
from likeness.core.errors import ParamsError, PlanError
from likeness.core.rng import public
from likeness.methods.base import (
    CLASS_COUNTS,
    EMBEDDING,
    Context,
    Method,
    class_counts_query,
    class_weights,
    number_of_records,
    together,
)
from likeness.methods.merf.method import Merf
from likeness.methods.merf.method import Privatize as MerfPrivatize
from likeness.methods.moments.clusters_map import ClassHalves, halves
from likeness.methods.moments.cosine_map import CENTER_UNIT, CosineMoments, CosineNorms, cosine_basis, turned
from likeness.methods.moments.estimates import Moments as Estimates
from likeness.methods.moments.estimates import denoised, edge, joined, mirrored
from likeness.methods.moments.levels_map import CosineLevels, LevelCounts
from likeness.methods.moments.settings import Auxiliary, PlanSettings, Privatize, TrainMoments
from likeness.methods.settings import FREE, with_memory, within_limit
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import EachCluster, EachRecord, WithClass
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Trained
    from likeness.methods.moments.ensemble import ImageEnsemble
    from likeness.methods.moments.gaussian_images import GaussianImages

NORMS = "norms"
LEVEL_COUNTS = "level_counts"
LEVELS = "levels"
FIRST = "moments_first"
FIRST_LEVELS = "levels_first"
CLUSTER_COUNTS = "cluster_counts"
FOURIER = "fourier"
_BYTES = 130  # of memory a coordinate, in the door and after it
_LOOK = 0.15  # of the moments' share: a first look, which says where classes split
_CENTERED = 0.1  # of the levels' share, where classes split: levels of each class, which say its center
_COUNTED = 0.03  # of it: how many images lie in each cluster
_LEAST = 8.0  # of the noise's edge: a direction that varies less splits no class
_LEAST_CENTERED = 40.0  # the same where images are measured from the mean of their class, at less noise
_EDGE_SHARE = 0.8  # of the noise's edge: directions above it stay where levels are released
_DRAWN = 100  # images of each class, for the loss
_SEEN = 2.0  # standard deviations of noise that a cell must hold to count in a median


def gaussian_images() -> "type[GaussianImages]":
    """The copula; imported when it is needed."""
    from likeness.methods.moments.gaussian_images import GaussianImages

    return GaussianImages


def image_ensemble() -> "type[ImageEnsemble]":
    """The copula and a network; imported when it is needed, with PyTorch."""
    from likeness.methods.moments.ensemble import ImageEnsemble

    return ImageEnsemble


@dataclass(frozen=True)
class Moments(Method):
    """Noisy moments of clipped cosine coefficients, shares of images above levels, and a Gaussian copula a class."""

    name: ClassVar[str] = "moments"
    everyday: ClassVar = ("auxiliary", "privatize", "train")
    maps: ClassVar = (ClassHalves, CosineLevels, CosineMoments, CosineNorms, LevelCounts)
    others_maps: ClassVar = Merf.maps
    queries: ClassVar = (
        *(CLASS_COUNTS, NORMS, LEVEL_COUNTS, LEVELS, FIRST, FIRST_LEVELS, CLUSTER_COUNTS, FOURIER, EMBEDDING),
    )
    generators: ClassVar = {"gaussian_images": gaussian_images, "image_ensemble": image_ensemble}
    plan: PlanSettings = setting(PlanSettings())
    auxiliary: Auxiliary = setting(Auxiliary())
    privatize: Privatize = setting(Privatize())
    train: TrainMoments = setting(TrainMoments(), FREE)

    def __post_init__(self) -> None:
        """Levels have shares of ρ, and no levels have none."""
        levels, shares, fourier = self.auxiliary.levels, self.plan.shares, self.auxiliary.fourier
        frequencies = "fourier.num_frequencies", fourier.num_frequencies
        for name, share, (cause, count) in (
            (LEVEL_COUNTS, shares.level_counts, ("levels", levels)),
            (LEVELS, shares.levels, ("levels", levels)),
            (FOURIER, shares.fourier, frequencies),
        ):
            key = f"moments.plan.shares.{name}"
            if count:
                rule = f"between 0 and 1 while moments.auxiliary.{cause} is {count}: they are paid for"
                require(0 < share < 1, key, share, rule)
            else:
                require(share == 0, key, share, f"0 while moments.auxiliary.{cause} is 0: there are none")
        if not levels:
            texture, rule = self.train.texture, "0 while moments.auxiliary.levels is 0: detail would be gray there"
            require(texture == 0, "moments.train.texture", texture, rule)
            center = self.auxiliary.center
            require(center != "classes", "moments.auxiliary.center", center, "black or gray while levels is 0")
        alike = "false while moments.auxiliary.splits is above 0: a part of a class need not look alike in a mirror"
        require(not (self.train.mirror and self._split), "moments.train.mirror", self.train.mirror, alike)

    def shares(self, context: Context) -> list[QueryShare]:
        """In the order of the queries: levels come first where they say the centers."""
        shares, parts = self.plan.shares, (_LOOK, _COUNTED) if self.auxiliary.splits else ()
        clusters = zip((FIRST, CLUSTER_COUNTS), (part * shares.embedding for part in parts), strict=False)
        first = _CENTERED * shares.levels if self._by_class and self._split else 0.0
        levels = {LEVEL_COUNTS: shares.level_counts, LEVELS: shares.levels - first, FIRST_LEVELS: first}
        levels = {name: share for name, share in levels.items() if share}
        centers = (LEVEL_COUNTS, FIRST_LEVELS if self._split else LEVELS) if self._by_class else ()
        fourier = ((FOURIER, shares.fourier),) if self._network else ()
        before = [(CLASS_COUNTS, shares.class_counts), *((name, levels.pop(name)) for name in centers)]
        auxiliary = [*before, (NORMS, shares.norms), *fourier, *clusters, *levels.items()]
        embedding = QueryShare(EMBEDDING, "privatize", shares.embedding * (1 - sum(parts)))
        return [*(QueryShare(name, "auxiliary", share) for name, share in auxiliary), embedding]

    def check(self, context: Context) -> None:
        """Images only, and no more coordinates than allowed."""
        if context.schema.image is None:
            raise PlanError("moments needs images, and the schema has no image. Use marginals, which takes tables.")
        dimension = self._embedding(context, 1.0, self._foreseen(context), self._black(context)).dimension
        limit = self.privatize.max_coordinates
        remedy = "Lower moments.privatize.num_coefficients" + " or moments.auxiliary.splits" * self._split
        within_limit("moments", dimension, limit, remedy, with_memory(dimension, _BYTES))
        shares = context.layout.num_classes * self._clusters * self.auxiliary.levels * context.layout.width
        what = "shares of images above levels, by class and pixel"
        within_limit("moments", shares, limit, "Lower moments.auxiliary.levels", what)
        if self._network:
            # A cosine and a sine each.
            features = 2 * self.auxiliary.fourier.num_frequencies * context.layout.num_classes
            remedy = "Lower moments.auxiliary.fourier.num_frequencies"
            within_limit("moments", features, limit, remedy, "Fourier features, by class")

    def check_device(self, device: str) -> None:
        """Refuse a device that this machine does not have, for the network, if there is one."""
        if self._network:
            self._network.check_device(device)
        else:
            super().check_device(device)

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float | None:
        """Of the network, if there is one."""
        beside = self._network
        return None if beside is None else beside.multiplications(context, {EMBEDDING: coordinates[FOURIER]})

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """Counts by class, the histograms of norms and of shares above levels, and by class where those pixels are.

        Levels come first where they say the centers that images are measured from.
        """
        yield class_counts_query(context)
        levels = self._level_counts(context)
        if self._by_class:
            yield levels
            yield self._class_levels(context, self._share(released))
        yield self._norms(context, self._centers(context, released))
        if self._network:
            yield self._fourier_query(self._network, context)
        if self._split:
            yield self._first(context, self._bound(context, released), self._centers(context, released))
            yield self._cluster_counts(context, self._terms(context, released))
        if self.auxiliary.levels and not self._by_class:
            yield levels
        if self.auxiliary.levels and (self._split or not self._by_class):
            yield self._levels_query(context, self._share(released), self._terms(context, released))

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Moments by class, clipped at about the median norm of all images, as the noisy histogram has it."""
        terms, centers = self._terms(context, auxiliary), self._centers(context, auxiliary)
        return self._embedding(context, self._bound(context, auxiliary), terms, centers)

    def foreseen_queries(self, context: Context) -> list[Query]:
        """With a bound of 1, a share of 1, no split and black centers: none changes coordinates or sensitivity."""
        terms, centers = self._foreseen(context), self._black(context)
        queries = [class_counts_query(context), self._norms(context, centers)]
        if self._network:
            queries.append(self._fourier_query(self._network, context))
        if self._split:
            queries += [self._first(context, 1.0, centers), self._cluster_counts(context, terms)]
            queries += [self._class_levels(context, 1.0)] if self._by_class else []
        if self.auxiliary.levels:
            queries += [self._level_counts(context), self._levels_query(context, 1.0, terms)]
        return [*queries, self._embedding(context, 1.0, terms, centers)]

    def notes(self, context: Context, auxiliary: Mapping[str, Released]) -> list[str]:
        """Where the bounds come from."""
        bound = self._bound(context, auxiliary)
        origin = {"black": "", "gray": " from gray", "classes": " from the mean of its class"}[self.auxiliary.center]
        notes = [
            f"Coefficients of an image{origin} are clipped to norm {bound:.4g}, about the median, read off the noisy "
            f"`{NORMS}`."
        ]
        if self.auxiliary.levels:
            share = self._share(auxiliary)
            notes.append(
                f"Images with more than {share:.4g} of their pixels above levels, about the median, read off the noisy "
                f"`{LEVEL_COUNTS}`, count less."
            )
        if self._split:
            clusters = sum(self._active(context, auxiliary))
            notes.append(f"Classes are split into {clusters} clusters in all, by directions of the noisy `{FIRST}`.")
        return notes

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "GaussianImages | ImageEnsemble":
        """A Gaussian of coefficients for each class; beside a network where Fourier features are released too."""
        return self._beside_network(context, auxiliary, lambda network: network.build_generator(context, auxiliary))

    def blueprint(self, context: Context, auxiliary: Mapping[str, Released]) -> "GaussianImages | ImageEnsemble":
        """The generator, its network without memory for its weights."""
        return self._beside_network(context, auxiliary, lambda network: network.blueprint(context, auxiliary))

    def _beside_network(
        self, context: Context, auxiliary: Mapping[str, Released], build: Callable[[Merf], Any]
    ) -> "GaussianImages | ImageEnsemble":
        copula = self._copula(context, auxiliary)
        return copula if self._network is None else image_ensemble()(copula, build(self._network))

    def _copula(self, context: Context, auxiliary: Mapping[str, Released]) -> "GaussianImages":
        feature = self._feature(context, self._bound(context, auxiliary), self._black(context))
        sizes = feature.shape, context.layout.num_classes, feature.num_coefficients, feature.bound
        train = self.train
        changes = train.warp, train.variety
        return gaussian_images()(*sizes, self.auxiliary.levels, train.texture, self._clusters, *changes)

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """The copula in closed form; a network beside it is trained on the Fourier features."""
        from likeness.generators.base import Trained, environment

        copula = self._fitted(context, auxiliary, embedding)
        if self._network:
            trained = self._network.fit_generator(context, auxiliary, auxiliary[FOURIER], compute)
            network: Any = trained.generator
            return trained._replace(generator=image_ensemble()(copula, network))
        with threadpool_limits(compute.threads):
            distance = self._distance(copula, context, auxiliary, embedding)
        if not math.isfinite(distance):
            raise ParamsError("the closed form has no finite loss: the noise is too large. Raise privacy.epsilon.")
        return Trained(copula, environment(), [(0, distance)])

    def _fitted(self, context: Context, auxiliary: Mapping[str, Released], embedding: Released) -> "GaussianImages":
        """The copula with means, covariances and shares above levels."""
        from likeness.methods.moments.brightness import shares_above

        copula, shares = self._copula(context, auxiliary), None
        if self.auxiliary.levels:
            feature = self._levels_query(context, self._share(auxiliary), EachRecord()).feature
            assert isinstance(feature, CosineLevels)
            counts, mirror = self._counts(context, auxiliary), self.train.mirror
            shares = shares_above(auxiliary[LEVELS].values, counts, feature, mirror)
        estimates, weights = self._estimates(context, auxiliary, embedding), self._cluster_weights(context, auxiliary)
        origins = np.repeat(self._origins(context, auxiliary), self._clusters, axis=0)
        estimates = replace(estimates, means=estimates.means + origins / copula.bound)
        copula.start_from(estimates, shares, weights)
        return copula

    def _distance(
        self, copula: "GaussianImages", context: Context, auxiliary: Mapping[str, Released], embedding: Released
    ) -> float:
        """Squared distance of the denoised moments from those of drawn images, weighed by class."""
        weights = class_weights(auxiliary[CLASS_COUNTS])
        feature = self._feature(context, copula.bound, self._centers(context, auxiliary))
        labels = np.repeat(np.arange(len(weights)), _DRAWN)
        images = copula.draw(labels, public(context.seed, "train.latent"), {})
        if self._by_class:
            images = np.hstack([images, np.eye(len(weights))[labels]])
        drawn = np.stack([feature(part).mean(axis=0) for part in np.split(images, len(weights))])
        clusters = self._estimates(context, auxiliary, embedding).features(feature.first_share)
        within = self._cluster_weights(context, auxiliary)[:, :, None]
        target = (within * clusters.reshape(len(weights), self._clusters, -1)).sum(axis=1)
        return float((weights[:, None] ** 2 * (target - drawn) ** 2).sum())

    @property
    def training(self) -> TrainingSettings:
        """Of the network, if there is one; the copula needs no step."""
        return self._network.training if self._network else TrainingSettings(0, 1, 0.0)

    def _estimates(self, context: Context, auxiliary: Mapping[str, Released], embedding: Released) -> Estimates:
        """Of each cluster of each class."""
        sums, deviations = embedding.values, np.full(embedding.values.shape[0], embedding.noise_std)
        if self._split:
            looked, active = auxiliary[FIRST], self._active(context, auxiliary)
            sums, deviations = joined(sums, embedding.noise_std, active, looked.values, looked.noise_std)
        # With levels, brightness is released: a direction of noise makes no pixel brighter. With few directions, images
        # would be too much alike.
        edge_share, counts = _EDGE_SHARE if self.auxiliary.levels else 1.0, self._counts(context, auxiliary)
        numbers = sums, counts, self.privatize.first_share, deviations, edge_share
        return mirrored(*numbers, turned(*self._sizes(context))) if self.train.mirror else denoised(*numbers)

    def _class_counts(self, context: Context, auxiliary: Mapping[str, Released]) -> NDArray[np.float64]:
        """Records of each class, positive, shape (classes,)."""
        released = auxiliary[CLASS_COUNTS]
        return class_weights(released) * number_of_records(context, released)

    def _counts(self, context: Context, auxiliary: Mapping[str, Released]) -> NDArray[np.float64]:
        """Records of each cluster of each class, shape (groups,); 1 where there is none."""
        counts = self._class_counts(context, auxiliary)[:, None] * self._cluster_weights(context, auxiliary)
        return np.where(counts > 0, counts, 1.0).ravel()

    def _cluster_weights(self, context: Context, auxiliary: Mapping[str, Released]) -> NDArray[np.float64]:
        """Of each cluster within its class, shape (classes, clusters), from noisy counts: post-processing."""
        if not self._split:
            return np.ones((context.layout.num_classes, 1))
        released, active = auxiliary[CLUSTER_COUNTS], self._active(context, auxiliary)
        counts = np.maximum(released.values, max(1.0, released.noise_std)).reshape(len(active), -1)
        counts = np.where(np.arange(self._clusters) < np.array(active)[:, None], counts, 0.0)
        weights: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return weights

    @property
    def _split(self) -> bool:
        return self.auxiliary.splits > 0

    @property
    def _gray(self) -> bool:
        return self.auxiliary.center == "gray"

    @property
    def _clusters(self) -> int:
        """Most clusters of a class."""
        return 1 << self.auxiliary.splits

    @property
    def _by_class(self) -> bool:
        return self.auxiliary.center == "classes"

    def _black(self, context: Context) -> tuple[int, ...]:
        """Centers of the right number, where there are any."""
        return (0,) * (context.layout.num_classes * self._sizes(context)[1] * self._by_class)

    def _centers(self, context: Context, auxiliary: Mapping[str, Released]) -> tuple[int, ...]:
        """The mean coefficients of each class, by its released levels: post-processing.

        Brightness is taken as even between two levels, as the copula takes it. So its mean is that of the shares above
        levels, the lowest by half.
        """
        if not self._by_class:
            return ()
        released, levels = auxiliary[FIRST_LEVELS if self._split else LEVELS], self.auxiliary.levels
        feature = self._class_levels(context, self._share(auxiliary)).feature
        assert isinstance(feature, CosineLevels)
        counts = self._class_counts(context, auxiliary)[:, None]
        shares = released.values.reshape(len(counts), levels, -1)
        means = (shares.sum(axis=1) - shares[:, 0] / 2) / (levels * counts * feature.scale)
        longest = math.sqrt(math.prod(feature.shape))
        return tuple(int(entry) for entry in np.rint(CENTER_UNIT * means.clip(-longest, longest)).ravel())

    def _origins(self, context: Context, auxiliary: Mapping[str, Released]) -> NDArray[np.float64]:
        """Where distances begin: coefficients by class, shape (classes, K)."""
        shape, size = self._sizes(context)
        if self._gray:
            return np.tile(cosine_basis(shape, size).sum(axis=1) / 2, (context.layout.num_classes, 1))
        centers = self._centers(context, auxiliary) or (0,) * context.layout.num_classes * size
        return np.array(centers).reshape(-1, size) / CENTER_UNIT

    def _class_levels(self, context: Context, share: float) -> Query:
        """Levels by class, where centers are read off them: a query of its own only where classes split."""
        levels = self._levels_query(context, share, EachRecord())
        return replace(levels, name=FIRST_LEVELS) if self._split else levels

    def _first(self, context: Context, bound: float, centers: tuple[int, ...]) -> Query:
        """A first look at the moments of each class."""
        return replace(self._embedding(context, bound, EachRecord(), centers), name=FIRST, stage="auxiliary")

    def _cluster_counts(self, context: Context, terms: EachRecord) -> Query:
        return replace(class_counts_query(context), name=CLUSTER_COUNTS, **self._groups(context, terms))

    def _terms(self, context: Context, auxiliary: Mapping[str, Released]) -> EachRecord:
        """Records by cluster, where a first look says so."""
        return EachCluster(self._halves(context, auxiliary)) if self._split else EachRecord()

    def _foreseen(self, context: Context) -> EachRecord:
        """Terms as if no class were split: groups and sensitivity are those of any splits."""
        if not self._split:
            return EachRecord()
        (shape, size), planes = self._sizes(context), context.layout.num_classes * self.auxiliary.splits
        return EachCluster(
            ClassHalves(shape, size, 1.0, self.auxiliary.splits, (0,) * planes * size, (0.0,) * planes, self._gray)
        )

    def _halves(self, context: Context, auxiliary: Mapping[str, Released]) -> ClassHalves:
        """Where the first look splits the classes."""
        looked, shape = auxiliary[FIRST], self._sizes(context)[0]
        counts, share = self._class_counts(context, auxiliary), self.privatize.first_share
        estimates = denoised(looked.values, counts, share, looked.noise_std)
        # The noise of both releases together, in a class without a split.
        noise = looked.noise_std * math.sqrt(_LOOK / (1 - _COUNTED))
        edges = edge(estimates.means.shape[1], counts, share, noise)
        bound, splits = self._bound(context, auxiliary), self.auxiliary.splits
        if self._by_class:  # planes of images, whose norm is at most that of a white one
            white = math.sqrt(math.prod(shape))
            means = (self._origins(context, auxiliary) + bound * estimates.means) / white
            estimates, bound = replace(estimates, means=means), white
        least = _LEAST_CENTERED if self._by_class else _LEAST
        return replace(halves(estimates, shape, bound, splits, edges, least), gray=self._gray)

    def _active(self, context: Context, auxiliary: Mapping[str, Released]) -> list[int]:
        """Clusters of each class that hold records."""
        return self._halves(context, auxiliary).active

    def _groups(self, context: Context, terms: EachRecord) -> dict[str, Any]:
        """Groups and terms of a query by class, or by cluster."""
        classes = context.layout.num_classes
        return {"num_groups": terms.num_groups if isinstance(terms, EachCluster) else classes, "contributions": terms}

    def _feature(self, context: Context, bound: float, centers: tuple[int, ...]) -> CosineMoments:
        return CosineMoments(*self._sizes(context), bound, self.privatize.first_share, self._gray, centers)

    def _embedding(self, context: Context, bound: float, terms: EachRecord, centers: tuple[int, ...]) -> Query:
        query = Query(EMBEDDING, "privatize", self._feature(context, bound, centers), **self._groups(context, terms))
        return self._with_class(context, query)

    def _with_class(self, context: Context, query: Query) -> Query:
        """A query whose map knows the class of an image, where it is measured from a center of that."""
        if not self._by_class:
            return query
        assert isinstance(query.contributions, EachRecord)
        return replace(query, contributions=WithClass(context.layout.num_classes, query.contributions))

    def _norms(self, context: Context, centers: tuple[int, ...]) -> Query:
        """The histogram of norms."""
        feature = CosineNorms(*self._sizes(context), self.auxiliary.cells, self._gray, centers)
        return self._with_class(context, Query(NORMS, "auxiliary", feature, contributions=together(context)))

    def _level_counts(self, context: Context) -> Query:
        """The histogram of shares above levels."""
        shape, levels = self._sizes(context)[0], max(1, self.auxiliary.levels)
        feature = LevelCounts(shape, levels, self.auxiliary.cells, self._gray)
        return Query(LEVEL_COUNTS, "auxiliary", feature, contributions=together(context))

    def _bound(self, context: Context, auxiliary: Mapping[str, Released]) -> float:
        """About the median norm of all images, at which coefficients are clipped."""
        return median_norm(CosineNorms(*self._sizes(context), self.auxiliary.cells, self._gray), auxiliary[NORMS])

    def _share(self, auxiliary: Mapping[str, Released]) -> float:
        """About the median share above levels: the upper end of a cell. Images beyond it are dimmed."""
        return (median_cell(auxiliary[LEVEL_COUNTS]) + 1) / self.auxiliary.cells

    @cached_property
    def _network(self) -> Merf | None:
        """The method of the network and its features, if there is one."""
        fourier = self.auxiliary.fourier
        if not fourier.num_frequencies:
            return None
        return Merf(train=self.train.network, privatize=MerfPrivatize(fourier.num_frequencies, fourier.lengthscale))

    def _fourier_query(self, network: Merf, context: Context) -> Query:
        return replace(network.embedding_query(context, {}), name=FOURIER, stage="auxiliary")

    def _levels_query(self, context: Context, share: float, terms: EachRecord) -> Query:
        feature = CosineLevels(*self._sizes(context), self.auxiliary.levels, share, self._gray)
        return Query(LEVELS, "auxiliary", feature, **self._groups(context, terms))

    def _sizes(self, context: Context) -> tuple[tuple[int, ...], int]:
        shape = context.schema.image
        assert shape is not None  # check refuses others
        return shape, min(self.privatize.num_coefficients, math.prod(shape))


def median_norm(norms: CosineNorms, released: Released) -> float:
    """Upper end of the cell in which the median of a noisy histogram of norms lies; see :func:`median_cell`."""
    return (median_cell(released) + 1) * norms.cell_width


def median_cell(released: Released) -> int:
    """The cell in which the median of a noisy histogram lies: post-processing.

    Cells below two standard deviations of their noise count as empty: there are many, and their noise would pull the
    median towards the middle of the scale. If no cell is left, this is the last one, which clips nothing.
    """
    counts = released.values[0]
    counts = np.where(counts >= _SEEN * released.noise_std, counts, 0.0).cumsum()
    return int(np.searchsorted(counts, counts[-1] / 2)) if counts[-1] > 0 else len(counts) - 1
