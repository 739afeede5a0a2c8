"""Bins of a number on public edges, and how a value is drawn back from its bin."""

import math
from dataclasses import dataclass

import numpy as np

from likeness.data.column import Column


@dataclass(frozen=True)
class Grid:
    """Bins on the unit scale of one numeric column.

    A value drawn from bin b is uniform between ``edges[b]`` and ``edges[b + 1]``, then held between ``lows[b]`` and
    ``highs[b]``: for integers these are the first and the last of the bin, and the edges lie half a step outside, so
    that rounding gives each of them its share and none of another bin.

    Attributes:
        edges: ascending, one more than there are bins; the outer ones of an integer column lie outside [0, 1].
        lows, highs: per bin, within [0, 1].
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
        """The edges between bins: all that finding a bin needs."""
        return self.edges[1:-1]


def grid_of(column: Column, bins: int) -> Grid:
    """At most ``bins`` bins of equal width on the column's unit scale (after its public transform).

    An integer column has at most one bin an integer, and no bin without one: narrow bins at the dense end of a
    logarithm fall together. Zero, where it is the lower bound of a log1p column, has a bin of its own.
    """
    if column.kind == "numeric":
        edges = tuple(float(edge) for edge in np.linspace(0, 1, bins + 1))
        return Grid(edges, edges[:-1], edges[1:])
    lower, upper = (round(bound) for bound in column.bounds)
    firsts = sorted({first for first in _first_integers(column, bins) if lower < first <= upper} | {lower})
    lasts = [first - 1 for first in firsts[1:]] + [upper]
    edges = tuple(_unit(column, first - 0.5) for first in [*firsts, upper + 1])
    lows = tuple(_unit(column, first) for first in firsts)
    return Grid(edges, lows, tuple(_unit(column, last) for last in lasts))


def _first_integers(column: Column, bins: int) -> list[int]:
    """The smallest integer at or above each edge of equal width."""
    lower, upper = column.bounds
    fractions = np.arange(1, bins) / bins
    if column.transform == "log1p":
        return [math.ceil(lower + math.expm1(f * math.log1p(upper - lower))) for f in fractions]
    # From half a step below the first integer to half a step above the last: every integer has the same width.
    return [math.ceil(lower - 0.5 + f * (upper - lower + 1)) for f in fractions]


def _unit(column: Column, value: float) -> float:
    """A value on the column's unit scale; beyond the bounds, beyond [0, 1]."""
    lower, upper = column.bounds
    if column.transform == "log1p":
        return math.log1p(value - lower) / math.log1p(upper - lower)
    return (value - lower) / (upper - lower)
