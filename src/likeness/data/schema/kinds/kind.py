"""What is said of one kind of column, anywhere, and the register of all kinds."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import SchemaError
from likeness.core.extras import pa, pd, text_dtype
from likeness.data.schema.dtypes import Dtype, parse_dtype


@dataclass(frozen=True)
class ColumnFacts:
    """Public knowledge of one column, as it is written.

    Attributes:
        name: as in the header of the source, without control characters.
        kind: see :mod:`likeness.data.schema.kinds`.
        lower, upper: public bounds in units of the column: days since 1970-01-01 for dates, seconds for times; None
            for categories. Values beyond are clipped.
        categories: texts, in order.
        ordered: whether the order of the list means something: of a questionnaire, from "never" to "always".
        other: the category that takes unknown values; None refuses them.
        nullable: whether a value may be missing.
        transform: ``log1p`` spreads small values: log(1 + value - lower) is scaled instead of the value.
        missing_values: texts that mean missing, beside the empty cell.
        spikes: values that are known to be frequent (no gain, a full working week), within the bounds; methods with
            bins give each a bin of its own.
        decimals: of a ``numeric`` column, to which synthetic values are rounded: 2 for cents. None: as they are drawn.
            Cells of a release may be whole steps of it. It rounds the rows that are written.
        dtype: of the synthetic column, a word of :mod:`likeness.data.schema.dtypes`: ``int16``. None: that of the kind.
            Read when rows are written and never before.
        format: how the source writes a date or time, see :mod:`likeness.data.schema.layouts`; None for ISO 8601.
        open: the categories are not publicly known and not released yet (see
            :meth:`likeness.data.schema.schema.Schema.with_categories`); ``other`` takes every value that will not
            be among them.
        cuts: numbers at which a bin begins, because a rule has a threshold there. They follow from the rules.
        unbounded: the bounds are not publicly known and not released yet (see
            :meth:`likeness.data.schema.schema.Schema.with_bounds`). Lower and upper are then those of the kind.
    """

    name: str
    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    ordered: bool = False
    other: str | None = None
    nullable: bool = False
    transform: str = "none"
    missing_values: tuple[str, ...] = ()
    spikes: tuple[float, ...] = ()
    format: str | None = None
    decimals: int | None = None
    dtype: str | None = None
    open: bool = False
    cuts: tuple[float, ...] = ()
    unbounded: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """``(lower, upper)`` of a column that is not categorical."""
        if self.lower is None or self.upper is None:
            raise SchemaError(f"column '{self.name}' has no bounds: it is categorical.")
        return self.lower, self.upper


Faults = Iterator[tuple[str, str]]
Floats = NDArray[np.float64]
Words = tuple[str, ...]
TRANSFORMS = ("none", "log1p")
PRIVATE = "private"
"""The word for categories or bounds that nobody knows publicly. They are released with a part of the budget."""
KINDS: dict[str, "Kind"] = {}
"""Every kind, by its name in a schema."""
_MORE = "log|log1p|decimals|spikes|format"
_DIGITS, _MOST_DECIMALS = 12, 100  # of a number without declared decimals
K = TypeVar("K", bound="type[Kind]")


class Kind:
    """The rules of one kind of column. A new kind gives name, example, :meth:`number` and :meth:`text`.

    Its values are numbers in units of the column, and texts stand for them. It overrides what else is different.

    Attributes:
        name: in the schema.
        keys: of the schema that such a column may have.
        example: a value, for people.
        rank: when a guess from texts is tried; lower ones first.
        arrow: tests of ``pyarrow.types`` for the types that are guessed to be of this kind.
        sdtype: type in the words of SDV.
        is_categorical: whether values are categories, encoded as one place each. Else they are numbers.
        is_integral: whether numbers are always whole.
        numeric_source: whether a source that has types has numbers; else texts are read.
        day: units in a day, of points in time.
        unit: what one unit is, in words.
        default_categories: those of a column that lists none.
        questions: keys that a draft asks for, each with the question.
        hint: how a person answers, in an interview.
        pattern: of one value in such an answer.
        families: of the dtypes that can hold such a column (:mod:`likeness.data.schema.dtypes`).
        range_rule: what bounds must be; the rest of a sentence that begins with the column.
    """

    name: ClassVar[str]
    keys: ClassVar[Words] = ("kind", "lower", "upper", "bounds", "nullable", "spikes", "missing_values", "dtype")
    example: ClassVar[str] = ""
    rank: ClassVar[int] = 9
    arrow: ClassVar[Words] = ()
    sdtype: ClassVar[str] = "categorical"
    is_categorical: ClassVar[bool] = False
    is_integral: ClassVar[bool] = False
    numeric_source: ClassVar[bool] = False
    day: ClassVar[int] = 0
    unit: ClassVar[str] = ""
    default_categories: ClassVar[Words] = ()
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "the smallest possible value, from the codebook; values beyond are clipped"),
        ("upper", "the largest possible value, from the codebook"),
    )
    hint: ClassVar[str] = "possible range: SMALLEST..LARGEST"
    pattern: ClassVar[str] = r"[^\s,]+?"
    families: ClassVar[Words] = ("text",)
    range_rule: ClassVar[str] = "has bounds that its kind does not allow."

    def number(self, text: str, column: ColumnFacts | None = None, last: bool = False) -> float | None:
        """The number that a text means; None where it means none. As an upper bound, a day means all of it.

        Args:
            text: of a cell, a bound or a condition.
            column: whose cell it is; None: it is none.
            last: whether it is an upper bound.
        """
        raise NotImplementedError

    def text(self, value: float, layout: str | None = None) -> str:
        """A number for people and for the schema, in a layout if the source has one; :meth:`number` reads it back."""
        raise NotImplementedError

    def label(self, value: float) -> str:
        """A number at the axis of a figure."""
        return self.text(value)

    def fits(self, texts: Set[str]) -> bool:
        """Tell whether a guess from these texts, of which there is one at least, is this kind."""
        return False

    def parse_bound(self, key: str, value: Any) -> float | str:
        """A number of the schema under this key, as in the YAML file; or the rule that it breaks."""
        number = self.number(str(value), last=key == "upper")
        return f"must be a {self.name} like {self.example}." if number is None else number

    # Cells

    def spelling(self, text: str, column: ColumnFacts) -> str:
        """The category that a text means; the text itself where it means none."""
        return text

    def read(self, texts: Iterable[Any], column: ColumnFacts, decimal: str = ".") -> Floats:
        """The number of each text, NaN where it is missing or means none. Each text by itself.

        Args:
            texts: different ones, as a source has them.
            column: whose cells they are.
            decimal: mark of decimals in the source.
        """
        numbers = (self.number(text, column) if isinstance(text, str) else None for text in texts)
        return np.array([math.nan if number is None else number for number in numbers], np.float64)

    def means_missing(
        self, texts: Iterable[Any], numbers: Floats, column: ColumnFacts, decimal: str = "."
    ) -> NDArray[np.bool_]:
        """Tell which cells mean missing in another spelling than the schema's, by their texts and the numbers read."""
        return np.isin(numbers, self.missing_numbers(column, decimal))

    def missing_numbers(self, column: ColumnFacts, decimal: str = ".") -> list[float]:
        """The numbers that mean missing."""
        read = (self.number(word, column) for word in column.missing_values)
        return [number for number in read if number is not None]

    def unreadable(self, column: ColumnFacts) -> str:
        """Say what is wrong with a cell that is none of the column: the rest of a sentence, and the remedy."""
        return f"a {self.name} like {self.example}. If it means missing, name it in missing_values."

    def to_typed(self, numbers: Floats, column: ColumnFacts) -> "pd.Series[Any]":
        """A typed column of numbers within the bounds; NaN for missing."""
        codes, values = pd.factorize(numbers)
        texts = pd.array([self.text(value) for value in values.tolist()], text_dtype())
        return pd.Series(texts.take(codes, allow_fill=True))

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> Floats:
        """Numbers of a typed column, shape (n,); NaN where missing."""
        codes, texts = pd.factorize(values)
        return np.array([*map(self.number, texts), math.nan], np.float64)[codes]

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """The one text of each typed cell that is there. Different cells have different ones, in databases too."""
        return cells.cast("string")

    def encode(self, values: "pd.Series[Any]", column: ColumnFacts) -> NDArray[Any]:
        """Codes of a typed column: numbers in [0, 1] after the public transform, NaN for missing."""
        return self.units(self.numbers(values, column), column)

    def units(self, numbers: Floats, column: ColumnFacts) -> Floats:
        """The codes of numbers, each by itself."""
        lower, upper = column.bounds
        numbers = np.clip(numbers, lower, upper) - lower
        if column.transform == "log1p":
            unit: Floats = np.log1p(numbers) / np.log1p(upper - lower)
        else:
            unit = numbers / (upper - lower)
        return np.clip(unit, 0, 1)

    def decode(self, codes: NDArray[Any], column: ColumnFacts) -> "pd.Series[Any]":
        """A typed column of codes, rounded to the column's decimals, or to twelve digits of its bounds."""
        lower, upper = column.bounds
        unit = np.clip(codes, 0, 1)
        numbers = np.expm1(unit * np.log1p(upper - lower)) if column.transform == "log1p" else unit * (upper - lower)
        numbers = np.clip(numbers + lower, lower, upper)
        if self.is_integral or column.decimals is not None:
            # Bounds have no more decimals, so that what is rounded stays within them. + 0.0 makes of -0.0 a 0.0.
            numbers = np.round(numbers, column.decimals or 0) + 0.0
        elif column.transform == "none":
            digits = _DIGITS - math.ceil(math.log10(max(abs(lower), abs(upper))))
            if digits < _MOST_DECIMALS:
                numbers = np.clip(np.round(numbers, digits), lower, upper) + 0.0
        return self.to_typed(numbers, column)

    def marks(self, lower: int, upper: int, most: int) -> Iterable[int]:
        """Round whole numbers between two others, about as many as ``most``: fine cells begin there."""
        strides = (digit * 10**power for power in range(20) for digit in (1, 2, 5))
        return multiples(next(stride for stride in strides if upper - lower <= most * stride), lower, upper)

    def widest(self, decimals: int | None = None) -> tuple[float, float] | None:
        """Bounds of a column with ``bounds: private``, until its own are released; None: the kind has none.

        Args:
            decimals: of the column.
        """
        return None

    def grid(self, column: ColumnFacts) -> list[float]:
        """Public numbers between the widest bounds, ascending: bounds are released as two of them."""
        raise NotImplementedError

    # Dtypes

    def holds(self, dtype: str, layout: str | None = None) -> bool:
        """Tell whether a dtype can hold a column of this kind written so: ``%Y%m%d`` makes whole numbers."""
        parts = parse_dtype(dtype)
        return parts is not None and parts.family in self.families

    def value(self, number: float, dtype: Dtype, column: ColumnFacts) -> Any:
        """The value of a dtype for a number, or for a category by its place; None where the dtype has none."""
        return self.text(number)

    def unsupported_values(self, dtype: Dtype, column: ColumnFacts) -> str:
        """Say what of a column a dtype of its kind cannot hold; empty: nothing. Values lie within bounds."""
        if dtype.family == "text":
            return ""
        ends = [end for end in (column.lower, column.upper) if end is not None and math.isfinite(end)]
        ends = [end for end in ends if self._may_be_bounds(end)]
        if all(self.value(end, dtype, column) is not None for end in ends):
            return ""
        return f"its bounds {' to '.join(map(self._show_bound, ends))}"

    # The schema

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        """The keys of the JSON form that belong to this kind. They are part of the key of every release."""
        lower, upper = map(self.text, column.bounds)
        shown: dict[str, Any] = {"bounds": PRIVATE} if column.unbounded else {"lower": lower, "upper": upper}
        shown |= {"spikes": [self.text(spike) for spike in column.spikes]} if column.spikes else {}
        return shown | ({"format": column.format} if column.format else {})

    def faults(self, column: ColumnFacts) -> Faults:
        """Every broken rule: the key that breaks it, and the rest of a sentence that begins with the column."""
        if column.transform not in TRANSFORMS:
            yield "transform", f"has transform '{column.transform}'. Transforms: {', '.join(TRANSFORMS)}."
        yield from self._own_faults(column)
        lower, upper = column.lower, column.upper
        if lower is None or upper is None:
            fault = "has no bounds. Bounds must be public: give lower and upper from the codebook, never from the rows."
            yield ("lower" if lower is None else "upper"), fault
            return
        if not lower < upper or not math.isfinite(upper - lower):
            bounds = f"{self._show_bound(lower)} to {self._show_bound(upper)}"
            fault = f"has bounds {bounds}. They must be finite, lower below upper."
            if lower == upper:
                fault += " A column with one value: give it kind drop, or kind categorical with that one category."
            yield "lower", fault
        elif not self._may_be_bounds(lower, upper):
            yield "lower", self.range_rule
        missing = set(self.missing_numbers(column))
        for spike in column.spikes:
            if spike in missing:
                yield (
                    "spikes",
                    f"has {self._show_bound(spike)} in spikes and in missing_values. Keep it in one of them.",
                )
            if not lower <= spike <= upper or (self.is_integral and not spike.is_integer()):
                shown = self._show_bound(spike)
                yield "spikes", f"has a spike at {shown}. Spikes must lie within the bounds and be of the kind."

    def _may_be_bounds(self, *numbers: float) -> bool:
        """Tell whether these may be bounds."""
        return not self.is_integral or all(number.is_integer() for number in numbers)

    def _own_faults(self, column: ColumnFacts) -> Faults:
        yield from ()

    def _show_bound(self, value: float) -> str:
        return self.text(value) if self._may_be_bounds(value) else f"{value:g}"

    # Drafts

    def answer(self, text: str) -> dict[str, Any]:
        """The keys of the schema that a person's line means: ``0..110``, then ``log``, ``decimals 2``, ``spikes 0 9``.

        Only the form is read; the schema checks the content.

        Raises:
            SchemaError: it has no such form.
        """
        more: dict[str, Any] = {}
        if "format" in self.keys:  # a format may hold blanks and commas, so it is the rest of the line
            text, _, layout = f" {text}".partition(" format ")
            more |= {"format": layout.strip()} if layout.strip() else {}
        text = re.sub(rf"({self.pattern})\s*(?:\.\.|\bto\b)\s*(?={self.pattern})", r"\1 ", text, flags=re.ASCII)
        bounds: list[Any] = []
        spikes: list[Any] = []
        target, tokens = bounds, iter(re.findall(rf"(?:{self.pattern})(?![^\s,])|[^\s,]+", text, re.ASCII))
        for token in tokens:
            if token == PRIVATE:
                more["bounds"] = PRIVATE
            elif token == "spikes":
                target = spikes
            elif token == "decimals":
                more["decimals"] = number_or_word(next(tokens, ""))
            elif token in ("log", "log1p"):
                more["transform"] = "log1p"
            else:
                target.append(number_or_word(token) if self.numeric_source else token)
        if len(bounds) > 2:
            raise SchemaError(
                "more than two bounds. Write the smallest and the largest possible value: 0..12000.5. "
                "Decimals have a point, thousands no mark."
            )
        more |= {"spikes": spikes} if spikes else {}
        return {**dict(zip(("lower", "upper"), bounds, strict=False)), **more}

    def is_answer(self, text: str) -> bool:
        """Tell whether a line has the form ``LOWER..UPPER`` with what may follow it in a column of this kind."""
        form = rf"({self.pattern})\s*(?:\.\.|\bto\b)\s*({self.pattern})(\s.*|,\s*(?:{_MORE})\b.*)?"
        match = re.fullmatch(form, text, re.ASCII)
        if self.is_categorical or match is None:
            return False
        ends = (number_or_word(end) if self.numeric_source else end for end in match.groups()[:2])
        has_keys = set(self.answer(text)) <= set(self.keys)
        return has_keys and not any(isinstance(self.parse_bound("upper", end), str) for end in ends)

    # SDV

    def sdv(self, column: ColumnFacts) -> dict[str, Any]:
        """The column in the words of SDV."""
        return {"sdtype": self.sdtype}

    def from_sdv(self, spec: Mapping[str, Any]) -> dict[str, Any] | None:
        """The keys of the schema that SDV's words for a column mean; None where it is not of this kind."""
        return {} if spec.get("sdtype") == self.sdtype else None


def register(kind: K) -> K:
    """Make a kind known, under its name. It decorates the class.

    Raises:
        SchemaError: there is another kind of that name.
    """
    if kind.name in (*KINDS, "drop"):
        raise SchemaError(f"there is a kind '{kind.name}' already. Give yours another name.")
    KINDS[kind.name] = kind()
    return kind


def guess(texts: Set[str]) -> str:
    """The kind that texts of cells, of which there is one at least, look like."""
    tried = sorted(KINDS.values(), key=lambda kind: kind.rank)
    return next(kind.name for kind in tried if kind.fits(texts))


def multiples(stride: int, lower: int, upper: int) -> range:
    """The multiples of a stride above one number, up to another."""
    return range(lower - lower % stride + stride, upper + 1, stride)


def number_or_word(word: str) -> int | float | str:
    """A number; another word stays, and the schema refuses it."""
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        if math.isfinite(value) if isinstance(value, float) else True:
            return value
    return word
