"""A person's answer about a column, as the schema's mapping for it. Only its form is read here.

Each kind reads its own form (:meth:`likeness.data.schema.kinds.Kind.answer`). ``KIND: ANSWER`` names the kind. Without
it, a form that the guessed kind cannot have decides. ``ANSWER *`` is an answer for all later columns of one guessed
kind too. The answer about a column to be dropped is the reason.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.dtypes import FALSE_WORDS, TRUE_WORDS
from likeness.data.schema.kinds import KINDS, LESS, PRIVATE, Boolean, Categorical, pieces

_NAMES = ("all", "none")
_FROM_TO = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_TWO = re.compile(r"([^/,]+)/([^/,]+)")


def parse_whole_number(text: str) -> int:
    """A whole number from 1; a SchemaError for any other text."""
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdigit() and 0 < len(digits) < 16 and int(digits) > 0):
        raise SchemaError(f"'{text}' is not a whole number from 1.")
    return int(digits)


@dataclass(frozen=True)
class Answer:
    """A typed line: the column's kind, the text about it, and whether later columns get it too."""

    kind: str
    text: str
    again: bool

    @property
    def spec(self) -> dict[str, Any]:
        """The column's mapping in the YAML file; a SchemaError where the answer does not have the form of its kind."""
        return {
            "kind": self.kind,
            **({"reason": self.text} if self.kind == DROP else KINDS[self.kind].answer(self.text)),
        }


def read_answer(text: str, guessed: str) -> Answer:
    """A line that was typed about a column of a guessed kind."""
    text = text.strip()
    again = text == "*" or text.endswith(" *")
    text = text.removesuffix("*").rstrip() if again else text
    named = re.match(rf"({'|'.join((*KINDS, DROP))})\s*(?::|$)\s*", text)
    if named:
        return Answer(named[1], text[named.end() :], again)
    return Answer(*((guessed, text) if guessed == DROP else _kind_from_form(text, guessed)), again)


def _kind_from_form(text: str, guessed: str) -> tuple[str, str]:
    """The kind that a text without a kind's name means, and the rest of the text."""
    if text.split()[:1] == [PRIVATE]:
        return guessed, text
    is_number = not KINDS[guessed].is_categorical
    pair = _TWO.fullmatch(text)
    if pair:
        first, second = (word.strip() for word in pair.groups())
        if first.casefold() in TRUE_WORDS or second.casefold() in FALSE_WORDS:
            first, second = second, first
        usual = first.casefold() in FALSE_WORDS and second.casefold() in TRUE_WORDS
        kind = Boolean.name if usual else Categorical.name if is_number else guessed
        return kind, f"{first}, {second}"
    named, _, limits = text.partition(" ")
    if named in KINDS and KINDS[named].is_answer(limits):
        return named, limits
    ranked = sorted(KINDS.values(), key=lambda kind: (kind.name != guessed, kind.rank))
    if kinds := [kind.name for kind in ranked if kind.is_answer(text)]:
        return kinds[0], text
    listed = text.split(", ")
    starts = any(re.match(kind.pattern, text, re.ASCII) for kind in ranked if not kind.is_categorical)
    is_list = len(listed) > 2 or (len(listed) > 1 and not starts) or LESS.search(text) is not None
    return (Categorical.name if is_number and is_list else guessed), text


def parse_columns(text: str, columns: Sequence[str], answerable: Sequence[str]) -> frozenset[str]:
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
    """A column by its name or, where no column has that name, by its number from 1; a SchemaError if there is none."""
    text = text.strip()
    if text in columns:
        return text
    number = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
    if not 1 <= number <= len(columns):
        raise SchemaError(
            f"'{text}' is not a column. Give names as in the header, or numbers from 1 to {len(columns)}."
        )
    return columns[number - 1]
