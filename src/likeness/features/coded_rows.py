"""Rows as they are encoded: one array a column, and the dense row only where a map asks for it."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Place = tuple[int, int, bool]
"""Where a column begins in the dense row, the width of its one-hot block, or 0, and whether a number may be missing."""


class Columns(Mapping[Place, NDArray[Any]]):
    """Columns that are made when they are asked for, once."""

    def __init__(self, makers: Mapping[Place, Callable[[], NDArray[Any]]]) -> None:
        """Take what makes each column."""
        self._makers, self._made = makers, dict[Place, NDArray[Any]]()

    def __getitem__(self, place: Place) -> NDArray[Any]:
        if place not in self._made:
            self._made[place] = self._makers[place]()
        return self._made[place]

    def __contains__(self, place: object) -> bool:
        return place in self._makers

    def __iter__(self) -> Iterator[Place]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class CodedRows:
    """Rows of the dense form, shape (n, d), that are made when they are asked for.

    Attributes:
        columns: of each column, shape (n,), by :data:`Place`. Of categories the place in the one-hot block, int64. Of a
            number its value on the unit scale, float64, NaN where it is missing.
    """

    def __init__(self, columns: Mapping[Place, NDArray[Any]], count: int, expand: Callable[[], Floats]) -> None:
        """Take the columns, the number of rows, and what makes the dense rows."""
        self.columns, self._count, self._expand = columns, count, expand

    def __len__(self) -> int:
        return self._count

    @cached_property
    def dense(self) -> Floats:
        """The dense rows, shape (n, d)."""
        return self._expand()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.dense, dtype) if copy else np.asarray(self.dense, dtype)

    def __getitem__(self, key: Any) -> Any:
        """Consecutive rows as such rows; anything else of the dense form."""
        if not isinstance(key, slice):
            return self.dense[key]
        columns = Columns({place: lambda place=place: self.columns[place][key] for place in self.columns})  # type: ignore[misc]
        return CodedRows(columns, len(range(*key.indices(self._count))), lambda: self.dense[key])


Inputs = Floats | CodedRows
"""Encoded rows, shape (n, d)."""


def number_of(x: Inputs, start: int, missing: bool) -> tuple[Floats, NDArray[np.bool_] | None]:
    """A number of each row on its unit scale, shape (n,), and where it is missing; None: nowhere.

    Args:
        x: rows.
        start: coordinate of the number in the dense row.
        missing: whether the next coordinate says that the number is missing.
    """
    if isinstance(x, CodedRows) and (start, 0, missing) in x.columns:
        values = x.columns[start, 0, missing]
        return values, np.isnan(values) if missing else None
    return x[:, start], x[:, start + 1] > 0.5 if missing else None
