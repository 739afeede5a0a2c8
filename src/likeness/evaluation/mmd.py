r"""Maximum mean discrepancy with a Gaussian kernel: the distance of two tables as distributions.

.. math:: \mathrm{MMD}^2 = \mathbb E k(x, x') + \mathbb E k(y, y') - 2\, \mathbb E k(x, y),
    \qquad k(x, y) = \exp(-\lVert x - y \rVert^2 / 2 l^2)

Both estimates are of the squared MMD. The *biased* one takes all pairs and is never negative. The *unbiased* one leaves
out a row's pair with itself. Its mean is 0 for two samples of one distribution, so a value may be below 0.

Sources: Gretton et al. (2012), lemma 6 and equation 5; on tables Liew et al. (PEARL, ICLR 2022), appendix I.1.

A row is a point, and all columns have equal weight. A number is its place on the unit scale. Two categories that differ
are 1 apart (one-hot divided by √2). The class is a column like any other. The length scale is public, from the schema
alone: the root mean squared distance of two rows drawn uniformly from all rows that the schema allows. It replaces the
usual median over data, so numbers of two runs on one schema compare.

Memory is O(n): pairs are taken by blocks. Time is O(n²).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema

_BLOCK = 1024
"""Rows of one block of pairs: 8 MB."""


@dataclass(frozen=True)
class Discrepancy:
    """Two estimates of the squared MMD.

    Attributes:
        unbiased: without the pairs of a row with itself; mean 0 under equality.
        biased: with them; at least 0.
    """

    unbiased: float
    biased: float


def length_scale(schema: Schema) -> float:
    """The public length scale: root mean squared distance of two uniform rows.

    Two uniform numbers have E(x - y)² = 1/6. Two uniform categories of k differ with probability 1 - 1/k. A table of
    constants alone has scale 1.
    """
    squares = [1 - 1 / column.width if column.is_categorical else 1 / 6 for column in schema.columns]
    return math.sqrt(math.fsum(squares)) or 1.0


def points(df: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Rows as points (n, features + classes), one-hot places divided by √2."""
    encoder = Encoder(schema)
    codes = encoder.encode(df)
    dense = encoder.expand(codes)
    for block in encoder.layout.blocks:
        if block.kind == "onehot":
            dense[:, block.start : block.stop] *= math.sqrt(0.5)
    if schema.task != "classification":
        return dense
    labels = np.eye(len(schema.classes))[encoder.labels(codes)] * math.sqrt(0.5)
    return np.concatenate([dense, labels], axis=1)


def kernel_sum(a: NDArray[Any], b: NDArray[Any], scale: float) -> float:
    """Sum of k over all pairs of a row of ``a`` (n, d) with one of ``b`` (m, d)."""
    squares_b = (b * b).sum(axis=1)
    total = 0.0
    for start in range(0, len(a), _BLOCK):
        part = a[start : start + _BLOCK]
        for other in range(0, len(b), _BLOCK):
            squared = part @ b[other : other + _BLOCK].T
            squared *= -2.0
            squared += (part * part).sum(axis=1)[:, None]
            squared += squares_b[None, other : other + _BLOCK]
            np.maximum(squared, 0.0, out=squared)  # rounding may give a little below zero
            squared /= -2.0 * scale * scale
            total += float(np.exp(squared, out=squared).sum())
    return total


def mmd_squared(a: NDArray[Any], b: NDArray[Any], scale: float) -> Discrepancy:
    """Squared MMD between two samples, (n, d) and (m, d).

    Args:
        a: one sample.
        b: the other.
        scale: length scale of the kernel, in units of the points.

    Raises:
        DataError: a sample has fewer than two rows, so no pair.
    """
    n, m = len(a), len(b)
    if min(n, m) < 2:
        raise DataError("mmd: a table has fewer than two rows. Give tables of at least two rows.")
    within_a, within_b, across = kernel_sum(a, a, scale), kernel_sum(b, b, scale), kernel_sum(a, b, scale)
    # k(x, x) = 1: the diagonal of n pairs sums to n.
    unbiased = (within_a - n) / (n * (n - 1)) + (within_b - m) / (m * (m - 1)) - 2 * across / (n * m)
    return Discrepancy(unbiased, within_a / n**2 + within_b / m**2 - 2 * across / (n * m))
