"""One column of the public schema: its kind, its public bounds or categories, and what counts as missing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from likeness.core.bounds import MOST_CATEGORIES
from likeness.core.errors import SchemaError
from likeness.data.booleans import FALSE_WORDS, TRUE_WORDS
from likeness.data.schema.dates import DATE_KINDS, date_range, number_of, text_of

NUMBER_KINDS = ("numeric", "integer")
CATEGORY_KINDS = ("categorical", "ordinal", "boolean")
KINDS = (*NUMBER_KINDS, "categorical", "ordinal", "boolean", *DATE_KINDS)
TRANSFORMS = ("none", "log1p")
# The split travels in the private table under this name, so no column may have it.
SPLIT_COLUMN = "__split__"
# And the number of the person whose row it is, where people have several.
PERSON_COLUMN = "__person__"
# Up to here encode and decode give every integer back exactly, under either transform (float64 has 53 bits).
LARGEST_INTEGER = 10**12
# And up to here a number with decimals, written without its point: the digits of a result are then those of the number.
MOST_DIGITS = 15
# What the schema says instead of categories that are not publicly known, and the category for the rest by default.
PRIVATE, OTHER = "private", "other"


@dataclass(frozen=True)
class Column:
    """Public knowledge of one column.

    Attributes:
        name: as in the header of the source.
        kind: ``numeric`` | ``integer`` | ``categorical`` | ``ordinal`` (categories in order) | ``boolean`` (two
            categories, false first, whose usual spellings are all understood) | ``date`` | ``datetime``.
        lower, upper: public bounds in units of the column: days since 1970-01-01 for dates, seconds for times; None
            for categories. Values beyond are clipped.
        categories: texts, in order.
        other: the category that takes unknown values; None refuses them.
        nullable: whether a value may be missing.
        transform: ``log1p`` spreads small values: log(1 + value - lower) is scaled instead of the value.
        missing_values: texts that mean missing, beside the empty cell.
        spikes: values that are known to be frequent (no gain, a full working week), within the bounds; methods with
            bins give each a bin of its own.
        decimals: of a ``numeric`` column, to which synthetic values are rounded: 2 for cents. None: as they are drawn.
            Read when rows are written and never before, so no release depends on it.
        format: how the source writes a date or time, as in ``datetime.strptime``; None for ISO 8601.
        open: the categories are not publicly known and not released yet (see
            :meth:`likeness.data.schema.schema.Schema.completed`); ``other`` takes every value that will not be among
            them.

    Raises:
        SchemaError: naming column and rule; all rules that are broken in its ``faults``.
    """

    name: str
    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    other: str | None = None
    nullable: bool = False
    transform: str = "none"
    missing_values: tuple[str, ...] = ()
    spikes: tuple[float, ...] = ()
    format: str | None = None
    decimals: int | None = None
    open: bool = False

    def __post_init__(self) -> None:
        faults = tuple((key, f"column '{self.name}' {text}") for key, text in self._faults())
        if faults:
            raise SchemaError(faults[0][1], faults)

    @property
    def is_categorical(self) -> bool:
        """True for ``categorical``, ``ordinal`` and ``boolean``."""
        return self.kind in CATEGORY_KINDS

    @property
    def is_date(self) -> bool:
        """True for ``date`` and ``datetime``."""
        return self.kind in DATE_KINDS

    @property
    def is_whole(self) -> bool:
        """True for numbers that are always whole: integers, days and seconds."""
        return self.kind == "integer" or self.is_date

    @property
    def width(self) -> int:
        """Number of encoded coordinates: one-hot with a place for missing, or a unit and its missing indicator.

        Raises:
            SchemaError: the column is open.
        """
        if self.open:
            raise SchemaError(f"column '{self.name}': its categories are not released yet. Run: dvc repro categories")
        return (len(self.categories) if self.is_categorical else 1) + int(self.nullable)

    @property
    def bounds(self) -> tuple[float, float]:
        """``(lower, upper)`` of a column that is not categorical."""
        if self.lower is None or self.upper is None:
            raise SchemaError(f"column '{self.name}' has no bounds: it is categorical.")
        return self.lower, self.upper

    def text(self, value: float) -> str:
        """A number of the column for people, and for the schema: a date as a date."""
        return text_of(self.kind, value) if self.is_date else f"{value:g}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form without the name; :func:`likeness.data.schema.column_keys.column_from` reads it back."""
        return {**self.encoding(), **({} if self.decimals is None else {"decimals": self.decimals})}

    def encoding(self) -> dict[str, Any]:
        """The part of the JSON form that says how values are read and encoded.

        It is part of the key of every release: what it gives for a kind may not change.
        """
        if self.kind == "boolean":
            own: dict[str, Any] = {"categories": list(self.categories)}
        elif self.is_categorical:
            own = {"categories": PRIVATE if self.open else list(self.categories), "other": self.other}
        elif self.is_date:
            lower, upper = self.bounds
            own = {"lower": self.text(lower), "upper": self.text(upper)}
            own |= {"spikes": [self.text(spike) for spike in self.spikes]} if self.spikes else {}
            own |= {"format": self.format} if self.format else {}
        else:
            own = {"lower": self.lower, "upper": self.upper, "transform": self.transform}
            own |= {"spikes": list(self.spikes)} if self.spikes else {}
        return {"kind": self.kind, **own, "nullable": self.nullable, "missing_values": list(self.missing_values)}

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Every broken rule: the key that breaks it, and the rest of a sentence that begins with the column."""
        if not self.name or self.name in (SPLIT_COLUMN, PERSON_COLUMN):
            yield "name", "cannot have that name: it is empty or reserved. Rename the column."
        if self.kind not in KINDS:
            yield "kind", f"has kind '{self.kind}'. Kinds: {', '.join(KINDS)}, drop."
        elif self.decimals is not None and self.kind != "numeric":
            yield "decimals", "has decimals, and is not numeric. Leave them out."
        elif self.is_categorical:
            yield from self._category_faults()
        else:
            yield from self._number_faults()

    def _number_faults(self) -> Iterator[tuple[str, str]]:
        if self.transform not in TRANSFORMS:
            yield "transform", f"has transform '{self.transform}'. Transforms: {', '.join(TRANSFORMS)}."
        if self.is_date and self.format is not None and not _reads_dates(self.kind, self.format):
            yield "format", f"has format '{self.format}', which does not read a whole {self.kind}. Write e.g. %d.%m.%Y."
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            words = "has no bounds. Bounds must be public: give lower and upper from the codebook, never from the rows."
            yield ("lower" if lower is None else "upper"), words
            return
        if not lower < upper or not math.isfinite(upper - lower):
            words = f"has bounds {self._shown(lower)} to {self._shown(upper)}. They must be finite, lower below upper."
            if lower == upper:
                words += " A column with one value: give it kind drop, or kind categorical with that one category."
            yield "lower", words
        elif self.kind == "integer":
            if not (lower.is_integer() and upper.is_integer()) or max(abs(lower), abs(upper)) > LARGEST_INTEGER:
                yield "lower", "is integer, so its bounds must be whole numbers up to 10^12. Or use kind numeric."
        elif self.is_date and not self._are_dates(lower, upper):
            yield "lower", f"is a {self.kind}, so its bounds must be dates of the years 1 to 9999."
        if self.decimals is not None:
            yield from self._decimal_faults(lower, upper)
        for spike in self.spikes:
            if not lower <= spike <= upper or (self.is_whole and not spike.is_integer()):
                shown = self._shown(spike)
                yield "spikes", f"has a spike at {shown}. Spikes must lie within the bounds and be of the kind."

    def _decimal_faults(self, lower: float, upper: float) -> Iterator[tuple[str, str]]:
        digits = self.decimals
        if type(digits) is not int or not 0 <= digits <= MOST_DIGITS:
            yield "decimals", f"has decimals {digits}. Give a whole number, as 2 for cents, or leave it out."
        elif any(round(value, digits) != value for value in (lower, upper, *self.spikes)):
            yield (
                "decimals",
                f"has a bound or a spike with more than {digits} decimals, so results could not have it.",
            )
        elif max(abs(lower), abs(upper)) * 10**digits > 10**MOST_DIGITS:
            yield "decimals", f"has decimals {digits}, which with its bounds makes more than {MOST_DIGITS} digits."

    def _shown(self, value: float) -> str:
        return self.text(value) if self._are_dates(value) else f"{value:g}"

    def _are_dates(self, *values: float) -> bool:
        if not self.is_date:
            return False
        lowest, highest = date_range(self.kind)
        return all(lowest <= value <= highest and value.is_integer() for value in values)

    def _open_faults(self) -> Iterator[tuple[str, str]]:
        if self.kind != "categorical":
            words = "their order" if self.kind == "ordinal" else "its two words"
            yield "categories", f"is {self.kind}, so {words} must be public: list categories. Or use kind categorical."
        elif self.other is None or not self.other or self.other != self.other.strip():
            yield "other", "has private categories and no other. Give a text for what is not released; it is public."
        elif self.other in self.missing_values:
            yield "missing_values", "has the same text in other and in missing_values. Keep it in one of them."

    def _category_faults(self) -> Iterator[tuple[str, str]]:
        if self.open:
            yield from self._open_faults()
            return
        if not self.categories:
            yield (
                "categories",
                "has no categories. They must be public: list them from the codebook, not from the rows; or write "
                "private, and they are released with a part of the budget.",
            )
            return
        if len(self.categories) > MOST_CATEGORIES:
            yield (
                "categories",
                f"has {len(self.categories):,} categories, more than {MOST_CATEGORIES:,}: nothing would be left but "
                "noise. Merge them along a public hierarchy (the first digits of a code), list those that are publicly "
                "known to be frequent with an other for the rest, or give the column kind drop.",
            )
        if len(set(self.categories)) != len(self.categories):
            yield "categories", "lists a category twice. Keep one."
        if any(not text or text != text.strip() for text in self.categories):
            yield (
                "categories",
                "has a category that is empty or has blanks around it. An empty cell is a missing value.",
            )
        if self.other is not None and self.other not in self.categories:
            yield "other", f"has other '{self.other}', which is not among its categories. Add it."
        if set(self.missing_values) & set(self.categories):
            yield (
                "missing_values",
                "has the same text in categories and in missing_values. Keep it in one of them.",
            )
        if self.kind == "boolean":
            folded = [text.casefold() for text in self.categories]
            if len(folded) != 2 or len(set(folded)) != 2 or folded[0] in TRUE_WORDS or folded[1] in FALSE_WORDS:
                yield (
                    "categories",
                    "is boolean: its categories are two words, the one for false first. Or leave them out.",
                )


def _reads_dates(kind: str, layout: str) -> bool:
    """Whether a layout gives back a date (or time, to the minute) that it wrote."""
    moment = "2003-11-29" if kind == "date" else "2003-11-29 17:45"
    try:
        written = datetime.fromisoformat(moment).strftime(layout)
    except ValueError:
        return False
    return number_of(kind, written, layout) == number_of(kind, moment)
