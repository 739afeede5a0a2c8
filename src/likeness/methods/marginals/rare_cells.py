r"""Rare cells of single columns: what to believe of a count that noise hides, from released numbers alone.

A fit to noisy pairs empties many rare cells in one class and not in another. A cell's count m by class, from all pairs,
has noise of about σ. Cells that rules forbid, contrasts and a first look make it smaller. Below 2 σ a count is
*hidden*. It is replaced by its posterior mean under a prior that is uniform in the logarithm of the count, from σ/1000
to 10 σ. Such a prior knows no scale between a rare and a frequent cell.

Two steps make the fit believe it. Every pair gets the difference, spread evenly over the other column. And the fit
minimizes, beside its squares, the generalized KL divergence

.. math:: \kappa_i \sum_{\text{hidden } c} \Bigl( h_c \log \frac{h_c}{m_c} - h_c + m_c \Bigr), \quad
    \kappa_i = n / \sigma_i

of the fitted shares m from the believed ones h. Its curvature κ / h equals the precision of the release where h is σ.
So it decides for rarer cells, and no cell becomes empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.blocks import Block
from likeness.methods.marginals.structural_zeros import StructuralZeros

_HIDDEN = 2.0  # standard deviations
_PRIOR = np.geomspace(1 / 1000, 10, 200)  # counts in standard deviations
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RareCells:
    """What is believed of each column's cells, shapes (num_classes, cells).

    Attributes:
        counts: posterior means of hidden cells, released counts of others.
        hidden: which cells noise hides.
        noises: σ of each column's cells.
    """

    counts: tuple[Floats, ...]
    hidden: tuple[NDArray[np.bool_], ...]
    noises: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """Shares of cells within each column and class, shape (num_classes, all cells)."""
        parts = [np.maximum(counts, 0) for counts in self.counts]
        return np.concatenate([part / np.maximum(part.sum(axis=1, keepdims=True), 1) for part in parts], axis=1)


def believed(
    blocks: Sequence[Block], squared_weights: Sequence[float], noises: Sequence[float], zeros: StructuralZeros
) -> tuple[list[Block], RareCells]:
    """Blocks whose hidden cells of single columns have believed counts, and these.

    Args:
        blocks: (i, j, noisy counts of shape (num_classes, cells of i, cells of j)).
        squared_weights: of each block.
        noises: σ of a cell of each column.
        zeros: cells that are 0 for certain.
    """
    sums: list[Floats | float] = [0.0] * len(noises)
    weights = [0.0] * len(noises)
    certain = [np.ones(1, dtype=bool)] * len(noises)
    for (i, j, counts), weight in zip(blocks, squared_weights, strict=True):
        forbidden = np.broadcast_to(zeros.of(i, j), counts.shape)
        for column, axis in ((i, 2), (j, 1)):
            share = weight / counts.shape[axis]
            sums[column] = sums[column] + counts.sum(axis=axis) * share
            weights[column] += share
            certain[column] = certain[column] & forbidden.all(axis=axis)
    released = [np.asarray(total) / weight for total, weight in zip(sums, weights, strict=True)]
    hidden = [
        (counts < _HIDDEN * noise) & ~never for counts, noise, never in zip(released, noises, certain, strict=True)
    ]
    means = [
        np.where(rare, posterior_mean(counts, noise), counts)
        for rare, counts, noise in zip(hidden, released, noises, strict=True)
    ]
    more = [after - before for after, before in zip(means, released, strict=True)]
    moved = [
        (i, j, counts + more[i][:, :, None] / counts.shape[2] + more[j][:, None, :] / counts.shape[1])
        for i, j, counts in blocks
    ]
    return zeros.emptied(moved), RareCells(tuple(means), tuple(hidden), tuple(noises))


def posterior_mean(counts: Floats, noise: float) -> Floats:
    """Of counts with Gaussian noise, under a prior uniform in their logarithm."""
    logs = -np.square(counts[..., None] / noise - _PRIOR) / 2
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    means: Floats = noise * (weights @ _PRIOR) / weights.sum(axis=-1)
    return means
