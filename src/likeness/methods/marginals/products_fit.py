"""What products of pairs say beyond their noise: few directions that all columns share, and blocks that stand alone."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TRUST = 20.0  # precision of products without their noise, over that of noisy ones
_FEW = 4  # numbers of a block of ranks, missing values among them
_ROUNDS = 30
_STILL = 1e-4  # change of an entry at which the directions stand still


def denoised(
    blocks: Sequence[Floats],
    pairs: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    noise: float,
    cells_too: Collection[tuple[int, int]] = (),
) -> tuple[Floats, Floats]:
    r"""Centred products of all pairs without what noise alone would add, and their precision over that of noisy ones.

    Both have the shape (all slots, all slots). Categories of a pair whose cells are released, too, stay as they came:
    their cells say as much, and what is left out here would be lost there.

    Noise of standard deviation s in each entry of a symmetric matrix of K rows has eigenvalues up to
    :math:`2 s \sqrt K` (Wigner). Those beyond are kept as :math:`\pm \sqrt{\lambda^2 - 4 s^2 K}`, the shrinkage of
    least error (Shabalin and Nobel 2013). Blocks of a column with itself are filled by the result, in rounds. What is
    left of a block is kept, by James and Stein's factor, where its squares stand out as in
    :meth:`likeness.methods.marginals.knowledge.Knowledge.strengths`. The rest is 0: independence.

    Args:
        blocks: of each pair, shapes (slots of i, slots of j).
        pairs: places of both columns.
        sizes: slots of each column.
        noise: s; 0 keeps all.
        cells_too: pairs whose cells are released.
    """
    ends = np.cumsum(sizes)
    places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    noisy = np.zeros((ends[-1], ends[-1]))
    for (i, j), block in zip(pairs, blocks, strict=True):
        noisy[places[i], places[j]], noisy[places[j], places[i]] = block, block.T
    trust = np.full_like(noisy, _TRUST if noise else 1)
    for i, j in ((i, j) for i, j in cells_too if sizes[i] * sizes[j] > _FEW):
        trust[places[i], places[j]] = trust[places[j], places[i]] = 1
    if noise == 0:
        return noisy, trust
    shared = _shared(noisy, places, 2 * noise * math.sqrt(len(noisy)))
    result = shared.copy()
    log = math.log(max(len(pairs), 2))
    for (i, j), block in zip(pairs, blocks, strict=True):
        left, free = block - shared[places[i], places[j]], block.size
        squares = float(np.square(left).sum()) / noise**2
        if squares > free + 2 * math.sqrt(free * log) + 2 * log:
            kept = (1 - free / squares) * left
            result[places[i], places[j]] += kept
            result[places[j], places[i]] += kept.T
    return np.where(trust == 1, noisy, result), trust


def _shared(noisy: Floats, places: Sequence[slice], edge: float) -> Floats:
    """The low-rank part: directions beyond the edge, with what they say about blocks of a column with itself."""
    filled = noisy.copy()
    low = np.zeros_like(noisy)
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(filled)
        shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0))
        before, low = low, (vectors * shrunk) @ vectors.T
        if np.abs(low - before).max() < _STILL:
            break
        for place in places:
            filled[place, place] = low[place, place]
    return low
