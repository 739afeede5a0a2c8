"""Dates and times as whole numbers: days, or seconds, since 1970-01-01. Cell by cell, and no table library.

A public bound and a cell of a source are read by the same rules, so that a bound means what it says.
"""

import re
from datetime import UTC, date, datetime, timedelta

_DAY_SECONDS = 86_400
_EPOCH = date(1970, 1, 1)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:[.,]0+)?)?)?", re.ASCII)
_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
EARLIEST, LATEST = "0001-01-01", "9999-12-31"


def number_of(kind: str, text: str, layout: str | None = None, end_of_day: bool = False) -> float | None:
    """A date or time as a number, None where the text is neither.

    A date is ISO 8601, ``1994-03-01``, also with a midnight behind it. A time is ``1994-03-01 17:05:00`` or with a
    ``T``; a fraction of a second is cut off; an offset (``+01:00``, ``Z``) is applied, so that the number is in UTC.

    Args:
        kind: ``date`` (days) or ``datetime`` (seconds).
        text: the text of a cell or bound.
        layout: as in :meth:`datetime.datetime.strptime`, instead of ISO 8601.
        end_of_day: a time without hours is the last second of its day and not the first: for upper bounds.
    """
    try:
        if layout is not None:
            moment = datetime.strptime(text, layout)
        elif (_DATE if kind == "date" else _DATETIME).fullmatch(text):
            moment = datetime.fromisoformat(text.replace(",", "."))
        else:
            return None
    except ValueError:  # 1994-02-30
        return None
    days = (moment.date() - _EPOCH).days
    if kind == "date":
        return float(days)
    offset = moment.utcoffset() or timedelta()
    seconds = days * _DAY_SECONDS + moment.hour * 3600 + moment.minute * 60 + moment.second
    whole_day = end_of_day and layout is None and len(text) == len(EARLIEST)
    return float(seconds - int(offset.total_seconds()) + (_DAY_SECONDS - 1 if whole_day else 0))


def text_of(kind: str, number: float) -> str:
    """The ISO text of a number that :func:`number_of` reads back."""
    if kind == "date":
        return (_EPOCH + timedelta(days=round(number))).isoformat()
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(number))
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def date_range(kind: str) -> tuple[float, float]:
    """Smallest and largest number that is a date: the years 1 to 9999."""
    lowest, highest = number_of(kind, EARLIEST), number_of(kind, LATEST, end_of_day=True)
    assert lowest is not None and highest is not None
    return lowest, highest
