"""A mixture of products: within a component all columns are independent; classes share components, not weights."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likeness.core.typed import build
from likeness.data.encoding.layout import NONE, Condition, Conditions
from likeness.features.cells import Cells
from likeness.generators.base import Arrays, DrawsRest, Generator, places_within, systematic
from likeness.methods.marginals.exchange import exchange_cells
from likeness.methods.marginals.relations.repair import Repair, read_uses

_LINE = 1e-9  # a place this near to the end of its bin could be rounded to the next one
_POINT = 1e-12  # on the unit scale: the length of a single value
_RARE = 1e-4  # a cell that the noise emptied is rare, not impossible
_EVERYTHING = ((-math.inf, math.inf),)
_LEAST = 1e-9  # share of a piece that the noise emptied, where a condition asks for it: rare, not impossible
_TINY = np.finfo(np.float64).tiny
_RULED_OUT = 1e-30  # a cell that the mixture rules out is rarer than any other, and never stops a row
_CLEAR = 2.0  # standard deviations of its noise above which a released count says what follows from a value
_ROWS = 4096  # rows whose components are compared at once


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
        lattice: a multiple of the step of a number's values and the step, on its unit scale; empty: no step.
    """

    cells: Cells
    edges: tuple[float, ...] = ()
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    firsts: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    lattice: tuple[float, ...] = ()

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
        if self.lattice and not (len(self.lattice) == 2 and np.isfinite(self.lattice).all() and self.lattice[1] > 0):
            raise ValueError("mixture: a lattice is a multiple and a step above 0")

    def refine(self, probabilities: NDArray[np.float64], cells: Cells) -> NDArray[np.float64]:
        """Probabilities of some cells of the column, from those of its own; values are even within a piece."""
        if cells == self.cells or self.cells.edges is None or cells.edges is None:
            return probabilities
        edges = np.array([-math.inf, *cells.edges, math.inf])
        piece_edges, lows, highs = np.array(self.edges), np.array(self.lows), np.array(self.highs)
        inside = np.minimum(piece_edges[1:, None], edges[1:]) - np.maximum(piece_edges[:-1, None], edges[:-1])
        parts = inside.clip(min=0) / np.diff(piece_edges)[:, None]
        points = lows == highs
        parts[points] = np.searchsorted(edges[1:-1], lows[points], side="right")[:, None] == np.arange(len(edges) - 1)
        bins = len(self.lows) if not self.firsts else len(self.firsts)
        starts = np.array(self.firsts or range(bins))
        shares = np.array(self.shares or [1.0] * bins)[:, None]
        within = np.add.reduceat(parts * shares, starts, axis=0)
        return np.concatenate([probabilities[:, :bins] @ within, probabilities[:, bins:]], axis=1)

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest value of a piece with a share."""
        if self.cells.edges is None:
            return 0.0, 1.0
        held = [piece for piece, share in enumerate(self.shares or [1.0] * len(self.lows)) if share > 0]
        return self.lows[held[0]], self.highs[held[-1]]

    def weights(self, condition: Condition) -> NDArray[np.float64]:
        """The part of each cell that a condition allows, shape (cells,), in [0, 1]."""
        weights = np.zeros(self.cells.size)
        if self.cells.edges is None:
            weights[list(condition.categories)] = 1
            return weights
        _, parts = self._starts_and_shares(condition.intervals)
        masses, bins = self._masses(parts, _LEAST), self.cells.size - int(self.cells.missing)
        weights[:bins] = [mass.sum() for mass in masses]
        weights[bins:] = condition.missing
        return weights

    def condition_on(self, allowed: NDArray[np.bool_]) -> Condition:
        """The condition that a value is in one of some cells, shape (cells,)."""
        if self.cells.edges is None:
            return Condition(tuple(np.flatnonzero(allowed).tolist()))
        bins = self.cells.size - int(self.cells.missing)
        starts = [*(self.firsts or range(bins)), len(self.lows)]
        ends = [(self.lows[starts[at]], self.highs[starts[at + 1] - 1]) for at in np.flatnonzero(allowed[:bins])]
        return Condition(intervals=tuple(ends), missing=bool(allowed[bins:].any()))

    def values(
        self, bins: NDArray[np.int64], random: np.random.Generator, condition: Condition | None
    ) -> NDArray[np.float64]:
        """A number on the unit scale for each row, shape (n,), from its bin; it meets the condition."""
        intervals = _EVERYTHING if condition is None else condition.intervals
        starts, parts = self._starts_and_shares(intervals)
        masses = self._masses(parts, 0.0 if condition is None else _LEAST)
        # Bins stand one after the other on a line, each of length 1: a row's point there gives its part of a piece.
        ends = np.concatenate([position + mass.cumsum() / (mass.sum() or 1) for position, mass in enumerate(masses)])
        points = bins + np.minimum(places_within(len(masses), bins, random), 1 - _LINE)
        piece, interval = np.divmod(np.searchsorted(ends, points, side="right"), parts.shape[1])
        lengths = parts[piece, interval] * np.diff(self.edges)[piece]
        values = starts[piece, interval] + random.random(len(bins)) * lengths
        values = np.minimum(values, np.array(intervals)[interval, 1])
        clipped: NDArray[np.float64] = np.clip(values, np.array(self.lows)[piece], np.array(self.highs)[piece])
        if not self.lattice:
            return clipped
        start, step = self.lattice
        multiples: NDArray[np.float64] = np.rint((clipped - start) / step) * step + start
        low, high = np.array(intervals)[interval].T  # a condition may hold no multiple
        return np.where((low <= multiples) & (multiples <= high), multiples, np.clip(values, 0, 1))

    def _starts_and_shares(
        self, intervals: Sequence[tuple[float, float]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Find each interval's start in each piece, and the part of the piece in it, shapes (pieces, intervals)."""
        lows, highs = np.array(intervals, dtype=np.float64).reshape(-1, 2).T
        edges, spikes = np.array(self.edges), np.array(self.lows)[:, None]
        starts = np.maximum(edges[:-1, None], lows)
        # A single value has its density: all numbers count with a length of 1e-12 more.
        parts = np.minimum(edges[1:, None], highs) - starts + _POINT
        parts = np.where(parts > 0, parts / np.diff(edges)[:, None], 0.0).clip(max=1.0)
        within = (lows - _POINT <= spikes) & (spikes <= highs + _POINT)
        between = parts if self.lattice else 0.0  # a condition may ask for values between the multiples of a step
        return starts, np.where(spikes == np.array(self.highs)[:, None], np.where(within, 1.0, between), parts)

    def _masses(self, parts: NDArray[np.float64], least: float) -> list[NDArray[np.float64]]:
        """Give each bin the shares of the parts (pieces, intervals) of its pieces; ``least`` is a piece's least."""
        shares = parts * np.maximum(self.shares or [1.0] * len(parts), least)[:, None]
        return np.split(shares.reshape(-1), np.array(self.firsts or range(len(parts)))[1:] * parts.shape[1])


