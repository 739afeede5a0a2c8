"""Kinds of dates and times. A public bound and a cell of a source are read by the same rules, each by itself."""

import re
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Any, ClassVar

import numpy as np

from likeness.core.extras import is_old_pandas, pa, pc, pd
from likeness.data.schema.dtypes import CLOCK, MOMENT, Dtype, parse_dtype, value_of_moment, value_of_text
from likeness.data.schema.kinds.kind import ColumnFacts, Faults, Floats, Kind, Words, multiples, register
from likeness.data.schema.layouts import DIRECTIVES, has_two_digit_years, is_known, moment_text, moments, number_digits

_EPOCH = date(1970, 1, 1)
_EARLIEST, _LATEST = "0001-01-01", "9999-12-31"
_DAY, _CLOCK = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}:[0-9]{2}"
_CENTURY = 100
_YEARS = 1800, 2200  # between which bounds are released
_MONTHS = (1, 3, 12, 120, 1200)
_HOURS, _DAYS = ("%H", "%I", "%M", "%S", "%X", "%c", "%T"), ("%d", "%j", "%x", "%c", "%D", "%F")  # of SDV's layouts


@register
class Date(Kind):
    """Days since 1970-01-01, as ``1994-03-01``, also with a midnight behind it."""

    name = "date"
    keys = (*Kind.keys, "format")
    example = "1994-03-01"
    rank = 3
    arrow: ClassVar[Words] = ("is_date",)
    sdtype = "datetime"
    questions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "the first possible day, as 1994-03-01; days before are clipped"),
        ("upper", "the last possible day"),
    )
    hint = "possible range: 1994-03-01..2024-12-31; dates like 31.12.2024: add format %d.%m.%Y"
    pattern = r"\d{4}-\d{2}-\d{2}"
    is_integral = True
    day = 1
    unit = "days"
    families: ClassVar[Words] = ("moment", "text")
    range_rule = "is a date, so its bounds must be dates of the years 1 to 9999."
    iso: ClassVar[str] = "%Y-%m-%d"
    form: ClassVar[str] = r"\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:[.,]0+)?)?)?"
    whole: ClassVar[tuple[str, str]] = (rf"^{_DAY}$", "date32")  # of texts that Arrow reads as ``number`` does
    probe: ClassVar[str] = "2003-11-10"
    usual: ClassVar[str] = "%d.%m.%Y"  # a format, for people
    before: ClassVar[tuple[str, str]] = ("", "")  # what makes a text a whole date, and its layout
    stored: ClassVar[tuple[str, int]] = ("date32", 1)
    exact: ClassVar[str] = "date32"
    seconds: ClassVar[int] = 86_400  # in a unit
    strides: ClassVar[tuple[int, ...]] = (1,)
    parts: ClassVar[tuple[bool, bool]] = (True, False)  # whether a day belongs to it, and hours

    def number(self, text: str, column: ColumnFacts | None = None, last: bool = False) -> float | None:
        """Read a text in the column's format, or in ISO 8601, which cells with a type have."""
        number = None
        if column is not None and column.format is not None:
            number = self._parse_layout(text, column.format, *column.bounds)
        if number is None and re.fullmatch(self.form, text, re.ASCII):
            with suppress(ValueError):  # 1994-02-30
                number = self._units(datetime.fromisoformat(self.before[0] + text.replace(",", ".")))
                number += self.day - 1 if last and self.parts[0] and len(text) == len(_EARLIEST) else 0
        return number

    def read(self, texts: Iterable[Any], column: ColumnFacts, decimal: str = ".") -> Floats:
        """Texts that are all whole and in ISO 8601 are read at once, to the same numbers."""
        texts = texts if isinstance(texts, pd.Series) else list(texts)
        cells = pa.array(texts, pa.string(), from_pandas=True)
        form, kind = self.whole
        if column.format is None and pc.all(pc.match_substring_regex(cells, form)).as_py():
            cells = pc.binary_join_element_wise(self.before[0], cells, "")
            with suppress(pa.ArrowInvalid):  # 1994-02-30
                units = cells.cast(kind).cast("int32" if kind == "date32" else "int64")
                numbers: Floats = units.cast("double").to_numpy(zero_copy_only=False)
                return numbers
        return super().read(texts, column, decimal)

    def _parse_layout(self, text: str, layout: str, lower: float, upper: float) -> float | None:
        """The number of a text in a layout. A year of two digits has the century of the bounds, or nearest to them."""
        first, last = self.moment(lower).year - _CENTURY, self.moment(upper).year + _CENTURY
        text = text.zfill(number_digits(layout)) if text.isdecimal() else text  # as numbers, which lose first zeros
        years = range(max(first, MINYEAR), min(last, MAXYEAR) + 1)
        numbers = map(self._units, moments(self.before[0] + text, self.before[1] + layout, years))
        return min(numbers, key=lambda number: max(lower - number, number - upper, 0.0), default=None)

    def _units(self, moment: datetime) -> float:
        return float((moment.date() - _EPOCH).days)

    def moment(self, number: float) -> datetime:
        """The time of a number, in UTC and without a zone; of a date its midnight."""
        return datetime(1970, 1, 1) + timedelta(seconds=round(number) * self.seconds)

    def widest(self, decimals: int | None = None) -> tuple[float, float]:
        first, last = (self._units(datetime(year, 1, 1)) for year in _YEARS)
        return first, last - 1

    def grid(self, column: ColumnFacts) -> list[float]:
        """The first moment of each year."""
        return [self._units(datetime(year, 1, 1)) for year in range(_YEARS[0] + 1, _YEARS[1])]

    def text(self, value: float, layout: str | None = None) -> str:
        """Write it in ISO 8601, or as the source does."""
        return moment_text(self.moment(value), layout or self.iso)

    def label(self, value: float) -> str:
        """The day is enough."""
        return self.text(value)[: len(_EARLIEST)]

    def fits(self, texts: Set[str]) -> bool:
        return all(self.number(text) is not None for text in texts)

    def unreadable(self, column: ColumnFacts) -> str:
        written = f"like {column.format}, with names in English" if column.format else "in ISO 8601"
        return (
            f"a {self.name} {written}. Set format in the schema to how dates are written there, or missing_values; a "
            "date with a time of day is a datetime."
        )

    def to_typed(self, numbers: Floats, column: ColumnFacts) -> "pd.Series[Any]":
        """Arrow's dates or times. Parquet has no seconds, so a column of seconds would come back with another type."""
        kind, scale = pa.type_for_alias(self.stored[0]), self.stored[1]
        missing = np.isnan(numbers)
        whole = np.where(missing, 0, numbers * scale).astype(f"int{kind.bit_width}")
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(whole, mask=missing).cast(kind)))

    def numbers(self, values: "pd.Series[Any]", column: ColumnFacts) -> Floats:
        kind, scale = pa.type_for_alias(self.stored[0]), self.stored[1]
        cells = pa.array(values, from_pandas=True).cast(kind, safe=False).cast(f"int{kind.bit_width}")
        numbers: Floats = np.floor_divide(cells.to_numpy(zero_copy_only=False).astype(np.float64), scale)
        return numbers

    def exact_texts(self, cells: "pa.Array") -> "pa.Array":
        """Write cells in ISO 8601: ``0999-06-10``, ``2003-11-29 17:45:00``, ``17:45:00``."""
        return cells.cast(self.exact).cast("string")

    def marks(self, lower: int, upper: int, most: int) -> Iterable[int]:
        """First days, hours or seconds of the finest part of the calendar of which there are at most ``most``."""
        for stride in self.strides:
            if (upper - lower) / stride <= most:
                return multiples(stride, lower, upper)
        first, last = self.moment(lower), self.moment(upper)
        count = 12 * (last.year - first.year) + 12
        months = next((months for months in _MONTHS if count / months <= most), _MONTHS[-1])
        indices = (12 * first.year + index for index in range(0, count + 12, months))
        starts = (date(index // 12, index % 12 + 1, 1) for index in indices if index // 12 <= last.year)
        return (self.day * (start - _EPOCH).days for start in starts)

    def holds(self, dtype: str, layout: str | None = None) -> bool:
        """Whole numbers too, where the layout makes numbers that fit."""
        digits, parts = number_digits(layout or ""), parse_dtype(dtype)
        if not digits or parts is None or parts.family != "whole":
            return super().holds(dtype)
        bits = re.search(r"\d+", parts.element)
        return bits is not None and 10**digits < 2 ** (int(bits[0]) - 1)

    def value(self, number: float, dtype: Dtype, column: ColumnFacts) -> Any:
        """A date or time; of texts as the source writes it."""
        moment = self.moment(number)
        if dtype.family == "moment":
            return value_of_moment(moment, dtype)
        if (
            dtype.element == "object" and not column.format and not is_old_pandas()
        ):  # whose objects are texts most often
            return {(True, False): moment.date(), (True, True): moment, (False, True): moment.time()}[self.parts]
        return value_of_text(self.text(number, column.format), dtype)

    def _may_be_bounds(self, *numbers: float) -> bool:
        lowest, highest = (self._units(datetime.fromisoformat(text)) for text in (_EARLIEST, _LATEST))
        return all(lowest <= number < highest + self.day and number.is_integer() for number in numbers)

    def _own_faults(self, column: ColumnFacts) -> Faults:
        bounds = [end for end in (column.lower, column.upper) if end is not None and self._may_be_bounds(end)]
        if column.format is not None:
            fault = self._layout_fault(column.format, min(bounds, default=0.0), max(bounds, default=0.0))
            if fault:
                yield "format", f"has format '{column.format}', {fault}"

    def _layout_fault(self, layout: str, lower: float, upper: float) -> str:
        """Say why a layout does not tell one date, or time to the minute, from any other; empty where it does."""
        number = self.number(self.probe)
        assert number is not None
        is_valid = is_known(self.before[1] + layout)
        if not is_valid or self._parse_layout(self.text(number, layout), layout, number, number) != number:
            return f"which does not read a whole {self.name}. Write e.g. {self.usual}. Parts: {DIRECTIVES}."
        ends = ("", " 17:45", " 17:45:00", " 17:45:00.000000", " 17:45:00.000000Z", " 17:45:00.000000000")
        probes = (moments(f"{Date.probe}{end}", layout, []) for end in ends)
        if any(moment.date() != date.fromisoformat(Date.probe) for readings in probes for moment in readings):
            return "which reads 2003-11-10 as another day than ISO 8601. Write the source's dates in another way."
        first, last = (self.moment(bound).timetuple()[:6] for bound in (lower, upper))
        if has_two_digit_years(layout) and (first[0] + _CENTURY, *first[1:]) <= last:
            return (
                "with years of two digits, but its bounds span 100 years or more. Write the source's years with four "
                "digits (%Y), or give narrower bounds."
            )
        return ""

    def sdv(self, column: ColumnFacts) -> dict[str, Any]:
        return {"sdtype": self.sdtype, "datetime_format": column.format or self.iso}

    def from_sdv(self, spec: Mapping[str, Any]) -> dict[str, Any] | None:
        """A datetime: its layout says whether that is a day, a time of day, or both."""
        layout = spec.get("datetime_format", Datetime.iso)
        parts = tuple(any(directive in layout for directive in directives) for directives in (_DAYS, _HOURS))
        facts = super().from_sdv(spec) if parts == self.parts else None
        return facts if facts is None or layout == self.iso else {"format": layout}


@register
class Datetime(Date):
    """Seconds since 1970-01-01, in UTC, as ``1994-03-01 17:05:00`` or with a ``T``.

    A fraction of a second is cut off. An offset (``+01:00``, ``Z``) is applied, so that the number is in UTC.
    """

    name = "datetime"
    example = "1994-03-01 or 1994-03-01 17:05:00"
    rank = 4
    arrow = ("is_timestamp",)
    questions = (
        ("lower", "the first possible day or time, as 1994-03-01 or 1994-03-01 17:05:00"),
        ("upper", "the last possible day or time; a day means all of it"),
    )
    hint = "possible range: 1994-03-01..2024-12-31"
    pattern = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::[\d.]*\d)?)?"
    day = 86_400
    unit = "seconds"
    range_rule = "is a datetime, so its bounds must be dates of the years 1 to 9999."
    iso = "%Y-%m-%d %H:%M:%S"
    form = MOMENT
    whole = (rf"^{_DAY}[ T]{_CLOCK}$", "timestamp[s]")
    probe = "2003-11-10 17:45"
    stored = ("timestamp[ms]", 1000)
    exact = "timestamp[s]"
    seconds = 1
    strides: ClassVar[tuple[int, ...]] = (60, 3_600, 86_400)
    parts = (True, True)

    def _units(self, moment: datetime) -> float:
        offset = int((moment.utcoffset() or timedelta()).total_seconds())
        seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
        return float((moment.date() - _EPOCH).days * self.day + seconds - offset)


