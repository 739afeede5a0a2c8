"""The kinds of columns. A kind is one class, and :data:`KINDS_BY_NAME` is the only list of them.

Table libraries are loaded where a cell is read or written, and not with the schema.
"""

import math
import re
from collections.abc import Iterator, Set
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from likeness.core.bounds import MOST_CATEGORIES
from likeness.core.text import folded
from likeness.data.booleans import DEFAULT_WORDS, FALSE_WORDS, NUMBERS, TRUE_WORDS, spelled
from likeness.data.schema.column_facts import ColumnFacts
from likeness.data.schema.dates import EARLIEST, date_range, layout_fault, moment_of, number_of, text_of
from likeness.data.schema.dtypes import NUMBER, Dtype, parsed, value_of_moment, value_of_number, value_of_text
from likeness.data.schema.layouts import number_digits

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

TRANSFORMS = ("none", "log1p")
# Up to here encode and decode give every integer back exactly, under either transform (float64 has 53 bits).
LARGEST_INTEGER = 10**12
# And up to here a number with decimals, written without its point: the digits of a result are then those of the number.
MOST_DIGITS = 15
# What the schema says instead of categories that are not publicly known, and the category for the rest by default.
PRIVATE, OTHER = "private", "other"
_WHOLE = re.compile(r"[-+]?(?:0|[1-9]\d*)", re.ASCII)  # 007 is a code
_ZEROS = {mark: re.compile(rf"([-+]?\d+)[{mark}]0+", re.ASCII) for mark in ".,"}
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)(?: 00:00:00Z?)?", re.ASCII)
_Fault = tuple[str, str]
_Words = tuple[str, ...]


class Kind:
    """What is said of one kind of column, anywhere.

    Attributes:
        name: in the schema.
        keys: of the schema that such a column may have.
        rank: when a guess from texts is tried; lower ones first.
        arrow: tests of ``pyarrow.types`` for the types that are guessed to be of this kind.
        logged: type in the signature of a logged model.
        is_categorical: whether values are categories, encoded as one place each. Else they are numbers.
        is_whole: whether numbers are always whole.
        is_ordered: whether categories have an order.
        default_categories: those of a column that lists none.
        questions: keys that a draft asks for, each with the question.
        hint: how a person answers, in an interview.
        families: of the dtypes that can hold such a column (:mod:`likeness.data.schema.dtypes`).
    """

    name: ClassVar[str]
    keys: ClassVar[_Words]
    rank: ClassVar[int] = 9
    arrow: ClassVar[_Words] = ()
    logged: ClassVar[str] = "string"
    is_categorical: ClassVar[bool] = False
    is_whole: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    default_categories: ClassVar[_Words] = ()
    questions: ClassVar[tuple[tuple[str, str], ...]] = ()
    hint: ClassVar[str]
    families: ClassVar[_Words] = ("truth", "whole", "real", "text")

    def faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        """Every broken rule: the key that breaks it, and the rest of a sentence that begins with the column."""
        raise NotImplementedError

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """The keys of the JSON form that belong to this kind. They are part of the key of every release."""
        raise NotImplementedError

    def fits(self, texts: Set[str]) -> bool:
        """Whether a guess from these texts, of which there is one at least, is this kind."""
        return False

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """The one text of each typed cell: different cells have different texts, and databases can make them too.

        Args:
            cells: without missing ones.
        """
        return cells

    def holds(self, dtype: str, layout: str | None = None) -> bool:
        """Whether a dtype can hold a column of this kind.

        Args:
            dtype: its word.
            layout: of a date or time: ``%Y%m%d`` writes whole numbers.
        """
        parts = parsed(dtype)
        return parts is not None and parts.family in self.families

    def beyond(self, dtype: Dtype, column: ColumnFacts) -> str:
        """What of a column a dtype of its kind cannot hold, for people; empty: nothing."""
        raise NotImplementedError


