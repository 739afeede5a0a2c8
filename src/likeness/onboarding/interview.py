"""A first schema by question and answer: one line a column. The schema's rules check each answer at once.

No row is read here: questions come from names and guessed kinds, answers from a person.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from likeness.config.params import Ingest, Privacy
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import LikenessError, SchemaError
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.kinds import KINDS_BY_NAME, PRIVATE
from likeness.onboarding.answers import chosen, column_called, pieces, read_answer
from likeness.preflight.faults import schema_faults

_INTRO = "All you type becomes PUBLIC: from a codebook or law, never from the rows. Ctrl-C writes nothing."
_KINDS = 'Another kind: "ordinal: low, high". For later columns too: " *" behind.'
_DROPPED = "why it is left out, in words"
_UNWRITABLE = ("Cc", "Cs", "Zl", "Zp", "Cn")  # control characters, halves of characters, ends of lines
_BREAKS = re.compile(r"[\t\r\n]+")  # of a text that was pasted
_STAND_IN = {"kind": "categorical", "categories": ["0", "1"]}


@dataclass(frozen=True)
class Completed:
    """All answers; ``max_rows`` where people may have several rows."""

    schema: dict[str, Any]
    population: str
    max_rows: int | None


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

    def run(self) -> Completed:
        """Ask everything.

        Raises:
            SchemaError: the given values break a rule, so no answer helps.
        """
        self._specs: dict[str, Any] = {name: dict(spec) for name, spec in self.settled.items()}
        self._open = [name for name in self.kinds if name not in self._specs]
        for fault in self._faults():
            raise SchemaError(fault)
        self.tell(_INTRO)
        if self.source is None:
            self.source = self._until("Source (codebook, law): ", self._source)
        if self.label is None:
            self.tell(f"Columns: {self._numbered(list(self.kinds))}")
            self._until("Column to be predicted, name or number (Enter: none): ", self._label)
        if self.private:
            private = read_answer(PRIVATE, "categorical").spec()
            self._try({name: private for name in self._open if self._is_open(name)})
        if len(self._specs) < len(self.kinds):
            self.tell(_KINDS)
        hinted: set[str] = set()
        for place, name in enumerate(self.kinds, start=1):
            if name not in self._specs:
                self._column(place, name, hinted)
        self._missing()
        population = self._until("Name of the PEOPLE, also for later data: ", _population)
        most = None
        if self.person is not None:
            most = self._until("Rows of one person that are used at most: ", self._max_rows)
        return Completed(self._mapping(), population, most)

    def _is_open(self, name: str) -> bool:
        return self.kinds[name] == "categorical" and name != self.label

    def _column(self, place: int, name: str, hinted: set[str]) -> None:
        """Ask about one column until the schema's rules accept the answer, and apply it to its columns."""
        kind = self.kinds[name]
        while name not in self._specs:
            if kind not in hinted:
                self.tell(f"  {kind}: {_DROPPED if kind == DROP else KINDS_BY_NAME[kind].hint}")
                hinted.add(kind)
            try:
                answer = read_answer(self._line(f"{place} {name}, {kind}: "), kind)
                kind = kind if answer.text else answer.kind  # its word alone: the next answer is for it
                spec = answer.spec()
                alike = [name] if not answer.again else self._alike(name)
                self._try(dict.fromkeys(alike, spec))
            except LikenessError as error:
                self.tell(f"  {error}")
                continue
            if alike[1:]:
                self.tell(f"  also for {', '.join(alike[1:])}")

    def _numbered(self, names: Sequence[str]) -> str:
        numbers = {name: place for place, name in enumerate(self.kinds, start=1)}
        return ", ".join(f"{numbers[name]} {name}" for name in names)

    def _alike(self, name: str) -> list[str]:
        """A column and the open ones of its guessed kind, without the label."""
        others = (other for other in self._open if other not in self._specs and other not in (name, self.label))
        return [name, *(other for other in others if self.kinds[other] == self.kinds[name])]

    def _missing(self) -> None:
        """Ask where values may be missing, and how the table writes that."""
        able = [name for name in self._open if self._specs[name]["kind"] != "drop" and name != self.label]
        if not able:
            return
        if self.nullable is None:
            words = "Columns with missing values (all, names or numbers; Enter: none): "
            names = self._until(words, lambda text: chosen(text, list(self.kinds), able))
        else:
            names = self.nullable & set(able)
        if not names:
            return
        self._until("Written for missing, as NA, ? (Enter: empty only): ", self._codes(names))

    def _codes(self, names: frozenset[str]) -> Callable[[str], None]:
        def take(text: str) -> None:
            codes = {"missing_values": pieces(text)} if text else {}
            self._try({name: {**self._specs[name], "nullable": True, **codes} for name in self._open if name in names})

        return take

    def _source(self, text: str) -> str:
        self._refuse_faults({**self._mapping(), "source": text})
        return text

    def _label(self, text: str) -> None:
        label = column_called(text, list(self.kinds)) if text else None
        self._refuse_faults(self._mapping(label=label))
        self.label = label

    def _max_rows(self, text: str) -> int:
        most = _whole(text)
        Ingest("table", "schema", unit=PrivacyUnit(str(self.person), most))  # checks the number
        return most

    def _try(self, specs: Mapping[str, Any]) -> None:
        """Take over mappings of columns that the schema accepts.

        Raises:
            SchemaError: with all faults.
        """
        self._refuse_faults(self._mapping(specs))
        self._specs.update(specs)

    def _faults(self) -> list[str]:
        return schema_faults(self._mapping())

    def _refuse_faults(self, mapping: Mapping[str, Any]) -> None:
        faults = schema_faults(mapping)
        if faults:
            raise SchemaError(" ".join(faults))

    def _mapping(self, specs: Mapping[str, Any] | None = None, label: str | None = None) -> dict[str, Any]:
        """The schema so far; two categories stand in for an open column."""
        answered = {**self._specs, **(specs or {})}
        label = self.label if label is None else label
        kind = answered.get(label, _STAND_IN).get("kind") if label is not None else None
        tasks = {True: "classification", False: "regression"}
        task = "none" if label is None else tasks[kind in KINDS_BY_NAME and KINDS_BY_NAME[kind].is_categorical]
        about = {"name": self.name, "source": self.source or "?", "task": task}
        columns = {name: answered.get(name, _STAND_IN) for name in self.kinds}
        return {**about, **({} if label is None else {"label": label}), "columns": columns}

    def _until(self, question: str, take: Callable[[str], Any]) -> Any:
        """Ask until the answer is accepted."""
        while True:
            try:
                return take(self._line(question))
            except LikenessError as error:
                self.tell(f"  {error}")

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


def _population(text: str) -> str:
    return Privacy(epsilon=1, delta=0.5, population=text).population


def _whole(text: str) -> int:
    """A whole number from 1."""
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdigit() and 0 < len(digits) < 16 and int(digits) > 0):
        raise SchemaError(f"'{text}' is not a whole number from 1.")
    return int(digits)
