"""Distance between released marginals and those of a mixture of products, with its gradient."""

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.blocks import Block, Table, one_way_marginals
from likeness.methods.marginals.rare_cells import RareCells
from likeness.methods.marginals.structural_zeros import StructuralZeros

Float32 = NDArray[np.float32]
_Halves = tuple[tuple[int, ...], tuple[int, ...]]
_Halved = tuple[_Halves, tuple[int, ...], NDArray[np.float64], float]  # halves, columns, counts, squared weight
_BELIEF = 0.7  # how the penalty goes with one over the noise
_CLEAR = 2  # records in a mean cell of a pair over its noise, from which on the penalty is as it is
_SMALLEST = 1e-4  # a cell that the noise emptied is rare, not impossible
_TINY = np.finfo(np.float32).tiny
_CERTAIN = 100  # precision of a count that is 0 for certain, over that of a noisy one
_HELD = 100  # precision of a cell of one column that is held, over that of a noisy cell of a pair
_LITTLE = 0.05  # information of a column, over the mean, below which its price rises no further


class MarginalObjective:
    r"""Negative log-likelihood of the released blocks, and a KL penalty on what components say about columns.

    .. math:: W \, L(\theta) = \sum_{y} \sum_{(i, j) \in P} \frac{w_{ij}^2}{2 s^2}
        \left\| \hat p_{y,ij} - \pi_y \sum_k \pi_{k \mid y}\, p_{ki}\, p_{kj}^\top \right\|^2
        + c \left( \frac{\sqrt{\sum w_{ij}^2}}{s} \right)^{0.7}
        \sum_y \pi_y \sum_k \pi_{k \mid y} \sum_i \mathrm{KL}(p_{ki} \,\|\, q_{yi})

    with P the released pairs, :math:`\hat p` the released counts over n, whose noise has standard deviation
    :math:`s / w_{ij}`, π_y the class weights, q the released one-way marginals, and W cells. With all pairs, the sum
    over components is one matrix product a class. Some pairs, and named tables of more columns, take one product for
    those that share columns (:class:`_TableResiduals`). Weights of tables are in the sum under the root. The penalty is
    the information, in nats, that component and class give about the columns. It keeps columns independent unless the
    release says otherwise, because a free mixture would fit the noise too.
    The root turns s into the noise of a query of sensitivity 1: one c is then right for 14 columns and for 54. Less
    noise weakens the penalty, with the power 0.7 that was best on public look-alikes at ε from 0.2 to 10. On small
    tables noise hides most cells, and c would hide strong dependences with it. There c is smaller: it falls with the
    records in a mean cell over its noise, from a ratio of 2 down to a given part.

    One c shrinks strong columns most, because it costs them most. :meth:`adapt` gives each column a price of its own:

    .. math:: v_i \propto \Bigl( \sum_{y, k} \pi_y \pi_{k \mid y} \mathrm{KL}(p_{ki} \,\|\, q_{yi}) \Bigr)^{-a}

    with a geometric mean of 1. It is the adaptive lasso (Zou 2006) for information.

    The gradient is written out: a class takes two matrix products of the cells, where automatic differentiation takes
    three.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        sizes: Sequence[int],
        squared_weights: Iterable[float],
        class_weights: NDArray[np.float64],
        records: float,
        noise_std: float,
        kl_penalty: float,
        kl_hidden: float = 1.0,
        kl_adaptive: float = 0.0,
        tables: Sequence[Table] = (),
        squared_table_weights: Sequence[float] = (),
        certain: StructuralZeros | None = None,
        hold_columns: bool = False,
        targets: tuple[Sequence[Block], Sequence[float]] | None = None,
        rare: RareCells | None = None,
    ) -> None:
        """Lay blocks and tables out as matrices.

        Args:
            blocks: (i, j, noisy counts of shape (num_classes, cells of i, cells of j)).
            sizes: cells of each column.
            squared_weights: of each block, in order.
            class_weights: shape (num_classes,), sum 1.
            records: number of records.
            noise_std: of a count of weight 1; 0 without noise.
            kl_penalty: c.
            kl_hidden: the least part of c, where noise hides the cells.
            kl_adaptive: a.
            tables: (columns, noisy counts of shape (num_classes, cells of each of them)).
            squared_table_weights: of each table.
            certain: cells that are 0 for certain, in classes where they are 0 in all.
            hold_columns: keep the one-way marginals by class, which are far less noisy than cells of pairs.
            targets: blocks and squared weights to fit in place of the released ones, in their order. The penalty stays.
            rare: what is believed of cells that noise hides.
        """
        blocks, squared_weights = list(blocks), list(squared_weights)
        total = sum(sizes)
        # Without noise the scale is free; one record keeps the loss at the usual size.
        scale = max(noise_std, 1.0) / records
        apart = [(*table, weight) for table, weight in zip(tables, squared_table_weights, strict=True)]
        aims, aim_weights = targets or (blocks, squared_weights)
        self._pairs = None
        if len(blocks) == math.comb(len(sizes), 2):
            self._pairs = _AllResiduals(aims, sizes, aim_weights, records, scale, certain)
        else:
            weighted = zip(aims, aim_weights, strict=True)
            apart += [((i, j), counts, float(weight)) for (i, j, counts), weight in weighted]
        self._class_weights = class_weights.astype(np.float32)
        self._columns = _Columns(sizes)
        halved = [(_halves(counts.shape[1:]), columns, counts / records, weight) for columns, counts, weight in apart]
        grouped = groupby(sorted(halved, key=_left_columns), key=_left_columns)
        table_scale = 1 / math.sqrt(2 * total * scale**2)
        self._tables = [_TableResiduals(list(alike), table_scale) for _, alike in grouped]
        norm = sum(squared_weights) + sum(squared_table_weights)
        cells = sum(counts.size for _, _, counts in blocks) / len(blocks)
        clear = math.sqrt(sum(squared_weights) / len(blocks)) / (cells * scale)
        self.hidden = clear < _CLEAR
        """Whether noise hides the cells of pairs."""
        part = max(kl_hidden, min(1.0, clear / _CLEAR))
        self._penalty = part * kl_penalty * (math.sqrt(norm) / scale) ** _BELIEF / total
        expected = one_way_marginals(blocks, sizes, squared_weights) if rare is None else rare.shares
        self._log_expected = np.log(expected + _SMALLEST).astype(np.float32)
        self._adaptive = kl_adaptive
        self._prices = np.ones(total, dtype=np.float32)
        self._held = (class_weights[:, None] * expected).astype(np.float32)
        self._holding = _HELD * max(squared_weights) / (2 * total * scale**2) if hold_columns else 0.0
        self._rare = None
        if rare is not None:
            kappa = np.repeat([records / (total * noise) for noise in rare.noises], sizes)
            self._rare = (np.concatenate(rare.hidden, axis=1) * kappa).astype(np.float32)

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
        if self._pairs is not None:
            loss += self._pairs.add_squares(cells, shares, d_cells, d_shares)
        if self._tables:
            parts, d_parts = self._columns.split(cells), self._columns.split(d_cells)
            loss += sum(table.add_squares(parts, shares, d_parts, d_shares) for table in self._tables)
        if self._holding:
            residuals = shares @ cells - self._held
            loss += self._holding * float(np.vdot(residuals, residuals))
            d_shares += 2 * self._holding * (residuals @ cells.T)
            d_cells += 2 * self._holding * (shares.T @ residuals)
        if self._rare is not None:
            fitted = np.maximum(shares @ cells, _TINY)
            ratios = np.maximum(self._held, _TINY) / fitted
            loss += float(np.vdot(self._rare, self._held * np.log(ratios) - self._held + fitted))
            pulled = self._rare * (1 - ratios)
            d_shares += pulled @ cells.T
            d_cells += shares.T @ pulled
        d_components += self._class_weights[:, None] * d_shares
        slope = components * (d_components - (components * d_components).sum(axis=1, keepdims=True))
        return loss, self._columns.softmax_slope(cells, d_cells), slope

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
        given = self._penalty * self._class_weights[:, None] * components
        log_expected = self._prices * self._log_expected
        nats = (cells * log_cells) @ self._prices - log_expected @ cells.T
        d_cells = given.sum(axis=0)[:, None] * (self._prices * (log_cells + 1)) - given.T @ log_expected
        return float(np.vdot(given, nats)), d_cells, self._penalty * self._class_weights[:, None] * nats


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

    def __init__(
        self,
        blocks: Sequence[Block],
        sizes: Sequence[int],
        squared_weights: Sequence[float],
        records: float,
        scale: float,
        certain: StructuralZeros | None = None,
    ) -> None:
        """Lay the blocks out as one matrix a class; ``scale``: noise of a share of weight 1."""
        ends = np.cumsum(sizes)
        total, starts = int(ends[-1]), ends - np.array(sizes)
        target = np.zeros((len(blocks[0][2]), total, total), dtype=np.float32)
        precision = np.zeros((total, total))
        for (i, j, counts), weight in zip(blocks, squared_weights, strict=True):
            rows, columns = slice(starts[i], ends[i]), slice(starts[j], ends[j])
            target[:, rows, columns] = counts / records
            precision[rows, columns] = weight
            if certain is not None:
                precision[rows, columns] *= np.where(certain.of(i, j).all(axis=0), _CERTAIN, 1)
        self._target = target
        self._precision = (precision / (2 * total * scale**2)).astype(np.float32)

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
        self._rights = [tuple(columns[place] for place in right) for (_, right), columns, _, _ in tables]
        laid, scales = [], []
        for (left, right), _, shares, weight in tables:
            rows = math.prod(shares.shape[1 + place] for place in left)
            turned = shares.transpose(0, *(1 + place for place in (*left, *right)))
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
        right = np.concatenate([_outer(columns, places) for places in self._rights], axis=1)
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
        for places in self._rights:
            width = math.prod(columns[place].shape[1] for place in places)
            _add_outer_slope(columns, places, d_right[:, start : start + width], d_columns)
            start += width
        return loss


def _halves(sizes: Sequence[int]) -> _Halves:
    """Places of a table's columns on either side, about as many cells each: memory goes with their sum."""
    left: list[int] = []
    right: list[int] = []
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        cells = [math.prod(sizes[column] for column in half) for half in (left, right)]
        (left if cells[0] <= cells[1] else right).append(place)
    return tuple(sorted(left)), tuple(sorted(right))


def _left_columns(table: _Halved) -> tuple[int, ...]:
    (left, _), columns, _, _ = table
    return tuple(columns[place] for place in left)


def _outer(columns: Sequence[Float32], places: Sequence[int]) -> Float32:
    """Products of the probabilities of several columns' cells, shape (K, their cells)."""
    return reduce(_product, (columns[place] for place in places))


def _product(left: Float32, right: Float32) -> Float32:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def _add_outer_slope(
    columns: Sequence[Float32], places: Sequence[int], slope: Float32, d_columns: Sequence[Float32]
) -> None:
    """Add the slope in each column from that in the product of their cells, shape (K, their cells)."""
    if len(places) > 1:
        first, last = _outer(columns, places[:-1]), columns[places[-1]]
        cube = slope.reshape(len(slope), first.shape[1], last.shape[1])
        d_columns[places[-1]][...] += np.einsum("kab,ka->kb", cube, first)
        _add_outer_slope(columns, places[:-1], np.einsum("kab,kb->ka", cube, last), d_columns)
    else:
        d_columns[places[0]][...] += slope
