"""The draft of a schema: names and guessed kinds of columns, and the questions that only a person can answer.

YAML, terminal, spreadsheet and Python show the questions of one draft, and each answer goes into it. No value of a
table comes in here. A kind follows from a column's type, and a person confirms it: pandas may choose a dtype from the
rows, such as floats for whole numbers of which one is missing. So a dtype answers no question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from likeness.core.errors import SchemaError
from likeness.core.text import did_you_mean
from likeness.data.schema.answers import column_called, read_answer
from likeness.data.schema.column_draft import ColumnDraft, ColumnDrafts, Question, python_text
from likeness.data.schema.column_keys import DROP, NAMES_PERSON, keys_of
from likeness.data.schema.kinds import KINDS, PRIVATE, Categorical, Integer
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import GUESSED, Comments, schema_yaml

_STAND_IN = {"kind": "categorical", "categories": ["0", "1"]}
_SOURCE = "where bounds and categories come from: the codebook, the law, the questionnaire"
_NULLABLE = 'columns that may miss a value: a list of names, "all" or "none"'
_HEAD = (  # of a draft with open questions
    "# PUBLIC: answer each ? from a codebook, a law, a questionnaire, never from the rows.",
    "# Kinds and dtypes are guesses from the table's dtypes: confirm each.",
)


class SchemaDraft:
    """A schema that a person completes in Python. ``print`` shows it, with a question mark for what is missing.

    Everything that is written into it becomes public. It must be public knowledge, and never come from the rows.

    Attributes:
        name: short name of the table.
        source: where bounds and categories come from.
        rules: of the codebook or the law, each a mapping, as ``{"order": ["admitted", "discharged"]}``.
        derived: differences of columns by their new name, as ``{"stay": "discharged - admitted"}``.

    Examples:
        >>> schema = SchemaDraft({"age": "integer", "sex": "categorical"})
        >>> schema.source, schema.nullable = "questionnaire", "none"
        >>> schema["age"].bounds = (0, 110)
        >>> schema.answer("sex", "female, male")
        >>> schema.complete().names
        ('age', 'sex')
    """

    _comments: ClassVar[Mapping[str, str]] = {
        "task": "# classification, regression, or none; the label is predicted",
        "image": GUESSED,
    }

    _keys: ClassVar[tuple[str, ...]] = ("name", "source", "label", "person", "nullable", "rules", "derived")

    def __init__(
        self,
        kinds: Mapping[str, str],
        name: str = "table",
        dtypes: Mapping[str, str] | None = None,
        image: Sequence[int] | None = None,
    ) -> None:
        """Begin with what is public already.

        Args:
            kinds: guessed kind by column.
            name: short name of the table.
            dtypes: word of each column's dtype.
            image: shape where each record is an image, as in a schema file.
        """
        self.name = name
        self._image = image
        self.source: str | None = None
        self.rules: list[Mapping[str, Any]] = []
        self.derived: Mapping[str, Any] = {}
        self._label: str | None = None
        self._person: str | None = None
        self._stand_ins: dict[str, Any] = {}  # for columns that two categories cannot stand in for
        self._columns = ColumnDrafts(
            {column: ColumnDraft(column, kind, (dtypes or {}).get(column)) for column, kind in kinds.items()}
        )

    def __setattr__(self, key: str, value: Any) -> None:
        """Say something of the table.

        Raises:
            SchemaError: there is no such key, or a rule is broken.
        """
        if not key.startswith("_") and key not in self._keys:
            raise SchemaError(f"'{key}' is not a key of a schema.{did_you_mean(key, self._keys)}")
        super().__setattr__(key, value)

    def __getitem__(self, name: Any) -> ColumnDraft:
        """One column, by its name, or by its label in a frame.

        Raises:
            SchemaError: there is no such column.
        """
        return self._columns[self._columns.name_of(name)]

    def __iter__(self) -> Iterator[str]:
        """Names of the columns in table order."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Number of columns."""
        return len(self._columns)

    @property
    def label(self) -> str | None:
        """The column to be predicted; None: there is none."""
        return self._label

    @label.setter
    def label(self, name: Any) -> None:
        if name is not None and self[name].kind == DROP:
            raise SchemaError(f"label '{name}' has kind drop. Give it another kind, or set another label.")
        self._label = None if name is None else self._columns.name_of(name)

    @property
    def person(self) -> str | None:
        """The column that names people who may have several rows. It is never released."""
        return self._person

    @person.setter
    def person(self, name: Any) -> None:
        name = None if name is None else self._columns.name_of(name)
        if name is not None and name == self._label:
            raise SchemaError(f"person '{name}' is the label, but names of people are never released.")
        if name is not None:
            self[name].settle({"kind": DROP, "reason": NAMES_PERSON})
        self._person = name

    @property
    def nullable(self) -> list[str] | None:
        """The columns that may miss a value; None while that is open. A list of names, ``all`` or ``none`` sets it."""
        able = self.able()
        return None if self._columns.open_nullable(able) else [name for name in able if self[name].nullable]

    @nullable.setter
    def nullable(self, names: "Iterable[str] | str") -> None:
        groups: dict[str, list[str]] = {"all": list(self._columns), "none": []}
        names = groups.get(names, [names]) if isinstance(names, str) else names
        self._columns.set_nullable(self.able(), set(map(self._columns.name_of, names)))

    def answer(self, name: Any, text: str) -> None:
        """Say what is possible in a column in one line, as in a terminal: ``0..110``, ``red, green``.

        Raises:
            SchemaError: there is no such column, or a rule is broken.
        """
        self[name].fill(read_answer(text, self[name].kind).spec)

    @property
    def table_questions(self) -> "TableQuestions":
        """The questions that a terminal asks about a table of this kind."""
        return TableQuestions(self)

    def make_private(self) -> None:
        """Let all open categories and bounds but the label's categories be private. Then a value may be missing."""
        for name, column in self._columns.items():
            listed = name == self._label and column.kind == Categorical.name  # classes are public
            if column.is_guessed and not listed and {"other", "bounds"} & {*keys_of(column.kind)}:
                self.answer(name, PRIVATE)
        if self.nullable is None:
            self.nullable = "all"

    def able(self) -> list[str]:
        """The columns in which a value may be missing: all but the label and those that are dropped."""
        return [name for name, column in self._columns.items() if column.kind != DROP and name != self._label]

    @property
    def _either(self) -> bool:
        """Tell whether the numbers of the label may be classes."""
        return self._label is not None and self[self._label].is_guessed and self[self._label].kind == Integer.name

    def questions(self) -> list[Question]:
        """List the questions that only a person can answer."""
        questions = [question for column in self._columns.values() for question in column.questions()]
        text = "true where a value may be missing, false where never"
        questions += [Question(name, "nullable", text) for name in self._columns.open_nullable(self.able())]
        if self._either:
            text = "regression; or classification, and its kind categorical, if its numbers are classes"
            questions.insert(0, Question("", "task", text))
        if self.source is None:
            questions.insert(0, Question("", "source", _SOURCE))
        return questions

    def missing(self) -> dict[str, str]:
        """The open questions: from a line of Python without its value to the text of the question."""
        questions = {"schema.source": _SOURCE} if self.source is None else {}
        questions |= {"schema.nullable": _NULLABLE} if self._columns.open_nullable(self.able()) else {}
        for column in self._columns.values():
            questions |= {column.python_name(key): text for key, text in column.missing().items()}
        return questions

    def complete(self) -> Schema:
        """The schema, checked; it no longer changes.

        Raises:
            SchemaError: with all open questions, or with a broken rule.
        """
        missing = self.missing()
        if missing:
            raise SchemaError(f"{len(missing)} open questions. Answer from public knowledge:\n{as_lines(missing)}")
        return Schema.from_dict(self.to_dict(), "schema")

    def to_dict(self) -> dict[str, Any]:
        """The content of a schema file; an open question is None."""
        columns = self._columns.to_dict(self._label)
        for name in self._columns.open_nullable(self.able()):
            columns[name]["nullable"] = None
        return self._content(columns)

    def so_far(self) -> dict[str, Any]:
        """The content of a schema file that can be checked: something stands in for what is open."""
        specs = self._columns.to_dict(self._label).items()
        content = self._content(
            {name: self._stand_ins.get(name, _STAND_IN) if self[name].is_guessed else spec for name, spec in specs}
        )
        return {**content, "source": "?" if self.source is None else self.source}

    def _content(self, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The content of a schema file with these mappings of columns."""
        kind = None if self._label is None else columns[self._label]["kind"]
        is_class = kind in KINDS and KINDS[kind].is_categorical
        task = "none" if kind is None else "classification" if is_class else None if self._either else "regression"
        about = {"name": self.name, "source": self.source, "task": task}
        label = {} if kind is None else {"label": self._label}
        image = {} if self._image is None else {"image": {"shape": [*self._image]}}
        return {**about, **label, **image, "columns": columns, **_rule_sections(self)}

    def text(self) -> str:
        """A schema file: each open question is ``null``, which no command accepts, with a comment ``# ?``."""
        questions, guessed = self.questions(), [name for name in self if self[name].is_guessed]
        if not questions and not guessed:
            return schema_yaml(self.to_dict())
        comments: Comments = {
            **{(name, key): GUESSED for name in guessed for key in ("kind", "dtype", "ordered")},
            **{("", key): comment for key, comment in self._comments.items()},
            **{(question.column, question.key): f"# ? {question.text}" for question in questions},
        }
        return schema_yaml(self.to_dict(), comments)

    def to_yaml(self, path: str | Path) -> None:
        """Write a schema file. An open question is ``null`` there, which ``likeness check`` lists."""
        Path(path).expanduser().write_text(self.text(), encoding="utf-8")

    def __repr__(self) -> str:
        """Lines of Python, with a question mark for what is missing."""
        missing = self.missing()
        about = {"schema.name": self.name, "schema.source": self.source}
        lines = list(_HEAD if missing else ())
        lines += [f"{key} = {python_text(value)}" for key, value in about.items() if key not in missing]
        lines += [
            f"schema.label = {python_text(self._label)}" + ("" if self._label else "  # or the column to be predicted")
        ]
        lines += [f"schema.{key} = {python_text(value)}" for key, value in _rule_sections(self).items()]
        lines += as_lines({key: text for key, text in missing.items() if "[" not in key}).splitlines()
        return "\n".join([*lines, *map(repr, self._columns.values())])


def _rule_sections(draft: SchemaDraft) -> dict[str, Any]:
    """The sections of rules that have any."""
    sections = {"rules": list(draft.rules), "derived": dict(draft.derived)}
    return {key: value for key, value in sections.items() if value}


class TableQuestions:
    """Questions about a table, beside those about its columns, that a terminal asks.

    Attributes:
        first: those that are asked first, by their key: the question, and what explains it.
        last: the same of those that are asked last.
    """

    first: ClassVar[Mapping[str, tuple[str, str]]] = {
        "label": (
            "Column to predict, name or number (Enter: none): ",
            "A model for later rows would predict this column. Without one, press Enter.",
        ),
    }
    last: ClassVar[Mapping[str, tuple[str, str]]] = {
        "rows": (
            "Most rows of one person that are used: ",
            "One person may have several rows. More rows than this number are left out. Noise grows with the number.",
        ),
    }

    def __init__(self, draft: SchemaDraft) -> None:
        """Take the draft that they are about."""
        self.draft = draft

    def open_keys(self) -> dict[str, bool]:
        """Tell which questions, by their key, a person must be asked."""
        return {"label": self.draft.label is None, "rows": self.draft.person is not None}

    def answer(self, key: str, line: str) -> None:
        """Take over a line that answers one of :meth:`open_keys` about the schema.

        Raises:
            SchemaError: a rule refuses it.
        """
        if key == "label":
            self.draft.label = column_called(line, list(self.draft)) if line else None


def as_lines(missing: Mapping[str, str]) -> str:
    """Open questions as lines of Python to complete."""
    return "\n".join(f"{name} = ?  # {question}" for name, question in missing.items())
