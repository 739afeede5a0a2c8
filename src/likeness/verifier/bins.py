"""Bins of numbers: whether they are of equal width, or those that a released histogram gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from likeness.data.column import Column
from likeness.data.grid import Grid, grid_of
from likeness.data.layout import Layout
from likeness.features import ColumnMarginals, PairMarginals
from likeness.features.cells import Cells
from likeness.methods.base import EMBEDDING
from likeness.methods.quantiles import MOST_CELLS, QUANTILES, asked_columns, learned_bins
from likeness.methods.workload import MOST_BINS
from likeness.release.released import Released
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import Wrong, require


def bins(bundle: Bundle) -> str:
    """Every bin of pairs of columns, computed again from the public schema and the released counts.

    Bins from anywhere else, from the rows say, would have cost nothing and told something. How many there are, and
    whether they are learned, is one setting for all columns: a choice column by column could follow the rows too.
    """
    released = {one.receipt.query: one for one in bundle.released().values()}
    pairs = query_again(released[EMBEDDING].receipt).feature
    if not isinstance(pairs, PairMarginals):
        return "none: the embedding has no cells"
    schema, histogram = bundle.schema(), released.get(QUANTILES)
    starts = Layout.from_schema(schema).starts
    columns = {starts[column.name]: column for column in schema.feature_columns}
    require([own.start for own in pairs.columns] == list(columns), "cells of other columns than the schema's")
    for own in pairs.columns:
        require(_is_kind(columns[own.start], own), f"'{columns[own.start].name}': cells of another kind of column")
    if histogram is not None:
        _check_histogram(asked_columns(histogram), columns)
    numbers = [_Number.of(columns[own.start], own, histogram) for own in pairs.columns if own.edges is not None]
    for learns in (True, False):
        if _one_setting(numbers, learns):
            learned = sum(learns and number.learned is not None for number in numbers)
            public = len(numbers) - learned
            return (
                f"of {public} numbers of equal width on the public scale, of {learned} as the released histogram gives"
            )
    for number in numbers:
        gives = "other than the released histogram gives" if number.learned else "neither of equal width nor learned"
        fits = any(_one_setting([number], learns) for learns in (True, False))
        require(fits, f"'{number.column.name}': bins {gives}")
    raise Wrong("bins of more than one setting: their number, and whether they are learned, differ between columns")


def _is_kind(column: Column, own: Cells) -> bool:
    if column.is_categorical:
        return own.edges is None and own.size == column.width
    return own.edges is not None and own.missing == column.nullable


def _check_histogram(asked: ColumnMarginals, columns: Mapping[int, Column]) -> None:
    """Its cells are public too: of equal width, and as many of each column."""
    known = (own.edges is not None and own.start in columns for own in asked.columns)
    same = all(known) and all(_is_kind(columns[own.start], own) for own in asked.columns)
    require(same, f"{QUANTILES}: cells of other columns than the schema's numbers")
    numbers = [_Number.of(columns[own.start], own, None) for own in asked.columns]
    most = max(number.size - 2 - 2 * len(number.column.spikes) for number in numbers)
    # Cells of equal width are rounded up to a multiple of the bins, which are fewer.
    fits = most <= 2 * MOST_CELLS and _one_setting(numbers, False)
    require(fits, f"{QUANTILES}: cells that are not of equal width on the public scale")


@dataclass(frozen=True)
class _Number:
    """A numeric column: edges between its bins, how many bins, and the edges that the histogram gives for as many.

    These are None where the histogram has none of this column, or hides its quantiles.
    """

    column: Column
    edges: tuple[float, ...]
    size: int
    learned: tuple[float, ...] | None

    @classmethod
    def of(cls, column: Column, own: Cells, histogram: Released | None) -> "_Number":
        assert own.edges is not None
        size, learned = own.size - int(own.missing), None
        if histogram is None:
            return cls(column, own.edges, size, None)
        for fine, counts in asked_columns(histogram).blocks(histogram.lattice):
            if fine.start == own.start and fine.edges is not None and size <= fine.size - int(fine.missing):
                firsts = learned_bins(column, fine, counts[0], histogram.receipt.noise_scale, size)
                learned = None if firsts is None else tuple(fine.edges[first - 1] for first in firsts[1:])
        return cls(column, own.edges, size, learned)

    def fits(self, grid: Grid, learns: bool) -> bool:
        """Whether bins, as many as in a grid of equal width and learned, or that grid itself, would be these."""
        if learns and self.learned is not None:
            return grid.size == self.size and self.edges == self.learned
        return grid.inner == self.edges


def _one_setting(numbers: Sequence[_Number], learns: bool) -> bool:
    """Whether all columns could have been given the same number of bins: the setting itself is not in a bundle.

    It is larger than a column's number of bins where integers at the dense end of a logarithm share none, by its
    length; it is smaller by the bins that spikes add.
    """
    if not numbers:
        return True
    first, *others = sorted(numbers, key=lambda number: -number.size)
    size, spikes = first.size, len(first.column.spikes)
    for bins in range(max(2, size - 2 - 2 * spikes), min(16 * size + 64, MOST_BINS) + 1):
        grid = grid_of(first.column, bins)
        if first.fits(grid, learns) and all(other.fits(grid_of(other.column, bins), learns) for other in others):
            return True
        if grid.size > size + _SLACK:
            return False
    return False


_SLACK = 16  # more bins than these, and none of the settings to come has as few
