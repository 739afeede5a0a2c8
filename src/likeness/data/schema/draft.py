"""The draft of a schema in Python: names and guessed kinds of columns, and questions that only a person can answer.

No value of a table comes in here. A kind follows from a column's dtype, and a person confirms it: pandas may choose a
dtype from the rows, such as floats for whole numbers of which one is missing. So a dtype answers no question.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from likeness.core.errors import SchemaError
from likeness.core.text import did_you_mean, normal_text
from likeness.data.schema.column_keys import DROP, column_from, keys_of
from likeness.data.schema.kinds import KINDS, KINDS_BY_NAME
from likeness.data.schema.schema import Schema, schema_text

NAMES_PERSON = "names the person (ingest.unit) and is never released"
_SOURCE = "where bounds and categories come from: the codebook, the law, the questionnaire"
_NULLABLE = 'columns that may miss a value: a list of names, "all" or "none"'
_BOUNDS = ("lower", "upper")
_HEAD = (  # of a draft with open questions
    "# PUBLIC: answer each ? from a codebook, a law, a questionnaire, never from the rows.",
    "# Kinds and dtypes are guesses from the table's dtypes: confirm each.",
)
_WORDS = {
    "bounds": 'smallest and largest possible value: (0, 110) or ("1994-03-01", "2024-12-31")',
    "categories": 'every possible value: ["low", "high"]; or "private", if not publicly known; or another kind',
    "reason": 'why the column is left out: "a name"; or another kind',
}


def questions_of(kind: str) -> tuple[tuple[str, str], ...]:
    """The keys that only a person can give a column of this kind, each with the question."""
    return (
        (("reason", "why the column is left out; or another kind"),) if kind == DROP else KINDS_BY_NAME[kind].questions
    )


def held(kind: str | None, dtype: str) -> bool:
    """Whether a schema may say a dtype for a column of a kind, which it cannot for a dropped one."""
    return kind in KINDS_BY_NAME and KINDS_BY_NAME[kind].holds(dtype) and not dtype.startswith("dictionary")


def task_of(kind: str | None) -> str:
    """The task of a table whose label has this kind; None: there is no label."""
    if kind is None:
        return "none"
    return "classification" if kind in KINDS_BY_NAME and KINDS_BY_NAME[kind].is_categorical else "regression"


class ColumnDraft:
    """One column of a draft. Every key that the schema has for its kind is an attribute, and ``bounds`` is two of them.

    A value that breaks a rule of the schema is refused at once. None takes a value back.

    Examples:
        >>> column = ColumnDraft("age", {"kind": "integer"})
        >>> column.bounds = (0, 110)
        >>> column
        schema["age"].kind = "integer"; schema["age"].bounds = (0, 110)
    """

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        """Take the column's mapping as a schema file has it; missing keys are open."""
        self.__dict__.update(_name=name, _spec=dict(spec))

    def __getattr__(self, key: str) -> Any:
        """What is said of the column; None where it is open."""
        if key.startswith("_"):
            raise AttributeError(key)
        if key == "bounds":
            return tuple(self._spec[end] for end in _BOUNDS) if set(_BOUNDS) <= set(self._spec) else None
        return self._spec.get(key)

    def __setattr__(self, key: str, value: Any) -> None:
        """Say more of the column.

        Raises:
            SchemaError: with all rules that are broken.
        """
        value, spec = _plain(value), dict(self._spec)
        if key == "kind":
            if value not in (*KINDS, DROP):
                raise SchemaError(f"column '{self._name}' has kind '{value}'. Kinds: {', '.join(KINDS)}, {DROP}.")
            spec = {name: given for name, given in spec.items() if name in keys_of(value)}
            if not held(value, spec.get("dtype", "")):
                spec.pop("dtype", None)
        if key == "bounds":
            if value is not None and not (isinstance(value, list) and len(value) == len(_BOUNDS)):
                raise SchemaError(f"column '{self._name}': bounds must be a pair, as (0, 110).")
            spec |= dict(zip(_BOUNDS, value or (None, None), strict=True))
        else:
            spec[key] = value
        spec = {name: given for name, given in spec.items() if given is not None}
        wrong = [text for name, text in _faults(self._name, spec) if name in spec]
        if wrong:
            raise SchemaError("\n".join(wrong))
        self.__dict__["_spec"] = spec

    def to_dict(self) -> dict[str, Any]:
        """The column's mapping as a schema file has it; an open question is None."""
        return {**self._spec, **{key: None for key, _ in questions_of(self.kind) if key not in self._spec}}

    def missing(self) -> dict[str, str]:
        """The open questions: from a key to the words of the question."""
        questions = {key: words for key, words in questions_of(self.kind) if key not in self._spec}
        questions = {"bounds" if key in _BOUNDS else key: words for key, words in questions.items()}
        return {key: _WORDS.get(key, words) for key, words in questions.items()}

    def __repr__(self) -> str:
        """Lines of Python, with a question mark for what is missing."""
        shown = {key: value for key, value in self._spec.items() if key not in _BOUNDS}
        missing = self.missing()
        shown |= {} if "bounds" in missing or self.bounds is None else {"bounds": self.bounds}
        facts = [f"{self._place(key)} = {_shown(value)}" for key, value in shown.items()]
        facts += [f"{self._place(key)} = ?" for key in missing]
        return "; ".join(facts) + (f"  # {'; '.join(missing.values())}" if missing else "")

    def _place(self, key: str) -> str:
        return f"schema[{_shown(self._name)}].{key}"


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
        >>> schema["sex"].categories = ["female", "male"]
        >>> schema.complete().names
        ('age', 'sex')
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        name: str = "table",
        dtypes: Mapping[str, str] | None = None,
    ) -> None:
        """Begin with what is public already.

        Args:
            kinds: guessed kind by column.
            name: short name of the table.
            dtypes: word of each column's dtype.
        """
        self.name = name
        self.source: str | None = None
        self.rules: list[Mapping[str, Any]] = []
        self.derived: Mapping[str, Any] = {}
        self._label: str | None = None
        self._person: str | None = None
        said = {column: {"dtype": word} for column, word in (dtypes or {}).items() if held(kinds.get(column), word)}
        self._columns = {
            column: ColumnDraft(column, {"kind": kind, **said.get(column, {})}) for column, kind in kinds.items()
        }

    def __getitem__(self, name: Any) -> ColumnDraft:
        """One column, by its name, or by its label in a frame.

        Raises:
            SchemaError: there is no such column.
        """
        return self._columns[self._named(name)]

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
        self._label = None if name is None else self._named(name)

    @property
    def person(self) -> str | None:
        """The column that names people who may have several rows. It is never released."""
        return self._person

    @person.setter
    def person(self, name: Any) -> None:
        name = None if name is None else self._named(name)
        if name is not None and name == self._label:
            raise SchemaError(f"person '{name}' is the label, but names of people are never released.")
        if name is not None:
            column = self[name]
            column.kind = DROP
            column.reason = NAMES_PERSON
        self._person = name

    @property
    def nullable(self) -> list[str] | None:
        """The columns that may miss a value; None while that is open. A list of names, ``all`` or ``none`` sets it."""
        undecided = [column for column in self._able() if column.nullable is None]
        return None if undecided else [column._name for column in self._able() if column.nullable]

    @nullable.setter
    def nullable(self, names: "list[str] | str") -> None:
        words = {"all": list(self._columns), "none": []}
        names = [self._named(one) for one in (words.get(names, [names]) if isinstance(names, str) else names)]
        for column in self._able():
            column.nullable = column._name in names

    def missing(self) -> dict[str, str]:
        """What only a person can say: from a line of Python without its value to the words of the question."""
        questions = {} if self.source else {"schema.source": _SOURCE}
        questions |= {} if self.nullable is not None else {"schema.nullable": _NULLABLE}
        for column in self._columns.values():
            questions |= {column._place(key): words for key, words in column.missing().items()}
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
        columns = {name: column.to_dict() for name, column in self._columns.items()}
        for column in self._able():
            columns[column._name].setdefault("nullable", None)
        if self._label is not None:
            columns[self._label].pop("nullable", None)  # a label is never missing
        task = task_of(None if self._label is None else self[self._label].kind)
        about = {"name": self.name, "source": self.source, "task": task, "label": self._label, "columns": columns}
        return {**about, **self._ruled()}

    def to_yaml(self, path: str | Path) -> None:
        """Write a schema file. An open question is ``null`` there, which ``likeness check`` lists."""
        Path(path).expanduser().write_text(schema_text(self), encoding="utf-8")

    def __repr__(self) -> str:
        """Lines of Python, with a question mark for what is missing."""
        missing = self.missing()
        about = {"schema.name": self.name, "schema.source": self.source}
        lines = list(_HEAD if missing else ())
        lines += [f"{place} = {_shown(value)}" for place, value in about.items() if place not in missing]
        lines += [
            f"schema.label = {_shown(self._label)}" + ("" if self._label else "  # or the column to be predicted")
        ]
        lines += [f"schema.{key} = {_shown(value)}" for key, value in self._ruled().items()]
        lines += as_lines({place: words for place, words in missing.items() if "[" not in place}).splitlines()
        return "\n".join([*lines, *map(repr, self._columns.values())])

    def _ruled(self) -> dict[str, Any]:
        """The sections of rules that have any."""
        sections = {"rules": list(self.rules), "derived": dict(self.derived)}
        return {key: value for key, value in sections.items() if value}

    def _able(self) -> list[ColumnDraft]:
        """The columns in which a value may be missing: all but the label and those that are dropped."""
        return [each for name, each in self._columns.items() if each.kind != DROP and name != self._label]

    def _named(self, label: Any) -> str:
        name = normal_text(str(label))
        if name not in self._columns:
            close = did_you_mean(name, self._columns)
            raise SchemaError(f"'{name}' is not a column.{close} Columns: {', '.join(self._columns)}.")
        return name


def as_lines(missing: Mapping[str, str]) -> str:
    """Open questions as lines of Python to complete."""
    return "\n".join(f"{place} = ?  # {words}" for place, words in missing.items())


def _faults(name: str, spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    try:
        column_from(name, spec)
    except SchemaError as error:
        return error.faults
    return ()


def _plain(value: Any) -> Any:
    """A value as YAML has it: arrays and tuples as lists, dates as texts."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, date) else value


def _shown(value: Any) -> str:
    """A value as Python has it, texts in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and not {'"', "\\"} & set(value) else repr(value)
    if isinstance(value, list | tuple):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(map(_shown, value)) + right
    return repr(value)
