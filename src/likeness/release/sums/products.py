"""Exact integer sums of products of vectors, by matrix products of their integer factors."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OuterMap, PairedMap, ProductsMap, evaluate
from likeness.features.cells import placed_columns
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.clipping import BLOCK, blocks, outer_lattice, pad_inputs, paired_lattice, to_lattice
from likeness.release.sums.counts import count_tables

_FACTORS_AT_ONCE = 1 << 22  # coordinates of factors evaluated at once, of which several copies are held
_MOST_BLOCKS = 4  # of an outer map: their squared norms then sum to less than 2**63
_WIDE = 8  # features of a column, on average, from which on sparse rows are faster
_FAST_MEMORY, _FEWEST_ROWS = 1 << 18, 1 << 11  # numbers of a block of rows that the cells decide, and its rows
_FEW_COLUMNS, _MOST_CELLS = 32, 1 << 20  # up to which counts of the cells of all pairs take less time
_EXACT = 1 << 53  # float64 holds all integers up to here
_Block = tuple[np.ndarray, np.ndarray, np.ndarray]


def outer_sum(query: Query, feature: OuterMap, records: Iterable[Records]) -> np.ndarray:
    """The sum of a map made of outer products, as products of integer matrices.

    A contribution's lattice vector is made of the products ``left[i] · right[j]`` of its integer factors; nothing is
    rounded after that. :func:`outer_lattice` makes the squared norm of this vector, an integer too, obey the part's
    bound. The sum over contributions is then a matrix product a class, and it is exact in float64 (:class:`_ExactSum`).
    The whole vector of a contribution is never made.
    """
    sizes = feature.sizes
    if len(query.bounded_parts) != 1 or query.bounded_parts[0].nonnegative or len(sizes) > _MOST_BLOCKS:
        raise ReleaseError(f"{query.name}: an outer map must have one signed part of at most {_MOST_BLOCKS} blocks")
    if sum(left * right for left, right in sizes) != query.width:
        raise ReleaseError(f"{query.name}: the feature map must return the width that it declares")
    bound_squared = query.bounded_parts[0].lattice_bound_squared(query.lattice_bits)
    rows = min(BLOCK, max(1, _FACTORS_AT_ONCE // sum(left + right for left, right in sizes)))
    exact = _ExactSum((query.num_groups, query.width), bound_squared)
    for chunk in blocks(query, records, rows):
        held = exact.room_for(len(chunk.x))
        lattice = outer_lattice(_factors(query, feature, np.asarray(chunk.x), rows), bound_squared, query.lattice_bits)
        for group in range(query.num_groups):
            members = chunk.labels == group
            start = 0
            for left, right in lattice:
                stop = start + left.shape[1] * right.shape[1]
                _add_product(held[group, start:stop].reshape(left.shape[1], -1), left[members], right[members])
                start = stop
    return exact.total()


def paired_sum(query: Query, feature: PairedMap, records: Iterable[Records]) -> np.ndarray:
    """The sum of a map whose last parts are products of two columns, by one product of an integer matrix with itself.

    The parts before them are clipped as any vector is. A product's lattice vector is made of products of both columns'
    integers, and :func:`~likeness.release.sums.clipping.paired_lattice` makes its squared norm obey the part's bound.
    The sum over contributions of all products at once is then a matrix product a class, and it is exact in float64
    (:class:`_ExactSum`). The whole vector of a contribution is never made. Where features are those of few columns'
    cells, counts of the cells of all pairs give the same integers in less time (:func:`products_of_cells`).
    """
    pairs, sizes = feature.pairs, feature.column_sizes
    if any(not 0 <= index < len(sizes) for pair in pairs for index in pair):
        raise ReleaseError(f"{query.name}: a product must name two columns of the map")
    head, products = query.bounded_parts[: -len(pairs)], query.bounded_parts[-len(pairs) :]
    bounds = {part.lattice_bound_squared(query.lattice_bits) for part in products}
    if len(bounds) != 1 or [part.width for part in products] != [sizes[i] * sizes[j] for i, j in pairs]:
        raise ReleaseError(f"{query.name}: products of pairs must have one bound and the widths of their columns")
    if isinstance(feature, ProductsMap) and not query.is_per_person and len(sizes) <= _FEW_COLUMNS:
        axes = [(feature.columns[i], feature.columns[j]) for i, j in pairs]
        widths = [first.size * second.size for first, second in axes]
        if query.num_groups * sum(widths) <= _MOST_CELLS:
            return products_of_cells(query, feature, count_tables(query, axes, [1] * len(axes), records))
    columns = sum(sizes)
    plain = np.zeros((query.num_groups, sum(part.width for part in head)), dtype=np.int64)
    exact = _ExactSum((query.num_groups, columns, columns), max(bounds))
    of_cells = isinstance(feature, ProductsMap)
    for labels, clipped, lattice in (_blocks_of_cells if of_cells else _blocks_of_features)(query, feature, records):
        held = exact.room_for(len(labels))
        for group in range(query.num_groups):
            members = labels == group
            plain[group] += clipped[members].sum(axis=0)
            chosen = lattice if members.all() else lattice[members]
            _add_product(held[group], chosen, chosen)
    joint, ends = exact.total(), np.cumsum(sizes).tolist()
    spans = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    blocks_of_pairs = [joint[:, spans[i], spans[j]].reshape(query.num_groups, -1) for i, j in pairs]
    return np.concatenate([plain, *blocks_of_pairs], axis=1)


def _blocks_of_features(query: Query, feature: PairedMap, records: Iterable[Records]) -> Iterator[_Block]:
    """Labels of rows, integers of the parts before the products, and those of all columns."""
    count, sizes, bits = len(feature.pairs), feature.column_sizes, query.lattice_bits
    head, products = query.bounded_parts[:-count], query.bounded_parts[-count:]
    widths, signs = (sum(part.width for part in head), *sizes), _signs(products, feature)
    rows = min(BLOCK, max(1, _FACTORS_AT_ONCE // sum(widths)))
    for chunk in blocks(query, records, rows):
        first, *others = _pair_features(query, feature, np.asarray(chunk.x), rows, widths)
        lattice = paired_lattice(others, signs, products[0].lattice_bound_squared(bits))
        yield chunk.labels, to_lattice(first, head, bits), lattice


def _blocks_of_cells(query: Query, feature: Any, records: Iterable[Records]) -> Iterator[_Block]:
    """Labels of rows, no parts before the products, and integers that the cells of columns decide.

    A row has few integers that are not 0, so that rows of wide columns are sparse matrices.
    """
    steps, size = sparse.block_diag(_steps_of_cells(query, feature), "csr"), sum(feature.column_sizes)
    starts = np.cumsum([0, *(column.size for column in feature.columns[:-1])])
    for chunk in blocks(query, records, max(_FEWEST_ROWS, _FAST_MEMORY // size)):
        cells = np.stack(placed_columns(feature.columns, chunk.x), axis=1) + starts
        ends = np.arange(0, cells.size + 1, len(starts))
        lattice = sparse.csr_matrix((np.ones(cells.size), cells.ravel(), ends), (len(cells), steps.shape[0])) @ steps
        dense = size <= _WIDE * len(starts)
        yield chunk.labels, np.zeros((len(cells), 0), dtype=np.int64), lattice.toarray() if dense else lattice


def _signs(products: Sequence[Part], feature: PairedMap) -> list[bool]:
    """Tell for each column of a map whether it has no negative feature."""
    pairs = zip(products, feature.pairs, strict=True)
    nonnegative = {index for part, pair in pairs if part.nonnegative for index in pair}
    return [index in nonnegative for index in range(len(feature.column_sizes))]


def products_of_cells(query: Query, feature: ProductsMap, counts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of products of two columns' features that depend on the cells of the columns alone, from counts.

    :func:`~likeness.release.sums.clipping.paired_lattice` makes integers of each feature by itself. So a record in
    cells a and b of two columns adds the product of the integers of a and of b, and a pair's sum is that of these
    products times the records in a and b: a product of integer matrices. It fits an int64, as the sum over records
    does.

    Args:
        query: the query.
        feature: its map.
        counts: of each pair, shape (num_groups, cells of the first column · cells of the second).

    Raises:
        ReleaseError: a column has features of another shape than its cells and its size, or the parts differ.
    """
    steps = [step.astype(np.int64) for step in _steps_of_cells(query, feature)]
    sums = [
        steps[i].T @ count.reshape(-1, len(steps[i]), len(steps[j])) @ steps[j]
        for (i, j), count in zip(feature.pairs, counts, strict=True)
    ]
    return np.concatenate([matrix.reshape(query.num_groups, -1) for matrix in sums], axis=1)


