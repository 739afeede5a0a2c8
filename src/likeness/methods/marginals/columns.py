"""Single columns: cells from public bounds, finer cells where a release saw records, and bins of pairs.

A first release says which round step the values of a number have. Then a number falls into cells from its bounds alone:
even ones, those between round sizes of each decade, and the values 0 and both bounds alone. What these counts say
decides the cells of the next release: heavy cells are split, light ones are joined. A third release splits and joins
again. All together give the counts of each column. Every machine asks the same: sums have one order, whole values are
integers, and what follows from a logarithm is rounded.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from likeness.data.encoding.bins import (
    Grid,
    first_wholes,
    numeric_grid,
    spike_bins,
    unit_of,
    value_of,
    values_of,
    whole_grid,
)
from likeness.data.schema.column import Column
from likeness.features.cells import Cells
from likeness.methods.marginals.column_steps import MOST_MULTIPLES

FEWEST_CELLS, MOST_CELLS = 8, 64  # even ones of the first release
_EACH = 128  # possible values up to which each has a cell from the start
_DECADES = 8
_SIZES = {8: (1,), 16: (1, 3), 32: (1, 2, 3, 6), 64: (1, 1.5, 2, 3, 4, 6, 8)}  # of each decade, by the even cells
SURE = 4.5  # standard deviations of a cell that holds records beyond doubt
_SEEN = 2.0  # of what is kept of a tail
USUAL_CELLS = 25  # of a number, for forecasts: noise joins finer ones
NUMBER_CELLS = 256  # cells of a later release hold about one in as many records at least, without frequent values
_HIDDEN = 5.0  # standard deviations that such a cell holds at least
_WIDE = 12  # most cells that are not joined, and have no tails
_FAR = 4.0  # sizes that differ by more are not joined where records are seen
_BEYOND = 3  # cells of such factors beyond the last one where records were seen
_TRACE = 0.7  # standard deviations of a joined cell with traces of records
_LIGHT = 0.3  # of a bin's share: a bin with less takes the next cell, too
DIGITS = 9  # of what follows from a logarithm: machines differ in the last ones
SAME = 3e-9  # edges that are equal but for the width of single values
_STEPS = 10**12  # most steps of a column whose cells hold whole steps
_FINEST = 6  # decimals of the smallest step that is looked for
_ODD = 0.04  # share of values that may lie between multiples of a step
_BLURRED = 0.1  # share of records above which noise hides a step


class Single(NamedTuple):
    """The cells and counts of one column after all its releases.

    Attributes:
        grid: of a number; None for categories.
        step: the distance of neighboring values; None where a number has none.
        cells: of the column in the dense row.
        counts: at least 0, as many as records; the last may be for missing.
        noise: standard deviation of a count.
        frequent: indices of narrow cells, each of which a frequent value made stand out.
    """

    grid: Grid | None
    step: float | None
    cells: Cells
    counts: tuple[float, ...]
    noise: float
    frequent: tuple[int, ...] = ()


def even_cells(records: float, noise: float) -> int:
    """Even cells of a number in the first release: a power of two such that an average one stands out of the noise."""
    cells = FEWEST_CELLS
    while cells < MOST_CELLS and records > 3 * noise * cells * math.sqrt(2):
        cells *= 2
    return cells


def step_of(column: Column) -> float | None:
    """The distance of neighboring values; None where a column has no steps, or too many."""
    lower, upper = column.bounds
    step = 1.0 if column.is_integral else 10.0**-column.decimals if column.decimals is not None else None
    whole = column.is_integral or column.transform == "none"
    return step if step is not None and whole and (upper - lower) / step <= _STEPS else None


def public_steps(column: Column) -> tuple[float, ...]:
    """Round steps that a number may have, descending, from public facts; empty where the release could not use one.

    Among the steps are 1, 5, 10, 50 and so on, and 0.5, 0.1, 0.05 and so on. All declared spikes are multiples of each.
    """
    (lower, upper), step = column.bounds, step_of(column)
    if not column.type.numeric_source or column.transform != "none" or (step and (upper - lower) / step <= _EACH):
        return ()
    # Rounding of the unit scale, and of values far from 0, stays far below the smallest step.
    width, size = upper - lower, max(abs(lower), abs(upper))
    least = max(step or 10.0**-_FINEST, width / MOST_MULTIPLES, size / (100 * MOST_MULTIPLES))
    most = width / FEWEST_CELLS
    powers = range(math.floor(math.log10(most)) + 1, math.ceil(math.log10(least)) - 2, -1)
    candidates = (float(f"{digit}e{power}") for power in powers for digit in (5, 1))
    return tuple(
        candidate
        for candidate in candidates
        if least <= candidate <= most and candidate != step  # a declared step needs no question
        if all(abs(spike / candidate - round(spike / candidate)) < SAME for spike in column.spikes)
    )


def learned_step(steps: Sequence[float], counts: Sequence[float], noise: float, records: float) -> float | None:
    """The largest step that nearly all values are multiples of; None where the counts do not say so.

    Args:
        steps: descending.
        counts: of zero and missing, of each step, and of no step.
        noise: standard deviation of a count.
        records: their number.
    """
    informative = min(math.fsum(counts[1:]), records)
    for index, step in enumerate(steps, 2):
        blur = noise * math.sqrt(len(counts) - index)
        if blur < _BLURRED * informative and math.fsum(counts[index:]) <= _ODD * informative + blur:
            return step
    return None


def first_grid(column: Column, even: int, step: float | None) -> Grid:
    """Cells of a number from its public bounds, and the step of its values."""
    lower, upper = column.bounds
    single_values: list[float] = []
    for value in sorted(value for value in {lower, 0.0, upper} if lower <= value <= upper):
        near = (unit_of(column, other) for other in (*single_values, *column.spikes) if other != value)
        if all(abs(unit_of(column, value) - other) > 2 * SAME for other in near):
            single_values.append(value)
    plain = column.type.numeric_source and column.transform == "none"
    sizes = [size for size in _round_sizes(lower, upper, _SIZES[even]) if lower < size < upper] if plain else []
    if step is None:
        units = (unit_of(column, size) for size in sizes)
        return numeric_grid(column, sorted({*(index / even for index in range(even + 1)), *units}), single_values)
    if (upper - lower) / step <= _EACH:
        return whole_grid(
            column, range(math.ceil(round(lower / step, 6)), math.floor(round(upper / step, 6)) + 1), step
        )
    if not plain:
        return whole_grid(column, first_wholes(column, even), step)
    values = {*sizes, *(lower + index / even * (upper - lower) for index in range(1, even))}
    firsts = {math.ceil(round(value / step, 6)) for value in values}
    points = {round(value / step) for value in single_values if abs(value / step - round(value / step)) < SAME}
    return whole_grid(column, {*firsts, *points, *(point + 1 for point in points)}, step)


def lattice_of(column: Column, step: float) -> tuple[float, float]:
    """A multiple of a step near the lower bound, and the step, on the unit scale."""
    lower, upper = column.bounds
    return (math.ceil(lower / step - SAME) * step - lower) / (upper - lower), step / (upper - lower)


def is_fine(column: Column, bins: int) -> bool:
    """Tell whether a number has more values than a pair has bins for."""
    step, (lower, upper) = step_of(column), column.bounds
    return step is None or (upper - lower) / step >= bins


def _round_sizes(lower: float, upper: float, digits: Sequence[float]) -> Iterable[float]:
    top = math.floor(round(math.log10(max(abs(lower), abs(upper))), 9))
    return (sign * first * 10.0**ten for ten in range(top, top - _DECADES, -1) for first in digits for sign in (-1, 1))


def cells_of_number(column: Column, start: int, grid: Grid) -> Cells:
    """Cells of a number's bins, and one for missing; ``start``: its index in the dense row."""
    return Cells(start, grid.size + int(column.nullable), grid.inner, column.nullable)


