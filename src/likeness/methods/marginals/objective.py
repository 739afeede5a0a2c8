"""Distance between released marginals and those of a mixture of products."""

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Block = tuple[int, int, NDArray[np.float64]]
Table = tuple[tuple[int, ...], NDArray[np.float64]]
_Halves = tuple[tuple[int, ...], tuple[int, ...]]
_Halved = tuple[_Halves, tuple[int, ...], NDArray[np.float64], float]  # halves, columns, counts, squared weight
_BELIEF = 0.7  # how the penalty goes with one over the noise
_SMALLEST = 1e-4  # a cell that the noise emptied is rare, not impossible


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
    noise weakens the penalty, with the power 0.7 that was best on public look-alikes at ε from 0.2 to 10.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        sizes: list[int],
        squared_weights: Iterable[int],
        class_weights: Tensor,
        records: float,
        noise_std: float,
        kl_penalty: float,
        device: torch.device,
        tables: Sequence[Table] = (),
        squared_table_weight: float = 1.0,
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
            device: of the tensors.
            tables: (columns, noisy counts of shape (num_classes, cells of each of them)).
            squared_table_weight: of each table.
        """
        blocks, squared_weights = list(blocks), list(squared_weights)
        total = sum(sizes)
        # Without noise the scale is free; one record keeps the loss at the usual size.
        scale = max(noise_std, 1.0) / records
        apart = [(columns, counts, squared_table_weight) for columns, counts in tables]
        self._pairs = None
        if len(blocks) == math.comb(len(sizes), 2):
            self._pairs = _AllResiduals(blocks, sizes, squared_weights, records, scale, device)
        else:
            weighted = zip(blocks, squared_weights, strict=True)
            apart += [((i, j), counts, float(weight)) for (i, j, counts), weight in weighted]
        self._class_weights = class_weights.to(device=device, dtype=torch.float32)
        self._sizes = sizes
        halved = [(_halves(counts.shape[1:]), columns, counts / records, weight) for columns, counts, weight in apart]
        grouped = groupby(sorted(halved, key=_left_columns), key=_left_columns)
        self._tables = [_TableResiduals(list(alike), device) for _, alike in grouped]
        self._table_scale = 1 / (2 * total * scale**2)
        norm = sum(squared_weights) + squared_table_weight * len(tables)
        self._penalty = kl_penalty * (math.sqrt(norm) / scale) ** _BELIEF / total
        expected = one_way_marginals(blocks, sizes, squared_weights)
        self._log_expected = torch.log(expected + _SMALLEST).to(device=device, dtype=torch.float32)

    def loss(self, generator: nn.Module) -> Tensor:
        """Loss of a :class:`~likeness.methods.marginals.mixture.ProductMixture`."""
        probabilities, weights = generator()
        entropies = torch.xlogy(probabilities, probabilities).sum(dim=1)
        information = weights * (entropies - self._log_expected @ probabilities.T)
        penalty: Tensor = self._penalty * (self._class_weights @ information.sum(dim=1))
        loss = penalty
        if self._pairs is not None:
            loss = self._pairs.squares(probabilities, weights, self._class_weights) + penalty
        if self._tables:
            columns, shares = torch.split(probabilities, self._sizes, dim=1), self._class_weights[:, None] * weights
            loss = loss + self._table_scale * sum(table.squares(columns, shares) for table in self._tables)
        return loss


class _AllResiduals:
    """The squares of all pairs, in units of their noise: one matrix product a class, over all cells by all cells."""

    def __init__(
        self,
        blocks: Sequence[Block],
        sizes: Sequence[int],
        squared_weights: Sequence[int],
        records: float,
        scale: float,
        device: torch.device,
    ) -> None:
        """Lay the blocks out as one matrix a class; ``scale``: noise of a share of weight 1."""
        ends = np.cumsum(sizes)
        total, starts = int(ends[-1]), ends - np.array(sizes)
        target = np.zeros((len(blocks[0][2]), total, total))
        precision = np.zeros((total, total))
        for (i, j, counts), weight in zip(blocks, squared_weights, strict=True):
            rows, columns = slice(starts[i], ends[i]), slice(starts[j], ends[j])
            target[:, rows, columns] = counts / records
            precision[rows, columns] = weight
        self._target = torch.from_numpy(target).to(device=device, dtype=torch.float32)
        self._scale = torch.from_numpy(np.sqrt(precision / (2 * total)) / scale).to(device=device, dtype=torch.float32)

    def squares(self, probabilities: Tensor, weights: Tensor, class_weights: Tensor) -> Tensor:
        """Their sum, of cells in components (K, W) and components by class (num_classes, K)."""
        joint = torch.stack([(probabilities * share[:, None]).T @ probabilities for share in weights])
        residuals = (self._target - class_weights[:, None, None] * joint) * self._scale
        return residuals.square().sum()


class _TableResiduals:
    r"""Weighed squares of :math:`\hat p_{y,t} - \pi_y \sum_k \pi_{k \mid y} \bigotimes_{i \in t} p_{ki}`, for tables t.

    A table is a matrix, some columns by the others, so the sum over components is a matrix product. Tables with equal
    left columns share one product.
    """

    def __init__(self, tables: Sequence[_Halved], device: torch.device) -> None:
        """Lay the tables out beside each other, shape (num_classes, cells on the left, cells on the right)."""
        self._left = _left_columns(tables[0])
        self._rights = [tuple(columns[place] for place in right) for (_, right), columns, _, _ in tables]
        laid, scales = [], []
        for (left, right), _, shares, weight in tables:
            rows = math.prod(shares.shape[1 + place] for place in left)
            turned = shares.transpose(0, *(1 + place for place in (*left, *right)))
            laid.append(turned.reshape(len(shares), rows, -1))
            scales.append(np.full(laid[-1].shape[2], math.sqrt(weight)))
        self._target = torch.from_numpy(np.concatenate(laid, axis=2)).to(device=device, dtype=torch.float32)
        self._scale = torch.from_numpy(np.concatenate(scales)).to(device=device, dtype=torch.float32)

    def squares(self, columns: Sequence[Tensor], shares: Tensor) -> Tensor:
        r"""Their sum, of cells by column (K, cells) and shares :math:`\pi_y \pi_{k \mid y}` (num_classes, K)."""
        left = _outer(columns, self._left)
        right = torch.cat([_outer(columns, share) for share in self._rights], dim=1)
        if left.shape[1] < right.shape[1]:
            joint = torch.stack([(left * share[:, None]).T @ right for share in shares])
        else:
            joint = torch.stack([left.T @ (right * share[:, None]) for share in shares])
        return ((self._target - joint) * self._scale).square().sum()


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


def _outer(columns: Sequence[Tensor], places: Sequence[int]) -> Tensor:
    """Products of the probabilities of several columns' cells, shape (K, their cells)."""
    return reduce(lambda left, right: (left[:, :, None] * right[:, None, :]).flatten(1), (columns[p] for p in places))


