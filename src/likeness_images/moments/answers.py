"""The answers of a run about images: the queries that follow from them, and what they say of bounds and classes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likeness.features.base import Map
from likeness.features.column_marginals import Constant
from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context, class_weights, number_of_records, together
from likeness.release.query import Query
from likeness.release.records import EachCluster, EachRecord, WithClass
from likeness.release.released import Released
from likeness_images.moments.brightness import shares_above
from likeness_images.moments.clusters_map import ClassHalves, halves
from likeness_images.moments.cosine_map import CENTER_UNIT, CosineMoments, CosineNorms, cosine_basis, mirrored_signs
from likeness_images.moments.estimates import Moments, denoise_mirrored, denoise_moments, edge, join_sums
from likeness_images.moments.levels_map import CosineLevels, LevelCounts
from likeness_images.moments.settings import (
    CLUSTER_COUNTS,
    COUNTED_SHARE,
    FIRST,
    FIRST_LEVELS,
    LEVEL_COUNTS,
    LEVELS,
    LOOK_SHARE,
    NORMS,
    Auxiliary,
    Privatize,
)

Float64 = NDArray[np.float64]
_LEAST = 8.0  # of the noise's edge: a direction that varies less splits no class
_LEAST_CENTERED = 40.0  # the same where images are measured from the mean of their class, at less noise
_EDGE_SHARE = 0.8  # of the noise's edge: directions above it stay where levels are released
_SEEN = 2.0  # standard deviations of noise that a cell must hold to count in a median


@dataclass(frozen=True)
class Answers:
    """Answers about images of one shape, and all that is read off them: post-processing.

    An answer is read when it is needed. So a query can be built while later answers are missing.
    """

    auxiliary: Auxiliary
    privatize: Privatize
    context: Context
    released: Mapping[str, Released]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.context.layout.num_classes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an image."""
        shape = self.context.schema.image
        assert shape is not None  # the method refuses others
        return shape

    @property
    def size(self) -> int:
        """K."""
        return min(self.privatize.num_coefficients, math.prod(self.shape))

    def query(self, name: str) -> Query:
        """A query by its name; not that of a network."""
        feature, terms = self._feature(name), EachRecord()
        if isinstance(feature, CosineNorms | LevelCounts):
            return self._with_class(Query(name, "auxiliary", feature, contributions=together(self.context)))
        if name in (CLUSTER_COUNTS, LEVELS, EMBEDDING):
            terms = self.terms
        groups = terms.num_groups if isinstance(terms, EachCluster) else self.classes
        stage = "privatize" if name == EMBEDDING else "auxiliary"
        return self._with_class(Query(name, stage, feature, groups, terms))

    def _feature(self, name: str) -> Map:
        if name in (CLASS_COUNTS, CLUSTER_COUNTS):
            return Constant()
        if name == NORMS:
            return self.norms
        if name == LEVEL_COUNTS:
            return LevelCounts(self.shape, self.auxiliary.levels, self.auxiliary.cells, self.auxiliary.gray)
        return self.levels if name in (LEVELS, FIRST_LEVELS) else self.moments

    def _with_class(self, query: Query) -> Query:
        """A query whose map knows the class of an image, where it is measured from a center of that."""
        if not getattr(query.feature, "centers", ()):
            return query
        assert isinstance(query.contributions, EachRecord)
        return replace(query, contributions=WithClass(self.classes, query.contributions))

    @property
    def norms(self) -> CosineNorms:
        """Cells of the norms of images."""
        return CosineNorms(self.shape, self.size, self.auxiliary.cells, self.auxiliary.gray, self.centers)

    @property
    def levels(self) -> CosineLevels:
        """The map that counts where pixels are above levels."""
        return CosineLevels(self.shape, self.size, self.auxiliary.levels, self.share, self.auxiliary.gray)

    @property
    def moments(self) -> CosineMoments:
        """Moments of coefficients, from where distances begin."""
        share, gray = self.privatize.first_share, self.auxiliary.gray
        return CosineMoments(self.shape, self.size, self.norm_bound, share, gray, self.centers)

    @cached_property
    def norm_bound(self) -> float:
        """The norm at which coefficients are clipped, about the median norm of all images."""
        return median_norm(self.norms, self.released[NORMS])

    @cached_property
    def share(self) -> float:
        """The upper end of a cell, about the median share above levels. Images beyond it are dimmed."""
        return (median_cell(self.released[LEVEL_COUNTS]) + 1) / self.auxiliary.cells

    @cached_property
    def centers(self) -> tuple[int, ...]:
        """The mean coefficients of each class, by its released levels; none elsewhere than from classes.

        Brightness is taken as even between two levels, as the copula takes it. So its mean is that of the shares above
        levels, the lowest by half.
        """
        if not self.auxiliary.is_class_centered:
            return ()
        released, levels = self.released[self.auxiliary.class_levels], self.auxiliary.levels
        counts = self.class_counts[:, None]
        shares = released.values.reshape(len(counts), levels, -1)
        means = (shares.sum(axis=1) - shares[:, 0] / 2) / (levels * counts * self.levels.scale)
        longest = math.sqrt(math.prod(self.shape))
        return tuple(int(entry) for entry in np.rint(CENTER_UNIT * means.clip(-longest, longest)).ravel())

    @property
    def origins(self) -> Float64:
        """The points where distances begin: coefficients by class, shape (classes, K)."""
        if self.auxiliary.gray:
            return np.tile(cosine_basis(self.shape, self.size).sum(axis=1) / 2, (self.classes, 1))
        return np.array(self.centers or (0,) * self.classes * self.size).reshape(-1, self.size) / CENTER_UNIT

    @cached_property
    def halves(self) -> ClassHalves:
        """The map by which the first look splits the classes."""
        look, counts, share = self.released[FIRST], self.class_counts, self.privatize.first_share
        estimates, bound, least = denoise_moments(look.values, counts, share, look.noise_std), self.norm_bound, _LEAST
        # The noise of both releases together, in a class without a split.
        noise = look.noise_std * math.sqrt(LOOK_SHARE / (1 - COUNTED_SHARE))
        edges = edge(self.size, counts, share, noise)
        if self.auxiliary.is_class_centered:  # planes of images, whose norm is at most that of a white one
            white = math.sqrt(math.prod(self.shape))
            means = (self.origins + bound * estimates.means) / white
            estimates, bound, least = replace(estimates, means=means), white, _LEAST_CENTERED
        splits, gray = self.auxiliary.splits, self.auxiliary.gray
        return replace(halves(estimates, self.shape, bound, splits, edges, least), gray=gray)

    @property
    def terms(self) -> EachRecord:
        """Records by cluster, where a first look says so."""
        return EachCluster(self.halves) if self.auxiliary.splits else EachRecord()

    @cached_property
    def class_counts(self) -> Float64:
        """Records of each class, positive, shape (classes,)."""
        released = self.released[CLASS_COUNTS]
        return class_weights(released) * number_of_records(self.context, released)

    @cached_property
    def weights(self) -> Float64:
        """The weight of each cluster within its class, shape (classes, clusters), from noisy counts."""
        if not self.auxiliary.splits:
            return np.ones((self.classes, 1))
        released, active = self.released[CLUSTER_COUNTS], self.halves.active
        counts = np.maximum(released.values, max(1.0, released.noise_std)).reshape(len(active), -1)
        counts = np.where(np.arange(self.auxiliary.clusters) < np.array(active)[:, None], counts, 0.0)
        weights: Float64 = counts / counts.sum(axis=1, keepdims=True)
        return weights

    @property
    def counts(self) -> Float64:
        """Records of each cluster of each class, shape (groups,); 1 where there is none."""
        counts = self.class_counts[:, None] * self.weights
        return np.where(counts > 0, counts, 1.0).ravel()

    def shares_above(self, mirror: bool) -> Float64 | None:
        """Estimate how often pixels of each cluster are above levels; None without levels."""
        if not self.auxiliary.levels:
            return None
        return shares_above(self.released[LEVELS].values, self.counts, self.levels, mirror)

    def estimates(self, embedding: Released, mirror: bool) -> Moments:
        """Means and factors of each cluster of each class, from where distances begin."""
        sums, deviations = embedding.values, np.full(embedding.values.shape[0], embedding.noise_std)
        if self.auxiliary.splits:
            look = self.released[FIRST]
            sums, deviations = join_sums(sums, embedding.noise_std, self.halves.active, look.values, look.noise_std)
        # With levels, brightness is released: a direction of noise makes no pixel brighter. With few directions, images
        # would be too much alike.
        edge_share = _EDGE_SHARE if self.auxiliary.levels else 1.0
        numbers = sums, self.counts, self.privatize.first_share, deviations, edge_share
        return (
            denoise_mirrored(*numbers, mirrored_signs(self.shape, self.size)) if mirror else denoise_moments(*numbers)
        )


