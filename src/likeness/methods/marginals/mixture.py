"""A mixture of products: within a component all columns are independent; classes share components, not weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from likeness.features.cells import Cells
from likeness.generators.latent import Generator
from likeness.generators.sampling import places_within, systematic
from likeness.methods.marginals.pair_swapping import swap_pairs
from likeness.methods.marginals.workload import MOST_SWAP_ROUNDS

_LINE = 1e-9  # a place this near to the end of its bin could be rounded to the next one


@dataclass(frozen=True)
class MixtureColumn:
    """Cells of one column, and for a number how a value is drawn from its bin.

    Attributes:
        cells: see :class:`Cells`.
        edges: of each piece of a number's bins on its unit scale; a value is uniform between. Empty if one-hot.
        lows: least value of each piece.
        highs: largest value of each piece.
        firsts: the first piece of each bin; empty: a bin is a piece.
        shares: of each piece in its bin; empty: a bin is a piece.
    """

    cells: Cells
    edges: tuple[float, ...] = ()
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    firsts: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.cells.edges is None:
            return
        pieces, bins = len(self.lows), self.cells.size - int(self.cells.missing)
        if len(self.highs) != pieces or len(self.edges) != pieces + 1 or bool(self.firsts) is not bool(self.shares):
            raise ValueError("mixture: a number has one edge more than pieces")
        if not np.isfinite([*self.edges, *self.lows, *self.highs]).all() or not (np.diff(self.edges) > 0).all():
            raise ValueError("mixture: edges ascend")
        firsts, shares = np.array(self.firsts or range(bins)), np.array(self.shares or [1.0] * bins)
        if len(firsts) != bins or len(shares) != pieces or firsts[0] != 0 or (np.diff([*firsts, pieces]) < 1).any():
            raise ValueError("mixture: every bin of a number has a piece, and every piece a share")
        if not (shares >= 0).all() or not np.allclose(np.add.reduceat(shares, firsts), 1):
            raise ValueError("mixture: the shares of a bin's pieces sum to 1")

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        bins = {"edges": list(self.edges), "lows": list(self.lows), "highs": list(self.highs)}
        pieces = {"firsts": list(self.firsts), "shares": list(self.shares)} if self.firsts else {}
        return {"cells": self.cells.to_dict(), **bins, **pieces}

    def pieces(self, bins: Tensor, generator: torch.Generator) -> Tensor:
        """The piece of each row, shape (n,), from its bin and public randomness."""
        if not self.firsts:
            return bins
        parts = [torch.tensor(part, dtype=torch.float64) for part in np.split(np.array(self.shares), self.firsts[1:])]
        # Bins stand one after the other on a line, each of length 1: a row's point there gives its piece.
        ends = torch.cat([place + part.cumsum(0) / part.sum() for place, part in enumerate(parts)])
        points = bins + places_within(len(parts), bins, generator).clamp(max=1 - _LINE)
        return torch.searchsorted(ends, points, right=True)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> "MixtureColumn":
        """Inverse of :meth:`to_dict`."""
        edges, lows, highs = (tuple(float(v) for v in mapping[name]) for name in ("edges", "lows", "highs"))
        firsts = tuple(int(v) for v in mapping.get("firsts", ()))
        shares = tuple(float(v) for v in mapping.get("shares", ()))
        return cls(Cells.from_dict(mapping["cells"]), edges, lows, highs, firsts, shares)


class ProductMixture(Generator):
    r""":math:`p(x \mid y) = \sum_k \pi_{k \mid y} \prod_i p_{ki}(x_i)`: K products of categoricals.

    Every low-order marginal is a polynomial of the parameters, so it is matched exactly and without sampling: no
    relaxation, no latent noise, no discriminator. Sources: mixtures of products as in private-pgm (McKenna et al.
    2021), softmax-relaxed rows as in RAP (Aydore et al. 2021), a generator fitted to noisy marginals as in GEM (Liu et
    al. 2021).
    """

    name: ClassVar[str] = "product_mixture"
    readers: ClassVar = {"columns": lambda columns: [MixtureColumn.from_dict(column) for column in columns]}

    def __init__(
        self,
        columns: Sequence[MixtureColumn],
        num_classes: int,
        num_components: int,
        width: int,
        exchange_rounds: int = 0,
    ) -> None:
        """Build with random logits around uniform columns; ``width`` is that of the dense encoded row.

        For the rounds see :func:`likeness.methods.marginals.pair_swapping.swap_pairs`.
        """
        super().__init__()
        if type(exchange_rounds) is not int or not 0 <= exchange_rounds <= MOST_SWAP_ROUNDS:
            raise ValueError(f"mixture: exchange_rounds must be a whole number from 0 to {MOST_SWAP_ROUNDS}")
        self.num_components = num_components
        self.exchange_rounds = exchange_rounds
        self.columns = tuple(columns)
        self.num_classes = num_classes
        self.width = width
        self.sizes = [column.cells.size for column in self.columns]
        self.logits = nn.Parameter(torch.randn(num_components, sum(self.sizes)))
        self.weights = nn.Parameter(torch.randn(num_classes, num_components))

    def start_from(self, marginals: Tensor) -> None:
        """Move the components' centers to one-way marginals, shape (cells,): a better start, and nothing else."""
        with torch.no_grad():
            self.logits.add_(torch.log(marginals.to(self.logits) + 1e-4))

    def forward(self) -> tuple[Tensor, Tensor]:
        """Cell probabilities, shape (K, cells), and component weights by class, shape (num_classes, K)."""
        parts = [torch.softmax(part, dim=1) for part in torch.split(self.logits, self.sizes, dim=1)]
        return torch.cat(parts, dim=1), torch.softmax(self.weights, dim=1)

    @torch.no_grad()
    def exact(self) -> tuple[tuple[Tensor, ...], Tensor]:
        """As :meth:`forward`, by column, as float64.

        With swaps it also computes in float64, so that a processor that rounds otherwise draws equal rows. Without
        swaps a cell on the other side of a probability changes no other cell.
        """
        precision = torch.float64 if self.exchange_rounds else torch.float32
        parts = torch.split(self.logits.to(precision), self.sizes, dim=1)
        weights = torch.softmax(self.weights.to(precision), dim=1)
        return tuple(torch.softmax(part, dim=1).double() for part in parts), weights.double()

    @torch.no_grad()
    def likelihood(self, cells: Mapping[int, int]) -> Tensor:
        """Probability in each component, shape (K,), float64, of a cell for each given column's place."""
        parts, _ = self.exact()
        result = torch.ones(len(self.logits), dtype=torch.float64)
        for place, cell in cells.items():
            result = result * parts[place][:, cell]
        return result

    @torch.no_grad()
    def class_likelihood(self, cells: Mapping[int, int]) -> Tensor:
        """Probability of given cells in each class, shape (num_classes,), float64."""
        _, weights = self.exact()
        result: Tensor = weights @ self.likelihood(cells)
        return result

    @torch.no_grad()
    def draw(self, labels: Tensor, generator: torch.Generator, cells: Mapping[int, int] | None = None) -> Tensor:
        """Dense encoded rows (n, width) of classes (n,), from public randomness.

        ``cells`` gives a cell for a column's place. Within a component columns are independent, so the rows come from
        the model's exact conditional distribution, by Bayes' rule on the components.
        """
        given = dict(cells or {})
        parts, weights = self.exact()
        posterior = weights * self.likelihood(given)
        posterior = posterior / posterior.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
        components = systematic(posterior, labels, generator)
        chosen = torch.stack([systematic(part, components, generator) for part in parts], dim=1)
        for place, cell in given.items():
            chosen[:, place] = cell
        certain = {place: one_hot(torch.tensor([cell]), self.sizes[place]).double() for place, cell in given.items()}
        parts = tuple(certain.get(place, part).expand_as(part) for place, part in enumerate(parts))
        chosen = swap_pairs(chosen, labels, components, parts, posterior, self.exchange_rounds, generator)
        return rows_from_cells(self.columns, self.width, chosen, generator)


def rows_from_cells(columns: Sequence[MixtureColumn], width: int, chosen: Tensor, generator: torch.Generator) -> Tensor:
    """Dense encoded rows (n, width), float64, from cells (n, columns), int64; a number is drawn from its bin."""
    x = torch.zeros(len(chosen), width, dtype=torch.float64)
    rows = torch.arange(len(chosen))
    for column, cells in zip(columns, chosen.T, strict=True):
        start = column.cells.start
        if column.cells.edges is None:
            x[rows, start + cells] = 1
            continue
        edges, lows, highs = (
            torch.tensor(values, dtype=torch.float64) for values in (column.edges, column.lows, column.highs)
        )
        bins = column.pieces(cells.clamp(max=(len(column.firsts) or len(lows)) - 1), generator)
        share = torch.rand(len(chosen), generator=generator, dtype=torch.float64)
        value = edges[bins] + share * (edges[bins + 1] - edges[bins])
        x[:, start] = torch.minimum(torch.maximum(value, lows[bins]), highs[bins])
        if column.cells.missing:
            x[:, start + 1] = (cells == column.cells.size - 1).double()
    return x