class ProductMixture(Generator):
    r""":math:`p(x \mid y) = \sum_k \pi_{k \mid y} \prod_i p_{ki}(x_i)`: K products of categoricals.

    Every low-order marginal is a polynomial of the parameters, so it is matched exactly and without sampling: no
    relaxation, no latent noise, no discriminator. Sources: mixtures of products as in private-pgm (McKenna et al.
    2021), softmax-relaxed rows as in RAP (Aydore et al. 2021), a generator fitted to noisy marginals as in GEM (Liu et
    al. 2021).
    """

    name: ClassVar[str] = "product_mixture"
    readers: ClassVar = {
        "columns": lambda columns: [build(MixtureColumn, column, "columns") for column in columns],
        "relations": read_uses,
    }

    def __init__(
        self,
        columns: Sequence[MixtureColumn],
        num_classes: int,
        num_components: int,
        width: int,
        functions: Sequence[Sequence[int]] = (),
        relations: Mapping[str, Any] | None = None,
    ) -> None:
        """Build with logits of 0, which take no memory; ``width`` is that of the dense encoded row.

        ``functions`` are pairs of column indices: the first determines the second, as :meth:`determine` says.
        ``relations`` holds the ``operands`` and the ``uses`` of relations that drawn rows keep, if there are any.
        """
        self.relations = relations or {}
        self.num_components = num_components
        self.columns = tuple(columns)
        self.num_classes = num_classes
        self.width = width
        self.sizes = [column.cells.size for column in self.columns]
        self.logits = np.broadcast_to(np.float32(0), (num_components, sum(self.sizes)))
        self.weights = np.broadcast_to(np.float32(0), (num_classes, num_components))
        self.functions = tuple((int(first), int(second)) for first, second in functions)
        self.values = {pair: np.zeros(self.sizes[pair[0]], dtype=np.float32) for pair in self.functions}

    def spec(self) -> dict[str, Any]:
        """Functions and relations stand in it where there are any."""
        return {
            name: value for name, value in super().spec().items() if value or name not in ("functions", "relations")
        }

    def arrays(self) -> Arrays:
        """Logits of cells in components, shape (K, cells), and of components by class, shape (num_classes, K).

        Of each function also the cell of the second column for each cell of the first.
        """
        values = {f"function_{first}_{second}": cells for (first, second), cells in self.values.items()}
        return {"logits": self.logits, "weights": self.weights, **values}

    def load(self, arrays: Arrays) -> None:
        """Take over logits, and the cells of functions.

        Raises:
            ValueError: one is not finite, or no cell.
        """
        self.logits, self.weights = (arrays[name].astype(np.float32) for name in ("logits", "weights"))
        if not (np.isfinite(self.logits).all() and np.isfinite(self.weights).all()):
            raise ValueError("mixture: a weight is not finite")
        for first, second in self.functions:
            cells = arrays[f"function_{first}_{second}"].astype(np.float32)
            if not np.isin(cells, np.arange(self.sizes[second])).all():
                raise ValueError("mixture: a function has a value that is no cell")
            self.values[first, second] = cells

    def determine(self, tables: Mapping[tuple[int, int], tuple[NDArray[np.float64], float]]) -> None:
        """Fix each function: beside a cell of its first column stands the most frequent cell of the second.

        It is the most frequent one of the released table where it stands out of the noise, else of the mixture.

        Args:
            tables: counts of each pair of columns whose cells are released, indices ascending, and their noise.
        """
        parts, weights = self.exact()
        shares = weights.mean(axis=0)[:, None]
        for i, j in self.functions:
            cells = ((parts[i] * shares).T @ parts[j]).argmax(axis=1)
            counts, noise = tables.get((min(i, j), max(i, j)), (np.zeros((len(cells), 1)), math.inf))
            counts = counts if i < j or counts.shape[1] == 1 else counts.T
            cells = np.where(counts.max(axis=1) > _CLEAR * noise, counts.argmax(axis=1), cells)
            self.values[i, j] = cells.astype(np.float32)

    def start_from(self, marginals: NDArray[np.float64], random: np.random.Generator) -> None:
        """Random logits, whose centers are one-way marginals, shape (cells,)."""
        self.logits = random.standard_normal(self.logits.shape, dtype=np.float32)
        self.logits += np.log(marginals + _RARE).astype(np.float32)
        self.weights = random.standard_normal(self.weights.shape, dtype=np.float32)

    def exact(self) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        """Cell probabilities by column, shapes (K, cells), and component weights by class, shape (num_classes, K).

        In float64, so that a processor that rounds otherwise draws equal rows.
        """
        parts = np.split(self.logits, np.cumsum(self.sizes)[:-1], axis=1)
        return [_softmax(part) for part in parts], _softmax(self.weights)

    @property
    def table_cells(self) -> tuple[Cells, ...]:
        """The cells of all columns."""
        return tuple(column.cells for column in self.columns)

    @property
    def support(self) -> tuple[tuple[float, float], ...]:
        """The supports of all columns."""
        return tuple(column.support for column in self.columns)

    def table(self, columns: tuple[Cells, ...]) -> NDArray[np.float64]:
        """Probability of each cell of some columns in each class, shape (num_classes, cells of each column).

        The cells of one column may be the pieces that its bins consist of.
        """
        parts = np.split(self.logits, np.cumsum(self.sizes)[:-1], axis=1)
        logits = {column.cells.start: (column, part) for column, part in zip(self.columns, parts, strict=True)}
        needed = [(cells, *logits[cells.start]) for cells in columns]
        refined = [column.refine(_softmax(part), cells) for cells, column, part in needed]
        joint = reduce(_outer, refined, np.ones((self.num_components, 1)))
        table: NDArray[np.float64] = (_softmax(self.weights) @ joint).reshape(
            self.num_classes, *(cells.size for cells in columns)
        )
        return table

    def pairs(self, indices: Iterable[tuple[int, int]], records: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """See the base; the mixture's cells are computed once."""
        parts, weights = self.exact()
        shares = records[:, None] * weights
        for i, j in indices:
            yield np.stack([(parts[i] * share[:, None]).T @ parts[j] for share in shares])

    def class_likelihood(self, conditions: Conditions) -> NDArray[np.float64]:
        """Probability of the conditions in each class, up to a common factor, shape (num_classes,)."""
        parts, weights = self.exact()
        conditions = self._translate_conditions(conditions)
        likelihood: NDArray[np.float64] = weights @ self._condition(parts, conditions)
        return likelihood

    def draw(
        self, labels: NDArray[np.int64], random: np.random.Generator, conditions: Conditions = NONE
    ) -> NDArray[np.float64]:
        """Dense encoded rows (n, width) of classes (n,) that meet the conditions, from public randomness.

        Within a component columns are independent, so the rows come from the model's exact conditional distribution,
        by Bayes' rule on the components.
        """
        parts, weights = self.exact()
        conditions = self._translate_conditions(conditions)
        posterior = weights * self._condition(parts, conditions)
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), _TINY)
        components = systematic(posterior, labels, random)
        chosen = np.stack([systematic(part, components, random) for part in parts], axis=1)
        with threadpool_limits(1):  # its products are small: more threads only wait
            chosen = exchange_cells(chosen, labels, components, parts, posterior, random)
        for (first, second), values in self.values.items():
            chosen[:, second] = values[chosen[:, first]]
        x = rows_from_cells(self.columns, self.width, chosen, random, conditions)
        if not self.relations:
            return x
        fixed = {*conditions, *(second for _, second in self.functions)}
        return Repair(x, self.relations["operands"], self.columns, random, fixed, labels).run(self.relations["uses"])

    def conditional(self, indices: Sequence[int]) -> DrawsRest:
        """Condition on these columns by Bayes' rule on the components."""
        return Conditional(self, indices)

    def _translate_conditions(self, conditions: Conditions) -> Conditions:
        """Conditions on columns that follow from others, as conditions on these."""
        translated = dict(conditions)
        for (first, second), values in self.values.items():
            if second in translated:
                allowed = self.columns[second].weights(translated.pop(second))[values.astype(np.int64)] > 0
                if first in translated:
                    allowed &= self.columns[first].weights(translated[first]) > 0
                translated[first] = self.columns[first].condition_on(allowed)
        return translated

    def _condition(self, parts: list[NDArray[np.float64]], conditions: Conditions) -> NDArray[np.float64]:
        """Probability of the conditions in each component, up to a common factor, shape (K,).

        Each part with a condition is replaced by the column's distribution under it.
        """
        logs = np.zeros(self.num_components)
        for column, condition in conditions.items():
            allowed = parts[column] * self.columns[column].weights(condition)
            total = allowed.sum(axis=1, keepdims=True)
            parts[column] = allowed / np.maximum(total, _TINY)
            # A sum of logarithms: the product of a hundred small numbers would be 0.
            logs += np.log(total[:, 0], out=np.full(len(logs), -np.inf), where=total[:, 0] > 0)
        return np.exp(logs - logs.max()) if np.isfinite(logs.max()) else np.zeros_like(logs)


