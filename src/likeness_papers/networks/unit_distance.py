r"""Distances of mean features whose rows are normalized outer products, with gradients by hand.

A row's feature is :math:`\phi_i = p_i / \|p_i\|`, where :math:`p_i` has blocks :math:`l_i \otimes r_i`. This computes

.. math:: D = \|E\|^2, \qquad E = T - \sum_i v_i\, p_i, \qquad v_i = w / \|p_i\|

for the rows of one class. The division is one number a row, so no factor is scaled. Each block takes the cheaper way:
by the products of its rows with each other (:class:`_ByRows`), or by E. Automatic differentiation would read the
factors more often than these slopes in r and :math:`n_i = \|p_i\|^2`:

.. math:: \frac{\partial D}{\partial r_i} = -2 v_i\, E^\top l_i + 2 \|l_i\|^2 \frac{\partial D}{\partial n_i} r_i,
          \qquad \frac{\partial D}{\partial n_i} = \frac{v_i}{n_i} \sum_{blocks} l_i^\top E\, r_i
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.linalg import vecdot

_LEAST = 1e-12  # smallest squared norm that is divided by: a row without an active unit has the feature 0

Factors = Sequence[tuple[Tensor, Tensor]]


def unit_distances(
    products: Factors, counts: Sequence[int], target: Tensor, scale: Tensor, squares: Tensor | None = None
) -> Tensor:
    """Squared distance of ``target[c]`` and ``scale[c]`` times the mean of φ over class c, shape (num_classes,).

    Args:
        products: l and r of each block, shapes (n, a) and (n, b), rows in order of class; l has no slope.
        counts: rows of each class.
        target: shape (num_classes, sum of a · b).
        scale: shape (num_classes,).
        squares: those of :func:`squared_blocks`, if they are at hand.
    """
    lefts, rights = zip(*products, strict=True)
    sizes = [(left.shape[1], right.shape[1]) for left, right in products]
    squares = squared_blocks(target, sizes) if squares is None else squares
    result: Tensor = _Distances.apply(lefts, list(counts), target, scale, squares, *rights)  # type: ignore[no-untyped-call]
    return result


def squared_blocks(target: Tensor, sizes: Sequence[tuple[int, int]]) -> Tensor:
    """Squared norms of a target's blocks of a · b coordinates, shape (num_classes, blocks)."""
    return torch.stack([vecdot(part, part) for part in torch.split(target, [a * b for a, b in sizes], dim=1)], dim=1)


