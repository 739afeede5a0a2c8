"""What releases say about one number together, and frequent values within its cells.

More cells of a column cost nothing, because a record is in one of them. So the second release splits a heavy cell into
many. A value that many records share stands out of the noise of one narrow cell, which the third release splits again.
The other narrow cells are joined, because the noise of each would add up in them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from likeness.data.encoding.bins import Grid
from likeness.methods.marginals.columns import SURE, clean_counts, ends_of, nearest_edges, pool_counts

NEXT_NOISE = 1.2  # of the second release of a number, over that of the first
_HEAVY = 6.0  # standard deviations of the second release in a cell that may hide a frequent value
_JOINED = 5.0  # standard deviations that joined parts hold, if a cell is even
_MOST_PARTS, _ALL_PARTS, _LAST_PARTS = 256, 4096, 16_384  # of a cell that is split, and of a column's in each round


class Seen(NamedTuple):
    """The cells and counts of one number after some releases.

    Attributes:
        grid: of the last release, its split cells joined.
        counts: of its cells and of missing, with noise.
        cleaned: of the cells, at least 0, and as many as the records.
        missing: one count, or none.
        noise: standard deviation of a count of the last release.
        frequent: indices of cells that stand out of a split one; None after the first release.
    """

    grid: Grid
    counts: list[float]
    cleaned: list[float]
    missing: list[float]
    noise: float
    frequent: tuple[int, ...] | None

    @property
    def split(self) -> dict[int, int]:
        """Cells of several values that the next release splits, and into how many parts.

        After the first release, a cell of c records and noise s has (c / 3s)² parts: then half of them have a noise of
        a fifth of the cell, and a frequent value stands out. What stood out before has most parts.
        """
        noise = NEXT_NOISE * self.noise
        cells = range(self.grid.size) if self.frequent is None else self.frequent
        wide = [cell for cell in cells if self.grid.lows[cell] < self.grid.highs[cell]]
        if self.frequent is None:
            wide = [cell for cell in wide if self.cleaned[cell] >= _HEAVY * noise]
        every = _ALL_PARTS if self.frequent is None else _LAST_PARTS
        most = min(_MOST_PARTS, every // max(len(wide), 1))
        if self.frequent is not None or noise == 0:
            return dict.fromkeys(wide, most)
        return {cell: min(most, int((self.cleaned[cell] / (_HEAVY / 2 * noise)) ** 2)) for cell in wide}


def seen_of(grid: Grid, counts: Sequence[float], noise: float, records: float, before: Seen | None) -> Seen:
    """Summarize a number from a release and those before it.

    Args:
        grid: of the release.
        counts: of its cells and of missing.
        noise: their standard deviation.
        records: their number.
        before: what earlier releases say; None: this is the first.
    """
    ends, frequent, counts, cells = None, None, list(counts), grid.size
    if before is not None:
        counts = pool_counts(grid, counts, noise, before.grid, before.counts, before.noise)
        split = [(before.grid.edges[cell], before.grid.edges[cell + 1]) for cell in before.split]
        last = counts[grid.size :]
        grid, counts, frequent = joined_again(grid, counts, noise, split)
        counts += last
        ends = ends_of(before.grid, before.cleaned, grid)
    missing = [min(max(count, 0.0), records - 1) for count in counts[grid.size :]]
    present = clean_counts(counts[: grid.size], noise, max(records - sum(missing), 1.0), ends, cells)
    return Seen(grid, counts, present, missing, noise, frequent)


def joined_again(
    grid: Grid, counts: Sequence[float], noise: float, split: Sequence[tuple[float, float]]
) -> tuple[Grid, list[float], tuple[int, ...]]:
    """A grid with the parts of split cells joined, but for those that stand out; its counts, and the indices of these.

    What stands out holds more than 4.5 standard deviations. Others are joined until they would hold five times their
    noise if the rest of the cell were even. Where that takes all of them, the rest is even.

    Args:
        grid: of a release.
        counts: of its cells, and of those of earlier releases between common edges.
        noise: standard deviation of a count.
        split: lower and upper edge of each cell of the release before that was split, ascending.
    """
    firsts: list[int] = []
    result: list[float] = []
    frequent: list[int] = []
    start = 0
    ends = nearest_edges(grid, [end for cell in split for end in cell])
    for first, stop in (*zip(ends[::2], ends[1::2], strict=True), (grid.size, grid.size)):
        firsts += range(start, first)
        result += counts[start:first]
        sure = {at for at in range(first, stop) if counts[at] > SURE * noise}
        rest = math.fsum(counts[at] for at in range(first, stop) if at not in sure)
        most = (_JOINED * (stop - first) * noise / max(rest, noise)) ** 2 if noise else 1
        even = rest / max(stop - first - len(sure), 1) if most >= stop - first else None
        for at in range(first, stop):
            if at in sure:
                frequent.append(len(result))
            if at == first or at in sure or at - 1 in sure or at - firsts[-1] >= most:
                firsts.append(at)
                result.append(0.0)
            result[-1] += counts[at] if at in sure or even is None else even
        start = stop
    return grid.join_bins(firsts), result, tuple(frequent)