class StandIns(Answers):
    """Answers without split classes, with bounds of 1 and black centers: none changes coordinates or sensitivity."""

    norm_bound = 1.0
    share = 1.0

    @property
    def centers(self) -> tuple[int, ...]:
        """Zeros, where there are centers."""
        return (0,) * (self.classes * self.size * self.auxiliary.is_class_centered)

    @property
    def halves(self) -> ClassHalves:
        """Planes that split nothing."""
        splits, planes = self.auxiliary.splits, self.classes * self.auxiliary.splits
        directions, centers = (0,) * planes * self.size, (0.0,) * planes
        return ClassHalves(self.shape, self.size, 1.0, splits, directions, centers, self.auxiliary.gray)


def median_norm(norms: CosineNorms, released: Released) -> float:
    """Upper end of the cell in which the median of a noisy histogram of norms lies; see :func:`median_cell`."""
    return (median_cell(released) + 1) * norms.cell_width


def median_cell(released: Released) -> int:
    """The cell in which the median of a noisy histogram lies.

    Cells below two standard deviations of their noise count as empty: there are many, and their noise would pull the
    median towards the middle of the scale. If no cell is left, this is the last one, which clips nothing.
    """
    counts = released.values[0]
    counts = np.where(counts >= _SEEN * released.noise_std, counts, 0.0).cumsum()
    return int(np.searchsorted(counts, counts[-1] / 2)) if counts[-1] > 0 else len(counts) - 1