class Numeric(Kind):
    """Numbers, in units of the column; the base of all kinds that are encoded as one."""

    name = "numeric"
    keys: ClassVar[_Words] = (
        *("kind", "lower", "upper", "nullable", "transform", "spikes", "missing_values", "dtype", "decimals"),
    )
    rank = 2
    arrow: ClassVar[_Words] = ("is_floating", "is_decimal", "is_duration")
    logged = "double"
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "the smallest possible value, from the codebook; values beyond are clipped"),
        ("upper", "the largest possible value, from the codebook"),
    )
    hint = "possible range: 0..110; amounts: 0..5000 log decimals 2; frequent values: 0..99 spikes 40"
    range_rule: ClassVar[str] = ""
    families: ClassVar[_Words] = ("truth", "whole", "real", "text", "span")
    are_numbers: ClassVar[bool] = True  # in a source that has types; else texts are read

    def bound(self, key: str, value: Any) -> float | str:
        """A number of the schema, or the rule that it breaks.

        Args:
            key: that it stands under.
            value: as in the YAML file.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a list of numbers." if key == "spikes" else "must be a number."
        try:
            return float(value)
        except OverflowError:
            return "holds a number that is too large."

    def text(self, value: float) -> str:
        """A number for people, and for the schema."""
        return f"{value:g}"

    def label(self, value: float) -> str:
        """A number at the axis of a figure."""
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"

    def unreadable(self, column: ColumnFacts) -> str:
        """What is wrong with a cell that is none of these numbers: the rest of a sentence, and the remedy."""
        return (
            f"a number, but its kind is {self.name}. If it means missing, name it in missing_values. A number has the "
            "digits 0 to 9, a hyphen as its minus, and no mark between thousands. Its decimals begin with a point, or "
            "as ingest.format.decimal says."
        )

    def read(self, texts: "pd.Series[Any]", column: ColumnFacts) -> "NDArray[np.float64]":
        """The number nearest to each text, NaN where it is missing; all NaN where a text is not a number.

        Arrow casts each cell by itself. pandas chooses one type for a column, and reads +6e72 with another last digit.
        """
        import numpy as np
        import pyarrow as pa

        try:
            cells = pa.array(texts, from_pandas=True).cast(pa.float64())
        except pa.ArrowInvalid:
            return np.full(len(texts), math.nan)
        numbers: NDArray[np.float64] = cells.to_numpy(zero_copy_only=False)
        return numbers

    def missing_numbers(self, column: ColumnFacts, decimal: str = ".") -> list[float]:
        """The numbers that mean missing.

        Args:
            column: its words for missing stand as in the schema, or as in the source.
            decimal: mark of decimals in the source.
        """
        words = [word.replace(",", ".") if decimal == "," else word for word in column.missing_values]
        return [float(word) for word in words if NUMBER.fullmatch(word) or word in ("inf", "-inf")]

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> "NDArray[np.float64]":
        """Numbers of a typed column; NaN where missing."""
        return values.to_numpy(dtype="float64", na_value=math.nan)

    def typed(self, numbers: "NDArray[np.float64]", column: ColumnFacts) -> "pd.Series[Any]":
        """A typed column of numbers within the bounds; NaN for missing."""
        import pandas as pd

        return pd.Series(numbers, dtype="float64")

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """As ``15e-1``, see :func:`likeness.data.schema.typed_cells.number_texts`."""
        from likeness.data.schema.typed_cells import number_texts

        return number_texts(cells.cast("double"))

    def fits(self, texts: Set[str]) -> bool:
        """Numbers that are not all digits: those would be codes. Nor are they 1 and 2 alone."""
        numbers = all(NUMBER.fullmatch(text) and not text.lstrip("-+").startswith("00") for text in texts)
        return numbers and texts != {"1.0", "2.0"} and not all(text.isdigit() for text in texts)

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """Bounds, transform, and spikes where there are any."""
        own: dict[str, Any] = {"lower": column.lower, "upper": column.upper, "transform": column.transform}
        return own | ({"spikes": list(column.spikes)} if column.spikes else {})

    def faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        """Rules of transform, bounds, decimals and spikes."""
        if column.transform not in TRANSFORMS:
            yield "transform", f"has transform '{column.transform}'. Transforms: {', '.join(TRANSFORMS)}."
        yield from self._own_faults(column)
        lower, upper = column.lower, column.upper
        if lower is None or upper is None:
            words = "has no bounds. Bounds must be public: give lower and upper from the codebook, never from the rows."
            yield ("lower" if lower is None else "upper"), words
            return
        if not lower < upper or not math.isfinite(upper - lower):
            words = f"has bounds {self._shown(lower)} to {self._shown(upper)}. They must be finite, lower below upper."
            if lower == upper:
                words += " A column with one value: give it kind drop, or kind categorical with that one category."
            yield "lower", words
        elif not self._allowed(lower, upper):
            yield "lower", self.range_rule
        if column.decimals is not None:
            yield from _decimal_faults(column, lower, upper)
        missing = set(self.missing_numbers(column))
        for spike in column.spikes:
            if spike in missing:
                yield "spikes", f"has {self._shown(spike)} in spikes and in missing_values. Keep it in one of them."
            if not lower <= spike <= upper or (self.is_whole and not spike.is_integer()):
                shown = self._shown(spike)
                yield "spikes", f"has a spike at {shown}. Spikes must lie within the bounds and be of the kind."

    def beyond(self, dtype: Dtype, column: ColumnFacts) -> str:
        """Its bounds; values lie between them."""
        ends = [end for end in (column.lower, column.upper) if end is not None and math.isfinite(end)]
        ends = [end for end in ends if self._allowed(end)]
        if all(self._fits(end, dtype) for end in ends):
            return ""
        return f"its bounds {' to '.join(map(self._shown, ends))}"

    def _fits(self, number: float, dtype: Dtype) -> bool:
        return dtype.family == "text" or value_of_number(Decimal(number), dtype) is not None

    def _allowed(self, *numbers: float) -> bool:
        """Whether these may be bounds."""
        return True

    def _own_faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        yield from ()

    def _shown(self, value: float) -> str:
        return self.text(value) if self._allowed(value) else f"{value:g}"


class Integer(Numeric):
    """Whole numbers."""

    name = "integer"
    keys: ClassVar[_Words] = Numeric.keys[:-1]
    rank = 1
    arrow: ClassVar[_Words] = ("is_integer",)
    logged = "long"
    hint = Numeric.hint.replace(" decimals 2", "")
    is_whole = True
    range_rule = "is integer, so its bounds must be whole numbers up to 10^12. Or use kind numeric."

    def typed(self, numbers: "NDArray[np.float64]", column: ColumnFacts) -> "pd.Series[Any]":
        """Integers; with pandas' own missing value where the column may have one."""
        import pandas as pd

        if not column.nullable:
            return pd.Series(numbers.astype("int64"))
        return pd.Series(numbers, dtype="Float64").astype("Int64")

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """Their digits."""
        return cells.cast("int64").cast("string")

    def fits(self, texts: Set[str]) -> bool:
        """Whole numbers without leading zeros; but 1 and 2 alone are two classes."""
        return texts != {"1", "2"} and all(_WHOLE.fullmatch(text) for text in texts)

    def _allowed(self, *numbers: float) -> bool:
        return all(number.is_integer() and abs(number) <= LARGEST_INTEGER for number in numbers)


