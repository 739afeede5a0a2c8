"""How bright pixels are, from released levels: post-processing, nothing is spent."""

import math

import torch
from torch import Tensor

from likeness.methods.moments.cosine_map import cosine_basis
from likeness.methods.moments.levels_map import CosineLevels

_LEAST = 1e-6  # of a step's probability: below it, the step is a jump


def shares_above(sums: Tensor, counts: Tensor, feature: CosineLevels) -> Tensor:
    r"""How often each pixel of each class is brighter than each level, shape (classes, J, pixels), float64.

    ``sums`` (classes, J · K) are those of ``feature``, ``counts`` the positive records of each class. Shares must not
    increase with the level: least squares by isotonic regression of each pixel (min-max formula, Barlow et al. 1972),
    then clipped to [0, 1].
    """
    basis = cosine_basis(feature.shape, feature.num_coefficients)
    blocks = sums.view(len(sums), feature.levels, -1) / (counts[:, None, None] * feature.scale)
    return torch.stack([_nonincreasing(block @ basis).clamp(0, 1) for block in blocks])


def brightness(brighter: Tensor, shares: Tensor) -> Tensor:
    r"""The quantile of each pixel's brightness, piecewise linear between levels and 0 below the lowest, differentiable.

    Args:
        brighter: the share of images in which the pixel is brighter than here, in [0, 1], shape (n, pixels).
        shares: of :func:`shares_above` for one class, shape (J, pixels).

    Returns:
        pixels in [0, 1], shape (n, pixels): a pixel is brighter than j / J iff ``brighter`` is less than ``shares[j]``.
    """
    levels = len(shares)
    below = torch.cat([shares[1:], torch.zeros_like(shares[:1])])
    total = torch.zeros_like(brighter)
    for upper, lower in zip(shares, below, strict=True):
        total = total + ((upper - brighter) / (upper - lower).clamp(min=_LEAST)).clamp(0, 1)
    return total / levels


def share_brighter(standard: Tensor) -> Tensor:
    """The share of a standard Gaussian above each value."""
    return torch.erfc(standard / math.sqrt(2)) / 2


def _nonincreasing(values: Tensor) -> Tensor:
    """Isotonic regression along the first axis, by the min-max formula."""
    count = len(values)
    sums = torch.cat([torch.zeros_like(values[:1]), values.cumsum(dim=0)])

    def mean(first: int, last: int) -> Tensor:
        return (sums[last + 1] - sums[first]) / (last + 1 - first)

    fitted = []
    for place in range(count):
        ends = range(place, count)
        smallest = [torch.stack([mean(first, last) for first in range(place + 1)]).amin(dim=0) for last in ends]
        fitted.append(torch.stack(smallest).amax(dim=0))
    return torch.stack(fitted)
