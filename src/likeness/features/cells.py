"""Public cells of a column of the dense encoded row: one cell a category, one a bin, one for missing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.config.typed import build
from likeness.core.errors import ParamsError, ReleaseError


@dataclass(frozen=True)
class Cells:
    """How one column falls into cells, from public numbers alone.

    Attributes:
        start: first coordinate of the column in the dense row.
        size: number of cells.
        edges: inner edges of a number's bins on its unit scale, ascending; a value on an edge belongs to the bin above.
            None: the column is one-hot, and a cell is a coordinate.
        missing: whether the last cell of a number is for missing; its indicator stands right after the number.

    Raises:
        ValueError: the numbers contradict each other.
    """

    start: int
    size: int
    edges: tuple[float, ...] | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        if self.start < 0 or self.size < 1:
            raise ValueError("cells need a start of at least 0 and a size of at least 1")
        if self.edges is not None:
            if self.size != len(self.edges) + 1 + int(self.missing):
                raise ValueError("cells: size is one more than the inner edges, and one more for missing")
            if any(not low < high for low, high in zip(self.edges, self.edges[1:], strict=False)):
                raise ValueError("cells: edges must ascend")
        elif self.missing:
            raise ValueError("cells: a one-hot column has its place for missing among its coordinates")

    @property
    def stop(self) -> int:
        """One past the last coordinate."""
        return self.start + (self.size if self.edges is None else 1 + int(self.missing))

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cell of each row, shape (n,), from dense rows (n, d). Row by row; always within 0 ... size - 1."""
        if self.edges is None:
            place: NDArray[np.int64] = x[:, self.start : self.start + self.size].argmax(axis=1).astype(np.int64)
            return place
        bins: NDArray[np.int64] = np.searchsorted(self.edges, x[:, self.start], side="right").astype(np.int64)
        return np.where(x[:, self.start + 1] > 0.5, self.size - 1, bins) if self.missing else bins


def cells_of(columns: Iterable[Cells | Mapping[str, Any]], name: str) -> tuple[Cells, ...]:
    """Cells of several columns, given as cells or as JSON; ``name`` is the map's, for the error.

    Raises:
        ReleaseError: they are not cells.
    """
    try:
        return tuple(column if isinstance(column, Cells) else build(Cells, column, "cells") for column in columns)
    except (ParamsError, TypeError) as error:
        raise ReleaseError(f"{name}: columns are not cells ({error})") from None
