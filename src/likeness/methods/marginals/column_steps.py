"""Which round step the values of a column have, as one mean embedding: one-hot steps, side by side."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.typed import build
from likeness.features.base import OneHotMap
from likeness.features.cells import Inputs, number_of

_NEAR = 1e-5  # of a step: a value this near to a multiple is one
_AT_ONCE = 1 << 13  # rows
MOST_MULTIPLES = 10**8  # of a step within the bounds: rounding of the unit scale stays far below it


@dataclass(frozen=True)
class Steps:
    """Steps of one number, from public numbers alone.

    Attributes:
        start: coordinate of the number in the dense row.
        lower: value at 0 on the unit scale.
        upper: value at 1.
        steps: descending; each is a multiple of the next.
        missing: whether the next coordinate says that the number is missing.

    Raises:
        ValueError: the numbers contradict each other.
    """

    start: int
    lower: float
    upper: float
    steps: tuple[float, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        width = self.upper - self.lower
        if self.start < 0 or not 0 < width < float("inf") or not self.steps:
            raise ValueError("steps need a start of at least 0, ascending bounds, and a step")
        ratios = [high / low if low > 0 else 0.0 for high, low in pairwise((*self.steps, self.steps[-1]))]
        if not all(1 <= ratio == ratio and abs(ratio - round(ratio)) < _NEAR for ratio in ratios):
            raise ValueError("steps descend, and each is a multiple of the next")
        if width > MOST_MULTIPLES * self.steps[-1]:
            raise ValueError("steps are too small for the bounds")

    @property
    def size(self) -> int:
        """Zero and missing, each step, and no step."""
        return len(self.steps) + 2

    def expression(self, unit: str, number: Callable[[float], str]) -> str:
        """The cell index as SQL, by the same arithmetic in float64. ``L_NEAR(v)`` stands for a nearest whole number.

        Args:
            unit: name of the coordinate, NULL where the number is missing.
            number: writes a float64.
        """
        value = f"({number(self.lower)} + {unit} * {number(self.upper - self.lower)})"
        cases = [f"{unit} IS NULL OR ABS({value}) < {number(_NEAR * self.steps[-1])} THEN 0"]
        for index, step in enumerate(self.steps, 1):
            multiples = f"({value} / {number(step)})"
            cases.append(f"ABS({multiples} - L_NEAR({multiples})) < {number(_NEAR)} THEN {index}")
        return f"CASE {' '.join(f'WHEN {case}' for case in cases)} ELSE {self.size - 1} END"

    def cell_indices(self, x: Inputs) -> NDArray[np.int64]:
        """Give the cell of each row, shape (n,): 0 for zero and missing, i for the i-th step, the last for no step.

        The arithmetic is exact to the last bit and by row, so a block of any size gives the same.
        """
        units, missing = number_of(x, self.start, self.missing)
        indices = np.full(len(x), len(self.steps) + 1, dtype=np.int64)
        for start in range(0, len(x), _AT_ONCE):  # which stay in the fast memory
            values = self.lower + units[start : start + _AT_ONCE] * (self.upper - self.lower)
            tile = indices[start : start + _AT_ONCE]
            for index in range(len(self.steps), 0, -1):
                multiples = values / self.steps[index - 1]
                tile[np.abs(multiples - np.rint(multiples)) < _NEAR] = index
            tile[np.abs(values) < _NEAR * self.steps[-1]] = 0
        if missing is not None:
            indices[missing] = 0
        return indices


@dataclass(frozen=True)
class ColumnSteps(OneHotMap):
    r"""The largest of some round steps that each of m numbers is a multiple of.

    :math:`\phi(x) = (e_{s_i(x)})_i` with :math:`s_i(x)` the place of that step of column i; zero and missing, which are
    multiples of every step, have the first place, and values of no step the last.

    Bound: a record has exactly one place in each column, so every part has norm 1 and :math:`\|\phi(x)\|^2 = m`;
    nothing is negative. Reached by every record. Replacing a record moves it from one place to another in each column,
    :math:`\Delta^2 = 2m`, reached where all of them change.

    Source: histograms under one Gaussian, Dwork et al. (2006).

    Attributes:
        columns: steps of each column, one column at least.

    Raises:
        ReleaseError: no columns, or no steps.
    """

    name: ClassVar[str] = "column_steps"
    takes_codes: ClassVar[bool] = True
    columns: tuple[Steps, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _steps_of(self.columns))
        if not self.columns:
            raise ReleaseError("column_steps needs at least one column")

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part a column."""
        return tuple(Part(column.size, 1, nonnegative=True) for column in self.columns)

    @property
    def counted_tables(self) -> tuple[tuple[Steps, ...], ...]:
        """One column a part."""
        return tuple((column,) for column in self.columns)

    def cell_indices(self, x: Inputs) -> NDArray[np.int64]:
        """The step of each column of a row, shape (n, columns)."""
        return np.stack([column.cell_indices(x) for column in self.columns], axis=1)


def _steps_of(columns: Iterable[Steps | Mapping[str, Any]]) -> tuple[Steps, ...]:
    try:
        return tuple(column if isinstance(column, Steps) else build(Steps, column, "steps") for column in columns)
    except (ParamsError, TypeError) as error:
        raise ReleaseError(f"column_steps: columns are no steps ({error})") from None
