"""A person's answer about a column, as the schema's mapping for it.

Only the form is read here; the schema checks the content. The forms:

- a number or date: ``LOWER..UPPER``, then ``log`` (log1p), ``decimals 2``, ``spikes VALUE ...``, for dates ``format
  %d.%m.%Y``
- categories: ``one, two, three``, with quotes around a text with a comma; ``private``; a last one that ends in ``...``
  takes every unknown value
- a boolean: nothing, or ``no/yes``; a column to be dropped: the reason
- ``KIND: ANSWER`` names the kind. Without it, a form that the guessed kind cannot have decides.
- an answer for all later columns of one guessed kind too: ``ANSWER *``
"""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.booleans import FALSE_WORDS, TRUE_WORDS
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.dtypes import NUMBER
from likeness.data.schema.kinds import KINDS, KINDS_BY_NAME, OTHER, PRIVATE

_KIND = re.compile(rf"({'|'.join((*KINDS, DROP))})\s*(?::|$)\s*")
_WORD = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\s,]*|[^\s,]+", re.ASCII)  # a time has a blank in it
_NAMES = ("all", "none")
_NUMBERS = ("integer", "numeric", "date", "datetime")
_DATE = r"\d{4}-\d{2}-\d{2}"
_VALUE = rf"(?:{_DATE}(?:[ T]\d{{2}}:\d{{2}}(?::[\d.]*\d)?)?|{NUMBER.pattern})"
_TO = re.compile(rf"({_VALUE})\s*(?:\.\.|\bto\b)\s*(?={_VALUE})", re.ASCII)
_MORE = r"(?:\s.*|,\s*(?:log|log1p|decimals|spikes|format)\b.*)?"
_RANGE = re.compile(rf"(?:({'|'.join(_NUMBERS)})\s+)?({_TO.pattern}{_VALUE}){_MORE}", re.ASCII)
_FROM_TO = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_TWO = re.compile(r"([^/,]+)/([^/,]+)")


@dataclass(frozen=True)
class Answer:
    """A typed line: the column's kind, the text about it, and whether later columns get it too."""

    kind: str
    text: str
    again: bool

    def spec(self) -> dict[str, Any]:
        """The column's mapping in the YAML file.

        Raises:
            SchemaError: the answer has none of the forms above.
        """
        if self.kind == DROP:
            return {"kind": DROP, "reason": self.text}
        kind = KINDS_BY_NAME[self.kind]
        if kind.default_categories:
            return {"kind": self.kind, **({"categories": pieces(self.text)} if self.text else {})}
        if kind.is_categorical:
            return {"kind": self.kind, **_categories(self.text)}
        return {"kind": self.kind, **_bounds(self.text, "format" in kind.keys)}


def read_answer(text: str, guessed: str) -> Answer:
    """A line that was typed about a column of a guessed kind."""
    text = text.strip()
    again = text == "*" or text.endswith(" *")
    text = text.removesuffix("*").rstrip() if again else text
    named = _KIND.match(text)
    if named:
        return Answer(named[1], text[named.end() :], again)
    return Answer(*((guessed, text) if guessed == DROP else _by_form(text, guessed)), again)


def _by_form(text: str, guessed: str) -> tuple[str, str]:
    """The kind that a text without a kind's name means, and the rest of the text."""
    words = _TWO.fullmatch(text)
    if words:
        first, second = (word.strip() for word in words.groups())
        if first.casefold() in TRUE_WORDS or second.casefold() in FALSE_WORDS:
            first, second = second, first
        usual = first.casefold() in FALSE_WORDS and second.casefold() in TRUE_WORDS
        kind = "boolean" if usual else "categorical" if guessed in _NUMBERS else guessed
        return kind, f"{first}, {second}"
    limits = _RANGE.fullmatch(text)
    if limits:
        return limits[1] or _kind_of_range(text, guessed), text[limits.start(2) :]
    listed = text.split(", ")
    is_list = len(listed) > 2 or (len(listed) > 1 and not re.match(_VALUE, text, re.ASCII))
    return ("categorical" if guessed in _NUMBERS and (is_list or text == PRIVATE) else guessed), text