def one_way_marginals(blocks: Iterable[Block], sizes: list[int], squared_weights: Iterable[int]) -> Tensor:
    """One-way marginals of all columns from the noisy pairs: shape (num_classes, W), sum 1 in each column.

    Each pair gives one estimate, whose variance is the other column's number of cells over the squared weight. They are
    averaged by inverse variance and projected on the simplex. Post-processing.
    """
    sums: list[NDArray[np.float64] | float] = [0.0] * len(sizes)
    for (i, j, counts), weight in zip(blocks, squared_weights, strict=True):
        sums[i] = sums[i] + counts.sum(axis=2) * weight / sizes[j]
        sums[j] = sums[j] + counts.sum(axis=1) * weight / sizes[i]
    # A column's estimates add up to the number of records times the sum of their weights, which cancels.
    return torch.from_numpy(np.concatenate([_on_simplex(np.asarray(block)) for block in sums], axis=1))


def _on_simplex(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest distribution of each row, in Euclidean distance, after scaling to sum 1; uniform where nothing is left.

    What is cut off at 0 is taken equally from the other cells, so small cells do not grow (Held et al. 1974).
    """
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, counts / np.where(totals > 0, totals, 1), 1 / counts.shape[1])
    descending = -np.sort(-shares, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (descending > excess).sum(axis=1, keepdims=True) - 1
    projected: NDArray[np.float64] = np.maximum(shares - np.take_along_axis(excess, last, axis=1), 0)
    return projected
