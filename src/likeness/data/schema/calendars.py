"""The rule ``calendar``: year, month and weekday of a date are modeled in its place."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from likeness.data.schema.allowed import Allowed
from likeness.data.schema.column import Column
from likeness.data.schema.computed import Computing
from likeness.data.schema.layouts import MONTHS, WEEKDAYS
from likeness.data.schema.rule import Columns, Values, column_of, refuse

_MOST_CUTS = 12  # years that are bins of their own


@dataclass(frozen=True)
class Calendar(Computing):
    """Year, month and weekday of a date are modeled in the place of the date.

    The fraction of the year's number says which of the four or five such weekdays of the month it is. So each date has
    one triple, and each triple one date.
    """

    kind: ClassVar[str] = "calendar"

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """A date."""
        column = column_of(spec["calendar"], number, columns)
        if column.type.day != 1:
            raise refuse(number, f"calendar needs a date, but '{column.name}' is {column.kind}.")
        rule = cls(spec, number, {column.name: column})
        for part in rule.stand_in_columns:
            if part.name in columns:
                raise refuse(number, f"'{part.name}' is already a column. Rename it.")
        return rule

    @property
    def date(self) -> Column:
        """The date."""
        return next(iter(self.columns.values()))

    @property
    def computes(self) -> tuple[str, ...]:
        return (self.date.name,)

    @property
    def stand_in_columns(self) -> tuple[Column, ...]:
        """Year, month and weekday. Bins begin with a year where there are few."""
        first, last = (int(_year(np.array([bound]))[0]) for bound in self.date.bounds)
        name, nullable = self.date.name, self.date.nullable
        cuts = tuple(float(year) for year in range(first + 1, last + 1)) if last - first < _MOST_CUTS else ()
        return (
            Column(f"year of {name}", "numeric", float(first), float(last + 1), nullable=nullable, cuts=cuts),
            Column(f"month of {name}", "categorical", categories=MONTHS, nullable=nullable),
            Column(f"weekday of {name}", "categorical", categories=WEEKDAYS, nullable=nullable),
        )

    def modeled_values(self, values: Values) -> Values:
        missing = np.isnan(values[self.date.name])
        days = np.where(missing, self.date.bounds[0], values[self.date.name])
        year, month, weekday = _year(days), _month(days) - 12 * (_year(days) - 1970), _weekday(days)
        first, count = _weekday_in_month(_month(days), weekday)
        parts = (year + ((days - first) / 7 + 0.5) / count, month, weekday)
        return {
            part.name: np.where(missing, np.nan, cells)
            for part, cells in zip(self.stand_in_columns, parts, strict=True)
        }

    def compute(self, values: Values) -> Values:
        """The date of each triple. A row that lacks a part, and not its year, has none: it is below the lower bound."""
        years, months, weekdays = (values[part.name] for part in self.stand_in_columns)
        missing, partly = np.isnan(years), np.isnan(months) | np.isnan(weekdays)
        year = np.minimum(np.floor(np.nan_to_num(years, nan=1970.0)), self.stand_in_columns[0].bounds[1] - 1)
        fraction = np.clip(np.nan_to_num(years, nan=1970.0) - year, 0.0, 1.0)
        first, count = _weekday_in_month(12 * (year - 1970) + np.nan_to_num(months), np.nan_to_num(weekdays))
        days = first + 7 * np.minimum(np.floor(fraction * count), count - 1)
        return {self.date.name: np.where(missing, np.nan, np.where(partly, self.date.bounds[0] - 1, days))}

    def translate(self, name: str, allowed: Allowed) -> tuple[str, Allowed] | None:
        """Whole years as years; rows reject other ranges of days."""
        (lower, upper), years = self.date.bounds, []
        for low, high in allowed.restrict_to(self.date).ranges:
            earlier, first, last, later = _year(np.array([low - 1, low, high, high + 1])).tolist()
            if (low > lower and earlier == first) or (high < upper and last == later):
                return None
            years.append((first, math.nextafter(last + 1, first)))
        return self.stand_in_columns[0].name, Allowed(ranges=tuple(years), missing=allowed.missing)

    def violations(self, values: Values) -> NDArray[np.bool_]:
        return np.zeros(len(values[self.date.name]), dtype=bool)


def _month(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Months since January 1970 of days since 1970-01-01."""
    months: NDArray[np.float64] = days.astype("int64").astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months.astype(np.float64)


def _year(days: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1970 + np.floor(_month(days) / 12)


def _weekday(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 is Monday; 1970-01-01 was a Thursday."""
    return (days + 3) % 7


def _weekday_in_month(
    month: NDArray[np.float64], weekday: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first day of a month with this weekday, and how many such days the month has: four or five."""
    start, end = (
        (month + more).astype("int64").astype("datetime64[M]").astype("datetime64[D]").astype(np.float64)
        for more in (0, 1)
    )
    first = start + (weekday - _weekday(start)) % 7
    return first, np.ceil((end - first) / 7)
