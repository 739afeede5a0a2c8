"""Products of one bounded feature of each of two columns, for all pairs of columns, as one mean embedding."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part, lattice_bits
from likeness.core.errors import ReleaseError
from likeness.features.base import Map, blocks_of
from likeness.features.cells import Cells, cells_of


@dataclass(frozen=True)
class PairProducts(Map):
    r"""The product of two columns' features, for all pairs of m columns: :math:`(f_i(x) \otimes f_j(x))_{i < j}`.

    The feature of a column is a multiple of a unit vector: :math:`f_i(x) = s_i(c)\, e_{k_i(c)}` with c the cell of
    column i. So an ordered column may have one coordinate, such as a rank, and one for missing; a column of categories
    has one for each of them.

    Bound: :math:`|s_i(c)| \le 1`, so :math:`\|f_i(x)\| \le 1` and every product has norm at most 1. With P pairs,
    :math:`\|\phi(x)\|^2 \le P`, reached where all scores are 1 or −1. This is :math:`\Delta^2` where a record is added
    or removed. Where one is replaced, a product moves by at most 2, and by at most :math:`\sqrt 2` where nothing of its
    two columns is negative. A person with k rows moves the sum by k times as much. The door multiplies integers of both
    columns, and makes the squared norm of the product obey the bound on its lattice, so rounding adds nothing.

    Source: moments of pairs under one Gaussian, Dwork, Talwar, Thakurta and Zhang (2014).

    Attributes:
        columns: cells of each column, at least two columns.
        slots: of each column, k of each cell; every slot below the largest is used.
        scores: of each column, s of each cell, within −1 and 1.

    Raises:
        ReleaseError: they do not fit each other.
    """

    name: ClassVar[str] = "pair_products"
    takes_tensors: ClassVar[bool] = False
    columns: tuple[Cells, ...]
    slots: tuple[tuple[int, ...], ...]
    scores: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        columns = cells_of(self.columns, self.name)
        object.__setattr__(self, "columns", columns)
        for key in ("slots", "scores"):
            try:
                object.__setattr__(self, key, tuple(tuple(numbers) for numbers in getattr(self, key)))
            except TypeError:
                raise ReleaseError(f"{self.name}: {key} are lists of numbers") from None
        fit = len(columns) == len(self.slots) == len(self.scores) > 1 and all(
            len(slots) == len(scores) == cells.size
            and all(type(slot) is int for slot in slots)
            and max(slots) < len(slots)
            and {*slots} == {*range(max(slots) + 1)}
            and all(type(score) is float and -1 <= score <= 1 for score in scores)
            for cells, slots, scores in zip(columns, self.slots, self.scores, strict=False)
        )
        if not fit:
            raise ReleaseError(
                f"{self.name} needs two columns or more. Each of their cells has a slot, and a score within -1 and 1"
            )

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of both columns of each part."""
        return tuple(combinations(range(len(self.columns)), 2))

    @cached_property
    def column_sizes(self) -> tuple[int, ...]:
        """Slots of each column."""
        return tuple(max(slots) + 1 for slots in self.slots)

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part a pair."""
        kinds = [*zip(self.column_sizes, (min(scores) < 0 for scores in self.scores), strict=True)]
        parts = {
            (first, second): Part(first[0] * second[0], 1, nonnegative=not (first[1] or second[1]))
            for first, second in product({*kinds}, repeat=2)
        }
        return tuple(parts[pair] for pair in combinations(kinds, 2))

    @cached_property
    def features(self) -> tuple[NDArray[np.float64], ...]:
        """The feature of each cell of each column, shapes (cells, slots)."""
        features = []
        for slots, scores, size in zip(self.slots, self.scores, self.column_sizes, strict=True):
            feature = np.zeros((len(slots), size))
            feature[np.arange(len(slots)), slots] = scores
            features.append(feature)
        return tuple(features)

    def paired_features(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
        """No coordinates before the products, and the features of each column, shapes (n, slots)."""
        features = (feature[cells.cell_indices(x)] for cells, feature in zip(self.columns, self.features, strict=True))
        return np.zeros((len(x), 0)), tuple(features)

    @property
    def counted_tables(self) -> tuple[tuple[Cells, Cells], ...]:
        """The two columns of each part."""
        return tuple((self.columns[i], self.columns[j]) for i, j in self.pairs)

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """All products side by side, shape (n, width)."""
        _, features = self.paired_features(x)
        blocks = [features[i][:, :, None] * features[j][:, None, :] for i, j in self.pairs]
        return np.concatenate(
            [block.reshape(len(x), part.width) for block, part in zip(blocks, self.bounded_parts, strict=True)],
            axis=1,
        )

    def contents(self) -> list[NDArray[np.float64]]:
        """The feature of each cell of each column as the door sums it, in whole steps, shapes (cells, slots)."""
        steps = math.sqrt(2.0 ** lattice_bits(self.bounded_parts))
        longest = math.floor(steps)
        return [np.clip(np.rint(feature * steps), -longest, longest) / steps for feature in self.features]

    def expected_means(self, table: Callable[[tuple[Cells, ...]], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Mean of the map in each class, shape (num_classes, width).

        Args:
            table: probability of each cell of some columns in each class, shape (num_classes, cells of each column).
        """
        contents = self.contents()
        blocks = [contents[i].T @ table((self.columns[i], self.columns[j])) @ contents[j] for i, j in self.pairs]
        return np.concatenate([block.reshape(len(block), -1) for block in blocks], axis=1)

    def blocks(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The sums of each pair, shapes (slots of i, slots of j), from released sums (1, width)."""
        parts = zip(combinations(self.column_sizes, 2), blocks_of(self.bounded_parts, values), strict=True)
        return [block.reshape(shape) for shape, (_, block) in parts]


Floats = NDArray[np.float64]
_TRUST = 20.0  # precision of products without their noise, over that of noisy ones
_FEW = 4  # numbers of a block of ranks, missing values among them
_ROUNDS = 30
_STILL = 1e-4  # change of an entry at which the directions stand still


def denoise_products(
    blocks: Sequence[Floats],
    pairs: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    noise: float,
    cells_too: Collection[tuple[int, int]] = (),
) -> tuple[Floats, Floats, Floats]:
    r"""Centred products of all pairs: noisy, without what noise alone would add, and the precision of the latter.

    The precision is over that of noisy ones. All have the shape (all slots, all slots). Categories of a pair whose
    cells are released, too, stay as they came: their cells say as much, and what is left out here would be lost there.

    Noise of standard deviation s in each entry of a symmetric matrix of K rows has eigenvalues up to
    :math:`2 s \sqrt K` (Wigner). Those beyond are kept as :math:`\pm \sqrt{\lambda^2 - 4 s^2 K}`, the shrinkage of
    least error (Shabalin and Nobel 2013). Blocks of a column with itself are filled by the result, in rounds. What is
    left of a block is kept, by James and Stein's factor, where its squares stand out as in
    :meth:`likeness.methods.marginals.release_state.ReleaseState.strengths`. The rest is 0: independence.

    Args:
        blocks: of each pair, shapes (slots of i, slots of j).
        pairs: indices of both columns.
        sizes: slots of each column.
        noise: s; 0 keeps all.
        cells_too: pairs whose cells are released.
    """
    ends = np.cumsum(sizes)
    slices = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    noisy = np.zeros((ends[-1], ends[-1]))
    for (i, j), block in zip(pairs, blocks, strict=True):
        noisy[slices[i], slices[j]], noisy[slices[j], slices[i]] = block, block.T
    trust = np.full_like(noisy, _TRUST if noise else 1)
    for i, j in ((i, j) for i, j in cells_too if sizes[i] * sizes[j] > _FEW):
        trust[slices[i], slices[j]] = trust[slices[j], slices[i]] = 1
    if noise == 0:
        return noisy, noisy, trust
    shared = _low_rank_part(noisy, slices, 2 * noise * math.sqrt(len(noisy)))
    result = shared.copy()
    log = math.log(max(len(pairs), 2))
    for (i, j), block in zip(pairs, blocks, strict=True):
        left, free = block - shared[slices[i], slices[j]], block.size
        squares = float(np.square(left).sum()) / noise**2
        if squares > free + 2 * math.sqrt(free * log) + 2 * log:
            shrunk = (1 - free / squares) * left
            result[slices[i], slices[j]] += shrunk
            result[slices[j], slices[i]] += shrunk.T
    return noisy, np.where(trust == 1, noisy, result), trust


def _low_rank_part(noisy: Floats, slices: Sequence[slice], edge: float) -> Floats:
    """The low-rank part: directions beyond the edge, with what they say about blocks of a column with itself."""
    filled = noisy.copy()
    low = np.zeros_like(noisy)
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(filled)
        shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0))
        before, low = low, (vectors * shrunk) @ vectors.T
        if np.abs(low - before).max() < _STILL:
            break
        for block in slices:
            filled[block, block] = low[block, block]
    return low
