"""A first schema by question and answer. The schema's rules check each answer at once.

No row is read here: questions come from names and guessed kinds, answers from a person. An interview is the list of its
accepted lines. Whoever goes on later, or takes an answer back, gets the rest of that list taken again.
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from likeness.config.params import Ingest, Privacy
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import LikenessError, SchemaError
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import task_of
from likeness.data.schema.kinds import KINDS_BY_NAME, PRIVATE
from likeness.onboarding.answers import chosen, column_called, pieces, read_answer
from likeness.preflight.faults import schema_faults

_INTRO = "All you type becomes PUBLIC: from a codebook or law, never from the rows."
_KEYS = "? explains a question. < goes back. Ctrl-C stops and keeps your answers."
_DROPPED = "why it is left out, in words"
_UNWRITABLE = ("Cc", "Cs", "Zl", "Zp", "Cn")  # control characters, halves of characters, ends of lines
_BREAKS = re.compile(r"[\t\r\n]+")  # of a text that was pasted
_BACK = re.compile(r"(?:<|back)(?:\s+(.+))?", re.IGNORECASE)
_PATTERN = re.compile(r"(\S*\*\S*) as (.+)")
_DIGITS = re.compile(r"\d+")
_ALIKE = 3  # columns that share a question
_STAND_IN = {"kind": "categorical", "categories": ["0", "1"]}
_FORMS = """What is possible, from public knowledge. Do not look at the rows.
0..110                     a number. You may add: log, decimals 2, spikes 0 40
1990-01-01..2026-12-31     a date. You may add: format %d.%m.%Y
red, green, blue           categories. "others ..." at the end takes every other value
private                    categories that nobody may know. A part of the budget finds them
no/yes                     two words
ordinal: low, middle, high categories with an order
drop: free text            leaves the column out, and says why
0..110 *                   the answer for this column and all later ones of its kind
X* as X1                   the answer of X1 for all columns whose names begin with X
< or < age                 goes back to the question before, or to column age"""
_HELP = {
    "source": "Name the public text that says which values are possible. Example: codebook of 2024, page 5",
    "label": "A model for later rows would predict this column. Without one, press Enter.",
    "missing": "In these columns, some rows may have no value. Example: 1 4-9 lab_*, or all",
    "codes": "Which words mean that a value is missing? Separate them by commas: NA, ?. An empty cell always does.",
    "people": "The ledger adds up all costs under this name. Give the same name for later data of the same people.",
}


class _Undo(Exception):  # noqa: N818 (no error)
    """The person takes the last answer back."""


@dataclass(frozen=True)
class Completed:
    """All answers; ``max_rows`` where people may have several rows."""

    schema: dict[str, Any]
    population: str
    max_rows: int | None


@dataclass(frozen=True)
class Question:
    """A question. ``before`` is shown once."""

    key: str
    text: str
    help: str
    before: str = ""


@dataclass
class Interview:
    """Questions to a person.

    Attributes:
        ask: shows a text and returns the typed line.
        tell: shows a line.
        name: of the table.
        kinds: guessed kind by column.
        label: the column to be predicted; None: a question.
        person: the column that names people who may have several rows.
        settled: mappings of columns that need no question.
        source: of the bounds and categories; None: a question.
        nullable: open columns in which values may be missing; None: a question.
        private: whether all categories but the label's are private.
        lines: accepted ones of an interview that stopped, each behind the key of its question.
        save: keeps the lines, after each answer.
    """

    ask: Callable[[str], str]
    tell: Callable[[str], None]
    name: str
    kinds: Mapping[str, str]
    label: str | None = None
    person: str | None = None
    settled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str | None = None
    nullable: frozenset[str] | None = None
    private: bool = False
    lines: Sequence[tuple[str, str]] = ()
    save: Callable[[Sequence[tuple[str, str]]], None] = lambda _: None

    most_words = "Most rows of one person that are used: "
    most_help = (
        "One person may have several rows. More rows than this number are left out. Noise grows with the number."
    )

    def run(self) -> Completed:
        """Ask everything.

        Raises:
            SchemaError: the given values break a rule, so no answer helps.
        """
        self._open = [name for name in self.kinds if name not in self.settled]
        self._shown: set[str] = set()
        self._start()
        for fault in self._faults(self._mapping()):
            raise SchemaError(fault)
        self._show(_INTRO)
        self._show(_KEYS)
        lines, last = list(self.lines), ""
        while True:
            try:
                return self._interview(lines, last)
            except _Undo:
                *lines, (last, _) = self._taken
                self.save(lines)

    def _start(self) -> None:
        """The state before the first answer."""
        self._taken: list[tuple[str, str]] = []
        self._specs: dict[str, Any] = {name: dict(spec) for name, spec in self.settled.items()}
        self._source, self._label, self._asks_label = self.source, self.label, self.label is None
        self._guesses = dict(self.kinds)
        self._single: set[str] = set()  # columns with a question of their own
        self._again: str | None = None  # the column that a person goes back to
        self._missing: frozenset[str] | None = None
        self._codes: dict[str, Any] | None = None
        self._population: str | None = None
        self._max_rows: int | None = None

    def _interview(self, lines: Sequence[tuple[str, str]], first: str) -> Completed:
        """Take the lines, then ask for what is open: the question with the key ``first``, then the others.

        Raises:
            _Undo: the person goes back.
        """
        self._start()
        if not self._asks_label:
            self._make_private()
        for key, line in lines:
            with contextlib.suppress(LikenessError):  # of another table: asked again
                self._take(key, line)
        self._again = next((name for name in self._specs if first == f"column {name}"), None)
        while (question := self._next()) is not None:
            if question.before:
                self._show(question.before)
            try:
                line = self._line(question.text)
                if line.casefold() in ("?", "help") and (line, question.key) != ("?", "codes"):
                    self.tell("\n".join(f"  {part}" for part in question.help.split("\n")))
                elif not self._went_back(line):
                    for note in filter(None, self._take(question.key, line)):
                        self.tell(f"  {note}")
                    self.save(self._taken)
            except LikenessError as error:
                self.tell(f"  {error}")
        return Completed(self._mapping(), str(self._population), self._max_rows)

    def _show(self, text: str) -> None:
        if text not in self._shown:
            self.tell(text)
            self._shown.add(text)

    def _went_back(self, line: str) -> bool:
        """Whether the line asks for an earlier question: the last one, or that of a column."""
        back = _BACK.fullmatch(line)
        if back is None:
            return False
        if back[1] is None:
            if not self._taken:
                raise SchemaError("this is the first question.")
            raise _Undo
        try:
            name = column_called(back[1], list(self.kinds))
        except SchemaError:
            return False  # a category, as "back pain"
        if name not in self._open or name not in self._specs:
            raise SchemaError(f"column '{name}' has no answer of yours yet.")
        self._again = name
        return True

    def _next(self) -> Question | None:
        """The first open question."""
        able = [name for name in self._open if name != self._label and self._specs.get(name, _STAND_IN)["kind"] != DROP]
        if self.nullable is not None and self._missing is None:
            self._missing = self.nullable & set(able)
        name = self._again or next((name for name in self.kinds if name not in self._specs), None)
        if self._source is None:
            key, text, before = "source", "Source of the possible values, as a codebook or law: ", ""
        elif self._asks_label:
            key, text, before = (
                "label",
                "Column to predict, name or number (Enter: none): ",
                f"Columns: {self._numbered()}",
            )
        elif name is not None:
            return self._about_column(name)
        elif self._missing is None and able:
            key, before = "missing", ""
            text = "Columns that may miss a value: all, names or numbers (Enter: none): "
        elif self._missing and self._codes is None:
            key, text, before = "codes", "Words for a missing value, as NA, ? (Enter: an empty cell only): ", ""
        elif self._population is None:
            key, text, before = "people", "Name for the people, also for later data: ", ""
        elif self.person is not None and self._max_rows is None:
            return Question("rows", self.most_words, self.most_help)
        else:
            return None
        return Question(key, text, _HELP[key], before)

    def _numbered(self) -> str:
        """All columns with their numbers; columns in a row whose names differ in digits only, as one."""
        places = {name: place for place, name in enumerate(self.kinds, start=1)}
        texts: list[str] = []
        for _, run in groupby(self.kinds, _stem):
            names = list(run)
            if len(names) < _ALIKE:
                texts += [f"{places[name]}\u00a0{name}" for name in names]
            else:
                texts.append(f"{places[names[0]]}-{places[names[-1]]}\u00a0{names[0]} to {names[-1]}")
        return ", ".join(texts)

    def _about_column(self, name: str) -> Question:
        kind, group = self._guesses[name], self._group(name)
        hint = f"  {kind}: {_DROPPED if kind == DROP else KINDS_BY_NAME[kind].hint}"
        place, last = list(self.kinds).index(name) + 1, f" to {group[-1]}" if group[1:] else ""
        if last:
            self._show(f"  {len(group)} columns alike: {', '.join(group)}. One answer for all. Or: each")
        return Question(f"column {name}", f"{place} {name}{last}, {kind}: ", _FORMS, hint)

    def _group(self, name: str) -> list[str]:
        """The columns that share the question of a column: open ones of its kind whose names differ in digits only.

        All booleans share one.
        """
        kind = self._guesses[name]
        group = [
            other
            for other in self._alike(name)
            if other not in self._single and (kind == "boolean" or _stem(other) == _stem(name))
        ]
        alone = name not in group or name in self._specs or name == self._label
        return group if not alone and len(group) >= _ALIKE else [name]

    def _alike(self, name: str) -> list[str]:
        """A column and the open ones of its guessed kind, without the label."""
        kind = self._guesses[name]
        return [
            other
            for other in self._open
            if other == name or (other not in (*self._specs, self._label) and self._guesses[other] == kind)
        ]

    def _take(self, key: str, line: str) -> Sequence[str]:
        """Take over an answer.

        Returns:
            What the person should see.

        Raises:
            LikenessError: a rule refuses it.
        """
        name = key.removeprefix("column ")
        notes: Sequence[str] = ()
        if name != key:
            notes = self._take_column(name, line)
        elif key == "source" and self.source is None:
            self._refuse_faults({**self._mapping(), "source": line})
            self._source = line
        elif key == "label" and self.label is None:
            label = column_called(line, list(self.kinds)) if line else None
            self._refuse_faults(self._mapping(label=label))
            self._label, self._asks_label = label, False
            self._make_private()
        elif key == "missing":
            able = [name for name in self._open if name != self._label and self._specs[name]["kind"] != DROP]
            self._missing = chosen(line, list(self.kinds), able)
        elif key == "codes":
            codes = {"missing_values": pieces(line)} if line else {}
            self._refuse_faults(self._mapping(codes=codes))
            self._codes = codes
        elif key == "people":
            self._population = Privacy(epsilon=1, delta=0.5, population=line).population
        elif key == "rows" and self.person is not None:
            most = _whole(line)
            self._check_most(most)
            self._max_rows = most
        self._taken.append((key, line))
        return notes

    def _check_most(self, most: int) -> None:
        """Refuse a number of rows of a person that is out of range."""
        Ingest("table", "schema", unit=PrivacyUnit(str(self.person), most))

    def _take_column(self, name: str, line: str) -> Sequence[str]:
        """Take over an answer about a column, and about those that share it."""
        if name not in self._open:
            raise SchemaError(f"column '{name}' needs no answer.")
        group, pattern = self._group(name), _PATTERN.fullmatch(line)
        if line == "each" and group[1:]:
            self._single |= set(group)
            return ()
        if pattern:
            return self._copy(pattern[1], pattern[2])
        guess, answer = self._guesses[name], read_answer(line, self._guesses[name])
        if not answer.text and answer.kind != guess and answer.kind != "boolean":
            self._guesses[name] = answer.kind  # its word alone: the next answer is for it
            self._single.add(name)
            return [f"{name} is {answer.kind}"]
        names = self._alike(name) if answer.again else group
        self._try(dict.fromkeys(names, answer.spec()))
        self._again = None
        kind = f"{name} is {answer.kind}" if answer.kind != guess and not line.startswith(answer.kind) else ""
        return kind, f"also for {', '.join(names[1:])}" if answer.again and names[1:] else ""

    def _copy(self, pattern: str, column: str) -> Sequence[str]:
        """The answer of a column for all open ones of a pattern."""
        column = column_called(column, list(self.kinds))
        if column not in self._specs:
            raise SchemaError(f"column '{column}' has no answer yet. Answer it first.")
        names = [name for name in self._open if fnmatchcase(name, pattern) and name != self._label]
        names = [name for name in names if name not in self._specs or name == self._again]
        if not names:
            raise SchemaError(f"no column without an answer has a name like {pattern}.")
        self._try(dict.fromkeys(names, self._specs[column]))
        self._again = None
        return [f"as {column}: {', '.join(names)}"]

    def _make_private(self) -> None:
        if self.private:
            private = read_answer(PRIVATE, "categorical").spec()
            names = [name for name in self._open if self.kinds[name] == "categorical" and name != self._label]
            self._try(dict.fromkeys(names, private))

    def _try(self, specs: Mapping[str, Any]) -> None:
        """Take over mappings of columns that the schema accepts.

        Raises:
            SchemaError: with all faults.
        """
        self._refuse_faults(self._mapping(specs))
        self._specs.update(specs)

    def _faults(self, mapping: Mapping[str, Any]) -> list[str]:
        """The faults of a schema."""
        return schema_faults(mapping)

    def _refuse_faults(self, mapping: Mapping[str, Any]) -> None:
        faults = self._faults(mapping)
        if faults:
            raise SchemaError(" ".join(faults))

    def _mapping(
        self,
        specs: Mapping[str, Any] | None = None,
        label: str | None = None,
        codes: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The schema so far; two categories stand in for an open column."""
        label = self._label if label is None else label
        codes = self._codes if codes is None else codes
        columns = {name: {**self._specs, **(specs or {})}.get(name, _STAND_IN) for name in self.kinds}
        for name in self._missing or ():
            if columns[name].get("kind") != DROP and name != label:
                columns[name] = {**columns[name], "nullable": True, **(codes or {})}
        kind = None if label is None else columns.get(label, {}).get("kind", "")
        about = {"name": self.name, "source": self._source or "?", "task": task_of(kind)}
        return {**about, **({} if label is None else {"label": label}), "columns": columns}

    def _line(self, question: str) -> str:
        """A typed line; a line that ends in a comma continues in the next, as in a pasted list.

        Raises:
            SchemaError: it holds a character that cannot stand in a file of one line a column.
        """
        text = _BREAKS.sub(" ", self.ask(question)).strip()
        while text.endswith(","):
            text += " " + _BREAKS.sub(" ", self.ask("  and: ")).strip()
        if any(unicodedata.category(character) in _UNWRITABLE for character in text):
            raise SchemaError("the answer holds a character that cannot be written to a file. Type it again.")
        return text


def _stem(name: str) -> str:
    """A name without its digits."""
    return _DIGITS.sub("#", name)


def _whole(text: str) -> int:
    """A whole number from 1."""
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdigit() and 0 < len(digits) < 16 and int(digits) > 0):
        raise SchemaError(f"'{text}' is not a whole number from 1.")
    return int(digits)