def _kind_of_range(text: str, guessed: str) -> str:
    if re.match(_DATE, text, re.ASCII):
        return "datetime" if guessed == "datetime" or ":" in text else "date"
    if guessed in ("integer", "numeric"):
        return guessed
    return "numeric" if "decimals" in text or "." in text.replace("..", "") else "integer"


def pieces(text: str) -> list[str]:
    """Texts of a line, between commas; quotes stand around a text with a comma.

    Raises:
        SchemaError: a quote is not closed.
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise SchemaError('quotes do not close. Write "one, with a comma", two, three.') from None
    return [piece.strip() for piece in rows[0]] if rows else []


def chosen(text: str, columns: Sequence[str], answerable: Sequence[str]) -> frozenset[str]:
    """Columns between commas or blanks, by name, number from 1, ``2-5`` or ``lab_*``; or ``all`` or ``none``.

    Raises:
        SchemaError: a word is not a column, or not an answerable one.
    """
    if text.strip() in ("", *_NAMES):
        return frozenset(answerable if text.strip() == "all" else ())
    names: list[str] = []
    patterned: set[str] = set()
    for piece in pieces(text):
        # Names may hold blanks, numbers do not.
        for word in [piece] if piece in columns else piece.split() or [piece]:
            between = _FROM_TO.fullmatch(word)
            if word not in columns and "*" in word:
                patterned |= {name for name in columns if fnmatchcase(name, word)} or {column_called(word, columns)}
            elif word not in columns and between:
                first, last = (columns.index(column_called(end, columns)) for end in between.groups())
                patterned |= set(columns[first : last + 1])
            else:
                names.append(column_called(word, columns))
    odd = [name for name in names if name not in answerable]
    if odd:
        raise SchemaError(f"column '{odd[0]}' is the label, is dropped or has an answer. Leave it out.")
    return frozenset(names) | (patterned & set(answerable))


def column_called(text: str, columns: Sequence[str]) -> str:
    """A column by its name or, where no column has that name, by its number from 1.

    Raises:
        SchemaError: there is none.
    """
    text = text.strip()
    if text in columns:
        return text
    place = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
    if not 1 <= place <= len(columns):
        raise SchemaError(
            f"'{text}' is not a column. Give names as in the header, or numbers from 1 to {len(columns)}."
        )
    return columns[place - 1]


def _categories(text: str) -> Mapping[str, Any]:
    if text == PRIVATE:
        return {"categories": PRIVATE, "other": OTHER}
    names = pieces(text)
    rest = names[-1].removesuffix("...").rstrip() if names else ""
    if not names or names[-1] == rest:
        return {"categories": names}
    return {"categories": [*names[:-1], rest], "other": rest}


def _bounds(text: str, dates: bool) -> Mapping[str, Any]:
    more: dict[str, Any] = {}
    if dates:  # a format may hold blanks and commas, so it is the rest of the line
        text, _, layout = f" {text}".partition(" format ")
        more |= {"format": layout.strip()} if layout.strip() else {}
    text = _TO.sub(r"\1 ", text)
    bounds: list[Any] = []
    spikes: list[Any] = []
    target = bounds
    words = iter(_WORD.findall(text))
    for word in words:
        if word == "spikes":
            target = spikes
        elif word == "decimals":
            more["decimals"] = _number(next(words, ""))
        elif word in ("log", "log1p"):
            more["transform"] = "log1p"
        else:
            target.append(word if dates else _number(word))
    if len(bounds) > 2:
        raise SchemaError(
            "more than two bounds. Write the smallest and the largest possible value: 0..12000.5. "
            "Decimals have a point, thousands no mark."
        )
    more |= {"spikes": spikes} if spikes else {}
    return {**dict(zip(("lower", "upper"), bounds, strict=False)), **more}


def _number(word: str) -> int | float | str:
    """A number; another word stays, and the schema refuses it."""
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        if math.isfinite(value) if isinstance(value, float) else True:
            return value
    return word