def _outer(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of each component's probabilities, shape (K, cells of both)."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities along the last axis, in float64."""
    probabilities: NDArray[np.float64] = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    return probabilities


def rows_from_cells(
    columns: Sequence[MixtureColumn],
    width: int,
    chosen: NDArray[np.int64],
    random: np.random.Generator,
    conditions: Conditions = NONE,
) -> NDArray[np.float64]:
    """Dense encoded rows (n, width) from cells (n, columns); a number is drawn from its bin, under its condition."""
    x = np.zeros((len(chosen), width))
    rows = np.arange(len(chosen))
    for index, (column, cells) in enumerate(zip(columns, chosen.T, strict=True)):
        start = column.cells.start
        if column.cells.edges is None:
            x[rows, start + cells] = 1
            continue
        present = cells < column.cells.size - int(column.cells.missing)
        if present.any():
            x[present, start] = column.values(cells[present], random, conditions.get(index))
        if column.cells.missing:
            x[~present, start + 1] = 1
    return x


class Conditional:
    r"""The distribution of some columns of a mixture, given the cells of others.

    By Bayes' rule component k has the weight :math:`\pi_k \prod_{i \in \text{given}} p_{ki}(c_i)`, and within it the
    other columns are independent. So a row comes from the exact conditional distribution of the mixture.
    """

    def __init__(self, mixture: ProductMixture, conditioning: Sequence[int]) -> None:
        """Work the tables out.

        Args:
            mixture: of one class.
            conditioning: indices of the columns whose cells are given.
        """
        parts, weights = mixture.exact()
        self.mixture, self.conditioning = mixture, tuple(conditioning)
        self.drawn = tuple(index for index in range(len(mixture.columns)) if index not in set(conditioning))
        self._start = np.log(np.maximum(weights[0], _RULED_OUT)).astype(np.float32)
        self._logs = {i: np.log(np.maximum(parts[i], _RULED_OUT)).T.astype(np.float32) for i in self.conditioning}
        self._below = {i: np.cumsum(parts[i], axis=1) for i in self.drawn}

    def draw(self, x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Dense encoded rows (n, width) that hold the drawn columns.

        Args:
            x: dense encoded rows (n, width) that hold the given columns.
            random: public.
        """
        chosen = np.empty((len(x), len(self.drawn)), dtype=np.int64)
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen[rows] = self._cells(x[rows], random)
        columns = [self.mixture.columns[index] for index in self.drawn]
        return rows_from_cells(columns, self.mixture.width, chosen, random)

    def alike(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """A number for each row (n,). Rows with equal numbers have equal given cells, so equal distributions."""
        numbers = np.zeros(len(x), dtype=np.int64)
        for index in self.conditioning:
            cells = self.mixture.columns[index].cells
            numbers = np.unique(numbers * cells.size + cells.cell_indices(x), return_inverse=True)[1]
        return numbers

    def draw_within(self, drawn: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Other values from the cells of drawn rows."""
        columns = [self.mixture.columns[index] for index in self.drawn]
        chosen = np.stack([column.cells.cell_indices(drawn) for column in columns], axis=1)
        return rows_from_cells(columns, self.mixture.width, chosen, random)

    def _cells(self, x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
        logs = np.repeat(self._start[None], len(x), axis=0)
        for index in self.conditioning:
            logs += self._logs[index][self.mixture.columns[index].cells.cell_indices(x)]
        logs -= logs.max(axis=1, keepdims=True)
        component = _draw_indices(np.cumsum(np.exp(logs), axis=1, dtype=np.float64), random)
        return np.stack([_draw_indices(self._below[index][component], random) for index in self.drawn], axis=1)


def _draw_indices(below: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """An index for each row by its cumulative weights."""
    points = random.random(len(below)) * below[:, -1]
    indices: NDArray[np.int64] = np.minimum((below <= points[:, None]).sum(axis=1), below.shape[1] - 1)
    return indices
