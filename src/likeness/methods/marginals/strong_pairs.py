r"""Strong pairs regain the dependence that the penalty took: targets for a second fit, from released numbers alone.

A penalty makes a fit weaker than the release in every pair. In a pair that stands out of its noise the release says by
how much. With m the counts of the fitted mixture, e those of independent columns with its single columns, and r the
released ones, the slope of the release on the fit is

.. math:: \gamma = \frac{\sum (r - e) (m - e)}{\sum (m - e)^2}

It is one number for many cells, so it has little noise: its variance is :math:`v / \sum (m - e)^2` for v of a cell.
Where it is above 1, the target is :math:`e + \gamma (m - e)`. It has the release's strength and the smooth form of the
fit. It weighs more than noisy counts, because it hardly has their noise. The refit of a selected model undoes the
shrinking of its selection in this way (Meinshausen 2007).

A pair stands out if its squared distance to e, without the single columns, is far above what noise adds.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.blocks import Block

_CLEARLY = 3  # standard deviations of the noise's squared length
_MOST = 2.5  # times: a fit that sees less than that of a pair has another form


def strengthened(
    blocks: Sequence[Block],
    squared_weights: Sequence[float],
    fitted: Iterable[NDArray[np.float64]],
    noise_std: float,
    gain: float,
) -> tuple[list[Block], list[float]]:
    """Blocks and squared weights of a second fit: targets for pairs that stand out, the release for others.

    Args:
        blocks: (i, j, noisy counts of shape (num_classes, cells of i, cells of j)).
        squared_weights: of each block.
        fitted: counts of each block in the fitted mixture.
        noise_std: of a count of weight 1.
        gain: how much more a target weighs than noisy counts.
    """
    targets, weights = [], []
    for (i, j, counts), weight, model in zip(blocks, squared_weights, fitted, strict=True):
        strength = _strength(counts, model, noise_std**2 / weight)
        if strength > 1:
            apart = _apart(model)
            raised = np.maximum(apart + strength * (model - apart), 0)
            counts = raised * (model.sum(axis=(1, 2)) / raised.sum(axis=(1, 2)))[:, None, None]
        targets.append((i, j, counts))
        weights.append(weight * gain if strength > 1 else weight)
    return targets, weights


def _strength(counts: NDArray[np.float64], model: NDArray[np.float64], variance: float) -> float:
    """The slope of the release on the fit; 1 where the pair does not stand out of noise of this variance."""
    apart = _apart(model)
    released, dependence = _interactions(counts - apart), model - apart
    free = len(counts) * (counts.shape[1] - 1) * (counts.shape[2] - 1)
    least = variance * (free + _CLEARLY * math.sqrt(2 * free))
    if np.square(released).sum() <= least or not dependence.any():
        return 1.0
    return min(_MOST, float((released * dependence).sum() / np.square(dependence).sum()))


def _apart(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts of independent columns with these single columns, by class."""
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    product: NDArray[np.float64] = rows * columns / counts.sum(axis=(1, 2), keepdims=True)
    return product


def _interactions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts without their means along either column."""
    centred = counts - counts.mean(axis=2, keepdims=True)
    result: NDArray[np.float64] = centred - centred.mean(axis=1, keepdims=True)
    return result
