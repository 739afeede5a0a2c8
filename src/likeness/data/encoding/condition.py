"""What the columns of synthetic rows must hold, in the terms of encoded rows: places and the unit scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Condition:
    """What a feature column of every drawn row may hold; anything else has probability 0.

    Attributes:
        categories: places of the allowed ones, for a column with categories. A missing category is the last place.
        intervals: allowed parts of a number's unit scale, ascending and apart; both ends belong to them.
        missing: whether a number may be missing.
    """

    categories: tuple[int, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    missing: bool = False


Conditions = Mapping[int, Condition]
"""By the place of the feature column in the schema."""
NONE: Conditions = MappingProxyType({})
