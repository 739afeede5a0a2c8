"""Kinds of categories: texts out of a public list, or out of one that is released."""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import MOST_CATEGORIES
from likeness.core.errors import DataError, SchemaError
from likeness.core.extras import pd
from likeness.core.text import fold_case
from likeness.data.schema.dtypes import (
    DEFAULT_WORDS,
    FALSE_WORDS,
    NUMBERS,
    TRUE_WORDS,
    Dtype,
    canonical_word,
    value_of_number,
    value_of_text,
)
from likeness.data.schema.kinds.kind import PRIVATE, ColumnFacts, Faults, Floats, Kind, Words, register

OTHER = "other"  # beside private categories: the category for the rest by default
LESS = re.compile(r"\s+<\s+")
_ZEROS = {mark: re.compile(rf"([-+]?\d+)[{mark}]0+", re.ASCII) for mark in ".,"}
_FORMULA = re.compile("'*[=+@\t-]")
_NUMBER = re.compile(r"[-+]?[\d.,]+([eE][-+]?\d+)?", re.ASCII)
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)(?: 00:00:00Z?)?", re.ASCII)


@register
class Categorical(Kind):
    """Texts out of a list. The number of a category is its place."""

    name = "categorical"
    keys: ClassVar[Words] = ("kind", "categories", "ordered", "other", "nullable", "missing_values", "dtype")
    rank: ClassVar[int] = 99
    arrow: ClassVar[Words] = ("is_string", "is_large_string", "is_string_view", "is_dictionary")
    is_categorical = True
    families: ClassVar[Words] = ("truth", "whole", "real", "text", "moment", "clock", "span")
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "categories",
            "every possible value, as a list, from the codebook; private if not publicly known; names, ids, free "
            "text: kind drop; days like 31.12.1999: kind date with lower, upper and format",
        ),
    )
    hint = "all possible values: red, green, blue; in their order: low < middle < high; not publicly known: private"
    unknown: ClassVar[str] = (
        "Add the category to the schema if it is publicly known, written as in the source (3 and 3.0 are two texts), "
        "or name a catch-all with other. Put a text with a comma in quotes."
    )

    def fits(self, texts: Set[str]) -> bool:
        return True

    def spelling(self, text: str, column: ColumnFacts) -> str:
        """The category that a text means; the text itself where it means none. Midnight is also the day alone."""
        day = day_of(text)
        spellings = [text, day, f"{day} 00:00:00", f"{day} 00:00:00Z"] if day else []
        return next((spelling for spelling in spellings if spelling in column.categories), text)

    def read(self, texts: Iterable[Any], column: ColumnFacts, decimal: str = ".") -> Floats:
        """The code of each text; of a text without one that of ``other``."""
        codes = {category: float(index) for index, category in enumerate(column.categories)}
        rest = math.nan if column.other is None else codes.get(column.other, math.nan)
        codes = {escape_formula(text): code for text, code in codes.items()} | codes  # as a synthetic CSV writes them
        cells = (codes.get(self.spelling(text, column), rest) if isinstance(text, str) else math.nan for text in texts)
        return np.fromiter(cells, np.float64)

    def means_missing(
        self, texts: Iterable[Any], numbers: Floats, column: ColumnFacts, decimal: str = "."
    ) -> NDArray[np.bool_]:
        """The code -9 is also -9.0, or -9,0 under a decimal comma, unless that is a category."""
        codes = {whole_text(word, mark) for word in column.missing_values for mark in (".", decimal)}
        names = {*column.categories}
        alike = (isinstance(text, str) and text not in names and whole_text(text, decimal) in codes for text in texts)
        return np.fromiter(alike, np.bool_)

    def unreadable(self, column: ColumnFacts) -> str:
        return f"among its public categories. {self.unknown}"

    def to_typed(self, numbers: Floats, column: ColumnFacts) -> "pd.Series[Any]":
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index(list(column.categories)), column.ordered))

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> Floats:
        codes = values.cat.codes.to_numpy(np.float64)
        return np.where(codes < 0, math.nan, codes)

    def encode(self, values: "pd.Series[Any]", column: ColumnFacts) -> NDArray[Any]:
        """Places; a missing category has the last one, ``len(categories)``.

        Raises:
            DataError: the column has other categories, or another order. Their codes would be read as these.
        """
        if tuple(getattr(values.dtype, "categories", ())) != column.categories:
            raise DataError(f"column '{column.name}' does not have the schema's categories. Type it with the schema.")
        codes = values.cat.codes.to_numpy(np.int32)
        return np.where(codes < 0, np.int32(len(column.categories)), codes)

    def decode(self, codes: NDArray[Any], column: ColumnFacts) -> "pd.Series[Any]":
        return self.to_typed(np.where(codes >= len(column.categories), math.nan, codes), column)

    def value(self, number: float, dtype: Dtype, column: ColumnFacts) -> Any:
        return value_of_text(column.categories[int(number)], dtype)

    def unsupported_values(self, dtype: Dtype, column: ColumnFacts) -> str:
        """A category that is none of its values. Private categories may be any texts."""
        if column.open:
            return "" if dtype.family == "text" else "private categories, which may be any texts"
        pairs = enumerate(column.categories)
        return next((f"its category '{text}'" for code, text in pairs if self.value(code, dtype, column) is None), "")

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        order = {"ordered": True} if column.ordered else {}
        other = {"other": column.other} if "other" in self.keys else {}
        return {"categories": PRIVATE if column.open else list(column.categories), **order, **other}

    def faults(self, column: ColumnFacts) -> Faults:
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

    def _open_faults(self, column: ColumnFacts) -> Faults:
        if column.ordered:
            yield "ordered", "is ordered, so its order must be public: list categories. Or leave ordered out."
        elif not column.other:
            yield "other", "has private categories and no other. Give a text for what is not released; it is public."
        elif column.other in column.missing_values:
            yield "missing_values", "has the same text in other and in missing_values. Keep it in one of them."

    def answer(self, text: str) -> dict[str, Any]:
        """``one, two``; ``low < high``; ``private``; a last one that ends in ``...`` takes every unknown value."""
        if text == PRIVATE:
            return {"categories": PRIVATE, "other": OTHER}
        parts = LESS.split(text)
        names = [name for part in parts for name in pieces(part)]
        order = {"ordered": True} if parts[1:] else {}
        rest = names[-1].removesuffix("...").rstrip() if names else ""
        if not names or names[-1] == rest:
            return {"categories": names, **order}
        return {"categories": [*names[:-1], rest], **order, "other": rest}

    def sdv(self, column: ColumnFacts) -> dict[str, Any]:
        return {"sdtype": self.sdtype, **({"order": list(column.categories)} if column.ordered else {})}

    def from_sdv(self, spec: Mapping[str, Any]) -> dict[str, Any] | None:
        """Categories are named where they have an order."""
        if spec.get("sdtype") != "ordinal" and not spec.get("order"):
            return super().from_sdv(spec)
        return {"categories": spec.get("order"), "ordered": True} if self.sdtype == "categorical" else None


