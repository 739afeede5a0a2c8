"""Distance between released statistics and those of a mixture of products, with its gradient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.structural_zeros import StructuralZeros

Float32 = NDArray[np.float32]
Floats = NDArray[np.float64]
_Halves = tuple[tuple[int, ...], tuple[int, ...]]
_Halved = tuple[_Halves, tuple[int, ...], NDArray[np.float64], float]  # halves, columns, counts, squared weight
_BELIEF = 0.7  # how the penalty goes with one over the noise
_SMALLEST = 1e-4  # a cell that the noise emptied is rare, not impossible
_TINY = np.finfo(np.float32).tiny
_CERTAIN = 100  # precision of a count that is 0 for certain, over that of a noisy one
_LITTLE = 0.05  # information of a column, over the mean, below which its price rises no further
_ADAPTIVE = 0.5  # power by which a price falls with the information of a column


@dataclass(frozen=True)
class Measurement:
    """The facts that all counts have in common.

    Attributes:
        sizes: cells of each column.
        class_weights: shape (num_classes,), sum 1.
        records: number of records.
        noise_std: of a count of weight 1; 0 without noise.
        information: μ of :class:`MarginalObjective`.
    """

    sizes: Sequence[int]
    class_weights: Floats
    records: float
    noise_std: float
    information: float

    @property
    def scale(self) -> float:
        """Noise of a share of weight 1; without noise that of one record, which keeps the loss at its usual size."""
        return max(self.noise_std, 1.0) / self.records


class CountedTable(NamedTuple):
    """Noisy counts of the cells of several columns.

    Attributes:
        columns: their indexes.
        counts: shape (num_classes, cells of each of them).
        squared_weight: variance of a count of weight 1, over that of these counts.
    """

    columns: tuple[int, ...]
    counts: Floats
    squared_weight: float


@dataclass(frozen=True)
class Products:
    """Products of features of pairs of columns, of all classes together.

    Attributes:
        contents: centred feature of each cell of each column, shapes (cells, slots).
        targets: mean products without those of independent columns, shape (all slots, all slots), symmetric.
        precision: one over the variance of each target, of its shape.
        noisy: the mean products as they were released, of the same shape.
        noise: their standard deviation.
    """

    contents: Sequence[Floats]
    targets: Floats
    precision: Floats
    noisy: Floats
    noise: float


@dataclass(frozen=True)
class Singles:
    """Single columns.

    Attributes:
        shares: of all cells, side by side, shape (W,).
        noises: standard deviation of each share.
        by_class: shares by class, shape (num_classes, W), sum 1 over classes and the cells of a column; None without.
        precision: one over the variance of a share by class.
    """

    shares: Floats
    noises: Floats
    by_class: Floats | None = None
    precision: float = 0.0

    def conditional_shares(self, sizes: Sequence[int], class_weights: Floats) -> Floats:
        """Shares within each class, shape (num_classes, W), of columns with these cells.

        A column differs between classes by what its shares by class show beyond their noise (James and Stein).
        """
        apart = 0.0 if self.by_class is None else self.by_class - class_weights[:, None] * self.shares
        starts = np.cumsum([0, *sizes[:-1]])
        squares = np.add.reduceat(np.square(apart * np.ones_like(self.shares)), starts, axis=-1) * self.precision
        parts = np.maximum(1 - np.array(sizes) / np.maximum(squares, _TINY), 0)
        shares = np.maximum(class_weights[:, None] * self.shares + np.repeat(parts, sizes, axis=-1) * apart, 0)
        totals = np.repeat(np.add.reduceat(shares, starts, axis=1), sizes, axis=1)
        return np.where(totals > 0, shares / np.maximum(totals, _TINY), self.shares)


class MarginalObjective:
    r"""Negative log-likelihood of all releases, and a KL penalty on what components say about columns.

    .. math:: W \, L(\theta) = \sum_{y} \sum_{(i, j) \in P} \frac{w_{ij}}{2 s^2}
        \left\| \hat p_{y,ij} - \pi_y \sum_k \pi_{k \mid y}\, p_{ki}\, p_{kj}^\top \right\|^2
        + \frac{1}{2 s_p^2} \sum_{i < j}
        \left\| \hat g_{ij} - \sum_k \pi_k\, F_i^\top p_{ki}\, p_{kj}^\top F_j \right\|^2
        + \dots + c\, (n \mu)^{0.7} \sum_y \pi_y \sum_k \pi_{k \mid y} \sum_i v_i\, \mathrm{KL}(p_{ki} \,\|\, q_{yi})

    with P the pairs whose cells are released, :math:`\hat p` the released counts over n, :math:`\hat g` the products of
    features F of all pairs, π_y the class weights, q the single columns in each class, and W cells. The dots stand for
    single columns, of all records and by class. The penalty is the information, in nats, that components give about the
    columns of a class. It keeps columns independent unless the release says otherwise: a free mixture fits noise too.
    μ² is the sum over releases of squared norm over variance: what all of them say about one record. Less noise weakens
    the penalty, with the power 0.7 that was best on public look-alikes at ε from 0.2 to 10.

    One c shrinks strong columns most, because it costs them most. :meth:`adapt` gives each column a price v of its own:
    one over the root of the information about it, with a geometric mean of 1. It is the adaptive lasso (Zou 2006) for
    information.

    The gradient is written out: a class takes two matrix products of the cells, where automatic differentiation takes
    three.
    """

    def __init__(
        self,
        measurement: Measurement,
        pairs: Sequence[CountedTable],
        singles: Singles,
        kl_penalty: float,
        products: Products | None = None,
        tables: Sequence[CountedTable] = (),
        zeros: StructuralZeros | None = None,
    ) -> None:
        """Lay all releases out as matrices.

        Args:
            measurement: what all counts have in common.
            pairs: counts of pairs of columns, each pair once.
            singles: single columns.
            kl_penalty: c.
            products: of pairs of columns; None without.
            tables: of several columns.
            zeros: cells that are 0 for certain, in classes where they are 0 in all.
        """
        sizes, total = measurement.sizes, sum(measurement.sizes)
        expected = singles.conditional_shares(sizes, measurement.class_weights)
        most_pairs = 2 * len(pairs) >= math.comb(len(sizes), 2)  # then one product over all cells is the fastest
        self._class_weights = measurement.class_weights.astype(np.float32)
        self._columns = _Columns(sizes)
        self._pairs = _AllResiduals(pairs, measurement, zeros) if most_pairs else None
        self._tables = _table_residuals([*tables, *(() if most_pairs else pairs)], measurement)
        self._size_of_cells = sum(counts.size for _, counts, _ in [*pairs, *tables])
        self._products = None if products is None else _ProductResiduals(products, sizes, 1 / (2 * total))
        self._singles = _SingleResiduals(singles, 1 / (2 * total))
        information = measurement.records * measurement.information if measurement.information else 0.0
        self._penalty = kl_penalty * information**_BELIEF / total
        self._log_expected = np.log(expected + _SMALLEST).astype(np.float32)
        self._adaptive = _ADAPTIVE
        self._prices = np.ones(total, dtype=np.float32)

    def loss(self, logits: Float32, weights: Float32) -> tuple[float, Float32, Float32]:
        """Loss of a product mixture and its gradient.

        Args:
            logits: of cells in components, shape (K, W).
            weights: logits of components by class, shape (num_classes, K).

        Returns:
            the loss, and its gradients in both arguments, of their shapes.
        """
        cells = self._columns.softmax(logits)
        components = _softmax(weights)
        loss, d_cells, d_components = self._kl(cells, components)
        shares = self._class_weights[:, None] * components
        d_shares = np.zeros_like(shares)
        for residuals in (self._pairs, self._products, self._singles):
            if residuals is not None:
                loss += residuals.add_squares(cells, shares, d_cells, d_shares)
        if self._tables:
            parts, d_parts = self._columns.split(cells), self._columns.split(d_cells)
            loss += sum(table.add_squares(parts, shares, d_parts, d_shares) for table in self._tables)
        d_components += self._class_weights[:, None] * d_shares
        slope = components * (d_components - (components * d_components).sum(axis=1, keepdims=True))
        return loss, self._columns.softmax_slope(cells, d_cells), slope

    def misfits(self, logits: Float32, weights: Float32) -> dict[str, tuple[float, float]]:
        """Half the squares of what was released, in units of its noise, and what noise alone makes of them in the mean.

        Arguments are those of :meth:`loss`. The groups are single columns, products, and cells of pairs and of tables.
        """
        cells, total = self._columns.softmax(logits), logits.shape[1]
        shares = self._class_weights[:, None] * _softmax(weights)
        unused = np.zeros_like(cells), np.zeros_like(shares)
        groups = {"single columns": (total * self._singles.add_squares(cells, shares, *unused), self._singles.size / 2)}
        if self._products is not None:
            groups["products"] = self._products.misfit(cells, shares)
        if self._size_of_cells:
            squares = 0.0 if self._pairs is None else self._pairs.add_squares(cells, shares, *unused)
            parts = self._columns.split(cells)
            slopes = self._columns.split(unused[0])
            squares += sum(table.add_squares(parts, shares, slopes, unused[1]) for table in self._tables)
            groups["cells"] = total * squares, self._size_of_cells / 2
        return groups

    def adapt(self, logits: Float32, weights: Float32) -> None:
        """Give each column a price for its information in a mixture, once; see :meth:`loss` for the arguments."""
        power, self._adaptive = self._adaptive, 0.0
        if not power:
            return
        cells, shares = self._columns.softmax(logits), self._class_weights[:, None] * _softmax(weights)
        nats = shares.sum(axis=0) @ (cells * np.log(np.maximum(cells, _TINY)))
        nats -= (shares @ cells * self._log_expected).sum(axis=0)
        self._prices = self._columns.prices(nats, power)

    def _kl(self, cells: Float32, components: Float32) -> tuple[float, Float32, Float32]:
        """The penalty and its slopes in probabilities of cells and of components."""
        log_cells = np.log(np.maximum(cells, _TINY))
        weighted = self._penalty * self._class_weights[:, None] * components
        log_expected = self._prices * self._log_expected
        nats = (cells * log_cells) @ self._prices - log_expected @ cells.T
        d_cells = weighted.sum(axis=0)[:, None] * (self._prices * (log_cells + 1)) - weighted.T @ log_expected
        d_components: Any = self._penalty * self._class_weights[:, None] * nats
        return float(np.vdot(weighted, nats)), d_cells, d_components


class _SingleResiduals:
    """Weighed squares of shares of cells of single columns, of all classes together and by class."""

    def __init__(self, singles: Singles, scale: float) -> None:
        self._target = singles.shares.astype(np.float32)
        self._precision = (scale / np.square(singles.noises)).astype(np.float32)
        self._by_class = None if singles.by_class is None else singles.by_class.astype(np.float32)
        self._by_class_precision = scale * singles.precision
        self.size = self._target.size * (1 if singles.by_class is None else 1 + len(singles.by_class))

    def add_squares(self, cells: Float32, shares: Float32, d_cells: Float32, d_shares: Float32) -> float:
        """Their sum; adds its slopes. Arguments are those of :meth:`_AllResiduals.add_squares`."""
        whole = shares.sum(axis=0)
        residuals = whole @ cells - self._target
        slope = 2 * self._precision * residuals
        loss = float(np.vdot(residuals, slope)) / 2
        d_shares += cells @ slope
        d_cells += whole[:, None] * slope
        if self._by_class is not None:
            apart = shares @ cells - self._by_class
            loss += self._by_class_precision * float(np.vdot(apart, apart))
            apart *= 2 * self._by_class_precision
            d_shares += apart @ cells.T
            d_cells += shares.T @ apart
        return loss


class _ProductResiduals:
    """Squares of products of features of all pairs of columns, in units of their noise: one matrix product."""

    def __init__(self, products: Products, sizes: Sequence[int], scale: float) -> None:
        widths = [content.shape[1] for content in products.contents]
        self._features = np.zeros((sum(sizes), sum(widths)), dtype=np.float32)
        within = np.zeros((sum(widths), sum(widths)), dtype=bool)
        row = column = 0
        for content in products.contents:
            cells, slots = content.shape
            self._features[row : row + cells, column : column + slots] = content
            within[column : column + slots, column : column + slots] = True
            row, column = row + cells, column + slots
        self._target = products.targets.astype(np.float32)
        # Each pair stands twice in the symmetric matrix.
        self._precision = np.where(within, 0, scale * products.precision / 2).astype(np.float32)
        self._noisy, self._noise, self._between = products.noisy, products.noise, ~within

    def misfit(self, cells: Float32, shares: Float32) -> tuple[float, float]:
        """Half the squares of the released products, in units of their noise, and what noise alone makes of them."""
        features = cells @ self._features
        apart = ((features * shares.sum(axis=0)[:, None]).T @ features - self._noisy)[self._between] / self._noise
        return float(np.vdot(apart, apart)) / 4, apart.size / 4

    def add_squares(self, cells: Float32, shares: Float32, d_cells: Float32, d_shares: Float32) -> float:
        """Their sum; adds its slopes. Arguments are those of :meth:`_AllResiduals.add_squares`."""
        whole, features = shares.sum(axis=0), cells @ self._features
        residuals = (features * whole[:, None]).T @ features
        residuals -= self._target
        slope = residuals * self._precision
        pulled = features @ slope
        d_shares += 2 * np.einsum("ks,ks->k", features, pulled)
        d_cells += (4 * whole[:, None] * pulled) @ self._features.T
        return float(np.vdot(residuals, slope))


class _Columns:
    """Columns beside each other, as runs of cells of one matrix."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._ends = np.cumsum(sizes)
        self._column_of = np.repeat(np.arange(len(sizes)), sizes)
        self._sum = (self._column_of[:, None] == np.arange(len(sizes))).astype(np.float32)

    def split(self, cells: Float32) -> list[Float32]:
        """Views of each column's cells, shapes (K, cells)."""
        return [cells[:, start:end] for start, end in zip(self._starts, self._ends, strict=True)]

    def softmax(self, logits: Float32) -> Float32:
        """Probabilities of each column's cells, shape (K, W)."""
        cells = logits - np.maximum.reduceat(logits, self._starts, axis=1)[:, self._column_of]
        np.exp(cells, out=cells)
        cells /= (cells @ self._sum)[:, self._column_of]
        return cells

    def prices(self, nats: Float32, power: float) -> Float32:
        """Prices that fall with a power of a column's nats, shape (W,) from the nats of each cell; geometric mean 1."""
        columns = np.maximum(np.add.reduceat(nats, self._starts), 0).astype(np.float64)
        logs = -power * np.log(columns + _LITTLE * columns.mean() + _TINY)
        prices: Float32 = np.exp(logs - logs.mean())[self._column_of].astype(np.float32)
        return prices

    def softmax_slope(self, cells: Float32, slope: Float32) -> Float32:
        """The slope in the logits from that in the probabilities."""
        products = cells * slope
        products -= cells * (products @ self._sum)[:, self._column_of]
        return products


