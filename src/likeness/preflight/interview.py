"""The questions of a draft in a terminal. The schema's rules check each answer at once.

No row is read here: questions come from names and guessed kinds, answers from a person. An interview is the list of its
accepted lines. Whoever goes on later, or takes an answer back, gets the rest of that list taken again.

A sheet of all open columns, one row each, that a person fills in with a spreadsheet or an editor.

Its columns are: name, kind, possible values, missing. Values are written as in the terminal. Nothing in a new sheet
comes from the rows but the guesses of the kinds.
"""

import contextlib
import copy
import csv
import io
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from likeness.config.params import Ingest, Privacy
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import LikenessError, SchemaError
from likeness.data.schema.answers import column_called, parse_columns, parse_whole_number, read_answer
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import KINDS, Boolean, pieces
from likeness.preflight.faults import faults_of

_INTRO = "All you type becomes PUBLIC: from a codebook or law, never from the rows."
_KEYS = "? explains a question. < goes back. Ctrl-C stops and keeps your answers."
_DROPPED = "why it is left out, in words"
_UNWRITABLE = ("Cc", "Cs", "Zl", "Zp", "Cn")  # control characters, halves of characters, ends of lines
_BREAKS = re.compile(r"[\t\r\n]+")  # of a text that was pasted
_BACK = re.compile(r"(?:<|back)(?:\s+(.+))?", re.IGNORECASE)
_PATTERN = re.compile(r"(\S*\*\S*) as (.+)")
_DIGITS = re.compile(r"\d+")
_ALIKE = 3  # columns that share a question
_FORMS = """What is possible, from public knowledge. Do not look at the rows.
0..110                     a number. You may add: log, decimals 2, spikes 0 40
1990-01-01..2026-12-31     a date. You may add: format %d.%m.%Y
red, green, blue           categories. "others ..." at the end takes every other value
private                    a range or categories that nobody may know. A part of the budget finds them
no/yes                     two words
low < middle < high        categories in their order
drop: free text            leaves the column out, and says why
0..110 *                   the answer for this column and all later ones of its kind
X* as X1                   the answer of X1 for all columns whose names begin with X
< or < age                 goes back to the question before, or to column age"""
_BEFORE_COLUMNS = ("source", "label")
_ONCE = ("label", "codes", "rows")  # an answer may leave the draft as it is
_WORDS = {  # of each question about any table: the question, and what explains it
    "source": (
        "Source of the possible values, as a codebook or law: ",
        "Name the public text that says which values are possible. Example: codebook of 2024, page 5",
    ),
    "missing": (
        "Columns that may miss a value: all, names or numbers (Enter: none): ",
        "In these columns, some rows may have no value. Example: 1 4-9 lab_*, or all",
    ),
    "codes": (
        "Words for a missing value, as NA, ? (Enter: an empty cell only): ",
        "Which words mean that a value is missing? Separate them by commas: NA, ?. An empty cell always does.",
    ),
    "people": (
        "Name for the people, also for later data: ",
        "The ledger adds up all costs under this name. Give the same name for later data of the same people.",
    ),
}


class _Undo(Exception):  # noqa: N818 (no error)
    """The person takes the last answer back."""


@dataclass(frozen=True)
class Completed:
    """All answers; ``max_rows`` where the people of a table may have several rows."""

    draft: SchemaDraft
    population: str
    max_rows: int | None


