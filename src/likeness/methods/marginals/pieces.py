"""Pieces of a number's cells, in which values are even: how the density falls within a cell."""

import math
from collections.abc import Sequence
from itertools import pairwise

from likeness.data.encoding.bins import Grid, units_of, values_of
from likeness.data.schema.column import Column
from likeness.methods.marginals.columns import DIGITS, SAME, Single

_DENSITIES = 6  # pieces in which the density falls within a cell
_STEEP = 4.0  # most logarithms by which it falls
_ALONE = 10.0  # density of a cell with one frequent value, over that of the cells beside it
_LONGEST = 16  # decimals of a number
_TAIL = 2.0  # power by which it falls with the size in the last cell, at least


def pieces_of(column: Column, single: Single, firsts: Sequence[int]) -> tuple[Grid, tuple[int, ...], tuple[float, ...]]:
    """Pieces of a number's bins, in which values are even: their grid, the first of each bin, and shares in it.

    A cell is divided into a few pieces whose density is exponential, of the logarithm where the cell spans more than a
    factor of 2, with the slope between both neighbors.

    Args:
        column: the number.
        single: what is known of it.
        firsts: the first cell of each bin.
    """
    grid = single.grid
    assert grid is not None
    counts, edges, starts, step = single.counts[: grid.size], [grid.edges[0]], [], single.step
    lows: list[float] = []
    highs: list[float] = []
    shares: list[float] = []
    densities = _Densities(column, step, grid, counts)
    for cell in range(grid.size):
        starts.append(len(lows))
        stands_alone = cell in single.frequent and _stands_alone(grid, counts, cell)
        values = [_frequent(column, grid, cell)] if stands_alone else _cut(column, step, grid, cell)
        for (low, high, edge), part in zip(values, densities.shares(cell, values), strict=True):
            lows.append(low)
            highs.append(high)
            edges.append(edge)
            shares.append(counts[cell] * part)
    within: list[float] = []
    for first, end in pairwise([*(starts[first] for first in firsts), len(shares)]):
        total = math.fsum(shares[first:end])
        parts = [round(share / total, DIGITS) if total > 0 else 0.0 for share in shares[first:end]]
        parts[parts.index(max(parts))] += 1 - math.fsum(parts)  # machines differ in the last digits of a logarithm
        within += [round(share, DIGITS) for share in parts]
    return Grid(tuple(edges), tuple(lows), tuple(highs)), tuple(starts[first] for first in firsts), tuple(within)


_Piece = tuple[float, float, float]  # smallest and largest value, and the edge above, on the unit scale


def _stands_alone(grid: Grid, counts: Sequence[float], cell: int) -> bool:
    """Tell whether a cell is much denser than those beside it: so many records show every cell of an even column."""
    near = range(max(cell - 1, 0), min(cell + 2, grid.size))
    densities = {at: counts[at] / (grid.edges[at + 1] - grid.edges[at]) for at in near}
    return all(densities[cell] > _ALONE * densities[at] for at in near if at != cell)


def _frequent(column: Column, grid: Grid, cell: int) -> _Piece:
    """The one value that a cell with a frequent value stands for.

    A decimal that is two digits shorter than the cell's width lies in it by chance one time in a hundred: it is this.
    Else the value is known to the width only. A decimal near the lower end stands for it, because people ask how many
    are at most a frequent value.
    """
    low, high = values_of(column, (grid.lows[cell], grid.highs[cell]))
    shown = math.ceil(-math.log10(max(high - low, 10.0**-_LONGEST)))
    short = (math.ceil(round(low * 10.0**digits, 6)) / 10.0**digits for digits in (*range(shown - 1), shown + 1))
    value = next((decimal for decimal in short if low <= decimal <= high), low)
    unit = min(max(units_of(column, [value])[0], grid.lows[cell]), grid.highs[cell])
    return unit, unit, grid.edges[cell + 1]


def _cut(column: Column, step: float | None, grid: Grid, cell: int) -> list[_Piece]:
    """A cell in at most six pieces, of equal width or of equal factors."""
    low, high, edge = grid.lows[cell], grid.highs[cell], grid.edges[cell + 1]
    a, b = values_of(column, (low, high))
    if low == high or a == b:
        return [(low, high, edge)]
    if step is not None:
        b += step
    factors = _factor_grid(a, b)
    at = [a * (b / a) ** (part / _DENSITIES) if factors else a + (b - a) * part / _DENSITIES for part in range(1, 6)]
    if step is None:
        inner = sorted({round(unit, DIGITS) for unit in units_of(column, at)})
        cuts = [low, *(cut for cut in inner if low + SAME < cut < min(high, edge) - SAME), high]
        return [*((start, end, end) for start, end in pairwise(cuts[:-1])), (cuts[-2], high, edge)]
    wholes = sorted({round(a / step), *(round(value / step) for value in at)})
    wholes = [first for first in wholes if first < round(b / step)]
    lasts = [*units_of(column, ((first - 1) * step for first in wholes[1:])), high]
    ends = [*units_of(column, ((first - 0.5) * step for first in wholes[1:])), edge]
    return list(zip(units_of(column, (first * step for first in wholes)), lasts, ends, strict=True))


def _factor_grid(low: float, high: float) -> bool:
    return low > 0 and high > 2 * low


class _Densities:
    """The fall of the density within the cells of a number."""

    def __init__(self, column: Column, step: float | None, grid: Grid, counts: Sequence[float]) -> None:
        self._column, self._step = column, step or 0.0
        self._wide = [cell for cell in range(grid.size) if grid.lows[cell] < grid.highs[cell]]
        highs = (high + self._step for high in values_of(column, grid.highs))
        self._ends = list(zip(values_of(column, grid.lows), highs, strict=True))
        self._counts = [max(count, 1e-12) for count in counts]

    def shares(self, cell: int, pieces: Sequence[_Piece]) -> list[float]:
        """The share of each piece in its cell."""
        if len(pieces) == 1:
            return [1.0]
        low, high = self._ends[cell]
        factors, slope = _factor_grid(low, high), self._slope(cell)
        tops = [value + self._step for value in values_of(self._column, (top for _, top, _ in pieces))]
        scale = (lambda value: math.log(value / low)) if factors else (lambda value: value - low)
        at = [0.0, *(min(scale(top) / scale(high), 1.0) for top in tops)]
        below = at if abs(slope) < 1e-3 else [math.expm1(-slope * part) / math.expm1(-slope) for part in at]
        return [max(after - before, 0.0) for before, after in pairwise(below)]

    def _slope(self, cell: int) -> float:
        """Measure the fall of the density from the lower end of a cell to the upper one, in logarithms."""
        at, factors = self._wide.index(cell), _factor_grid(*self._ends[cell])
        log = self._log(cell, factors)
        below = self._log(self._wide[at - 1], factors) if at else log - 2
        above = self._log(self._wide[at + 1], factors) if at + 1 < len(self._wide) else log - _STEEP
        falls = [min(max(value, -_STEEP), _STEEP) for value in (below - log, above - log)]
        slope = min(max((falls[0] - falls[1]) / 2, -_STEEP), _STEEP)
        low, high = self._ends[cell]
        last = at + 1 == len(self._wide) and factors
        return max(slope, _TAIL * math.log(high / low)) if last else slope

    def _log(self, cell: int, factors: bool) -> float:
        """The logarithm of the density in a cell, of values or of their logarithms."""
        low, high = self._ends[cell]
        low = max(low, self._step / 2) if factors else low
        width = math.log(high / low) if factors and 0 < low < high else high - low
        return math.log(self._counts[cell] / width) if width > 0 else -50.0