class _Distances(torch.autograd.Function):
    """Differentiable once, in the right factors."""

    @staticmethod
    def forward(
        ctx: Any,
        lefts: tuple[Tensor, ...],
        counts: list[int],
        target: Tensor,
        scale: Tensor,
        squares: Tensor,
        *rights: Tensor,
    ) -> Tensor:
        classes = _Classes(counts, target)
        blocks: list[_Block] = []
        start = 0
        for left, right, square in zip(lefts, rights, squares.T, strict=True):
            a, b = left.shape[1], right.shape[1]
            aim = target[:, start : start + a * b].view(-1, a, b)
            start += a * b
            if a == 1:
                blocks.append(_ByMean(left[:, 0], right, aim[:, 0], classes))
            elif sum(count**2 for count in counts) * (a + 2 * b) < len(right) * a * b:
                blocks.append(_ByRows(left, right, aim, square, classes))
            else:
                blocks.append(_ByResidual(left, right, aim, classes))
        norms = torch.stack([block.norms for block in blocks]).sum(dim=0)
        inverse = norms.clamp(min=_LEAST).reciprocal()
        v = inverse.sqrt() * (scale / classes.counts).repeat_interleave(classes.counts, output_size=len(norms))
        distances, along = zip(*(block.meet(v) for block in blocks), strict=True)
        # Where the norm is not divided by, it has no slope.
        bend = torch.stack(along).sum(dim=0) * v * inverse * (norms >= _LEAST)
        ctx.saved = classes, blocks, v, bend
        return torch.stack(distances).sum(dim=0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        classes, blocks, v, bend = ctx.saved
        twice = (2 * gradients[0]).repeat_interleave(classes.counts, output_size=len(v))
        return (None, None, None, None, None, *(block.slope(twice * v, twice * bend) for block in blocks))


class _Classes:
    """Number and places of the rows of each class; ``members`` (num_classes, n) is 1 where a row is in the class."""

    def __init__(self, counts: Sequence[int], like: Tensor) -> None:
        self.counts = torch.tensor(counts, device=like.device)
        self.rows = [slice(stop - count, stop) for count, stop in zip(counts, accumulate(counts), strict=True)]
        self.members = like.new_zeros(len(counts), sum(counts))
        for member, rows in zip(self.members, self.rows, strict=True):
            member[rows] = 1


class _Block(Protocol):
    """One block of all classes. ``norms`` holds its part of each row's n. ``meet`` comes before ``slope``."""

    norms: Tensor

    def meet(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """‖E‖² of each class, and lᵀ E r of each row."""
        ...

    def slope(self, steep: Tensor, bend: Tensor) -> Tensor:
        """The slope of D·g in r, where ``steep`` is 2·g·v and ``bend`` 2·g·∂D/∂n of each row."""
        ...


class _ByRows:
    r"""The distance by :math:`\|T\|^2 - 2 \sum_i v_i\, l_i^\top T r_i + v^\top K v`.

    :math:`K_{ij} = \langle l_i, l_j \rangle \langle r_i, r_j \rangle`, whose diagonal holds the squared norms.
    """

    def __init__(self, left: Tensor, right: Tensor, target: Tensor, square: Tensor, classes: _Classes) -> None:
        self._right, self._square, self._classes = right, square, classes
        self._back = torch.empty_like(right)
        self._among, self._kernel = [], []
        for rows, aim in zip(classes.rows, target, strict=True):
            torch.mm(left[rows], aim, out=self._back[rows])
            self._among.append(left[rows] @ left[rows].T)
            self._kernel.append((right[rows] @ right[rows].T).mul_(self._among[-1]))
        self.norms = torch.cat([kernel.diagonal() for kernel in self._kernel])

    def meet(self, v: Tensor) -> tuple[Tensor, Tensor]:
        self._v, aimed = v, vecdot(self._back, self._right)
        moved = torch.cat([kernel @ v[rows] for kernel, rows in zip(self._kernel, self._classes.rows, strict=True)])
        return self._square - self._classes.members @ (v * (2 * aimed - moved)), aimed - moved

    def slope(self, steep: Tensor, bend: Tensor) -> Tensor:
        slope = self._back * -steep[:, None]
        for rows, among in zip(self._classes.rows, self._among, strict=True):
            mixing = among * torch.outer(steep[rows], self._v[rows])
            mixing.diagonal().addcmul_(among.diagonal(), bend[rows])
            slope[rows].addmm_(mixing, self._right[rows])
        return slope


class _ByResidual:
    """The distance by E itself."""

    def __init__(self, left: Tensor, right: Tensor, target: Tensor, classes: _Classes) -> None:
        self._left, self._right, self._target, self._classes = left, right, target, classes
        self._strengths = vecdot(left, left)
        self.norms = self._strengths * vecdot(right, right)

    def meet(self, v: Tensor) -> tuple[Tensor, Tensor]:
        self._back = torch.empty_like(self._right)
        weighted, distances = self._left * v[:, None], []
        for rows, aim in zip(self._classes.rows, self._target, strict=True):
            residual = torch.addmm(aim, weighted[rows].T, self._right[rows], alpha=-1)
            torch.mm(self._left[rows], residual, out=self._back[rows])
            distances.append(residual.square_().sum())
        return torch.stack(distances), vecdot(self._back, self._right)

    def slope(self, steep: Tensor, bend: Tensor) -> Tensor:
        slope: Tensor = self._right * (self._strengths * bend)[:, None]
        slope.addcmul_(self._back, steep[:, None], value=-1)
        return slope


class _ByMean:
    """The distance by E, which has one row where l is a number."""

    def __init__(self, left: Tensor, right: Tensor, target: Tensor, classes: _Classes) -> None:
        self._left, self._right, self._target, self._members = left, right, target, classes.members
        self.norms = left.square() * vecdot(right, right)

    def meet(self, v: Tensor) -> tuple[Tensor, Tensor]:
        self._residual = torch.addmm(self._target, self._members * (self._left * v), self._right, alpha=-1)
        along = (self._members * (self._residual @ self._right.T)).sum(dim=0)
        return vecdot(self._residual, self._residual), self._left * along

    def slope(self, steep: Tensor, bend: Tensor) -> Tensor:
        slope: Tensor = self._right * (self._left.square() * bend)[:, None]
        slope.addmm_((self._members * (self._left * steep)).T, self._residual, alpha=-1)
        return slope
