"""Kinds of numbers."""

import math
import re
from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from likeness.core.extras import pa, pc, pd
from likeness.data.schema.dtypes import NUMBER, Dtype, value_of_number
from likeness.data.schema.kinds.kind import PRIVATE, ColumnFacts, Faults, Floats, Kind, Words, register

# Up to here encode and decode give every integer back exactly, under either transform (float64 has 53 bits).
LARGEST_INTEGER = 10**12
# And up to here a number with decimals, written without its point: the digits of a result are then those of the number.
MOST_DIGITS = 15
SWAPPED_MARKS = str.maketrans(",.", ".,")
"""For numbers with a decimal comma. A point becomes a comma, so that a mark of thousands stays unreadable."""
_LEAST_POWER = 6  # of ten: smaller numbers are zero where bounds are released
_FRACTION = 4  # decimals of numbers whose digits are found in integers
_WHOLE = re.compile(r"[-+]?(?:0|[1-9]\d*)", re.ASCII)  # 007 is a code
_SHORTEST = r"^(?P<sign>-?)(?P<whole>\d+)\.?(?P<part>\d*)e?\+?(?P<power>-?\d*)$"


@register
class Numeric(Kind):
    """Numbers, in units of the column."""

    name = "numeric"
    keys = (*Kind.keys, "transform", "decimals")
    rank = 2
    arrow: ClassVar[Words] = ("is_floating", "is_decimal", "is_duration")
    sdtype = "numerical"
    hint = "possible range: 0..110; amounts: 0..5000 log decimals 2; frequent values: 0..99 spikes 40"
    pattern = NUMBER.pattern
    families: ClassVar[Words] = ("truth", "whole", "real", "text", "span")
    numeric_source = True

    def number(self, text: str, column: ColumnFacts | None = None, last: bool = False) -> float | None:
        """Read a number with a point before its decimals."""
        return float(text) if NUMBER.fullmatch(text) or text in ("inf", "-inf") else None

    def text(self, value: float, layout: str | None = None) -> str:
        return f"{value:g}"

    def label(self, value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"

    def fits(self, texts: Set[str]) -> bool:
        """Numbers that are not all digits: those would be codes. Nor are they 1 and 2 alone."""
        numbers = all(NUMBER.fullmatch(text) and not text.lstrip("-+").startswith("00") for text in texts)
        return numbers and texts != {"1.0", "2.0"} and not all(text.isdigit() for text in texts)

    def parse_bound(self, key: str, value: Any) -> float | str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a list of numbers." if key == "spikes" else "must be a number."
        try:
            return float(value)
        except OverflowError:
            return "holds a number that is too large."

    def read(self, texts: Iterable[Any], column: ColumnFacts, decimal: str = ".") -> Floats:
        """The number nearest to each text; all NaN where a text is not a number.

        Arrow casts each cell by itself. pandas chooses one type for a column, and reads +6e72 with another last digit.
        """
        if decimal == ",":
            texts = [text.translate(SWAPPED_MARKS) if isinstance(text, str) else text for text in texts]
        cells = pa.array(texts, pa.string(), from_pandas=True)
        try:
            numbers: Floats = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return np.full(len(cells), math.nan)
        return numbers

    def missing_numbers(self, column: ColumnFacts, decimal: str = ".") -> list[float]:
        """The numbers that mean missing; the column's words stand as in the schema, or as in the source."""
        texts = [text.replace(",", ".") if decimal == "," else text for text in column.missing_values]
        return [number for text in texts if (number := self.number(text)) is not None]

    def widest(self, decimals: int | None = None) -> tuple[float, float]:
        most = min(float(LARGEST_INTEGER), 10.0 ** (MOST_DIGITS - (decimals or 0)))
        return -most, most

    def grid(self, column: ColumnFacts) -> list[float]:
        """One, two and five times each power of ten, of either sign, and zero; in steps of the column's decimals."""
        decimals = 0 if self.is_integral else _LEAST_POWER if column.decimals is None else column.decimals
        least = -min(_LEAST_POWER, decimals)
        lower, upper = column.bounds
        sizes = [float(f"{digit}e{power}") for power in range(least, 13) for digit in (1, 2, 5)]
        return [end for end in (*(-size for size in reversed(sizes)), 0.0, *sizes) if lower < end < upper]

    def unreadable(self, column: ColumnFacts) -> str:
        return (
            f"a number, but its kind is {self.name}. If it means missing, name it in missing_values. A number has the "
            "digits 0 to 9, a hyphen as its minus, and no mark between thousands. Its decimals begin with a point, or "
            "as ingest.format.decimal says."
        )

    def to_typed(self, numbers: Floats, column: ColumnFacts) -> "pd.Series[Any]":
        return pd.Series(numbers, dtype="float64")

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> Floats:
        return values.to_numpy(dtype="float64", na_value=math.nan)

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """Write each as ``15e-1``: a whole number that does not end with 0, and the power of ten. Zero is ``0e0``.

        The digits are the fewest that are read back as the same float64. PostgreSQL, DuckDB and Java print these
        digits, each in its own notation, and this one follows from all.

        Let m / 10^k with a whole m below 10^15 be rounded to a number. No other decimal of at most 15 digits is rounded
        to it, so its fewest digits are those of m. An integer m is found faster than the digits of a text.
        """
        numbers = cells.cast("double").to_numpy(zero_copy_only=False) + 0.0  # one zero, whatever its sign
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.rint(numbers * 10.0**_FRACTION)
            short = (np.abs(scaled) < 10.0**MOST_DIGITS) & (scaled / 10.0**_FRACTION == numbers)
        if not short.all():
            return self._exact_texts(pa.array(numbers, from_pandas=True))
        digits, exponents = scaled.astype(np.int64), np.where(scaled, -_FRACTION, 0)
        longer = np.flatnonzero(digits)
        while len(longer := longer[digits[longer] % 10 == 0]):
            digits[longer] //= 10
            exponents[longer] += 1
        return pc.binary_join_element_wise(pa.array(digits).cast("string"), pa.array(exponents).cast("string"), "e")

    def _exact_texts(self, numbers: "pa.Array") -> "pa.Array":
        """Write as :meth:`exact_texts` does, from the digits of texts."""
        shortest = numbers.cast(pa.string())
        read = pc.extract_regex(shortest, _SHORTEST)
        sign, whole, part, power = (pc.struct_field(read, [name]) for name in ("sign", "whole", "part", "power"))
        digits = pc.ascii_ltrim(pc.binary_join_element_wise(whole, part, ""), "0")
        short = pc.ascii_rtrim(digits, "0")
        shift = pc.subtract(pc.subtract(pc.utf8_length(digits), pc.utf8_length(short)), pc.utf8_length(part))
        exponent = pc.add(pc.if_else(pc.equal(power, ""), "0", power).cast(pa.int64()), shift.cast(pa.int64()))
        short = pc.if_else(pc.equal(short, ""), "0", short)
        return pc.binary_join_element_wise(sign, short, "e", exponent.cast(pa.string()), "")

    def value(self, number: float, dtype: Dtype, column: ColumnFacts) -> Any:
        """The nearest one; of texts the shortest that is read back."""
        if dtype.family != "text":
            return value_of_number(Decimal(number), dtype)
        whole = number.is_integer() and abs(number) < 2**53
        if dtype.element == "object":
            return int(number) if self.is_integral else number
        return f"{number:.0f}" if whole else repr(number)

    def encoding(self, column: ColumnFacts) -> dict[str, Any]:
        if column.unbounded:  # the grid, and so the question, follows from the decimals
            ends: dict[str, Any] = {"bounds": PRIVATE}
            ends |= {} if column.decimals is None else {"decimals": column.decimals}
        else:
            ends = {"lower": column.lower, "upper": column.upper}
        return ends | {"transform": column.transform} | ({"spikes": list(column.spikes)} if column.spikes else {})

    def _own_faults(self, column: ColumnFacts) -> Faults:
        digits, lower, upper = column.decimals, column.lower, column.upper
        if digits is None or lower is None or upper is None:
            return
        if type(digits) is not int or not 0 <= digits <= MOST_DIGITS:
            yield "decimals", f"has decimals {digits}. Give a whole number, as 2 for cents, or leave it out."
        elif any(round(value, digits) != value for value in (lower, upper, *column.spikes)):
            yield "decimals", f"has a bound or a spike with more than {digits} decimals, so results could not have it."
        elif max(abs(lower), abs(upper)) * 10**digits > 10**MOST_DIGITS:
            yield "decimals", f"has decimals {digits}, which with its bounds makes more than {MOST_DIGITS} digits."

    def sdv(self, column: ColumnFacts) -> dict[str, Any]:
        return {"sdtype": self.sdtype, "computer_representation": "Int64" if self.is_integral else "Float"}

    def from_sdv(self, spec: Mapping[str, Any]) -> dict[str, Any] | None:
        whole = str(spec.get("computer_representation", "")).startswith(("Int", "UInt"))
        return super().from_sdv(spec) if whole is self.is_integral else None


@register
class Integer(Numeric):
    """Whole numbers."""

    name = "integer"
    keys = Numeric.keys[:-1]
    rank = 1
    arrow = ("is_integer",)
    hint = Numeric.hint.replace(" decimals 2", "")
    pattern = r"[-+]?\d+"
    is_integral = True
    range_rule = "is integer, so its bounds must be whole numbers up to 10^12. Or use kind numeric."

    def text(self, value: float, layout: str | None = None) -> str:
        return f"{value:.0f}"

    def to_typed(self, numbers: Floats, column: ColumnFacts) -> "pd.Series[Any]":
        """Integers; with pandas' own missing value where the column may have one."""
        if not column.nullable:
            return pd.Series(numbers.astype("int64"))
        return pd.Series(numbers, dtype="Float64").astype("Int64")

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        return cells.cast("int64").cast("string")

    def fits(self, texts: Set[str]) -> bool:
        """Whole numbers without leading zeros; but 1 and 2 alone are two classes."""
        return texts != {"1", "2"} and all(_WHOLE.fullmatch(text) for text in texts)

    def _may_be_bounds(self, *numbers: float) -> bool:
        return all(number.is_integer() and abs(number) <= LARGEST_INTEGER for number in numbers)
