"""Mean features of classes, without a vector for each row where the map allows it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from likeness.features.base import MeanMap, OuterMap, UnitOuterMap
from likeness_papers.networks.unit_distance import squared_blocks, unit_distances

Factors = tuple[tuple[Tensor, Tensor], ...]


def outer_features(factors: Factors) -> Tensor:
    """The vectors themselves, shape (n, width), from the factors of each block, shapes (n, a) and (n, b)."""
    return torch.cat([(left[:, :, None] * right[:, None, :]).flatten(1) for left, right in factors], dim=1)


def class_distances(
    feature: Callable[[Tensor], Tensor],
    x: Tensor,
    counts: Sequence[int],
    target: Tensor,
    scale: Tensor,
    squares: Tensor | None = None,
) -> Tensor:
    """Squared distance of ``target[c]`` and ``scale[c]`` times the mean feature of class c, shape (num_classes,).

    ``target`` has shape (num_classes, width), ``scale`` (num_classes,); ``squares`` are those of
    :func:`target_squares`. For the others see :func:`class_means`.
    """
    if isinstance(feature, UnitOuterMap):
        return unit_distances(feature.products(x), counts, target, scale, squares)
    return (target - scale[:, None] * class_means(feature, x, counts)).square().sum(dim=1)


def target_squares(feature: Callable[[Tensor], Tensor], target: Tensor) -> Tensor | None:
    """Compute what :func:`class_distances` needs of a target only once; None for maps that need nothing."""
    return squared_blocks(target, feature.sizes) if isinstance(feature, UnitOuterMap) else None


def class_means(feature: Callable[[Tensor], Tensor], x: Tensor, counts: Sequence[int]) -> Tensor:
    """Mean feature of each class, shape (num_classes, width), differentiable in x.

    Args:
        feature: the map; of an :class:`OuterMap` the mean is a matrix product a block, and no vector is made.
        x: rows in order of class, shape (n, d).
        counts: rows of each class.
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