@dataclass
class Interview:
    """Questions to a person.

    Attributes:
        ask: shows a text and returns the typed line.
        tell: shows a line.
        draft: what is said already. It stays as it is.
        private: whether all open bounds and categories but the label's are private.
        lines: accepted ones of an interview that stopped, each behind the key of its question.
        save: keeps the lines, after each answer.
    """

    ask: Callable[[str], str]
    tell: Callable[[str], None]
    draft: SchemaDraft
    private: bool = False
    lines: Sequence[tuple[str, str]] = ()
    save: Callable[[Sequence[tuple[str, str]]], None] = lambda _: None

    def run(self) -> Completed:
        """Ask everything.

        Raises:
            SchemaError: the given values break a rule, so no answer helps.
        """
        self._open = [name for name in self.draft if not self.draft[name].is_settled]
        table = self.draft.table_questions
        self._words = {"source": _WORDS["source"], **table.first, **_WORDS, **table.last}  # in their order
        self._shown: set[str] = set()
        self._accept(self.draft)
        self._show(_INTRO)
        self._show(_KEYS)
        lines, last = list(self.lines), ""
        while True:
            try:
                return self._interview(lines, last)
            except _Undo:
                *lines, (last, _) = self._taken
                self.save(lines)

    def _interview(self, lines: Sequence[tuple[str, str]], first: str) -> Completed:
        """Take the lines, then ask for what is open: the question with the key ``first``, then the others."""
        self._draft, self._taken = self.draft, list[tuple[str, str]]()
        self._single: set[str] = set()  # columns with a question of their own
        self._again: str | None = None  # the column that a person goes back to
        self._population, self._max_rows = "", 0
        for key, line in lines:
            with contextlib.suppress(LikenessError):  # of another table: asked again
                self._take(key, line)
        name = first.removeprefix("column ")
        self._again = name if name != first and not self._draft[name].is_guessed else None
        while key := next(iter(self._keys()), ""):
            name = key.removeprefix("column ")
            text, explained = self._column_question(name) if name != key else self._words[key]
            if key == "label":
                self._show(f"Columns: {self._column_numbers()}")
            try:
                line = self._line(text)
                if line.casefold() in ("?", "help") and (line, key) != ("?", "codes"):
                    self.tell("\n".join(f"  {part}" for part in explained.split("\n")))
                elif not self._went_back(line):
                    for note in filter(None, self._take(key, line)):
                        self.tell(f"  {note}")
                    self.save(self._taken)
            except LikenessError as error:
                self.tell(f"  {error}")
        return Completed(self._draft, self._population, self._max_rows or None)

    def _show(self, text: str) -> None:
        if text not in self._shown:
            self.tell(text)
            self._shown.add(text)

    def _went_back(self, line: str) -> bool:
        """Tell whether the line asks for an earlier question: the last one, or that of a column."""
        back = _BACK.fullmatch(line)
        if back is None:
            return False
        if back[1] is None:
            if not self._taken:
                raise SchemaError("this is the first question.")
            raise _Undo
        try:
            name = column_called(back[1], list(self.draft))
        except SchemaError:
            return False  # a category, as "back pain"
        if name not in self._open or self._draft[name].is_guessed:
            raise SchemaError(f"column '{name}' has no answer of yours yet.")
        self._again = name
        return True

    def _keys(self) -> list[str]:
        """The open questions, in order. Of columns it is the first."""
        draft, taken = self._draft, {key for key, _ in self._taken}
        able = [name for name in draft.able() if name in self._open]
        name = self._again or next((name for name in draft if draft[name].is_guessed), None)
        is_open = {
            "source": draft.source is None,
            "missing": draft.nullable is None,
            "codes": any(draft[each].nullable for each in able),
            "people": not self._population,
            **draft.table_questions.open_keys(),
        }
        keys = [key for key in self._words if is_open.get(key) and not (key in _ONCE and key in taken)]
        before = len(keys) if name is None else sum(key in _BEFORE_COLUMNS for key in keys)
        return [*keys[:before], *([] if name is None else [f"column {name}"]), *keys[before:]]

    def _column_numbers(self) -> str:
        """All columns with their numbers; columns in a row whose names differ in digits only, as one."""
        numbers = {name: index for index, name in enumerate(self.draft, start=1)}
        texts: list[str] = []
        for _, run in groupby(self.draft, _stem):
            names = list(run)
            if len(names) < _ALIKE:
                texts += [f"{numbers[name]}\u00a0{name}" for name in names]
            else:
                texts.append(f"{numbers[names[0]]}-{numbers[names[-1]]}\u00a0{names[0]} to {names[-1]}")
        return ", ".join(texts)

    def _column_question(self, name: str) -> tuple[str, str]:
        kind, group = self._draft[name].kind, self._group(name)
        number, last = list(self.draft).index(name) + 1, f" to {group[-1]}" if group[1:] else ""
        if last:
            self._show(f"  {len(group)} columns alike: {', '.join(group)}. One answer for all. Or: each")
        self._show(f"  {kind}: {_DROPPED if kind == DROP else KINDS[kind].hint}")
        return f"{number} {name}{last}, {kind}: ", _FORMS

    def _group(self, name: str) -> list[str]:
        """The columns that share the question of a column: open ones of its kind whose names differ in digits only.

        All booleans share one.
        """
        either = self._draft[name].kind == Boolean.name
        alike = [each for each in self._alike(name) if either or _stem(each) == _stem(name)]
        group = [each for each in alike if each not in self._single]
        single = name not in group or not self._draft[name].is_guessed or name == self._draft.label
        return group if not single and len(group) >= _ALIKE else [name]

    def _alike(self, name: str) -> list[str]:
        """A column and the open ones of its guessed kind, without the label."""
        draft = self._draft
        alike = [each for each in draft if draft[each].is_guessed and draft[each].kind == draft[name].kind]
        return [each for each in self._open if each == name or (each in alike and each != draft.label)]

    def _take(self, key: str, line: str) -> Sequence[str]:
        """Take over an answer, and return what the person should see. A rule may refuse it."""
        draft, name = copy.deepcopy(self._draft), key.removeprefix("column ")
        notes: Sequence[str] = ()
        columns, able = list(draft), [each for each in draft.able() if each in self._open]
        if name != key:
            notes = self._take_column(draft, name, line)
        elif key not in self._keys():
            raise SchemaError(f"{key} needs no answer.")
        elif key == "source":
            draft.source = line
        elif key == "missing":
            draft.nullable = parse_columns(line, columns, able)
        elif key == "codes":
            for each in filter(lambda each: draft[each].nullable, able):
                draft[each].missing_values = pieces(line) or None
        elif key == "people":
            self._population = Privacy(epsilon=1, delta=0.5, population=line).population
        elif key == "rows":
            most = parse_whole_number(line)
            Ingest("table", "schema", unit=PrivacyUnit(str(draft.person), most))
            self._max_rows = most
        else:
            draft.table_questions.answer(key, line)
            if key == "label" and self.private:
                draft.make_private()
        self._accept(draft)
        self._again = self._again if name == key else None
        self._taken.append((key, line))
        return notes

    def _take_column(self, draft: SchemaDraft, name: str, line: str) -> Sequence[str]:
        """Take over an answer about a column, and about those that share it."""
        if name not in self._open:
            raise SchemaError(f"column '{name}' needs no answer.")
        group, pattern, guess = self._group(name), _PATTERN.fullmatch(line), draft[name].kind
        if line == "each" and group[1:]:
            self._single |= set(group)
            return ()
        if pattern:
            source = column_called(pattern[2], list(draft))
            if draft[source].is_guessed:
                raise SchemaError(f"column '{source}' has no answer yet. Answer it first.")
            names = [each for each in self._open if fnmatchcase(each, pattern[1]) and each != draft.label]
            names = [each for each in names if draft[each].is_guessed or each == self._again]
            if not names:
                raise SchemaError(f"no column without an answer has a name like {pattern[1]}.")
            for each in names:
                draft[each].copy(draft[source])
            notes: Sequence[str] = [f"as {source}: {', '.join(names)}"]
        else:
            answer = read_answer(line, guess)
            if not answer.text and answer.kind != guess and answer.kind != Boolean.name:
                draft[name].guess(answer.kind)  # its word alone: the next answer is for it
                self._single.add(name)
                return [f"{name} is {answer.kind}"]
            names = self._alike(name) if answer.again else group
            for each in names:
                draft[each].fill(answer.spec)
            kind = f"{name} is {answer.kind}" if answer.kind != guess and not line.startswith(answer.kind) else ""
            notes = kind, f"also for {', '.join(names[1:])}" if answer.again and names[1:] else ""
        return notes

    def _accept(self, draft: SchemaDraft) -> None:
        """Take over a draft that breaks no rule; else a SchemaError names all faults."""
        if faults := faults_of(draft.so_far()):
            raise SchemaError(" ".join(faults))
        self._draft = draft

    def _line(self, question: str) -> str:
        """A typed line; a line that ends in a comma continues in the next, as in a pasted list."""
        text = _BREAKS.sub(" ", self.ask(question)).strip()
        while text.endswith(","):
            text += " " + _BREAKS.sub(" ", self.ask("  and: ")).strip()
        if any(unicodedata.category(character) in _UNWRITABLE for character in text):
            raise SchemaError("the answer holds a character that cannot be written to a file. Type it again.")
        return text