def _steps_of_cells(query: Query, feature: ProductsMap) -> list[np.ndarray]:
    """The integers of each cell's feature, shapes (cells, size of the column), as float64.

    Raises:
        ReleaseError: a column has features of another shape than its cells and its size, or the parts differ.
    """
    shapes = [(cells.size, size) for cells, size in zip(feature.columns, feature.column_sizes, strict=True)]
    bounds = {part.lattice_bound_squared(query.lattice_bits) for part in query.bounded_parts}
    if (
        [matrix.shape for matrix in feature.features] != shapes
        or len(query.bounded_parts) != len(feature.pairs)
        or len(bounds) != 1
    ):
        raise ReleaseError(f"{query.name}: the feature map must return the columns that it declares")
    (bound_squared,), signs = bounds, _signs(query.bounded_parts, feature)
    return [
        paired_lattice([matrix], [sign], bound_squared) for matrix, sign in zip(feature.features, signs, strict=True)
    ]


class _ExactSum:
    """A sum of products of integers in float64 without an error: it moves to int64 before an error could occur.

    The integers are those of vectors whose outer products have a squared norm of at most a bound. So no product of two
    entries is larger than its root. At most as many rows are added up as keep all partial sums, in any order, below
    2**53.
    """

    def __init__(self, shape: tuple[int, ...], bound_squared: int) -> None:
        self._most_rows = _EXACT // (math.isqrt(bound_squared) + 1)
        self._held, self._rows = np.zeros(shape), 0
        self._total = np.zeros(shape, dtype=np.int64)

    def room_for(self, rows: int) -> np.ndarray:
        """The sum to which the products of ``rows`` more rows may be added."""
        if self._rows + rows > self._most_rows:
            self._move()
        self._rows += rows
        return self._held

    def total(self) -> np.ndarray:
        """The sum of all rows."""
        self._move()
        return self._total

    def _move(self) -> None:
        self._total += self._held.astype(np.int64)
        self._held.fill(0)
        self._rows = 0


