"""Where cells of a number begin, as typed values that SQL can compare."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.schema.column import Column

_NEIGHBORS = 2_000  # floats around an edge at which a logarithm may turn back by the error of its last digits
_EDGES = 8  # of which all neighbors are tried at once


class Axis(Hashable, Protocol):
    """The cells of one column, as maps of cells have them.

    ``start`` is the first coordinate of the column in the dense row, and ``size`` the number of cells. ``cell_indices``
    gives the cell of each row, shape (n,), from dense rows (n, d): it never falls as the coordinate of a number rises.
    An axis whose cell falls has a method ``expression``, which gives SQL from the name of the coordinate.
    """

    start: int

    @property
    def size(self) -> int:
        """Number of cells."""
        ...

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cell of each row."""
        ...


def binary_search(value: str, firsts: Sequence[str], least: int = 0) -> str:
    """The number of firsts that are at most a value, plus ``least``: by halves."""
    if not firsts:
        return str(least)
    middle = len(firsts) // 2
    below, above = (
        binary_search(value, firsts[:middle], least),
        binary_search(value, firsts[middle + 1 :], least + middle + 1),
    )
    return f"CASE WHEN {value} < {firsts[middle]} THEN {below} ELSE {above} END"


def bin_starts(column: Column, axis: Axis) -> list[int] | list[float]:
    """The smallest typed value of each cell of a number but the first; a cell without a value has that of the next one.

    Each is found by halves among all values within the bounds, with the encoder itself: whole numbers, or float64 in
    their order. This is exact where the cell never falls as the value rises. Differences, quotients and comparisons in
    float64 never fall. A logarithm errs in its last digits: around each edge all neighbors are tried.

    Raises:
        DataError: a neighbor of an edge lies on its other side.
    """
    firsts = _bin_starts(replace(column, name="any"), replace(axis, start=0))  # type: ignore[type-var]
    if firsts is None:
        raise DataError(f"column '{column.name}': an edge of its cells is no value. Use transform: none.")
    return firsts


@lru_cache
def _bin_starts(column: Column, axis: Axis) -> list[int] | list[float] | None:
    """The same for columns of all names, worked out once; None where a neighbor of an edge lies on its other side."""
    lower, upper = column.bounds
    inner = axis.size - int(column.nullable)
    wanted = np.arange(1, inner)

    def find_cells(keys: NDArray[np.int64]) -> NDArray[np.int64]:
        values = keys.astype(np.float64) if column.is_integral else _floats(keys)
        x = np.zeros((len(keys), 2))
        x[:, 0] = column.type.encode(column.to_typed(values), column)
        return axis.cell_indices(x)

    ends = (
        np.array([math.ceil(lower), math.floor(upper)]) if column.is_integral else _keys(np.array([lower, upper]) + 0.0)
    )
    low, high = np.full(inner - 1, ends[0] - 1), np.full(inner - 1, ends[1] + 1)  # below, and at or above
    while (high > low + 1).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # a difference could overflow
        inside = (middle > low) & (middle < high)
        reached = np.zeros(len(middle), bool)
        reached[inside] = find_cells(middle[inside]) >= wanted[inside]
        high, low = np.where(inside & reached, middle, high), np.where(inside & ~reached, middle, low)
    for start in range(0, 0 if column.transform == "none" else len(high), _EDGES):
        near = high[start : start + _EDGES, None] + np.arange(-_NEIGHBORS, _NEIGHBORS + 1)
        keys = np.unique(near.clip(*ends))
        if (find_cells(keys) != np.searchsorted(high, keys, side="right")).any():
            return None
    firsts = high.astype(np.float64) if column.is_integral else _floats(high)
    return [int(first) for first in high.tolist()] if column.is_integral else firsts.tolist()


def _keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers in the order of float64 numbers, one for each."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _floats(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    bits = np.where(keys < 0, np.int64(-(2**63)) - keys, keys)
    return bits.view(np.float64) + 0.0
