"""What the cells of a column mean, in units of the column."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likeness.data.encoding.bins import spike_bins
from likeness.data.schema.column import Column
from likeness.features.cells import Cells


@dataclass(frozen=True)
class Axis:
    """The cells of one column.

    Attributes:
        column: of the public schema.
        labels: a text a cell, as ``likeness sample --where`` reads it: a category, a number or a range. None: missing.
        lows: the smallest value of each cell that is not missing; empty for categories.
        highs: the largest.
    """

    column: Column
    labels: tuple[str | None, ...]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.labels)

    @property
    def present(self) -> NDArray[np.float64]:
        """1 for each cell that is not missing, else 0."""
        return np.array([label is not None for label in self.labels], dtype=np.float64)

    @classmethod
    def from_column(cls, column: Column, cells: Cells | None = None) -> "Axis":
        """The axis of a column's cells; a class label needs none."""
        nothing = np.empty(0)
        if cells is None or cells.edges is None:
            missing = (None,) * int(column.nullable)
            return cls(column, (*column.categories, *missing), nothing, nothing)
        lows, highs = _ends(column, cells.edges)
        texts = [_text(column, low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
        return cls(column, (*texts, *(None,) * int(cells.missing)), lows, highs)


def _ends(column: Column, edges: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of each bin, from the inner edges on the unit scale."""
    lower, upper = column.bounds
    unit = np.array(edges)
    log = column.transform == "log1p"
    inner = lower + (np.expm1(unit * np.log1p(upper - lower)) if log else unit * (upper - lower))
    if column.is_integral:  # an edge lies half a step below the first number of its bin
        firsts = np.round(inner + 0.5)
        return np.array([lower, *firsts]), np.array([*(firsts - 1), upper])
    lows, highs = np.array([lower, *inner]), np.array([*inner, upper])
    for cell in spike_bins(column, edges):
        spike = min(column.spikes, key=lambda value: abs(2 * value - lows[cell] - highs[cell]))
        lows[cell] = highs[cell] = spike
    return lows, highs


def _text(column: Column, low: float, high: float) -> str:
    first, last = (column.type.text(end) for end in (low, high))
    return first if low == high else f"{first}..{last}"