def _stem(name: str) -> str:
    """A name without its digits."""
    return _DIGITS.sub("#", name)


_HEADER = ("name", "kind", "possible values", "missing: no, yes, or the words for it")


def new_sheet(draft: SchemaDraft) -> str:
    """A sheet without answers, as CSV."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows((name, draft[name].kind, "", "") for name in draft if not draft[name].is_settled)
    return lines.getvalue()


def read_sheet(text: str, draft: SchemaDraft) -> None:
    """Take the answers of a filled-in sheet into a draft, and the kind of each column without one.

    Raises:
        SchemaError: all faults of the sheet, one a line.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    left, faults = {name for name in draft if not draft[name].is_settled}, []
    for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=separator), start=1):
        name, kind, values, missing = (*(cell.strip() for cell in row[:4]), "", "", "", "")[:4]
        if number == 1 or not name:
            continue
        try:
            if name not in left:
                raise SchemaError(f"'{name}' is not a column of the table, or stands twice. Remove the row.")
            left.remove(name)
            draft[name].guess(kind)
            if values or kind == Boolean.name:
                spec = read_answer(values, kind).spec
                if missing.casefold() not in ("", "no") and spec["kind"] != DROP:
                    codes = {} if missing.casefold() == "yes" else {"missing_values": pieces(missing)}
                    spec |= {"nullable": True, **codes}
                draft[name].settle(spec)
        except SchemaError as error:
            faults += [f"row {number}: {fault}" for _, fault in error.faults]
    if faults:
        raise SchemaError("\n".join(faults))
