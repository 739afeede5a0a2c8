"""Dates and times as whole numbers: days, or seconds, since 1970-01-01. Cell by cell, and no table library.

A public bound and a cell of a source are read by the same rules, so that a bound means what it says.
"""

import re
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta

from likeness.data.schema.layouts import DIRECTIVES, has_two_digit_years, is_known, moments, written

_DAY_SECONDS = 86_400
_EPOCH = date(1970, 1, 1)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:[.,]0+)?)?)?", re.ASCII)
_DATETIME = re.compile(  # some versions of Python take 24:00 too
    r"\d{4}-\d{2}-\d{2}(?:[ T](?!24)\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_PROBE = "2003-11-10 17:45"
_PROBES = [_PROBE[:10], *(_PROBE + end for end in ("", ":00", ":00.000000", ":00.000000Z", ":00.000000000"))]
EARLIEST, LATEST = "0001-01-01", "9999-12-31"
_CENTURY = 100


def number_of(
    kind: str,
    text: str,
    layout: str | None = None,
    bounds: tuple[float, float] | None = None,
    end_of_day: bool = False,
) -> float | None:
    """A date or time as a number, None where the text is neither.

    A date is ISO 8601, ``1994-03-01``, also with a midnight behind it. A time is ``1994-03-01 17:05:00`` or with a
    ``T``; a fraction of a second is cut off; an offset (``+01:00``, ``Z``) is applied, so that the number is in UTC.

    Args:
        kind: ``date`` (days) or ``datetime`` (seconds).
        text: the text of a cell or bound.
        layout: see :mod:`likeness.data.schema.layouts`, before ISO 8601, which cells with a type have.
        bounds: lowest and highest number; a year of two digits has the century that lies in them, or nearest to them.
        end_of_day: a time without hours is the last second of its day and not the first: for upper bounds.
    """
    if layout is not None:
        lower, upper = bounds or date_range(kind)
        years = range(max(_year(kind, lower) - _CENTURY, MINYEAR), min(_year(kind, upper) + _CENTURY, MAXYEAR) + 1)
        numbers = [_number(kind, moment) for moment in moments(text, layout, years)]
        if numbers:
            return min(numbers, key=lambda number: max(lower - number, number - upper, 0.0))
    if not (_DATE if kind == "date" else _DATETIME).fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:  # 1994-02-30
        return None
    whole_day = end_of_day and kind != "date" and len(text) == len(EARLIEST)
    return _number(kind, moment) + (_DAY_SECONDS - 1 if whole_day else 0)


def _number(kind: str, moment: datetime) -> float:
    days = (moment.date() - _EPOCH).days
    if kind == "date":
        return float(days)
    offset = moment.utcoffset() or timedelta()
    seconds = days * _DAY_SECONDS + moment.hour * 3600 + moment.minute * 60 + moment.second
    return float(seconds - int(offset.total_seconds()))


def moment_of(kind: str, number: float) -> datetime:
    """The time of a number, in UTC and without a zone; of a date its midnight."""
    return datetime(1970, 1, 1) + timedelta(**{"days" if kind == "date" else "seconds": round(number)})


def _year(kind: str, number: float) -> int:
    return moment_of(kind, number).year


def text_of(kind: str, number: float, layout: str | None = None) -> str:
    """The text of a number that :func:`number_of` reads back: in ISO 8601, or in a layout."""
    moment = moment_of(kind, number)
    if layout is not None:
        return written(moment, layout)
    return moment.date().isoformat() if kind == "date" else moment.isoformat(sep=" ")


def layout_fault(kind: str, layout: str, bounds: tuple[float, float]) -> str:
    """Why a layout does not tell one date, or time to the minute, from any other; empty where it does.

    Args:
        kind: ``date`` or ``datetime``.
        layout: see :mod:`likeness.data.schema.layouts`.
        bounds: lowest and highest number.
    """
    number = number_of(kind, _PROBE[:10] if kind == "date" else _PROBE)
    around = None if number is None else (number, number)
    if (
        not is_known(layout)
        or number is None
        or number_of(kind, text_of(kind, number, layout), layout, around) != number
    ):
        return f"which does not read a whole {kind}. Write e.g. %d.%m.%Y. Parts: {DIRECTIVES}."
    days = {moment.date().isoformat() for text in _PROBES for moment in moments(text, layout, [])}
    if not days <= {_PROBE[:10]}:
        return "which reads 2003-11-10 as another day than ISO 8601. Write the source's dates in another way."
    first, last = (moment_of(kind, bound).timetuple()[:6] for bound in bounds)
    if has_two_digit_years(layout) and (first[0] + _CENTURY, *first[1:]) <= last:
        return (
            "with years of two digits, but its bounds span 100 years or more. Write the source's years with four "
            "digits (%Y), or give narrower bounds."
        )
    return ""


def date_range(kind: str) -> tuple[float, float]:
    """Smallest and largest number that is a date: the years 1 to 9999."""
    lowest, highest = number_of(kind, EARLIEST), number_of(kind, LATEST, end_of_day=True)
    assert lowest is not None and highest is not None
    return lowest, highest