class Date(Numeric):
    """Days since 1970-01-01."""

    name = "date"
    keys: ClassVar[_Words] = ("kind", "lower", "upper", "nullable", "spikes", "missing_values", "format", "dtype")
    rank = 3
    arrow: ClassVar[_Words] = ("is_date",)
    logged = "datetime"
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "the first possible day, as 1994-03-01; days before are clipped"),
        ("upper", "the last possible day"),
    )
    hint = "possible range: 1994-03-01..2024-12-31; dates like 31.12.2024: add format %d.%m.%Y"
    is_whole = True
    are_numbers = False
    families = ("moment", "text")
    range_rule = "is a date, so its bounds must be dates of the years 1 to 9999."
    example: ClassVar[str] = "1994-03-01"

    def bound(self, key: str, value: Any) -> float | str:
        """An ISO date; a day alone as upper bound means all of it."""
        found = number_of(self.name, str(value), end_of_day=key == "upper")
        return f"must be a {self.name} like {self.example}." if found is None else found

    def text(self, value: float) -> str:
        """ISO 8601."""
        return text_of(self.name, value)

    def label(self, value: float) -> str:
        """The day is enough."""
        return self.text(value)[: len(EARLIEST)]

    def unreadable(self, column: ColumnFacts) -> str:
        """How dates are written, and what to do about others."""
        written = f"like {column.format}, with names in English" if column.format else "in ISO 8601"
        return (
            f"a {self.name} {written}. Set format in the schema to how dates are written there, or missing_values; a "
            "date with a time of day is a datetime."
        )

    def read(self, texts: "pd.Series[Any]", column: ColumnFacts) -> "NDArray[np.float64]":
        """Days or seconds."""
        from likeness.data.schema.typed_cells import numbers_of_texts

        return numbers_of_texts(texts, column)

    def missing_numbers(self, column: ColumnFacts, decimal: str = ".") -> list[float]:
        """The dates that mean missing, in the column's format or in ISO 8601."""
        read = (number_of(self.name, word, column.format, column.bounds) for word in column.missing_values)
        return [number for number in read if number is not None]

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> "NDArray[np.float64]":
        """Days or seconds."""
        from likeness.data.schema.typed_cells import numbers_of_dates

        return numbers_of_dates(values, column)

    def typed(self, numbers: "NDArray[np.float64]", column: ColumnFacts) -> "pd.Series[Any]":
        """Arrow's dates, or its times."""
        from likeness.data.schema.typed_cells import typed_dates

        return typed_dates(numbers, column)

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """As ``0999-06-10``."""
        return cells.cast("date32").cast("string")

    def fits(self, texts: Set[str]) -> bool:
        """Each is one in ISO 8601."""
        return all(number_of(self.name, text) is not None for text in texts)

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """Bounds, and spikes and format where there are any."""
        lower, upper = column.bounds
        own: dict[str, Any] = {"lower": self.text(lower), "upper": self.text(upper)}
        own |= {"spikes": [self.text(spike) for spike in column.spikes]} if column.spikes else {}
        return own | ({"format": column.format} if column.format else {})

    def _allowed(self, *numbers: float) -> bool:
        lowest, highest = date_range(self.name)
        return all(lowest <= number <= highest and number.is_integer() for number in numbers)

    def _own_faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        bounds = [end for end in (column.lower, column.upper) if end is not None and self._allowed(end)]
        if column.format is not None:
            fault = layout_fault(self.name, column.format, (min(bounds, default=0.0), max(bounds, default=0.0)))
            if fault:
                yield "format", f"has format '{column.format}', {fault}"

    def holds(self, dtype: str, layout: str | None = None) -> bool:
        """Whole numbers too, where the layout makes numbers that fit."""
        digits, parts = number_digits(layout or ""), parsed(dtype)
        if not digits or parts is None or parts.family != "whole":
            return super().holds(dtype)
        bits = re.search(r"\d+", parts.element)
        return bits is not None and 10**digits < 2 ** (int(bits[0]) - 1)

    def _fits(self, number: float, dtype: Dtype) -> bool:
        return dtype.family != "moment" or value_of_moment(moment_of(self.name, number), dtype) is not None


