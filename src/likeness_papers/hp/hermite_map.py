"""Hermite features of a record's columns: sums and products of one-dimensional kernels (DP-HP)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.core.extras import torch
from likeness.features.base import Map, columns_of, convert_once

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class HermiteFeatures(Map):
    r"""A sum kernel over all columns beside product kernels over public subsets of columns.

    Every column d has features :math:`u_d(x)` of norm at most 1:

    - a number: :math:`\phi_0, \dots, \phi_K` of :math:`s (x_d - 1/2)` over :math:`\sqrt M`
      (:func:`~likeness_papers.hp.mehler.hermite_functions`), with M the proved bound on their squared norm over the
      unit interval (:func:`~likeness_papers.hp.mehler.squared_norm_bound`);
    - a number that may be missing, with indicator i: :math:`[(1 - i)\, u_d,\; i]`, whose squared norm is at most
      :math:`(1-i)^2 + i^2 \le 1`;
    - a category: its one-hot block, the kernel :math:`1[x_d = x_d']`.

    .. math:: \phi(x) = \left[ \sqrt{\tfrac{1 - p}{D}}\, (u_d(x))_{d \le D},\;
              \sqrt{\tfrac{p}{|A|}}\, \Bigl( \textstyle\bigotimes_{d \in a} u_d(x) \Bigr)_{a \in A} \right]

    Norm: at most 1. The sum part is at most :math:`(1 - p)/D` for each column; the norm of an outer product is the
    product of norms, so each of the \|A\| products is at most :math:`p/|A|`. Parts of categories alone are not
    negative. p is the products' part of ρ: scaling a part by :math:`\sqrt p` under one Gaussian equals releasing it
    alone with p of ρ. Source: Vinaroz, Charusaie, Harder, Adamczewski and Park (2022), section 3; ``docs/hermite.md``
    lists the differences.

    Attributes:
        numeric: first coordinates of numbers.
        nullable: those of them that are followed by an indicator.
        categorical: (start, stop) of one-hot blocks.
        rho: ρ of each number, in (0, 1).
        scale: s of each number.
        order: K of the sum kernel.
        product_order: K of the products.
        subsets: A, places of columns, numbers first, then categories; empty for the sum kernel alone.
        product_share: p; 1 for the products alone.

    Raises:
        ReleaseError: the numbers contradict each other.
    """

    name: ClassVar[str] = "hermite"
    numeric: tuple[int, ...]
    nullable: tuple[int, ...]
    categorical: tuple[tuple[int, int], ...]
    rho: tuple[float, ...]
    scale: tuple[float, ...]
    order: int
    product_order: int = 0
    subsets: tuple[tuple[int, ...], ...] = ()
    product_share: float = 0.0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "categorical", tuple((int(a), int(b)) for a, b in self.categorical))
            object.__setattr__(self, "subsets", tuple(tuple(int(d) for d in subset) for subset in self.subsets))
        except (TypeError, ValueError):
            raise ReleaseError("hermite: categorical needs pairs of coordinates, subsets lists of columns") from None
        count = len(self.numeric) + len(self.categorical)
        if count < 1 or len(self.rho) != len(self.numeric) or len(self.scale) != len(self.numeric):
            raise ReleaseError("hermite needs at least one column, and one rho and one scale for each number")
        if any(not 0 < rho < 1 for rho in self.rho) or any(not 0 < scale <= _LARGEST_SCALE for scale in self.scale):
            raise ReleaseError(f"hermite: rho must be between 0 and 1, scale above 0 and at most {_LARGEST_SCALE:g}")
        if self.order < 0 or self.product_order < 0 or not set(self.nullable) <= set(self.numeric):
            raise ReleaseError("hermite: orders must be at least 0, and nullable columns must be among the numbers")
        if any(
            not subset or len(set(subset)) != len(subset) or not 0 <= min(subset) <= max(subset) < count
            for subset in self.subsets
        ):
            raise ReleaseError("hermite: each subset names different columns, counted from 0")
        if not 0 <= self.product_share <= 1 or (self.product_share > 0) is not bool(self.subsets):
            raise ReleaseError("hermite: product_share must be in [0, 1], and 0 exactly without subsets")

    @cached_property
    def columns(self) -> int:
        """D, the number of columns."""
        return len(self.numeric) + len(self.categorical)

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Numbers of the sum kernel, its categories, and one part a subset; bounds as in the class docstring."""
        products = Fraction(self.product_share)
        parts = []
        if products < 1:
            each = (1 - products) / self.columns
            if self.numeric:
                width = len(self.numeric) * (self.order + 1) + len(self.nullable)
                parts.append(Part(width, len(self.numeric) * each))
            if self.categorical:
                width = sum(stop - start for start, stop in self.categorical)
                parts.append(Part(width, len(self.categorical) * each, nonnegative=True))
        for subset in self.subsets:
            nonnegative = min(subset) >= len(self.numeric)
            width = math.prod(self.product_sizes[d] for d in subset)
            parts.append(Part(width, products / len(self.subsets), nonnegative=nonnegative))
        return tuple(parts)

    @cached_property
    def sum_width(self) -> int:
        """Coordinates of the sum kernel; those of the products follow."""
        return sum(part.width for part in self.bounded_parts[: len(self.bounded_parts) - len(self.subsets)])

    @cached_property
    def product_sizes(self) -> tuple[int, ...]:
        """Features of each column in a product."""
        numbers = tuple(self.product_order + 1 + (start in self.nullable) for start in self.numeric)
        return numbers + tuple(stop - start for start, stop in self.categorical)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d) to features (n, width)."""
        numbers = self._numbers(x)
        features = [self._sum(x, numbers)] if self.product_share < 1 else []
        if self.subsets:
            columns = self._columns(x, numbers)
            weight = math.sqrt(self.product_share / len(self.subsets))
            features += [weight * _outer([columns[d] for d in subset]) for subset in self.subsets]
        return torch.cat(features, dim=1)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Subsets as places among the used columns; empty unless they are pairs, and not few of all pairs."""
        positions = {column: position for position, column in enumerate(self._product_columns)}
        return () if self._pair_places is None else tuple((positions[i], positions[j]) for i, j in self.subsets)

    @cached_property
    def column_sizes(self) -> tuple[int, ...]:
        """Features of each column that stands in a product."""
        return tuple(self.product_sizes[column] for column in self._product_columns)

    def paired_features(self, x: "Tensor") -> "tuple[Tensor, tuple[Tensor, ...]]":
        """Features of the sum kernel, shape (n, sum_width), and u_d of each column that stands in a product."""
        numbers = self._numbers(x)
        first = self._sum(x, numbers) if self.product_share < 1 else x.new_zeros(len(x), 0)
        columns = self._columns(x, numbers)
        return first, tuple(columns[column] for column in self._product_columns)

    def means(self, x: "Tensor", counts: list[int]) -> "Tensor":
        """Mean features of consecutive groups of ``counts`` rows, shape (groups, width), without products of rows.

        The mean of an outer product is a matrix product of two halves of it. So a batch costs little even where its
        features would not fit in memory.
        """
        numbers = self._numbers(x)
        means = []
        if self.product_share < 1:
            # The sum's features are linear in rows and Hermite functions, so features of means are means of features.
            rows, values = (
                torch.stack([group.mean(dim=0) for group in torch.split(inputs, counts)]) for inputs in (x, numbers)
            )
            means.append(self._sum(rows, values))
        if self.subsets:
            columns = {d: torch.split(column, counts) for d, column in self._columns(x, numbers).items()}
            groups = [{d: column[group] for d, column in columns.items()} for group in range(len(counts))]
            products = torch.stack([self._mean_products(group) for group in groups])
            means.append(math.sqrt(self.product_share / len(self.subsets)) * products)
        return torch.cat(means, dim=1)

    def coordinate_weights(self, gamma: float | None) -> "Tensor":
        """Weights of squared residuals, shape (width,): products weigh γ times as much as the sum kernel.

        γ applies to kernels of norm 1, whatever their shares of ρ. None weighs every coordinate 1, as the likelihood
        does: all have equal noise.
        """
        weights = torch.ones(sum(part.width for part in self.bounded_parts), dtype=torch.float64)
        if gamma is not None and 0 < self.product_share < 1:
            weights[: self.sum_width] = 1 / (1 - self.product_share)
            weights[self.sum_width :] = gamma / self.product_share
        return weights

    def norms(self, order: int) -> tuple[float, ...]:
        """√M of each number at an order."""
        from likeness_papers.hp.mehler import squared_norm_bound

        pairs = list(zip(self.rho, self.scale, strict=True))
        norms = {pair: math.sqrt(squared_norm_bound(pair[0], order, pair[1] / 2)) for pair in set(pairs)}
        return tuple(norms[pair] for pair in pairs)

    @cached_property
    def _divisors(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """√M of each number for the sum kernel and for the products."""
        return self.norms(self.order), self.norms(self.product_order)

    def _numbers(self, x: "Tensor") -> "Tensor":
        """Hermite functions of all numbers, not yet normalized, 0 where missing: (n, K + 1, numbers)."""
        from likeness_papers.hp.mehler import hermite_functions, recursion_steps

        wanted = [self.order] * (self.product_share < 1) + [self.product_order] * bool(self.subsets)
        centered = (columns_of(x, self.numeric) - 0.5) * convert_once(self, "scale", x, lambda: np.array(self.scale))
        rho = convert_once(self, "rho", x, lambda: np.array(self.rho))
        steps = convert_once(self, "steps", x, lambda: recursion_steps(np.array(self.rho), max(wanted)))
        values = hermite_functions(centered, rho, max(wanted), steps)
        if self.nullable:
            present = x.new_ones(len(x), len(self.numeric))
            indices = [self.numeric.index(start) for start in self.nullable]
            present[:, indices] = 1 - x[:, [start + 1 for start in self.nullable]]
            values = values * present[:, None, :]
        return values

    def _sum(self, x: "Tensor", numbers: "Tensor") -> "Tensor":
        """Features of the sum kernel: orders of all numbers, indicators, categories."""
        features = []
        if self.numeric:
            divisors = convert_once(self, "sum divisors", x, lambda: np.array(self._divisors[0]))
            values = numbers[:, : self.order + 1] / divisors
            features.append(values.reshape(len(x), (self.order + 1) * len(self.numeric)))
        if self.nullable:
            features.append(x[:, [start + 1 for start in self.nullable]])
        features += [x[:, start:stop] for start, stop in self.categorical]
        return math.sqrt((1 - self.product_share) / self.columns) * torch.cat(features, dim=1)

    @cached_property
    def _product_columns(self) -> tuple[int, ...]:
        """Columns that stand in a product."""
        return tuple(sorted({d for subset in self.subsets for d in subset}))

    def _columns(self, x: "Tensor", numbers: "Tensor") -> "dict[int, Tensor]":
        """u_d of every column of a product at the order of the products, each of shape (n, its size)."""
        indices = [d for d in self._product_columns if d < len(self.numeric)]
        divisors = convert_once(self, "divisors", x, lambda: np.array([self._divisors[1][index] for index in indices]))
        values = (numbers[:, : self.product_order + 1, indices] / divisors).transpose(1, 2).contiguous()
        columns = {}
        for functions, index in zip(values.unbind(dim=1), indices, strict=True):
            start = self.numeric[index]
            columns[index] = (
                torch.cat([functions, x[:, start + 1, None]], dim=1) if start in self.nullable else functions
            )
        blocks = enumerate(self.categorical, start=len(self.numeric))
        return columns | {index: x[:, start:stop] for index, (start, stop) in blocks if index in self._product_columns}

    def _mean_products(self, columns: "dict[int, Tensor]") -> "Tensor":
        """Mean outer products of all subsets within one group of rows, one after another."""
        count = max(1, len(next(iter(columns.values()))))
        if self._pair_places is not None:
            joint = torch.cat(list(columns.values()), dim=1)
            matrix = joint.T @ joint
            return matrix.flatten()[self._pair_places.to(matrix.device)] / count
        products = []
        for subset in self.subsets:
            right = _outer([columns[d] for d in subset[len(subset) // 2 :]])
            left = (
                _outer([columns[d] for d in subset[: len(subset) // 2]])
                if len(subset) > 1
                else right.new_ones(len(right), 1)
            )
            products.append((left.T @ right).flatten())
        return torch.cat(products) / count

    @cached_property
    def _pair_places(self) -> "Tensor | None":
        """The places of blocks of pairs in the flat matrix of all used columns; None if most of it would be unused."""
        total, starts = 0, {}
        for column in self._product_columns:
            starts[column] = total
            total += self.product_sizes[column]
        blocks = [[self.product_sizes[d] for d in subset] for subset in self.subsets]
        if not blocks or any(len(block) != 2 for block in blocks) or total**2 > 4 * sum(a * b for a, b in blocks):
            return None
        parts = []
        for (i, j), (rows, width) in zip(self.subsets, blocks, strict=True):
            cells = (starts[i] + torch.arange(rows))[:, None] * total + starts[j] + torch.arange(width)
            parts.append(cells.flatten())
        return torch.cat(parts)


_LARGEST_SCALE = 16.0  # beyond, the first functions underflow in single precision at the ends of the interval


def _outer(columns: "list[Tensor]") -> "Tensor":
    """Row-wise outer products, flattened: (n, product of sizes)."""
    result = columns[0]
    for column in columns[1:]:
        result = (result[:, :, None] * column[:, None, :]).reshape(len(column), result.shape[1] * column.shape[1])
    return result
