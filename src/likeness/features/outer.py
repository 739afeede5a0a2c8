"""Features that are outer products: means of many without one of them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from likeness.features.base import OuterMap

Factors = tuple[tuple[Tensor, Tensor], ...]


def outer_features(factors: Factors) -> Tensor:
    """The vectors themselves, shape (n, width), from the factors of each block, shapes (n, a) and (n, b)."""
    return torch.cat([(left[:, :, None] * right[:, None, :]).flatten(1) for left, right in factors], dim=1)


def class_means(feature: Callable[[Tensor], Tensor], x: Tensor, counts: Sequence[int]) -> Tensor:
    """Mean feature of each class, shape (num_classes, width), differentiable in x.

    Args:
        feature: the map; of an :class:`OuterMap` the mean is a matrix product a block, and no vector is made.
        x: rows in order of class, shape (n, d). counts: rows of each class.
    """
    if not isinstance(feature, OuterMap):
        return torch.stack([part.mean(dim=0) for part in torch.split(feature(x), list(counts))])
    blocks = [zip(*(torch.split(factor, list(counts)) for factor in pair), strict=True) for pair in feature.factors(x)]
    means = []
    for count, *pairs in zip(counts, *blocks, strict=True):
        means += [((left / count).T @ right).flatten() for left, right in pairs]
    return torch.cat(means).view(len(counts), -1)
