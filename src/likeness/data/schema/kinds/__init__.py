"""The kinds of columns. A kind is one class in one file; :func:`register` makes it known, also one of other packages.

Table libraries are loaded where a cell is read or written, and not with the schema.
"""

from likeness.data.schema.kinds.categories import LESS, OTHER, Boolean, Categorical, day_of, pieces
from likeness.data.schema.kinds.kind import KINDS, PRIVATE, TRANSFORMS, Kind, guess, register
from likeness.data.schema.kinds.moments import Date, Datetime, Time
from likeness.data.schema.kinds.numbers import SWAPPED_MARKS, Integer, Numeric

__all__ = [
    "KINDS", "LESS", "OTHER", "PRIVATE", "SWAPPED_MARKS", "TRANSFORMS", "Boolean", "Categorical", "Date",
    "Datetime", "Integer", "Kind", "Numeric", "Time", "day_of", "guess", "pieces", "register",
]  # fmt: skip
