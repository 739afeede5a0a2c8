"""A person's answer about a column, as the schema's mapping for it.

Only the form is read here; the schema checks the content. The forms:

- a number or date: ``LOWER UPPER``, then ``log`` (log1p), ``decimals 2``, ``spikes VALUE ...``, for dates ``format
  %d.%m.%Y``
- categories: ``one, two, three``, with quotes around a text with a comma; ``private``; a last one that ends in ``...``
  takes every unknown value
- a boolean: nothing, or its two words; a column to be dropped: the reason
- another kind than the guessed one: ``KIND: ANSWER``
- an answer for all later columns of one guessed kind too: ``ANSWER *``
"""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.kinds import KINDS, KINDS_BY_NAME, OTHER, PRIVATE

_KIND = re.compile(rf"({'|'.join((*KINDS, DROP))})\s*(?::|$)\s*")
_WORD = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\s,]*|[^\s,]+", re.ASCII)  # a time has a blank in it
_NAMES = ("all", "none")


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
    return Answer(named[1] if named else guessed, text[named.end() :] if named else text, again)


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
    """Columns by name, or by number from 1, between commas or blanks; ``all`` or ``none`` of the answerable columns.

    Raises:
        SchemaError: a word is not a column, or not an answerable one.
    """
    if text.strip() in ("", *_NAMES):
        return frozenset(answerable if text.strip() == "all" else ())
    names = []
    for name in pieces(text):
        # Names may hold blanks, numbers do not.
        names += [column_called(word, columns) for word in ([name] if name in columns else name.split() or [name])]
    odd = [name for name in names if name not in answerable]
    if odd:
        raise SchemaError(f"column '{odd[0]}' is the label, is dropped or has an answer. Leave it out.")
    return frozenset(names)


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
            "more than two bounds. Write the smallest and the largest possible value, a blank between: 0 12000.5. "
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
