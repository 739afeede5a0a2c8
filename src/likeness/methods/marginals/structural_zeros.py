"""Cells of pairs of columns that the rules of the schema forbid: their counts are 0 for certain.

What a private row says keeps the rules (:class:`likeness.data.schema.rules.ConstrainedTable`), so only noise is in such
a cell. Setting it to 0 is post-processing by public facts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likeness.data.encoding.bins import Grid, unit_of
from likeness.data.schema.allowed import Allowed
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells

Block = tuple[int, int, NDArray[np.float64]]
"""Places i and j of two columns, and counts of shape (num_classes, cells of i, cells of j)."""

_SAME = 1e-9  # on the unit scale: the end of a bin is that of a range
Mask = NDArray[np.bool_]


class StructuralZeros:
    """The cells of a pair of feature columns that no row of a class can have."""

    def __init__(self, schema: Schema, columns: Sequence[tuple[Cells, Grid | None]]) -> None:
        """Find the forbidden combinations of at most two feature columns and the label.

        Args:
            schema: of the modeled columns.
            columns: cells and grid of each feature column.
        """
        indices = {column.name: index for index, column in enumerate(schema.feature_columns)}
        self._classes = len(schema.classes)
        self._sets: list[tuple[Mask, dict[int, Mask]]] = []
        for rule in schema.rules:
            for forbidden in rule.forbidden:
                classes, cells = np.ones(self._classes, dtype=bool), {}
                for name, allowed in forbidden.items():
                    if name in indices:
                        cells[indices[name]] = cells_within(allowed, schema.column(name), *columns[indices[name]])
                    else:
                        classes = np.isin(np.arange(self._classes), list(allowed.indices))
                if len(cells) <= 2:
                    self._sets.append((classes, cells))

    def forbidden_cells(self, i: int, j: int) -> Mask:
        """The forbidden cells of a pair of columns, shape (classes, cells of i, cells of j) or one that broadcasts."""
        masks = [_outer(classes, cells.get(i), cells.get(j)) for classes, cells in self._sets if set(cells) <= {i, j}]
        if not masks:
            return np.zeros((1, 1, 1), dtype=bool)
        forbidden: Mask = np.logical_or.reduce(np.broadcast_arrays(*masks))
        return forbidden

    def clear_forbidden(self, blocks: Sequence[Block]) -> list[Block]:
        """Released blocks with 0 in forbidden cells."""
        if not self._sets:
            return [*blocks]
        return [(i, j, np.where(self.forbidden_cells(i, j), 0.0, counts)) for i, j, counts in blocks]


def _outer(classes: Mask, left: Mask | None, right: Mask | None) -> Mask:
    """Cells of a pair; a column without a condition may hold anything."""
    rows = np.ones(1, dtype=bool) if left is None else left
    columns = np.ones(1, dtype=bool) if right is None else right
    outer: Mask = classes[:, None, None] & rows[None, :, None] & columns[None, None, :]
    return outer


def cells_within(allowed: Allowed, column: Column, cells: Cells, grid: Grid | None) -> Mask:
    """Cells all of whose values a condition allows, shape (cells,)."""
    mask = np.zeros(cells.size, dtype=bool)
    if grid is None:
        mask[[*allowed.indices, *([cells.size - 1] if allowed.missing else [])]] = True
        return mask
    lows, highs = np.array(grid.lows), np.array(grid.highs)
    for low, high in allowed.ranges:
        start, end = unit_of(column, low) - _SAME, unit_of(column, high) + _SAME
        mask[: grid.size] |= (lows >= start) & (highs <= end)
    mask[grid.size :] = allowed.missing
    return mask
