"""Bins of numbers: whether they are of equal width, or those that a released histogram gives."""

from likeness.data.column import Column
from likeness.data.grid import grid_of
from likeness.data.layout import Layout
from likeness.features import PairMarginals
from likeness.features.cells import Cells
from likeness.methods.base import EMBEDDING
from likeness.methods.quantiles import QUANTILES, asked_columns, learned_bins
from likeness.release.released import Released
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import require


def bins(bundle: Bundle) -> str:
    """Every bin of pairs of columns, computed again from the public schema and the released counts.

    Bins from anywhere else, from the rows say, would have cost nothing and told something.
    """
    released = {one.receipt.query: one for one in bundle.released().values()}
    pairs = query_again(released[EMBEDDING].receipt).feature
    if not isinstance(pairs, PairMarginals):
        return "none: the embedding has no cells"
    schema = bundle.schema()
    starts = Layout.from_schema(schema).starts
    columns = {starts[column.name]: column for column in schema.feature_columns}
    histogram, learned, public = released.get(QUANTILES), 0, 0
    kept = []  # of equal width, where the histogram gives others
    for own in pairs.columns:
        if own.edges is None:
            continue
        column = columns[own.start]
        expected = None if histogram is None else _learned(histogram, column, own)
        if expected is None:
            require(_public(column, own), f"'{column.name}': bins neither of equal width nor learned")
            public += 1
        elif own.edges == expected:
            learned += 1
        else:
            require(_public(column, own), f"'{column.name}': bins other than the released histogram gives")
            kept.append(column.name)
    # Edges of equal width are a setting of all columns; to keep some columns' alone could follow the rows.
    require(not kept or learned == 0, f"'{', '.join(kept)}': bins other than the released histogram gives")
    public += len(kept)
    return f"of {public} numbers of equal width on the public scale, of {learned} as the released histogram gives"


def _learned(histogram: Released, column: Column, own: Cells) -> tuple[float, ...] | None:
    """Edges between the column's bins from the histogram; None where it has none of this column, or hides them."""
    for fine, counts in asked_columns(histogram).blocks(histogram.lattice):
        if fine.start == own.start and fine.edges is not None:
            size, scale = own.size - int(own.missing), histogram.receipt.noise_scale
            firsts = learned_bins(column, fine, counts[0], scale, size)
            return None if firsts is None else tuple(fine.edges[first - 1] for first in firsts[1:])
    return None


def _public(column: Column, own: Cells) -> bool:
    """Whether the bins are of equal width, for some number of them: the setting itself is not in a bundle.

    It is larger than the number of bins where integers at the dense end of a logarithm share none, by its length.
    """
    return any(grid_of(column, bins).inner == own.edges for bins in range(2, 16 * own.size + 64))
