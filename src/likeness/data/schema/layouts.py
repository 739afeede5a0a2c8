"""Layouts of dates and times, as ``%d.%m.%Y``: read and written by fixed rules, with names in English.

``strptime`` and ``strftime`` follow the locale of the process, and the latter writes the year 999 with three digits.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = 3  # letters of a short name
_NOON = 12
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "j": 3}
_OTHERS = {
    "B": "|".join(MONTHS),
    "b": "|".join(name[:_SHORT] for name in MONTHS),
    "A": "|".join(WEEKDAYS),
    "a": "|".join(name[:_SHORT] for name in WEEKDAYS),
    "p": "AM|PM",
    "f": r"\d{1,9}",
    "z": r"Z|[+-]\d{2}:?\d{2}",
}
_WRITTEN: dict[str, Callable[[datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "H": lambda moment: f"{moment.hour:02}",
    "I": lambda moment: f"{moment.hour % _NOON or _NOON:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "B": lambda moment: MONTHS[moment.month - 1],
    "b": lambda moment: MONTHS[moment.month - 1][:_SHORT],
    "A": lambda moment: WEEKDAYS[moment.weekday()],
    "a": lambda moment: WEEKDAYS[moment.weekday()][:_SHORT],
    "p": lambda moment: "AM" if moment.hour < _NOON else "PM",
    "f": lambda _: "000000",
    "z": lambda _: "+0000",
    "%": lambda _: "%",
}
DIRECTIVES = ", ".join(f"%{letter}" for letter in sorted(_WRITTEN) if letter != "%")
_PIECES = re.compile(r"%(?P<letter>.?)|(?P<blank>\s+)|(?P<sign>.)", re.DOTALL)
_NUMBERS = {name[:_SHORT].lower(): index for index, name in enumerate(MONTHS, start=1)}


def has_two_digit_years(layout: str) -> bool:
    """Tell whether the century of a year is left out."""
    letters = _letters(layout)
    return "y" in letters and "Y" not in letters


def is_known(layout: str) -> bool:
    """Tell whether a layout has no part twice, and none that is not known."""
    return _pattern(layout) is not None


def number_digits(layout: str) -> int:
    """The digits of each text of a layout whose texts are whole numbers, as of ``%Y%m%d``; 0 for any other layout."""
    is_number = re.fullmatch(f"(?:%[{''.join(_DIGITS)}])*", layout)
    return sum(_DIGITS[letter] for letter in _letters(layout)) if is_number else 0


def moment_text(moment: datetime, layout: str) -> str:
    """The text of a time that :func:`moments` reads back, for a layout that it knows."""
    return re.sub(r"%(.)", lambda match: _WRITTEN[match[1]](moment), layout)


def moments(text: str, layout: str, years: Iterable[int]) -> list[datetime]:
    """The times that a text may mean: of a two-digit year one for each of these years, and none if it is unreadable."""
    pattern = _pattern(layout)
    match = pattern and pattern.fullmatch(text)
    if not match:
        return []
    parts = match.groupdict()
    if "Y" in parts:
        years = [int(parts["Y"])]
    else:
        years = [year for year in years if "y" in parts and year % 100 == int(parts["y"])]
    return [moment for year in years for moment in _moments(year, parts)]


def _moments(year: int, parts: Mapping[str, str]) -> Iterator[datetime]:
    """The time of a year that has these parts, if there is one: none on 30 February, or without a day."""
    name = parts.get("B", parts.get("b", ""))[:_SHORT].lower()
    month, hour = int(parts.get("m", _NUMBERS.get(name, 0))), int(parts.get("H", 0))
    if "I" in parts and "H" not in parts:
        hour = int(parts["I"])
        if "p" not in parts or not 1 <= hour <= _NOON:
            return
        hour = hour % _NOON + _NOON * (parts["p"].lower() == "pm")
    with suppress(ValueError, OverflowError):
        if month == 0 and "j" in parts:
            day = datetime(year, 1, 1) + timedelta(days=int(parts["j"]) - 1)
        else:
            day = datetime(year, month, int(parts.get("d", 0)))
        moment = day.replace(hour=hour, minute=int(parts.get("M", 0)), second=int(parts.get("S", 0)))
        if moment.year == year:
            zone = datetime.strptime(parts["z"].upper(), "%z").tzinfo if "z" in parts else None  # in any locale
            yield moment.replace(tzinfo=zone)


def _letters(layout: str) -> list[str]:
    return [piece["letter"] for piece in _PIECES.finditer(layout) if piece["letter"] is not None]


@cache
def _pattern(layout: str) -> "re.Pattern[str] | None":
    """Compile the pattern of texts of a layout; None where it has a part twice, or one that is not known."""
    letters = [letter for letter in _letters(layout) if letter != "%"]
    if not set(letters) <= set(_WRITTEN) or len(set(letters)) < len(letters):
        return None
    pieces, pattern = [*_PIECES.finditer(layout)], ""
    for index, piece in enumerate(pieces):
        letter = piece["letter"]
        if letter in _DIGITS:
            # Between other digits a number has all of its own.
            neighbors = pieces[max(index - 1, 0) : index] + pieces[index + 1 : index + 2]
            fixed = letter in "Yy" or any(near["letter"] in _DIGITS or near[0].isdecimal() for near in neighbors)
            pattern += rf"(?P<{letter}>\d{{{'' if fixed else '1,'}{_DIGITS[letter]}}})"
        elif letter in _OTHERS:
            pattern += f"(?P<{letter}>{_OTHERS[letter]})"
        else:
            pattern += r"\s+" if piece["blank"] else re.escape(letter or piece["sign"])
    return re.compile(pattern, re.ASCII | re.IGNORECASE)
