"""Mean and covariance of each class from noisy first and second moments: post-processing, nothing is spent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """The moments of clipped coefficients u, as far as noise leaves them.

    Attributes:
        means: shape (classes, K).
        factors: L with covariance L Lᵀ, shape (classes, K, K), one column a direction, strongest first; 0 for
            directions that the noise hides.
    """

    means: Float64
    factors: Float64

    @property
    def ranks(self) -> list[int]:
        """Number of directions of each class that the noise does not hide."""
        return [int(factor.any(axis=0).sum()) for factor in self.factors]

    def features(self, first_share: float) -> Float64:
        """Mean feature of each class (:class:`likeness.methods.maps.CosineMoments`), shape (classes, K · (1 + K))."""
        second = self.factors @ self.factors.mT + self.means[:, :, None] * self.means[:, None, :]
        first = math.sqrt(first_share) * self.means[:, :, None]
        return np.concatenate([first, math.sqrt(1 - first_share) * second], axis=2).reshape(len(first), -1)


def edge(size: int, counts: Float64, first_share: float, noise_std: float | Float64) -> Float64:
    r"""The edge e of Wigner's semicircle for each class, shape (classes,): see :func:`denoise_moments`.

    Args:
        size: K.
        counts: records of each class, positive.
        first_share: a of the map.
        noise_std: of a coordinate of the sums; of all classes, or of each.
    """
    edges: Float64 = noise_std * math.sqrt(2 * size / (1 - first_share)) / counts
    return edges


def join_sums(
    sums: Float64, noise_std: float, active: Sequence[int], looked: Float64, looked_std: float
) -> tuple[Float64, Float64]:
    r"""Sums by cluster that also use a first look at their classes, and the deviation of their noise.

    The sums of a class's m clusters have noise of variance :math:`s^2` each. Their sum was released too, with variance
    :math:`r^2`. Generalized least squares moves each cluster by :math:`s^2 / (m s^2 + r^2)` of the difference, and
    leaves the variance :math:`s^2 (1 - s^2 / (m s^2 + r^2))`. For m = 1 this is the mean by inverse variance: a class
    without a split has lost nothing.

    Args:
        sums: shape (classes · M, width), M clusters a class.
        noise_std: s.
        active: m of each class; its first m clusters hold records.
        looked: shape (classes, width).
        looked_std: r.

    Returns:
        Sums of the same shape, 0 beyond the active ones, and a deviation for each group.
    """
    blocks = sums.reshape(len(active), -1, sums.shape[1]).copy()
    deviations = np.zeros(blocks.shape[:2])
    for block, deviation, count, look in zip(blocks, deviations, active, looked, strict=True):
        block[count:] = 0
        share = noise_std**2 / (count * noise_std**2 + looked_std**2) if noise_std else 0.0
        block[:count] += share * (look - block.sum(axis=0))
        deviation[:count] = noise_std * math.sqrt(1 - share)
    return blocks.reshape(sums.shape), deviations.ravel()


def denoise_mirrored(
    sums: Float64,
    counts: Float64,
    first_share: float,
    noise_std: float | Float64,
    edge_share: float,
    turned: NDArray[np.bool_],
) -> Moments:
    r"""Denoise as :func:`denoise_moments`, for images that look alike in a mirror: half of the noise is left out.

    A mirror changes the sign of some coefficients. Where an image is as probable as its mirror image, the mean of these
    is 0, and so is their covariance with the others. The covariance then has two blocks. Each has the edge of its own
    size, about :math:`e / \sqrt 2`.

    Args:
        sums: shape (groups, K · (1 + K)).
        counts: records of each group, positive.
        first_share: a of the map.
        noise_std: of a coordinate of the sums; of all groups, or of each.
        edge_share: part of the edge that an eigenvalue must exceed.
        turned: which coefficients change sign, shape (K,).
    """
    size, groups = len(turned), len(sums)
    blocks = sums.reshape(groups, size, 1 + size)
    means, factors = np.zeros((groups, size)), np.zeros((groups, size, size))
    start = 0
    for signs in (False, True):
        members = np.flatnonzero(turned == signs)
        if len(members):
            part = blocks[:, members][:, :, [0, *(1 + members)]]
            part[:, :, 0] *= not signs
            moments = denoise_moments(part.reshape(groups, -1), counts, first_share, noise_std, edge_share)
            means[:, members] = moments.means
            factors[:, members, start : start + len(members)] = moments.factors
            start += len(members)
    strongest = np.argsort(-(factors**2).sum(axis=1), axis=1, kind="stable")
    return Moments(means, np.take_along_axis(factors, strongest[:, None, :], axis=2))


def denoise_moments(
    sums: Float64, counts: Float64, first_share: float, noise_std: float | Float64, edge_share: float = 1.0
) -> Moments:
    r"""Class means and covariances from released sums of :class:`likeness.methods.maps.CosineMoments`.

    Making the matrix of second moments symmetric halves the noise's variance off the diagonal. That noise, a symmetric
    Gaussian matrix of entry deviation s, has eigenvalues up to :math:`e = 2 s \sqrt K` (the edge of Wigner's
    semicircle). An eigenvalue w of the noisy covariance beyond it is :math:`\lambda + s^2 K / \lambda` for a true λ, so
    :math:`\lambda = (w + \sqrt{w^2 - e^2}) / 2`. An eigenvalue within e says little of its direction and becomes 0.
    Above ``edge_share`` times e it becomes w / 2, where the root is 0. By chance the largest eigenvalue of noise alone
    exceeds e in about one matrix of six (Tracy and Widom 1996).

    The noise of the mean enters the covariance through :math:`\mu \mu^\top`: eigenvalues of about
    :math:`\pm \|\mu\| \sigma \sqrt K / (n \sqrt a)`, where the positive one can pass for a direction. A mean
    longer than 1 is shortened, since u lies in the unit ball.
    Sources: Wigner (1958); Benaych-Georges and Nadakuditi (2011).

    Args:
        sums: shape (classes, K · (1 + K)), float64.
        counts: records of each class, positive, shape (classes,).
        first_share: a of the map.
        noise_std: of a coordinate of the sums; of all classes, or of each.
        edge_share: part of the edge e that an eigenvalue must exceed, in [0, 1].
    """
    size = round((math.sqrt(1 + 4 * sums.shape[1]) - 1) / 2)
    blocks = sums.reshape(len(sums), size, 1 + size) / counts[:, None, None]
    means = blocks[:, :, 0] / math.sqrt(first_share)
    means = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1)
    second = blocks[:, :, 1:] / math.sqrt(1 - first_share)
    covariance = (second + second.mT) / 2 - means[:, :, None] * means[:, None, :]
    edges = edge(size, counts, first_share, noise_std)
    values, directions = np.linalg.eigh(covariance)
    values, directions = values[:, ::-1], directions[:, :, ::-1]
    seen = values > edge_share * edges[:, None]
    true = (values + np.sqrt(np.maximum(values**2 - edges[:, None] ** 2, 0))) / 2
    return Moments(means, directions * np.sqrt(np.maximum(np.where(seen, true, 0.0), 0))[:, None, :])