class Datetime(Date):
    """Seconds since 1970-01-01, in UTC."""

    name = "datetime"
    rank = 4
    arrow: ClassVar[_Words] = ("is_timestamp",)
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "the first possible day or time, as 1994-03-01 or 1994-03-01 17:05:00"),
        ("upper", "the last possible day or time; a day means all of it"),
    )
    hint = "possible range: 1994-03-01..2024-12-31"
    range_rule = "is a datetime, so its bounds must be dates of the years 1 to 9999."
    example = "1994-03-01 or 1994-03-01 17:05:00"

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """As ``2003-11-29 17:45:00``."""
        return cells.cast("timestamp[s]").cast("string")


class Categorical(Kind):
    """Texts out of a public list, or out of one that is released; the base of all kinds of categories."""

    name = "categorical"
    keys: ClassVar[_Words] = ("kind", "categories", "other", "nullable", "missing_values", "dtype")
    arrow: ClassVar[_Words] = ("is_string", "is_large_string", "is_string_view", "is_dictionary")
    is_categorical = True
    families: ClassVar[_Words] = ("truth", "whole", "real", "text", "moment", "clock", "span")
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "categories",
            "every possible value, as a list, from the codebook; private if not publicly known; names, ids, free "
            "text: kind drop; days like 31.12.1999: kind date with lower, upper and format",
        ),
    )
    hint = "all possible values: red, green, blue; not publicly known: private"
    needs_public: ClassVar[str] = ""  # what of the categories must be public, so that they cannot be private
    unknown: ClassVar[str] = (
        "Add the category to the schema if it is publicly known, written as in the source (3 and 3.0 are two texts), "
        "or name a catch-all with other."
    )

    def spelling(self, text: str, column: ColumnFacts) -> str:
        """The category that a text means; the text itself where it means none. Midnight is also the day alone."""
        day = day_of(text)
        spellings = [text, day, f"{day} 00:00:00", f"{day} 00:00:00Z"] if day else []
        return next((one for one in spellings if one in column.categories), text)

    def beyond(self, dtype: Dtype, column: ColumnFacts) -> str:
        """A category that is none of its values. Private categories may be any texts."""
        if column.open:
            return "" if dtype.family == "text" else "private categories, which may be any texts"
        wrong = (text for text in column.categories if value_of_text(text, dtype) is None)
        return next((f"its category '{text}'" for text in wrong), "")

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """Categories, and the one for the rest."""
        return {"categories": PRIVATE if column.open else list(column.categories), "other": column.other}

    def faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        """Rules of categories."""
        if column.open:
            yield from self._open_faults(column)
            return
        if not column.categories:
            yield (
                "categories",
                "has no categories. They must be public: list them from the codebook, not from the rows; or write "
                "private, and they are released with a part of the budget.",
            )
            return
        if len(column.categories) > MOST_CATEGORIES:
            yield (
                "categories",
                f"has {len(column.categories):,} categories, more than {MOST_CATEGORIES:,}: nothing would be left but "
                "noise. Merge them along a public hierarchy (the first digits of a code), list those that are publicly "
                "known to be frequent with an other for the rest, or give the column kind drop.",
            )
        if len(set(column.categories)) != len(column.categories):
            yield "categories", "lists a category twice, by the normal form of texts. Keep one."
        if not all(column.categories):
            yield "categories", "has a category that is empty. An empty cell is a missing value."
        if column.other is not None and column.other not in column.categories:
            yield "other", f"has other '{column.other}', which is not among its categories. Add it."
        if set(column.missing_values) & set(column.categories):
            yield "missing_values", "has the same text in categories and in missing_values. Keep it in one of them."

    def _open_faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        if self.needs_public:
            words = f"is {self.name}, so {self.needs_public} must be public: list categories. Or use kind categorical."
            yield "categories", words
        elif not column.other:
            yield "other", "has private categories and no other. Give a text for what is not released; it is public."
        elif column.other in column.missing_values:
            yield "missing_values", "has the same text in other and in missing_values. Keep it in one of them."