def next_grid(
    column: Column,
    step: float | None,
    grid: Grid,
    counts: Sequence[float],
    records: float,
    noise: float,
    split: Mapping[int, int] = MappingProxyType({}),
) -> Grid:
    """Cells of a number for the next release: each holds about one in 256 records, and stands out of its noise.

    Args:
        column: the number.
        step: of its values; None: it has none.
        grid: of the release before.
        counts: of its cells, cleaned.
        records: their number.
        noise: standard deviation of a count of the next release.
        split: cells that are split into many parts of even width, and into how many.
    """
    of_values = (
        count
        for count, low, high in zip(counts, grid.lows, grid.highs, strict=True)
        if low == high and count > records / NUMBER_CELLS
    )
    target = max((records - math.fsum(of_values)) / NUMBER_CELLS, _HIDDEN * noise, 1.0)
    before = _CountedCells(column, step, grid, counts, target, noise, split)
    starts = [*before.next_starts(), *before.far_starts()]
    if step is None:
        inner = (start for start in starts if 0 < start < 1)
        return numeric_grid(column, sorted({0.0, 1.0, *inner}), before.heavy_values())
    return whole_grid(column, map(int, starts), step)


@dataclass(frozen=True)
class _CountedCells:
    """Cells of a number with their counts, from which the cells of the next release follow.

    A start is where a cell begins: in whole steps where values have a step, else on the unit scale.

    Attributes:
        column: the number.
        step: of its values; None: it has none.
        grid: the cells.
        counts: of the cells, cleaned.
        target: records that a cell of the next release holds.
        noise: standard deviation of a count of the next release.
        split: cells that are split into many parts of even width, and into how many.
    """

    column: Column
    step: float | None
    grid: Grid
    counts: Sequence[float]
    target: float
    noise: float
    split: Mapping[int, int]

    @cached_property
    def _seen_ends(self) -> tuple[int, int]:
        """First and last cell that hold records."""
        seen = [cell for cell, count in enumerate(self.counts) if count > 0] or [0]
        return seen[0], seen[-1]

    @cached_property
    def _values(self) -> list[tuple[float, float]]:
        """Least and greatest value of each cell."""
        lows, highs = (values_of(self.column, units) for units in (self.grid.lows, self.grid.highs))
        if self.step is not None:
            lows, highs = ([round(value / self.step) * self.step for value in values] for values in (lows, highs))
        return list(zip(lows, highs, strict=True))

    def _start(self, cell: int) -> float:
        return self.grid.edges[cell] if self.step is None else round(self._values[cell][0] / self.step)

    def _is_heavy_value(self, cell: int) -> bool:
        """Tell whether a cell is one value with so many records that it keeps a cell."""
        low, high = self._values[cell]
        return low == high and self.counts[cell] >= self.target / 2

    def heavy_values(self) -> list[float]:
        """Values with many records, but for declared spikes: these have cells in every grid."""
        spikes = {unit_of(self.column, spike) for spike in self.column.spikes}
        heavy = filter(self._is_heavy_value, range(self.grid.size))
        return [self._values[cell][0] for cell in heavy if self.grid.lows[cell] not in spikes]

    def next_starts(self) -> list[float]:
        """Starts of heavy values, of light cells that are joined, and of the parts of heavy cells."""
        starts: list[float] = []
        held, begun = math.inf, 0.0  # of the joined cell: its records, and its least value; infinite: it is closed
        for cell, count in enumerate(self.counts):
            low, high = self._values[cell]
            if self._is_heavy_value(cell):
                starts += [] if self.step is None else [self._start(cell)]
                held = math.inf
            elif low != high or self.step is not None:
                if self._begins_cell(cell, held, begun):
                    starts.append(self._start(cell))
                    held, begun = 0.0, low
                inner = self._part_starts(cell)
                starts += inner
                held = math.inf if inner else held + count
        return starts

    def _begins_cell(self, cell: int, held: float, begun: float) -> bool:
        """Tell whether a cell is not joined to those before it, which hold ``held`` records from ``begun`` on."""
        first, last = self._seen_ends
        _, high = self._values[cell]
        is_few = self.grid.size <= _WIDE  # few cells are never joined
        is_full = held >= self.target or self.counts[cell] >= self.target or cell in self.split
        is_far = (begun > 0 and high > _FAR * begun) or (high <= 0 and begun < _FAR * high)
        return is_few or is_full or cell in (first, last + 1) or (is_far and held > _TRACE * self.noise)

    def _part_starts(self, cell: int) -> list[float]:
        """Starts of the parts of a cell but the first, and of the cell that follows; empty where it is not split."""
        heavy = self.counts[cell] >= 1.5 * self.target
        parts = max(math.ceil(self.counts[cell] / self.target) if heavy else 1, self.split.get(cell, 1))
        if parts == 1:
            return []
        if self.step is None:
            begin, end = self.grid.edges[cell], self.grid.edges[cell + 1]
            return [round(begin + (end - begin) * part / parts, 14) for part in range(1, parts + 1)]
        first, last = (round(value / self.step) for value in self._values[cell])
        return [first + (last + 1 - first) * part // parts for part in range(1, parts + 1)]

    def far_starts(self) -> list[float]:
        """Starts beyond all cells that hold records, at growing multiples of the last value."""
        (first, last), (lower, upper) = self._seen_ends, self.column.bounds
        ends = ((value_of(self.column, self.grid.highs[last]), 1), (value_of(self.column, self.grid.lows[first]), -1))
        starts: list[float] = []
        for end, power in ((end, power) for end, sign in ends if sign * end > 0 for power in range(1, _BEYOND + 1)):
            whole = 0 if self.step is None else round(end / self.step) * int(_FAR) ** power
            far = float(f"{end * _FAR**power:.{DIGITS}g}") if self.step is None else whole * self.step
            if lower < far < upper:
                starts.append(round(unit_of(self.column, far), DIGITS) if self.step is None else whole)
        return starts


def ends_of(old: Grid, counts: Sequence[float], new: Grid) -> tuple[int, int]:
    """First and one past the last new cell among those where the first release saw records."""
    seen = [cell for cell, count in enumerate(counts) if count > 0] or [0]
    low, high = old.edges[seen[0]] - SAME, old.edges[seen[-1] + 1] + SAME
    inside = [cell for cell in range(new.size) if new.edges[cell] >= low and new.edges[cell + 1] <= high]
    return (inside[0], inside[-1] + 1) if inside else (0, new.size)


def nearest_edges(grid: Grid, values: Sequence[float]) -> list[int]:
    """The index of the edge that is nearest to each value on the unit scale; of two as near, the lower one."""
    edges = np.array(grid.edges)
    above = np.searchsorted(edges, values).clip(1, len(edges) - 1)
    return (above - (values - edges[above - 1] <= edges[above] - values)).tolist()  # type: ignore[no-any-return]


def pool_counts(
    new: Grid, counts: Sequence[float], noise: float, old: Grid, before: Sequence[float], old_noise: float
) -> list[float]:
    """Counts of new cells whose sum between common edges is the mean of both releases, by inverse variance.

    Source: the consistent estimate of a tree of counts, Hay et al. (2010).

    Args:
        new: cells of the later release.
        counts: of these, and of missing.
        noise: their standard deviation.
        old: cells of the release before.
        before: counts of these, and of missing.
        old_noise: their standard deviation.
    """
    nearest = nearest_edges(old, new.edges)
    common = [(edge, near) for edge, near in enumerate(nearest) if abs(old.edges[near] - new.edges[edge]) <= SAME]
    result = list(counts)
    for (start, first), (stop, last) in pairwise(common):
        if first < last and old_noise:
            weight = noise**2 * (stop - start) / (noise**2 * (stop - start) + old_noise**2 * (last - first))
            change = weight * (math.fsum(before[first:last]) - math.fsum(counts[start:stop])) / (stop - start)
            result[start:stop] = [count + change for count in counts[start:stop]]
    if len(counts) > new.size and old_noise:
        weight = noise**2 / (noise**2 + old_noise**2)
        result[-1] = (1 - weight) * counts[-1] + weight * before[-1]
    return result


def clean_counts(
    counts: Sequence[float],
    noise: float,
    records: float,
    ends: tuple[int, int] | None = None,
    cells: int | None = None,
) -> list[float]:
    """Counts of an ordered column that are at least 0 and as many as the records; tails fall, and end.

    Args:
        counts: noisy.
        noise: their standard deviation.
        records: their number.
        ends: outside of these cells, a count below 4.5 standard deviations is none.
        cells: their number before some were joined; few have no tails.
    """
    counts = list(counts)
    if (cells or len(counts)) > _WIDE:
        start, stop = ends or (0, len(counts))
        sure = [cell for cell, count in enumerate(counts) if count > SURE * noise]
        first, last = (sure[0], sure[-1]) if sure else (counts.index(max(counts)),) * 2
        for cell in (*range(start), *range(stop, len(counts))):
            if counts[cell] <= SURE * noise:
                counts[cell] = -math.inf
        counts[last + 1 :] = _tail(counts[last + 1 :], noise)
        counts[:first] = reversed(_tail(counts[:first][::-1], noise))
    return project_on_total(counts, records)


def _tail(counts: Sequence[float], noise: float) -> list[float]:
    """Falling counts from the middle outwards (isotonic regression), up to where they look like noise."""
    blocks: list[tuple[float, int]] = []
    for count in counts:
        mean, size = count, 1
        while blocks and mean > blocks[-1][0]:
            before, length = blocks.pop()
            mean, size = (mean * size + before * length) / (size + length), size + length
        blocks.append((mean, size))
    falling: list[float] = []
    for mean, size in blocks:
        if not mean * math.sqrt(size) >= _SEEN * noise:
            break
        falling += [mean] * size
    return [*falling, *([0.0] * (len(counts) - len(falling)))]


def project_on_total(counts: Sequence[float], total: float) -> list[float]:
    """The nearest counts that are at least 0 and have this sum; what is 0 or less stays 0."""
    descending, above, cut = sorted((count for count in counts if count > 0), reverse=True), 0.0, -math.inf
    if not descending:
        return [total / len(counts)] * len(counts)
    for size, count in enumerate(descending, 1):
        above += count
        level = (above - total) / size
        if count <= level:
            break
        cut = level
    return [max(count - cut, 0.0) if count > 0 else 0.0 for count in counts]


def bins_of(column: Column, single: Single, most: int) -> tuple[int, ...]:
    """The first cell of each bin of a number, about ``most`` of about even content; declared spikes are alone."""
    grid = single.grid
    assert grid is not None
    spikes = spike_bins(column, grid.inner)
    cuts = np.searchsorted(np.array(grid.lows) + SAME, [unit_of(column, cut) for cut in column.cuts]).tolist()
    forced = {*spikes, *(spike + 1 for spike in spikes), *cuts}
    counts = single.counts[: grid.size]
    share, heavy = math.inf, -1
    while sum(count >= share for count in counts) > heavy:  # what heavy cells leave is for the other bins
        heavy = sum(count >= share for count in counts)
        light = math.fsum(count for count in counts if count < share)
        share = (light or 1.0) / max(1, most - heavy)
    while True:
        firsts, held = [0], 0.0
        for cell, count in enumerate(counts):
            is_full = held + count > 1.3 * share and held > _LIGHT * share
            is_heavy = count >= share and held > _LIGHT * share / 4
            if cell and (is_full or is_heavy or cell in forced):
                firsts.append(cell)
                held = 0.0
            held += count
        if len(firsts) <= most + len(forced):
            return tuple(firsts)
        share *= 1.1
