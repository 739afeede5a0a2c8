"""Fine bins at round numbers: a cell a value where there are few, months of dates, decades of wide bounds."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from likeness.data.encoding.bins import Grid, grid_of, numeric_grid, unit_of, whole_grid
from likeness.data.schema.column import Column

WIDE = 1_000
"""Steps between two bounds that make them wide: most values may then lie in one bin of equal width."""
_MOST_STEPS = 10**12  # of a column whose cells hold whole steps: a step is then far above the last digit of a unit
_SERIES = (
    (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 25, 28, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90),
    (10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90),
    (10, 15, 20, 30, 50, 70),
    (10, 20, 50),
    (10,),
)
_STRIDES = (4, 3, 2)  # of decades, where there is not even room for each
_FAR = 10


def is_wide(column: Column) -> bool:
    """Whether bounds span more than 1,000 steps of an untransformed number, from the schema alone.

    A step is 1, or the last of its ``decimals``. A date is never wide: its scale has no zero.
    """
    if column.is_categorical or column.transform != "none" or not column.type.are_numbers:
        return False
    lower, upper = column.bounds
    return (upper - lower) / _step(column) > WIDE


@cache
def coarse_grid(column: Column, bins: int) -> Grid:
    """Bins of equal width, as :func:`grid_of` makes them; those of decimals hold whole steps."""
    if column.is_whole or column.transform != "none" or not _has_steps(column):
        return grid_of(column, bins)
    lower, upper = _bounds(column)
    fractions = (lower - 0.5 + place / bins * (upper - lower + 1) for place in range(1, bins))
    return whole_grid(column, (math.ceil(round(edge, 6)) for edge in fractions), _step(column))


def decades_grid(column: Column, bins: int) -> Grid:
    """Bins of a wide column at round numbers, at most as many: half of them even, the others by orders of magnitude."""
    fine = fine_grid(column, 256, bins)
    values = [unit_of(column, value * _step(column) - _half(column)) for value in _round_values(column, bins)]
    inner = [edge for edge in fine.inner if any(abs(edge - value) < 1e-13 for value in values)]
    return fine.joined(sorted({*(fine.firsts_of(inner) or (0,)), *cut_cells(column, fine)}))


def cut_cells(column: Column, fine: Grid) -> set[int]:
    """The cells that begin at the column's cuts, where a bin must begin too."""
    step = _step(column) if _has_steps(column) else 0.0
    cuts = [math.ceil(round(cut / step, 6)) * step if step else cut for cut in column.cuts]
    return set(np.searchsorted(fine.inner, [unit_of(column, cut) for cut in cuts], side="right").tolist())


@cache
def fine_grid(column: Column, cells: int, bins: int) -> Grid:
    """About as many cells, in which the edges of ``bins`` bins of equal width are edges too.

    Args:
        column: a number.
        cells: of a column that is neither wide nor a date, and has more than 1,000 steps or none.
        bins: of equal width.
    """
    coarse, step = coarse_grid(column, bins), _step(column)
    if not is_wide(column) and (column.transform != "none" or not _has_steps(column)):
        return grid_of(column, -(-cells // bins) * bins)
    if not _has_steps(column):
        edges = [unit_of(column, value * step) for value in _round_values(column, cells)]
        return numeric_grid(column, {0.0, *edges, *coarse.inner, 1.0})
    lower, upper = _bounds(column)
    if upper - lower <= WIDE:
        firsts: Iterable[int] = range(lower, upper + 1)
    elif is_wide(column):
        # A round value is a cell of its own: amounts have these more often than others.
        firsts = (value + after for value in _round_values(column, cells // 2) for after in (0, 1))
    else:
        firsts = column.type.marks(lower, upper, 2 * cells)
    edges_of_bins = (round((_value(column, edge) + step / 2) / step) for edge in coarse.inner)
    return whole_grid(column, [*firsts, *edges_of_bins], step)


def prior_of(column: Column, grid: Grid, firsts: Sequence[int]) -> list[float]:
    """Weight of each cell of a wide column in its bin before any count is seen.

    Values are uniform within a bin. The first and the last bin differ where the bound is ten times as far from zero as
    the bin's inner edge and the middle bin. There the density falls with the third power of the size, as that of
    amounts does. Else nearly all would lie near the bound.
    """
    edges = [_value(column, edge) for edge in grid.edges]
    prior = [high - low for low, high in pairwise(edges)]
    ends, step, middle = [*firsts[1:], grid.size], _step(column), abs(edges[firsts[len(firsts) // 2]])
    for place, inner, bound in ((0, ends[0], -edges[0]), (len(firsts) - 1, firsts[-1], edges[-1])):
        size = max(abs(edges[inner]), middle) + step
        if bound > _FAR * size:
            for cell in range(firsts[place], ends[place]):
                near, far = sorted(abs(edge - edges[inner]) + size for edge in edges[cell : cell + 2])
                prior[cell] = near**-2 - far**-2
    return prior


def _step(column: Column) -> float:
    """The distance of neighboring values; 1 for a number without decimals, which has none."""
    return 1.0 if column.decimals is None else 10.0**-column.decimals


def _has_steps(column: Column) -> bool:
    lower, upper = column.bounds
    whole = column.is_whole or column.decimals is not None
    return whole and (upper - lower) / _step(column) <= _MOST_STEPS


def _half(column: Column) -> float:
    """From a value to the edge below it."""
    return _step(column) / 2 if _has_steps(column) else 0.0


def _bounds(column: Column) -> tuple[int, int]:
    """Bounds in steps."""
    lower, upper = (round(bound / _step(column)) for bound in column.bounds)
    return lower, upper


def _value(column: Column, unit: float) -> float:
    lower, upper = column.bounds
    return lower + unit * (upper - lower)


def _round_values(column: Column, cells: int) -> list[int]:
    """Round numbers between the bounds, in steps, ascending: fewer than ``cells``.

    Half of the cells are for multiples of 1, 2 or 5 times a power of ten. Where these are coarse, the others are for
    numbers of one or two digits, as many a decade as there is room for.
    """
    lower, upper = (bound / _step(column) for bound in column.bounds)
    widest = max((upper - lower) / max(1, cells // 2), 1.0)
    power = 10 ** math.floor(round(math.log10(widest), 9))
    width = next(times * power for times in (1, 2, 5, 10) if times * power >= widest * (1 - 1e-9))
    even = {place * width for place in range(math.floor(lower / width) + 1, math.ceil(upper / width))}
    values, decades = even, 2 + max(0, math.floor(round(math.log10(width), 9)))
    for series, stride in [*(((10,), stride) for stride in _STRIDES), *((series, 1) for series in reversed(_SERIES))]:
        tens = range(0, decades, stride)
        digits = {first * 10**ten // 10 for ten in tens for first in series if first * 10**ten % 10 == 0}
        near = {sign * value for value in digits for sign in (-1, 1) if value < 10 * width}
        more = even | {value for value in near if lower < value < upper}
        values = more if len(more) < cells else values
    return sorted(values)