def _softmax(logits: Float32) -> Float32:
    """Probabilities along the last axis."""
    shares: Float32 = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


class _AllResiduals:
    """The squares of all pairs, in units of their noise: one matrix product a class, over all cells by all cells."""

    def __init__(self, pairs: Sequence[CountedTable], measurement: Measurement, zeros: StructuralZeros | None) -> None:
        """Lay the counts out as one matrix a class."""
        ends, total = np.cumsum(measurement.sizes), sum(measurement.sizes)
        starts = ends - np.array(measurement.sizes)
        target = np.zeros((len(pairs[0].counts), total, total), dtype=np.float32)
        precision = np.zeros((total, total))
        for (i, j), counts, weight in pairs:
            rows, columns = slice(starts[i], ends[i]), slice(starts[j], ends[j])
            target[:, rows, columns] = counts / measurement.records
            precision[rows, columns] = weight
            if zeros is not None:
                precision[rows, columns] *= np.where(zeros.forbidden_cells(i, j).all(axis=0), _CERTAIN, 1)
        self._target = target
        self._precision = (precision / (2 * total * measurement.scale**2)).astype(np.float32)

    def add_squares(self, cells: Float32, shares: Float32, d_cells: Float32, d_shares: Float32) -> float:
        r"""Their sum; adds its slopes.

        Args:
            cells: probabilities of cells in components, shape (K, W).
            shares: :math:`\pi_y \pi_{k \mid y}`, shape (num_classes, K).
            d_cells: slope in ``cells``, changed in place.
            d_shares: slope in ``shares``, changed in place.
        """
        loss = 0.0
        for target, share, d_share in zip(self._target, shares, d_shares, strict=True):
            residuals = (cells * share[:, None]).T @ cells
            residuals -= target
            slope = residuals * self._precision
            loss += float(np.vdot(residuals, slope))
            pulled = cells @ (slope + slope.T)
            d_share += np.einsum("kw,kw->k", cells, pulled)
            pulled *= 2 * share[:, None]
            d_cells += pulled
        return loss


