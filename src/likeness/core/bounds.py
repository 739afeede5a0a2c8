"""Bounds of a feature vector, and of the number of rows of a person."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from likeness.core.errors import ReleaseError
from likeness.core.text import normal_text

_NORM_BITS = 30  # the square of a norm of 2**30 fits an int64, and so do sums over 2**32 records
MOST_CATEGORIES = 1000
"""Of one column: noise grows with their number and records do not, so beyond this nothing is left."""
MOST_DELTA = 0.1
"""Largest δ of a lifetime cap. Under a larger one even ε = 0 protects little."""


@dataclass(frozen=True)
class PrivacyUnit:
    """The unit of privacy if a person may have several rows: everyone with a value of a column, with all rows.

    Attributes:
        column: of the source; its values name the people and are never encoded or released. Its name is public.
        max_rows: k, the most training rows of one person that are used. Public.
    """

    column: str = field(metadata={"help": "of the source; its values name the people, and it is never released"})
    max_rows: int = field(metadata={"help": "the most rows of one person that are used, public; noise grows with it"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", normal_text(self.column))

    @classmethod
    def from_dict(cls, value: Any) -> "PrivacyUnit":
        """Read its JSON form; whole numbers stay whole, because a sensitivity depends on them.

        Raises:
            ReleaseError: it holds no unit.
        """
        whole = isinstance(value, dict) and set(value) == {"column", "max_rows"} and type(value["max_rows"]) is int
        if not whole or not isinstance(value["column"], str) or value["max_rows"] < 1:
            raise ReleaseError("unit must hold column, a text, and max_rows, a whole number from 1, and nothing else")
        return cls(value["column"], value["max_rows"])


def rows_per_unit(unit: PrivacyUnit | None) -> int:
    """The most rows that one person adds to a sum; 1 if a row is a person."""
    return 1 if unit is None else unit.max_rows


@dataclass(frozen=True)
class Part:
    """Consecutive coordinates of a feature vector with a declared norm bound, which the door enforces.

    Attributes:
        width: number of coordinates, at least 1.
        norm_bound_squared: square of the bound on the Euclidean norm, exact as a fraction or a whole number.
        nonnegative: whether every coordinate is at least 0.
    """

    width: int
    norm_bound_squared: Fraction | int
    nonnegative: bool = False

    def lattice_bound_squared(self, lattice_bits: int) -> int:
        """Largest squared norm of an integer vector that the door lets pass, ``floor(B² · 4^bits)``."""
        return int(self.norm_bound_squared * 4**lattice_bits)  # floor: the value is positive

    def steps(self, lattice_bits: int) -> int:
        """Lattice steps of a contribution to its cell: the most that the bound allows."""
        return math.isqrt(self.lattice_bound_squared(lattice_bits))

    @property
    def unit(self) -> float:
        """The amount that a record adds to its cell, in units of the feature."""
        return math.sqrt(self.norm_bound_squared)

    @property
    def replacement_factor(self) -> int:
        """The squared distance of two vectors in this part is at most this factor times the squared bound.

        Signed: ``‖a − b‖ ≤ 2B``, factor 4. Non-negative: ``‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩ ≤ 2B²``, factor 2.
        Non-negative of width 1: both lie in ``[0, B]``, factor 1.
        """
        if not self.nonnegative:
            return 4
        return 1 if self.width == 1 else 2


def lattice_bits(parts: Sequence[Part]) -> int:
    """One unit of a feature is ``2**lattice_bits`` lattice steps: a vector has a norm of at most 2**30 steps."""
    norm_squared = sum(part.norm_bound_squared for part in parts)
    return _NORM_BITS - max(0, math.ceil(math.log2(norm_squared) / 2))
