"""How bright pixels are, from released levels: post-processing, nothing is spent."""

import numpy as np
from numpy.typing import NDArray

from likeness_images.moments.cosine_map import cosine_basis, mirrored_signs
from likeness_images.moments.levels_map import CosineLevels, even_shares

Float64 = NDArray[np.float64]
_LEAST = 1e-6  # of a step's probability: below it, the step is a jump


def shares_above(sums: Float64, counts: Float64, feature: CosineLevels, mirror: bool = False) -> Float64:
    r"""Estimate how often each pixel of each class is brighter than each level, shape (classes, J, pixels).

    ``sums`` (classes, J · K) are those of ``feature``, ``counts`` the positive records of each class. Shares must not
    increase with the level: least squares by isotonic regression of each pixel (min-max formula, Barlow et al. 1972),
    then clipped to [0, 1].

    With ``mirror``, each share is the mean of both sides: frequencies that a mirror turns around are left out.
    """
    basis = cosine_basis(feature.shape, feature.num_coefficients)
    blocks = sums.reshape(len(sums), feature.levels, -1) / (counts[:, None, None] * feature.scale)
    if mirror:
        blocks = np.where(mirrored_signs(feature.shape, feature.num_coefficients), 0.0, blocks)
    even = np.array(even_shares(feature.levels) if feature.gray else [0.0] * feature.levels)[:, None]
    return np.stack([_nonincreasing(block @ basis + even).clip(0, 1) for block in blocks])


def brightness(brighter: Float64, shares: Float64) -> Float64:
    r"""The quantile of each pixel's brightness, piecewise linear between levels and 0 below the lowest.

    Args:
        brighter: the share of images in which the pixel is brighter than here, in [0, 1], shape (n, pixels).
        shares: of :func:`shares_above` for one class, shape (J, pixels).

    Returns:
        pixels in [0, 1], shape (n, pixels): a pixel is brighter than j / J iff ``brighter`` is less than ``shares[j]``.
    """
    levels = len(shares)
    below = np.concatenate([shares[1:], np.zeros_like(shares[:1])])
    total = np.zeros_like(brighter)
    for upper, lower in zip(shares, below, strict=True):
        total += ((upper - brighter) / np.maximum(upper - lower, _LEAST)).clip(0, 1)
    return total / levels


def _nonincreasing(values: Float64) -> Float64:
    """Isotonic regression along the first axis, by the min-max formula."""
    count = len(values)
    sums = np.concatenate([np.zeros_like(values[:1]), values.cumsum(axis=0)])

    def mean(first: int, last: int) -> Float64:
        average: Float64 = (sums[last + 1] - sums[first]) / (last + 1 - first)
        return average

    fitted = []
    for index in range(count):
        smallest = [np.min([mean(first, last) for first in range(index + 1)], axis=0) for last in range(index, count)]
        fitted.append(np.max(smallest, axis=0))
    return np.stack(fitted)