class _TableResiduals:
    r"""Weighed squares of :math:`\hat p_{y,t} - \pi_y \sum_k \pi_{k \mid y} \bigotimes_{i \in t} p_{ki}`, for tables t.

    A table is a matrix, some columns by the others, so the sum over components is a matrix product. Tables with equal
    left columns share one product.
    """

    def __init__(self, tables: Sequence[_Halved], scale: float) -> None:
        """Lay the tables out beside each other, shape (num_classes, cells on the left, cells on the right)."""
        self._left = _left_columns(tables[0])
        self._rights = [tuple(columns[index] for index in right) for (_, right), columns, _, _ in tables]
        laid, scales = [], []
        for (left, right), _, shares, weight in tables:
            rows = math.prod(shares.shape[1 + index] for index in left)
            turned = shares.transpose(0, *(1 + index for index in (*left, *right)))
            laid.append(turned.reshape(len(shares), rows, -1))
            scales.append(np.full(laid[-1].shape[2], weight * scale**2))
        self._target = np.concatenate(laid, axis=2).astype(np.float32)
        self._precision = np.concatenate(scales).astype(np.float32)

    def add_squares(
        self, columns: Sequence[Float32], shares: Float32, d_columns: Sequence[Float32], d_shares: Float32
    ) -> float:
        r"""Their sum; adds its slopes.

        Args:
            columns: cell probabilities of each column, shapes (K, cells).
            shares: :math:`\pi_y \pi_{k \mid y}`, shape (num_classes, K).
            d_columns: slope in ``columns``, changed in place.
            d_shares: slope in ``shares``, changed in place.
        """
        left = _outer(columns, self._left)
        right = np.concatenate([_outer(columns, indices) for indices in self._rights], axis=1)
        d_left, d_right = np.zeros_like(left), np.zeros_like(right)
        loss = 0.0
        for target, share, d_share in zip(self._target, shares, d_shares, strict=True):
            residuals = (left * share[:, None]).T @ right
            residuals -= target
            slope = residuals * self._precision
            loss += float(np.vdot(residuals, slope))
            pulled = left @ slope
            d_share += 2 * np.einsum("kr,kr->k", pulled, right)
            d_right += 2 * share[:, None] * pulled
            d_left += 2 * share[:, None] * (right @ slope.T)
        _add_outer_slope(columns, self._left, d_left, d_columns)
        start = 0
        for indices in self._rights:
            width = math.prod(columns[index].shape[1] for index in indices)
            _add_outer_slope(columns, indices, d_right[:, start : start + width], d_columns)
            start += width
        return loss