class Ordinal(Categorical):
    """Categories in order."""

    name = "ordinal"
    arrow: ClassVar[_Words] = ()
    is_ordered = True
    hint = "all possible values in their order: low, middle, high"
    needs_public = "their order"


class Boolean(Categorical):
    """Two categories, false first, whose usual spellings are all understood."""

    name = "boolean"
    keys: ClassVar[_Words] = ("kind", "categories", "nullable", "missing_values", "dtype")
    families: ClassVar[_Words] = ("truth", "whole", "real", "text")
    rank = 0
    arrow: ClassVar[_Words] = ("is_boolean",)
    default_categories: ClassVar[_Words] = DEFAULT_WORDS
    questions: ClassVar[tuple[tuple[str, str], ...]] = ()
    hint = "Enter, for false and true; or two words: no/yes"
    needs_public = "its two words"
    unknown = (
        "A boolean is written true, yes, t, y or 1 and false, no, f, n or 0, in any case, or in its own two "
        "categories. Set missing_values if it is missing; a column of more than two values is categorical, integer or "
        "numeric."
    )

    def spelling(self, text: str, column: ColumnFacts) -> str:
        """Of true and false, in many spellings."""
        return spelled(text, column.categories)

    def beyond(self, dtype: Dtype, column: ColumnFacts) -> str:
        """The number one; a dtype of texts holds its words."""
        return "" if dtype.family == "text" or value_of_number(Decimal(1), dtype) else "the number 1"

    def fits(self, texts: Set[str]) -> bool:
        """0 and 1, or the usual words."""
        words = {NUMBERS.get(text, folded(text)) for text in texts}
        return words == {"0", "1"} or words <= {*FALSE_WORDS, *TRUE_WORDS} - {"0", "1"}

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """Its two words."""
        return {"categories": list(column.categories)}

    def faults(self, column: ColumnFacts) -> Iterator[_Fault]:
        """Two words, and the one for false first."""
        yield from super().faults(column)
        pair = list(map(folded, column.categories))
        wrong = len(pair) != 2 or len(set(pair)) != 2 or pair[0] in TRUE_WORDS or pair[1] in FALSE_WORDS
        if pair and wrong and not column.open:
            words = "is boolean: its categories are two words, the one for false first. Or leave them out."
            yield "categories", words


