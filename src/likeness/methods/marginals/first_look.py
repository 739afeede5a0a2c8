r"""A first look at all pairs, and from it the budget of each pair in the second release: post-processing.

The first look releases every pair with equal weight. Its noise has variance :math:`s^2` a cell. For the pair (i, j)
with :math:`a_{ij}` cells in all classes it estimates how far the pair is from independence, without the noise:

.. math:: d_{ij}^2 = \max\Bigl(0, \sum_y \| \hat n_{y,ij} - m_{yi} m_{yj}^\top / N_y \|^2 - a_{ij} s^2\Bigr)

with m the one-way counts of the first look. A pair measured with variance :math:`v_{ij} = A_{ij} / w_{ij}` in all its
cells, and shrunk to independence by as much as it deserves, has the risk :math:`d^2 v / (d^2 + v)` (Stein's, as in
Efron and Morris 1973). Its sum over pairs, for a given sum of weights, is least at

.. math:: w_{ij} = \max\bigl(\ell, \; \mu \sqrt{A_{ij}} - A_{ij} / d_{ij}^2 \bigr)

where μ makes the weights sum to the number of pairs. ℓ is half of an even share: the risk of a pair whose dependence
the noise hides is bounded too. With many records A / d² is small, and budgets go with the roots of the cells.

The weights stand in the second query, so every machine must compute the same ones. Sums are exact
(:func:`math.fsum`, or whole numbers); all else is +, -, ·, / and roots of single numbers, which IEEE 754 fixes.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.blocks import Block
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.release.released import Released

PAIRS_FIRST = "pairs_first"
MEAN_WEIGHT = 20
"""Squared weights are whole numbers with this mean, so the sensitivity is public before the first look."""
_LEAST_WEIGHT = MEAN_WEIGHT // 2
_HALVINGS = 100  # more than float64 has digits
Counts = NDArray[np.int64]


def squared_weights(first: PairMarginals, released: Released, first_share: float) -> tuple[int, ...]:
    """Of each pair in the second release; their sum is :data:`MEAN_WEIGHT` a pair.

    Args:
        first: the map of the first look.
        released: its answer.
        first_share: part of the budget of both releases that the first look had.
    """
    blocks = [
        part.reshape(len(released.lattice), *size)
        for part, size in zip(_parts(first, released.lattice), first.sizes, strict=True)
    ]
    strengths = squared_strengths(first, blocks, released.receipt.noise_scale)
    # At the mean weight, a cell of the second release has the noise of the first one times the ratio of the shares.
    variance = released.receipt.noise_scale**2 * first_share / (1 - first_share)
    return allotted(strengths, [block.size * variance for block in blocks])


def both(
    blocks: Iterable[Block], weights: Sequence[float], earlier: Iterable[Block], weight: float
) -> tuple[list[Block], list[float]]:
    """Mean counts of each pair over both releases by inverse variance, and their squared weights, which are the sums.

    Args:
        blocks: of the second release.
        weights: squared weights of its pairs.
        earlier: blocks of the first look.
        weight: what a pair of the first look weighs beside these: the variance of a cell of weight 1 there over here.
    """
    mean = [
        (i, j, (later * counts + weight * first) / (later + weight))
        for (i, j, counts), later, (_, _, first) in zip(blocks, weights, earlier, strict=True)
    ]
    return mean, [later + weight for later in weights]


def squared_strengths(first: PairMarginals, blocks: Sequence[Counts], noise_scale: float) -> list[float]:
    """:math:`d_{ij}^2` of each pair, in squared lattice steps.

    Args:
        first: the map of the first look.
        blocks: noisy counts of each pair in lattice steps, shapes (num_classes, cells of i, cells of j).
        noise_scale: σ of a cell, in lattice steps.
    """
    one_ways, totals = _one_ways(first, blocks)
    totals = np.maximum(totals, max(noise_scale, 1.0))  # of an empty class there is noise
    strengths = []
    for (i, j), block in zip(first.column_pairs, blocks, strict=True):
        expected = one_ways[i][:, :, None] * one_ways[j][:, None, :] / totals[:, None, None]
        squares = np.square(block - expected)
        strengths.append(max(0.0, math.fsum(squares.ravel().tolist()) - block.size * noise_scale**2))
    return strengths


def allotted(strengths: Sequence[float], noises: Sequence[float]) -> tuple[int, ...]:
    """Whole weights of the least risk, with their mean given.

    Args:
        strengths: d² of each pair.
        noises: A of each pair, the variance of all its cells at the mean weight, in the unit of ``strengths``.
    """
    even = (MEAN_WEIGHT,) * len(noises)
    if min(noises) == 0:
        return even  # without noise no budget matters
    roots, noise = np.sqrt(np.array(noises)), np.array(noises)
    # A pair that shows nothing keeps the least weight: its root would have to be a thousand times larger.
    hidden = noise / np.maximum(np.array(strengths), 1e-3 * noise)

    def at(level: float) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = np.maximum(_LEAST_WEIGHT, MEAN_WEIGHT * (level * roots - hidden))
        return weights

    whole, low, high = MEAN_WEIGHT * len(noises), 0.0, (len(noises) + 1e3) / float(roots.min())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(at(middle).tolist()) <= whole else (low, middle)
    weights = at(low)
    rounded = np.floor(weights).astype(np.int64)
    # Largest remainders, ties in order: the sum of weights is fixed.
    left = whole - int(rounded.sum())
    rounded[np.argsort(rounded - weights, kind="stable")[:left]] += 1
    return tuple(rounded.tolist())


def _one_ways(first: PairMarginals, blocks: Sequence[Counts]) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Counts of every column's cells, shapes (num_classes, cells), and of the records by class.

    Each pair gives one estimate, whose variance is the other column's number of cells. They are averaged by inverse
    variance, in the order of the pairs.
    """
    classes = len(blocks[0])
    sums = [np.zeros((classes, column.size)) for column in first.columns]
    precisions = [0.0] * len(sums)
    for (i, j), block in zip(first.column_pairs, blocks, strict=True):
        for column, cells, axis in ((i, block.shape[2], 2), (j, block.shape[1], 1)):
            sums[column] += block.sum(axis=axis) / cells
            precisions[column] += 1 / cells
    one_ways = [total / precision for total, precision in zip(sums, precisions, strict=True)]
    records = [[math.fsum(counts) for counts in column.tolist()] for column in one_ways]
    totals = [math.fsum(estimates) / len(one_ways) for estimates in zip(*records, strict=True)]
    return one_ways, np.array(totals)


def _parts(first: PairMarginals, lattice: Counts) -> list[Counts]:
    return np.split(lattice, np.cumsum([a * b for a, b in first.sizes])[:-1], axis=1)
