"""Bins of a number on public edges, and the range for a draw from each bin."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likeness.core.errors import SchemaError
from likeness.data.schema.column import Column

_NARROW = 1e-9  # half the width of a spike's bin on the unit scale, without near neighbors
_DIGITS = 14


@dataclass(frozen=True)
class Grid:
    """Bins on the unit scale of one numeric column.

    A value drawn from bin b is uniform between ``edges[b]`` and ``edges[b + 1]``, then clipped to ``lows[b]`` and
    ``highs[b]``. For integers these are the first and the last of the bin, and the edges lie half a step outside. So
    rounding gives each integer its share, and none of another bin.

    Attributes:
        edges: ascending, one more than bins; the outer ones may lie outside [0, 1].
        lows: smallest value of each bin, within [0, 1].
        highs: largest value of each bin, within [0, 1].
    """

    edges: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.lows)

    @property
    def inner(self) -> tuple[float, ...]:
        """The edges between bins."""
        return self.edges[1:-1]

    def join_bins(self, firsts: Sequence[int]) -> "Grid":
        """A grid of this range with fewer bins, from the first bin of each wider one; ascending from 0."""
        ends = [*firsts[1:], self.size]
        return Grid(
            (*(self.edges[first] for first in firsts), self.edges[-1]),
            tuple(self.lows[first] for first in firsts),
            tuple(self.highs[end - 1] for end in ends),
        )


def grid_of(column: Column, bins: int) -> Grid:
    """Bins of equal width on the column's unit scale (after its public transform), and one for each declared spike.

    A column of integers, days or seconds has at most one bin an integer, and no bin without one: narrow bins at the
    dense end of a logarithm fall together. The lower bound of an integer log1p column, mostly the zero of an amount, is
    a spike without a declaration. A bin begins at each of the column's cuts.
    """
    if column.is_integral:
        return whole_grid(column, first_wholes(column, bins))
    return numeric_grid(column, np.linspace(0, 1, bins + 1).tolist())


def spike_bins(column: Column, inner: Sequence[float]) -> frozenset[int]:
    """Bins that hold one spike of a column and nothing else, from the edges between bins."""
    spikes = [unit_of(column, spike) for spike in _spikes(column)]
    return frozenset(np.searchsorted(np.array(inner), spikes, side="right").tolist())


def _spikes(column: Column) -> tuple[float, ...]:
    """Declared spikes, and the lower bound of an integer log1p column."""
    zero = (column.bounds[0],) if column.is_integral and column.transform == "log1p" else ()
    return (*zero, *column.spikes)


def whole_grid(column: Column, firsts: Iterable[int], step: float = 1.0) -> Grid:
    """Bins of a column of whole steps, each from one of these to the next, and one for each spike.

    Args:
        column: whose values lie a step apart.
        firsts: the first value of each bin, in steps; those outside the bounds are left out.
        step: 1, that of the column's decimals, or a wider one.
    """
    lower, upper = math.ceil(round(column.bounds[0] / step, 6)), math.floor(round(column.bounds[1] / step, 6))
    spikes = {round(spike / step) for spike in _spikes(column)}
    cuts = {math.ceil(round(cut / step, 6)) for cut in column.cuts}
    starts = {lower, *firsts, *spikes, *(spike + 1 for spike in spikes), *cuts}
    firsts = sorted(first for first in starts if lower <= first <= upper)
    lasts = [first - 1 for first in firsts[1:]] + [upper]
    edges = units_of(column, ((first - 0.5) * step for first in [*firsts, upper + 1]))
    edges[0], edges[-1] = min(edges[0], 0.0), max(edges[-1], 1.0)  # bounds may lie between steps
    lows, highs = (units_of(column, (value * step for value in values)) for values in (firsts, lasts))
    return Grid(tuple(edges), tuple(lows), tuple(highs))


def numeric_grid(column: Column, between: Iterable[float], singles: Iterable[float] = ()) -> Grid:
    """Bins between these edges on the unit scale, and one for each spike and each value that is to be alone."""
    spikes = [unit_of(column, spike) for spike in sorted({*column.spikes, *singles})]
    points = sorted({0.0, 1.0, *spikes})
    narrow = min([_NARROW, *((high - low) / 4 for low, high in pairwise(points))])
    if narrow < 10.0**-_DIGITS or len(set(spikes)) < len(spikes):
        raise SchemaError(
            f"column '{column.name}' has spikes too close to each other or to a bound. Remove one from spikes."
        )
    even = list(between)
    cuts = [unit_of(column, cut) for cut in column.cuts]
    cuts = [cut for cut in cuts if all(abs(edge - cut) > 2 * narrow for edge in even)]
    between = [edge for edge in [*even, *cuts] if all(abs(edge - s) > 2 * narrow for s in spikes)]
    edges = sorted([*between, *(s - narrow for s in spikes), *(s + narrow for s in spikes)])
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    at = [next((s for s in spikes if abs(s - middle) < narrow), None) for middle in middles]
    lows = [max(0.0, low) if s is None else s for s, low in zip(at, edges[:-1], strict=True)]
    highs = [min(1.0, high) if s is None else s for s, high in zip(at, edges[1:], strict=True)]
    return Grid(tuple(edges), tuple(lows), tuple(highs))


def first_wholes(column: Column, bins: int) -> list[int]:
    """The smallest integer at or above each edge of equal width."""
    lower, upper = column.bounds
    fractions = np.arange(1, bins) / bins
    if column.transform == "log1p":
        return [math.ceil(round(lower + math.expm1(f * math.log1p(upper - lower)), 6)) for f in fractions]
    # From half a step below the first integer to half a step above the last: every integer has the same width.
    return [math.ceil(round(lower - 0.5 + f * (upper - lower + 1), 6)) for f in fractions]


def unit_of(column: Column, value: float) -> float:
    """A value on the column's unit scale; values outside the bounds are outside [0, 1]."""
    return units_of(column, [value])[0]


def units_of(column: Column, values: Iterable[float]) -> list[float]:
    """Values on the column's unit scale, rounded: edges are part of a key, and machines differ in last digits."""
    lower, upper = column.bounds
    if column.transform == "log1p":
        whole = math.log1p(upper - lower)
        return [round(math.log1p(value - lower) / whole, _DIGITS) for value in values]
    return [round((value - lower) / (upper - lower), _DIGITS) for value in values]


def value_of(column: Column, unit: float) -> float:
    """A value by its place on the unit scale; integers are not rounded."""
    return values_of(column, [unit])[0]


def values_of(column: Column, units: Iterable[float]) -> list[float]:
    """Values by their places on the unit scale, as :func:`value_of`."""
    lower, upper = column.bounds
    if column.transform == "log1p":
        whole = math.log1p(upper - lower)
        return [lower + math.expm1(unit * whole) for unit in units]
    return [lower + unit * (upper - lower) for unit in units]