def whole_text(text: str, decimal: str = ".") -> str:
    """A text without the decimals of a whole number, or without midnight: -9 for -9.0. Any other text as it is.

    Args:
        text: any.
        decimal: mark of decimals.
    """
    match = _ZEROS[decimal].fullmatch(text)
    return match[1] if match else day_of(text) or text


def day_of(text: str) -> str | None:
    """The day of a text that is a day, or midnight of one: 2024-12-31 for 2024-12-31 00:00:00; else None."""
    match = _MIDNIGHT.fullmatch(text)
    return match[1] if match else None


def _decimal_faults(column: ColumnFacts, lower: float, upper: float) -> Iterator[_Fault]:
    digits = column.decimals
    if type(digits) is not int or not 0 <= digits <= MOST_DIGITS:
        yield "decimals", f"has decimals {digits}. Give a whole number, as 2 for cents, or leave it out."
    elif any(round(value, digits) != value for value in (lower, upper, *column.spikes)):
        words = f"has a bound or a spike with more than {digits} decimals, so results could not have it."
        yield "decimals", words
    elif max(abs(lower), abs(upper)) * 10**digits > 10**MOST_DIGITS:
        yield "decimals", f"has decimals {digits}, which with its bounds makes more than {MOST_DIGITS} digits."


KINDS_BY_NAME: dict[str, Kind] = {
    kind.name: kind() for kind in (Numeric, Integer, Categorical, Ordinal, Boolean, Date, Datetime)
}
KINDS = tuple(KINDS_BY_NAME)


def guess(texts: Set[str]) -> str:
    """The kind that texts of cells, of which there is one at least, look like."""
    tried = sorted(KINDS_BY_NAME.values(), key=lambda kind: kind.rank)
    return next((kind.name for kind in tried if kind.fits(texts)), Categorical.name)
