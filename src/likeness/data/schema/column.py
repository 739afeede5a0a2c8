"""One column of the public schema: its kind, its public bounds or categories, and what counts as missing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeness.core.errors import SchemaError
from likeness.core.extras import pa, pc, pd
from likeness.core.text import did_you_mean, excerpt, fault_of, normal_text
from likeness.data.schema.dtypes import EXAMPLES, parse_dtype
from likeness.data.schema.kinds import KINDS, PRIVATE, Kind
from likeness.data.schema.kinds.kind import ColumnFacts

# The split travels in the private table under this name. No column begins and ends with two underscores.
SPLIT_COLUMN = "__split__"
# And the number of the person whose row it is, where people have several.
PERSON_COLUMN = "__person__"
MOST_PLACES = 1 << 17
"""Values of a column up to which each has a place in a list."""
_MOST_LISTED = 50  # words for missing, and frequent values: more would be a list of cells


@dataclass(frozen=True)
class Column(ColumnFacts):
    """Public knowledge of one column, checked. Its texts are kept in their normal form (:mod:`likeness.core.text`).

    Raises:
        SchemaError: naming column and rule; all rules that are broken in its ``faults``.
    """

    def __post_init__(self) -> None:
        for key in ("name", "other", "categories", "missing_values", "format"):
            value = getattr(self, key)
            normal = tuple(map(normal_text, value)) if isinstance(value, tuple) else value and normal_text(value)
            object.__setattr__(self, key, normal)
        faults = tuple((key, f"column '{excerpt(self.name)}' {text}") for key, text in self._faults())
        if faults:
            raise SchemaError(faults[0][1], faults)

    @property
    def type(self) -> Kind:
        """The kind with all that is said of it."""
        return KINDS[self.kind]

    @property
    def is_categorical(self) -> bool:
        """Tell whether values are categories, and not numbers."""
        return self.type.is_categorical

    @property
    def is_integral(self) -> bool:
        """True for numbers that are always whole: integers, days and seconds."""
        return self.type.is_integral

    @property
    def width(self) -> int:
        """Number of encoded coordinates: one-hot with a place for missing, or a unit and its missing indicator.

        Raises:
            SchemaError: categories or bounds are not released yet.
        """
        if self.open or self.unbounded:
            what = "categories" if self.open else "bounds"
            raise SchemaError(f"column '{self.name}': its {what} are not released yet. Run: likeness run")
        return (len(self.categories) if self.is_categorical else 1) + int(self.nullable)

    def to_typed(self, numbers: ArrayLike) -> "pd.Series[Any]":
        """A typed column of numbers within the bounds, or of places of categories; NaN for missing."""
        return self.type.to_typed(np.asarray(numbers, np.float64), self)

    def clip_to_bounds(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers clipped to the bounds, shape (n,). One that is missing and may not be is the lower bound."""
        present = numbers if self.nullable else np.nan_to_num(numbers, nan=self.bounds[0])
        clipped: NDArray[np.float64] = np.clip(present, *self.bounds)
        return clipped

    def numbers(self, values: "pd.Series[Any]") -> NDArray[np.float64]:
        """Numbers of a typed column, or places of its categories, shape (n,); NaN where missing."""
        return self.type.numbers(values, self)

    def places(self, cells: "pa.Array | pa.ChunkedArray") -> "pa.Array | pa.ChunkedArray | None":
        """The place of each whole number, day or second among all values within the bounds, int32; null where missing.

        None: the typed cells are of another type, or one is beyond the bounds, or there are more than 2^17 values.
        """
        is_whole, exact = pa.types.is_integer(cells.type), getattr(self.type, "exact", None)
        if not (self.is_integral and (is_whole or (exact and pa.types.is_temporal(cells.type)))):
            return None
        numbers = cells if is_whole else cells.cast(exact)
        numbers = numbers.cast(f"int{numbers.type.bit_width}").cast("int64")
        lower, upper = map(int, self.bounds)
        least, most = pc.min_max(numbers).as_py().values()
        if upper - lower >= MOST_PLACES or (least is not None and not (lower <= least and most <= upper)):
            return None
        return pc.subtract(numbers, lower).cast(pa.int32())

    @property
    def range_text(self) -> str:
        """The bounds for people, with all digits; or the word for those that are not released yet."""
        if self.unbounded:
            return PRIVATE
        texts = (f"{end:.15g}" if self.type.numeric_source else self.type.text(end) for end in self.bounds)
        return " to ".join(texts)

    def to_dict(self) -> dict[str, Any]:
        """JSON form without the name; :func:`likeness.data.schema.column_keys.column_from` reads it back."""
        extras = {"decimals": self.decimals, "dtype": self.dtype}
        return {**self.encoding(), **{key: value for key, value in extras.items() if value is not None}}

    def encoding(self) -> dict[str, Any]:
        """The part of the JSON form that says how values are read and encoded.

        It is part of the key of every release: what it gives for a kind may not change.
        """
        extras = {"nullable": self.nullable, "missing_values": list(self.missing_values)}
        return {"kind": self.kind, **self.type.encoding(self), **extras}

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Every broken rule: the key that breaks it, and the rest of a sentence that begins with the column."""
        if not self.name or fault_of(self.name, len(self.name)):
            yield "name", "cannot have that name: it is empty, or holds a control character. Rename the column."
        elif re.fullmatch("__.*__", self.name):
            yield "name", "cannot have that name: two underscores at both ends are reserved. Rename the column."
        for key in ("missing_values", "spikes"):
            if len(getattr(self, key)) > _MOST_LISTED:
                yield key, f"has {len(getattr(self, key)):,} {key}. List at most {_MOST_LISTED}."
        if self.kind not in KINDS:
            yield "kind", f"has kind '{self.kind}'.{did_you_mean(self.kind, KINDS)} Kinds: {', '.join(KINDS)}, drop."
        elif self.decimals is not None and "decimals" not in self.type.keys:
            yield "decimals", "has decimals, and is not numeric. Leave them out."
        else:
            yield from self.type.faults(self)
        if self.dtype is not None and self.kind in KINDS:
            yield from self._dtype_faults(self.dtype)

    def _dtype_faults(self, text: str) -> Iterator[tuple[str, str]]:
        dtype = parse_dtype(text)
        if dtype is None or dtype.container == "dictionary" or not self.type.holds(text, self.format):
            rule = "is no dtype that Parquet gives back" if dtype is None or dtype.container else "cannot hold that"
            like = ", ".join(EXAMPLES[family] for family in self.type.families)
            yield "dtype", f"is {self.kind}, but dtype {text} {rule}. Write one like {like}, or leave it out."
        elif beyond := self.type.unsupported_values(dtype, self):
            remedy = "or give the column a kind with bounds" if self.is_categorical else "or write a wider one"
            yield "dtype", f"has dtype {text}, which cannot hold {beyond}. Leave dtype out, {remedy}."