def _add_product(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Add leftᵀ right to a matrix, in place: a matrix product that makes no other of its size.

    BLAS stores columns one after the other, so it sees each array here as its transpose.
    """
    if sparse.issparse(left):
        total += (left.T @ right).toarray()
    elif len(left):
        scipy.linalg.blas.dgemm(1.0, right.T, left.T, beta=1.0, c=total.T, trans_b=True, overwrite_c=True)


def _pair_features(
    query: Query, feature: PairedMap, x: np.ndarray, rows: int, widths: tuple[int, ...]
) -> list[np.ndarray]:
    """Plain coordinates and columns' features of one block, evaluated with rows of zeros up to ``rows``."""
    first, columns = evaluate(feature, feature.paired_features, pad_inputs(x, rows))
    features = [first, *columns]
    if [block.shape for block in features] != [(rows, width) for width in widths]:
        raise ReleaseError(f"{query.name}: the feature map must return the columns that it declares")
    return [block[: len(x)] for block in features]


def _factors(query: Query, feature: OuterMap, x: np.ndarray, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Factors of one block, padded to ``rows`` rows."""
    factors = evaluate(feature, feature.factors, pad_inputs(x, rows))
    if [(left.shape, right.shape) for left, right in factors] != [((rows, a), (rows, b)) for a, b in feature.sizes]:
        raise ReleaseError(f"{query.name}: the feature map must return the factors that it declares")
    return [(left[: len(x)], right[: len(x)]) for left, right in factors]