@register
class Time(Datetime):
    """Seconds since midnight, as ``17:05`` or ``17:05:00``. A fraction of a second is cut off."""

    name = "time"
    example = "17:05 or 17:05:00"
    rank = 5
    arrow = ("is_time",)
    questions = (
        ("lower", "the first possible time of day, as 08:00; earlier ones are clipped"),
        ("upper", "the last possible time of day, as 17:30"),
    )
    hint = "possible range: 00:00..23:59:59; times like 5:30 PM: add format %I:%M %p"
    pattern = r"\d{2}:\d{2}(?::\d{2})?"
    day = 0
    families = ("clock", "text")
    range_rule = "is a time of day, so its bounds must be times from 00:00 to 23:59:59."
    iso = "%H:%M:%S"
    form = CLOCK
    whole = (rf"^{_CLOCK}$", "timestamp[s]")
    probe = "17:45"
    usual = "%H:%M"
    before = ("1970-01-01 ", "%Y-%m-%d ")
    stored = ("time32[ms]", 1000)
    exact = "time32[s]"
    strides = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600)
    parts = (False, True)

    def widest(self, decimals: int | None = None) -> tuple[float, float]:
        return 0.0, Datetime.day - 1.0

    def grid(self, column: ColumnFacts) -> list[float]:
        """Nothing: a day has known bounds."""
        return []

    def unreadable(self, column: ColumnFacts) -> str:
        return (
            f"a time of day like {column.format or self.example}. Set format in the schema to how times are written "
            "there, or missing_values."
        )

    def _may_be_bounds(self, *numbers: float) -> bool:
        return all(0 <= number < Datetime.day and number.is_integer() for number in numbers)