@register
class Boolean(Categorical):
    """Two categories, false first, whose usual spellings are all understood."""

    name = "boolean"
    keys = ("kind", "categories", "nullable", "missing_values", "dtype")
    families = ("truth", "whole", "real", "text")
    rank = 0
    sdtype = "boolean"
    arrow = ("is_boolean",)
    default_categories = DEFAULT_WORDS
    questions = ()
    hint = "Enter, for false and true; or two words: no/yes"
    unknown = (
        "A boolean is written true, yes, t, y or 1 and false, no, f, n or 0, in any case, or in its own two "
        "categories. Set missing_values if it is missing; a column of more than two values is categorical, integer or "
        "numeric."
    )

    def spelling(self, text: str, column: ColumnFacts) -> str:
        """The category of a text: true and false have many spellings."""
        return canonical_word(text, column.categories)

    def value(self, number: float, dtype: Dtype, column: ColumnFacts) -> Any:
        """False or true, or 0 or 1; of texts its two words."""
        if dtype.family != "text":
            return value_of_number(Decimal(number), dtype)
        as_object = dtype.element == "object" and column.categories == DEFAULT_WORDS
        return bool(number) if as_object else column.categories[int(number)]

    def fits(self, texts: Set[str]) -> bool:
        """0 and 1, or the usual words."""
        spellings = {NUMBERS.get(text, fold_case(text)) for text in texts}
        return spellings == {"0", "1"} or spellings <= {*FALSE_WORDS, *TRUE_WORDS} - {"0", "1"}

    def faults(self, column: ColumnFacts) -> Faults:
        if column.open:
            yield "categories", "is boolean, so its two words must be public: list categories. Or use kind categorical."
            return
        yield from super().faults(column)
        pair = list(map(fold_case, column.categories))
        wrong = len(pair) != 2 or len(set(pair)) != 2 or pair[0] in TRUE_WORDS or pair[1] in FALSE_WORDS
        if pair and wrong:
            fault = "is boolean: its categories are two words, the one for false first. Or leave them out."
            yield "categories", fault

    def answer(self, text: str) -> dict[str, Any]:
        """Nothing, or ``no/yes`` in any order."""
        texts = pieces(text.replace("/", ","))
        turned = len(texts) == 2 and (fold_case(texts[0]) in TRUE_WORDS or fold_case(texts[1]) in FALSE_WORDS)
        return {"categories": texts[::-1] if turned else texts} if text else {}


def escape_formula(text: str) -> str:
    """A text for a CSV: with an apostrophe where a spreadsheet would run it as a formula. A number stays as it is."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def formulas_in(column: ColumnFacts) -> list[str]:
    """The categories of a column that a synthetic CSV escapes."""
    return [text for text in column.categories if escape_formula(text) != text]


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


def pieces(text: str) -> list[str]:
    """Texts of a line, between commas; quotes stand around a text with a comma. A SchemaError where a quote is open."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise SchemaError('quotes do not close. Write "one, with a comma", two, three.') from None
    return [piece.strip() for piece in rows[0]] if rows else []
