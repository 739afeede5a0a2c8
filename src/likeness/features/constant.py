"""The constant 1: summed by class it counts records."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.features.base import OneHotMap
from likeness.features.cells import Cells


@dataclass(frozen=True)
class Constant(OneHotMap):
    """``φ(x) = 1``. Norm exactly 1; non-negative. Its sum by class is the vector of class counts."""

    name: ClassVar[str] = "constant"

    @property
    def parts(self) -> tuple[Part, ...]:
        """One coordinate in [0, 1]."""
        return (Part(1, Fraction(1), nonnegative=True),)

    @property
    def axes(self) -> tuple[tuple[Cells, ...], ...]:
        """A table of no column."""
        return ((),)

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The only cell, shape (n, 1): counting needs no vectors."""
        return np.zeros((len(x), 1), dtype=np.int64)