def _table_residuals(tables: Sequence[CountedTable], measurement: Measurement) -> list[_TableResiduals]:
    """Residuals of tables, those with equal left columns together."""
    halved = [
        (_halves(counts.shape[1:]), columns, counts / measurement.records, weight) for columns, counts, weight in tables
    ]
    halved.sort(key=_left_columns)
    scale = 1 / math.sqrt(2 * sum(measurement.sizes) * measurement.scale**2)
    return [_TableResiduals(list(alike), scale) for _, alike in groupby(halved, key=_left_columns)]


def _halves(sizes: Sequence[int]) -> _Halves:
    """Places of a table's columns on either side, about as many cells each: memory goes with their sum."""
    left: list[int] = []
    right: list[int] = []
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        cells = [math.prod(sizes[column] for column in half) for half in (left, right)]
        (left if (cells[0], len(left)) <= (cells[1], len(right)) else right).append(index)
    return tuple(sorted(left)), tuple(sorted(right))


def _left_columns(table: _Halved) -> tuple[int, ...]:
    (left, _), columns, _, _ = table
    return tuple(columns[index] for index in left)


def _outer(columns: Sequence[Float32], indices: Sequence[int]) -> Float32:
    """Products of the probabilities of several columns' cells, shape (K, their cells)."""
    product = columns[indices[0]]
    for index in indices[1:]:
        product = (product[:, :, None] * columns[index][:, None, :]).reshape(len(product), -1)
    return product


def _add_outer_slope(
    columns: Sequence[Float32], indices: Sequence[int], slope: Float32, d_columns: Sequence[Float32]
) -> None:
    """Add the slope in each column from that in the product of their cells, shape (K, their cells)."""
    if len(indices) > 1:
        first, last = _outer(columns, indices[:-1]), columns[indices[-1]]
        cube = slope.reshape(len(slope), first.shape[1], last.shape[1])
        d_columns[indices[-1]][...] += np.einsum("kab,ka->kb", cube, first)
        _add_outer_slope(columns, indices[:-1], np.einsum("kab,kb->ka", cube, last), d_columns)
    else:
        d_columns[indices[0]][...] += slope
