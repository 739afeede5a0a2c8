"""Mean features of classes: by the map's own way where it has one, without a row's own vector."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from likeness.features.base import MeanMap, OuterMap

Factors = tuple[tuple[Tensor, Tensor], ...]


def outer_features(factors: Factors) -> Tensor:
    """The vectors themselves, shape (n, width), from the factors of each block, shapes (n, a) and (n, b)."""
    return torch.cat([(left[:, :, None] * right[:, None, :]).flatten(1) for left, right in factors], dim=1)


def class_distances(
    feature: Callable[[Tensor], Tensor], x: Tensor, counts: Sequence[int], target: Tensor, scale: Tensor
) -> Tensor:
    """Squared distance of ``target[c]`` and ``scale[c]`` times the mean feature of class c, shape (num_classes,).

    Args:
        feature, x, counts: see :func:`class_means`. target: shape (num_classes, width). scale: shape (num_classes,).
    """
    if not isinstance(feature, OuterMap):
        return (target - scale[:, None] * class_means(feature, x, counts)).square().sum(dim=1)
    blocks = [zip(*(torch.split(factor, list(counts)) for factor in pair), strict=True) for pair in feature.factors(x)]
    starts = [0, *accumulate(a * b for a, b in feature.sizes)]
    distances = []
    for own, weight, count, *pairs in zip(target, scale, counts, *blocks, strict=True):
        parts = [own[start:stop] for start, stop in pairwise(starts)]
        found = [_distance(part, left * (weight / count), right)
                 for part, (left, right) in zip(parts, pairs, strict=True)]  # fmt: skip
        distances.append(torch.stack(found).sum())
    return torch.stack(distances)


def _distance(target: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``‖target − leftᵀ right‖²``, through the products of rows with each other where that is less work.

    Args:
        target: shape (a · b,). left: shape (n, a). right: shape (n, b).
    """
    rows, (a, b) = len(left), (left.shape[1], right.shape[1])
    own = target.view(a, b)
    if rows * (a + b) > a * b:
        return (own - left.T @ right).square().sum()
    among = ((left @ left.T) * (right @ right.T)).sum()
    return torch.dot(target, target) - 2 * ((left @ own) * right).sum() + among


def class_means(feature: Callable[[Tensor], Tensor], x: Tensor, counts: Sequence[int]) -> Tensor:
    """Mean feature of each class, shape (num_classes, width), differentiable in x.

    Args:
        feature: the map; of an :class:`OuterMap` the mean is a matrix product a block, and no vector is made.
        x: rows in order of class, shape (n, d). counts: rows of each class.
    """
    if isinstance(feature, MeanMap):
        return feature.means(x, list(counts))
    if not isinstance(feature, OuterMap):
        return torch.stack([part.mean(dim=0) for part in torch.split(feature(x), list(counts))])
    blocks = [zip(*(torch.split(factor, list(counts)) for factor in pair), strict=True) for pair in feature.factors(x)]
    means = []
    for count, *pairs in zip(counts, *blocks, strict=True):
        means += [((left / count).T @ right).flatten() for left, right in pairs]
    return torch.cat(means).view(len(counts), -1)
