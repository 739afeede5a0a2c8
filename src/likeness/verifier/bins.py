"""Bins between quantiles: whether they are those that the released histogram gives."""

from likeness import bundle as names
from likeness.data.column import Column
from likeness.data.grid import grid_of
from likeness.data.layout import Layout
from likeness.data.schema import Schema
from likeness.features import PairMarginals
from likeness.features.cells import Cells
from likeness.methods.base import EMBEDDING
from likeness.methods.quantiles import QUANTILES, asked_columns, learned_bins
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import require


def bins(bundle: Bundle) -> str:
    """Every bin that is said to be learned, computed again from the released counts and the public schema.

    Bins from anywhere else, from the rows say, would have cost nothing and told something.
    """
    released = {one.receipt.query: one for one in bundle.released().values()}
    histogram = released.get(QUANTILES)
    if histogram is None:
        return "none was read off released values"
    schema = Schema.load(bundle.folder / names.SCHEMA)
    starts = Layout.from_schema(schema).starts
    columns = {starts[column.name]: column for column in schema.feature_columns}
    pairs = query_again(released[EMBEDDING].receipt).feature
    require(isinstance(pairs, PairMarginals), "quantiles were released, and no pairs of columns")
    assert isinstance(pairs, PairMarginals)
    coarse = {cells.start: cells for cells in pairs.columns}
    learned = 0
    for fine, counts in asked_columns(histogram).blocks(histogram.lattice):
        own, column = coarse[fine.start], columns[fine.start]
        firsts = learned_bins(column, fine, counts[0], histogram.receipt.noise_scale, own.size - int(own.missing))
        if firsts is None:
            require(_public(column, own, fine.size), f"'{column.name}': bins neither learned nor of equal width")
        else:
            assert fine.edges is not None
            expected = tuple(fine.edges[first - 1] for first in firsts[1:])
            require(own.edges == expected, f"'{column.name}': bins other than the released histogram gives")
            learned += 1
    return f"those of {learned} columns are between the quantiles of the released histogram"


def _public(column: Column, own: Cells, most: int) -> bool:
    """Whether the bins are of equal width, for some number of them: the setting itself is not in a bundle."""
    return any(grid_of(column, bins).inner == own.edges for bins in range(2, most + 1))
