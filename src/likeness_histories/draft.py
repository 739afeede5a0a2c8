"""The draft of a schema of people with histories. A column that both tables have is asked about once."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from likeness.data.schema.answers import column_called, parse_columns, parse_whole_number
from likeness.data.schema.column_draft import Question
from likeness.data.schema.draft import SchemaDraft, TableQuestions
from likeness.data.schema.kinds import KINDS, Date, pieces

_ANY_ORDER = {"kind": "integer", "lower": 0, "upper": 1}  # stands in for an open order
_COMMENTS = {
    "person": "# the key of each table; it is never released",
    "order": "# null: the public hash of a row orders a history",
    "which": "# of more events the first ones in order; or hash, for a choice by public hash",
    "fixed": "# columns that never change for a person, as [sex]",
    "ends": "# no event follows one with such a category, as {state: [dead]}",
}


class HistoryDraft(SchemaDraft):
    """A schema of people and events that a person completes. Its order is what a label is: no value of it is missing.

    Attributes:
        tables: names of the columns of ``people``, if there is such a table, and of ``events``.
        most: the most events of a person that count; None: a question.
        fixed: columns of events that never change for a person; None: nobody has said them.
        ends: categories that no event follows, by column; None: nobody has said them.
    """

    _comments = _COMMENTS
    _keys = (*SchemaDraft._keys, "tables", "most", "fixed", "ends")

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, str]],
        person: str,
        order: str | None,
        name: str = "table",
        dtypes: Mapping[str, str] | None = None,
    ) -> None:
        """Begin with what is public already, as :class:`SchemaDraft`.

        Args:
            tables: guessed kind by column name, of ``people``, where there is such a table, and of ``events``.
            person: the key of each table.
            order: the column of events by which a history is ordered.
            name: short name of both tables.
            dtypes: word of each column's dtype.
        """
        kinds = {column: kind for columns in tables.values() for column, kind in columns.items() if column != person}
        if order is not None and (kinds[order] not in KINDS or KINDS[kinds[order]].is_categorical):
            kinds[order] = Date.name
        super().__init__(kinds, name, dtypes)
        self.tables = {table: [name for name in columns if name != person] for table, columns in tables.items()}
        self.most: int | None = None
        self.fixed: Sequence[str] | None = None if "people" not in tables else ()
        self.ends: Mapping[str, Sequence[str]] | None = None
        self._person, self._label = person, order
        self._stand_ins = {} if order is None else {order: _ANY_ORDER}

    def questions(self) -> list[Question]:
        """List the questions that only a person can answer."""
        text = "the most events of a person that count; public"
        return [*super().questions(), *([Question("", "most", text)] if self.most is None else [])]

    def so_far(self) -> dict[str, Any]:
        """The content of a schema file that can be checked: something stands in for what is open."""
        return {**super().so_far(), "most": 2 if self.most is None else self.most}

    @property
    def table_questions(self) -> "HistoryQuestions":
        """The questions that a terminal asks about histories."""
        return HistoryQuestions(self)

    def _content(self, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "person": self._person,
            "order": self._label,
            "most": self.most,
            "which": "first",
            "ends": dict(self.ends or {}),
            **({} if "people" in self.tables else {"fixed": list(self.fixed or ())}),
            **{table: {name: columns[name] for name in names} for table, names in self.tables.items()},
        }


class HistoryQuestions(TableQuestions):
    """Questions about histories, beside those about columns, that a terminal asks."""

    draft: HistoryDraft
    first: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fixed": (
            "Columns that never change for a person, names or numbers (Enter: none): ",
            "As sex or year of birth. A person has the value of the first event. Example: 1 4-9 lab_*",
        ),
        "ends": (
            "Values that no event follows, as state: dead (Enter: none): ",
            "The last event of a history, as a death. Of several columns: state: dead, moved; ward: morgue",
        ),
    }
    last: ClassVar[Mapping[str, tuple[str, str]]] = {
        "most": (
            "Most events of one person that count: ",
            "Later events of one person are left out. The noise does not grow with the number.",
        ),
    }

    def open_keys(self) -> dict[str, bool]:
        """Tell which questions about histories a person must be asked."""
        draft = self.draft
        named = any(draft[name].categories for name in draft.tables["events"])
        return {
            "fixed": draft.fixed is None and bool(draft.able()),
            "ends": draft.ends is None and named,
            "most": draft.most is None,
        }

    def answer(self, key: str, line: str) -> None:
        """Take over columns that never change, categories that no event follows, or the most events that count."""
        draft, columns = self.draft, list(self.draft)
        if key == "fixed":
            names = parse_columns(line, columns, draft.able())
            draft.fixed = [name for name in columns if name in names]
        elif key == "ends":
            parts = [part.partition(":") for part in line.split(";") if part.strip()]
            draft.ends = {column_called(name, columns): pieces(values) for name, _, values in parts}
        else:
            draft.most = parse_whole_number(line)
