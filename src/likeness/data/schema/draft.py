"""The draft of a schema: names and guessed kinds of columns, and the questions that only a person can answer.

YAML, terminal, spreadsheet and Python show the questions of one draft, and each answer goes into it. No value of a
table comes in here. A kind follows from a column's type, and a person confirms it: pandas may choose a dtype from the
rows, such as floats for whole numbers of which one is missing. So a dtype answers no question.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

from likeness.core.errors import SchemaError
from likeness.core.text import choices, normal_text
from likeness.data.schema.answers import chosen, column_called, read_answer
from likeness.data.schema.column_keys import DROP, column_from, keys_of
from likeness.data.schema.dtypes import parsed
from likeness.data.schema.kinds import KINDS, PRIVATE, Boolean, Categorical, Integer
from likeness.data.schema.rule_proposals import is_open, rule_text, sections
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import GUESSED, Comments, schema_yaml

_BOUNDS = ("lower", "upper")
_BESIDE = ("nullable", "missing_values", "dtype")  # said apart from the possible values
_STAND_IN = {"kind": "categorical", "categories": ["0", "1"]}
_WIDE: dict[str, tuple[Any, Any]] = {  # bounds that stand in where rules are proposed by names alone
    "integer": (0, 10**6),
    "numeric": (0, 10**6),
    "date": ("1900-01-01", "2100-01-01"),
    "datetime": ("1900-01-01 00:00:00", "2100-01-01 00:00:00"),
}
_CONFIRM = "# The names suggest these rules. Write one if the codebook says so:"
_SOURCE = "where bounds and categories come from: the codebook, the law, the questionnaire"
_NULLABLE = 'columns that may miss a value: a list of names, "all" or "none"'
_HEAD = (  # of a draft with open questions
    "# PUBLIC: answer each ? from a codebook, a law, a questionnaire, never from the rows.",
    "# Kinds and dtypes are guesses from the table's dtypes: confirm each.",
)


@dataclass(frozen=True)
class Question:
    """A key of the schema that only a person can give.

    Attributes:
        column: that has the key; empty: the table.
        key: of the schema.
        words: the question.
    """

    column: str
    key: str
    words: str


class ColumnDraft:
    """One column of a draft. Every key that the schema has for its kind is an attribute, and ``bounds`` is two of them.

    A value that breaks a rule of the schema is refused at once. None takes a value back.

    Examples:
        >>> column = ColumnDraft("age", "integer")
        >>> column.bounds = (0, 110)
        >>> column
        schema["age"].kind = "integer"; schema["age"].bounds = (0, 110)
    """

    def __init__(self, name: str, kind: str, dtype: str | None = None) -> None:
        """Begin with a guessed kind, and with the word of a dtype if such a column can have it."""
        parts = parsed(dtype or "")
        order = {"ordered": True} if parts is not None and parts.ordered else {}
        self.__dict__.update(_name=name, _spec={"dtype": dtype, **order}, _guessed=True, _settled=False)
        self.guess(kind)

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
        value = _plain(value)
        said = {key: value}
        if key == "kind":
            said = self._of_kind(value)
        elif key == "bounds":
            if value is not None and not (isinstance(value, list) and len(value) == len(_BOUNDS)):
                raise SchemaError(f"column '{self._name}': bounds must be a pair, as (0, 110).")
            said = dict(zip(_BOUNDS, value or (None, None), strict=True))
        elif (key, value) == ("categories", PRIVATE):
            said = {key: value, "ordered": None}
        spec = said if key == "kind" else {**self._spec, **said}
        spec = {name: given for name, given in spec.items() if given is not None}
        self._take(spec, said, self._guessed and key in _BESIDE, set(spec))

    def guess(self, kind: str) -> None:
        """Take another kind that is still to be confirmed.

        Raises:
            SchemaError: there is no such kind.
        """
        self.__dict__.update(_spec=self._of_kind(kind), _guessed=True)

    def settle(self, spec: Mapping[str, Any]) -> None:
        """Take all of a column's mapping in a schema file. Without ``nullable`` no value is missing.

        Raises:
            SchemaError: with all rules that are broken.
        """
        self.fill(spec)
        self.__dict__["_settled"] = True

    def fill(self, spec: Mapping[str, Any]) -> None:
        """Take the possible values in a column's mapping. What it does not say of missing values and dtype stays.

        Raises:
            SchemaError: with all rules that are broken.
        """
        kind = spec.get("kind")
        beside = self._of_kind(str(kind)) if kind in (*KINDS, DROP) else {}
        kept = (*_BESIDE, "ordered") if isinstance(spec.get("categories"), list) else _BESIDE
        self._take({**spec, **{key: beside[key] for key in kept if key in beside and key not in spec}}, spec, False)

    def copy(self, other: "ColumnDraft") -> None:
        """Take the possible values of another column."""
        self.fill({key: value for key, value in other._spec.items() if key not in _BESIDE})

    def _of_kind(self, kind: str) -> dict[str, Any]:
        """What is said of the column, as far as another kind has keys for it."""
        if kind not in (*KINDS, DROP):
            raise SchemaError(f"column '{self._name}' has kind '{kind}'. Kinds: {', '.join(KINDS)}, {DROP}.")
        spec = {"kind": kind, **{key: value for key, value in self._spec.items() if key in keys_of(kind)[1:]}}
        dtype = spec.get("dtype")
        if dtype is None or not KINDS[kind].holds(dtype) or dtype.startswith("dictionary"):
            spec.pop("dtype", None)
        return spec

    def _take(self, spec: dict[str, Any], said: Mapping[str, Any], guessed: bool, keys: Set[str] | None = None) -> None:
        """Keep a mapping, without a dtype that cannot hold what a person says beside it; refuse faults of keys."""
        faults = _faults(self._name, spec)
        if "dtype" in dict(faults) and "dtype" not in said:
            spec = {key: value for key, value in spec.items() if key != "dtype"}
            faults = _faults(self._name, spec)
        if faults := tuple(fault for fault in faults if keys is None or fault[0] in keys):
            raise SchemaError("\n".join(text for _, text in faults), faults)
        self.__dict__.update(_spec=spec, _guessed=guessed)

    @property
    def guessed(self) -> bool:
        """Whether a person has still to say what is possible."""
        return bool(self._guessed)

    @property
    def settled(self) -> bool:
        """Whether nothing of the column is a question, nor was one."""
        return bool(self._settled)

    def questions(self) -> list[Question]:
        """What is open, without ``nullable``, which a label has not."""
        why = ("reason", "why the column is left out; or another kind")
        asked = (why,) if self.kind == DROP else KINDS[self.kind].questions
        return [Question(self._name, key, words) for key, words in asked if key not in self._spec]

    def to_dict(self) -> dict[str, Any]:
        """The column's mapping as a schema file has it; an open question is None."""
        spec = {key: value for key, value in self._spec.items() if (key, value) != ("nullable", False)}
        return {**spec, **{question.key: None for question in self.questions()}}

    def missing(self) -> dict[str, str]:
        """The open questions: from a key to the words of the question."""
        asked: dict[str, str] = {}
        for question in self.questions():
            key = "bounds" if question.key in _BOUNDS else question.key
            asked[key] = "; ".join(filter(None, (asked.get(key), question.words)))
        return asked

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
        >>> schema.answer("sex", "female, male")
        >>> schema.complete().names
        ('age', 'sex')
    """

    _comments: ClassVar[Mapping[str, str]] = {"task": "# classification, regression, or none; the label is predicted"}

    def __init__(self, kinds: Mapping[str, str], name: str = "table", dtypes: Mapping[str, str] | None = None) -> None:
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
        self._stand_ins: dict[str, Any] = {}  # for columns that two categories cannot stand in for
        self._columns = {
            column: ColumnDraft(column, kind, (dtypes or {}).get(column)) for column, kind in kinds.items()
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
            self[name].settle({"kind": DROP, "reason": "names the person (ingest.unit) and is never released"})
        self._person = name

    @property
    def nullable(self) -> list[str] | None:
        """The columns that may miss a value; None while that is open. A list of names, ``all`` or ``none`` sets it."""
        return None if self._undecided() else [name for name in self.able() if self[name].nullable]

    @nullable.setter
    def nullable(self, names: "Iterable[str] | str") -> None:
        words: dict[str, list[str]] = {"all": list(self._columns), "none": []}
        names = [self._named(one) for one in (words.get(names, [names]) if isinstance(names, str) else names)]
        for name in self.able():
            if not self[name].settled:
                self[name].nullable = name in names

    def answer(self, name: Any, text: str) -> None:
        """Say what is possible in a column in one line, as in a terminal: ``0..110``, ``red, green``.

        Raises:
            SchemaError: there is no such column, or a rule is broken.
        """
        self[name].fill(read_answer(text, self[name].kind).spec)

    def proposals(self) -> list[dict[str, Any]]:
        """Rules that names, kinds and the answers so far suggest, for a person to confirm.

        Each is a mapping as in ``rules`` of a schema file, or one with ``derived``. ``?`` stands for what only a person
        can say. No cell is read, so equal names and kinds have equal proposals.
        """
        specs = {
            name: _stand_in(self[name].kind) if self[name].guessed else spec for name, spec in self._specs().items()
        }
        try:
            schema = Schema.from_dict({**self._content(specs), "name": "?", "source": "?"}, "schema")
        except SchemaError:
            return []
        return schema.proposals([name for name in self if self[name].guessed])

    def confirm(self, proposals: Iterable[Mapping[str, Any]]) -> None:
        """Take over some of :meth:`proposals` that a codebook or a law confirms.

        Raises:
            SchemaError: one has an open part.
        """
        proposals = list(proposals)
        for spec in filter(is_open, proposals):
            raise SchemaError(f"rule {rule_text(spec)} has an open part. Write it with the part in place of ?.")
        added = sections(proposals)
        self.rules = [*self.rules, *added.get("rules", [])]
        self.derived = {**self.derived, **added.get("derived", {})}

    def offered(self) -> list[dict[str, Any]]:
        """The proposals that a person can confirm in a word, once each column is known: those without an open part.

        ``one_of`` is none of them: numbered columns of yes and no are mostly answers to as many questions.
        """
        settled = not any(self[name].guessed for name in self)
        return [spec for spec in self.proposals() if not is_open(spec) and "one_of" not in spec] if settled else []

    def open_keys(self) -> dict[str, bool]:
        """Which questions about a table of this kind, by their key, a person must be asked."""
        return {"label": self._label is None, "rules": bool(self.offered()), "rows": self._person is not None}

    def take(self, key: str, line: str) -> None:
        """Take over a line that answers one of :meth:`open_keys` about the schema.

        Raises:
            SchemaError: a rule refuses it.
        """
        if key == "label":
            self.label = column_called(line, list(self)) if line else None
        elif key == "rules":
            offered = {str(number): spec for number, spec in enumerate(self.offered(), start=1)}
            numbers = chosen(line, list(offered), list(offered))
            self.confirm(spec for number, spec in offered.items() if number in numbers)

    def make_private(self) -> None:
        """Let all open categories but the label's be private."""
        for name, column in self._columns.items():
            if column.guessed and column.kind == Categorical.name and name != self._label:
                self.answer(name, PRIVATE)

    def able(self) -> list[str]:
        """The columns in which a value may be missing: all but the label and those that are dropped."""
        return [name for name, column in self._columns.items() if column.kind != DROP and name != self._label]

    @property
    def _either(self) -> bool:
        """Whether the numbers of the label may be classes."""
        return self._label is not None and self[self._label].guessed and self[self._label].kind == Integer.name

    def _undecided(self) -> list[str]:
        """Columns of which it is open whether a value may be missing."""
        return [name for name in self.able() if self[name].nullable is None and not self[name].settled]

    def questions(self) -> list[Question]:
        """What only a person can say."""
        asked = [question for column in self._columns.values() for question in column.questions()]
        words = "true where a value may be missing, false where never"
        asked += [Question(name, "nullable", words) for name in self._undecided()]
        if self._either:
            words = "regression; or classification, and its kind categorical, if its numbers are classes"
            asked.insert(0, Question("", "task", words))
        if self.source is None:
            asked.insert(0, Question("", "source", _SOURCE))
        return asked

    def missing(self) -> dict[str, str]:
        """What only a person can say: from a line of Python without its value to the words of the question."""
        questions = {"schema.source": _SOURCE} if self.source is None else {}
        questions |= {"schema.nullable": _NULLABLE} if self._undecided() else {}
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
        columns = self._specs()
        for name in self._undecided():
            columns[name]["nullable"] = None
        return self._content(columns)

    def so_far(self) -> dict[str, Any]:
        """The content of a schema file that can be checked: something stands in for what is open."""
        specs = self._specs().items()
        content = self._content(
            {name: self._stand_ins.get(name, _STAND_IN) if self[name].guessed else spec for name, spec in specs}
        )
        return {**content, "source": "?" if self.source is None else self.source}

    def _specs(self) -> dict[str, dict[str, Any]]:
        specs = {name: column.to_dict() for name, column in self._columns.items()}
        if self._label is not None and not self[self._label].settled:
            specs[self._label].pop("nullable", None)  # a label is never missing
        return specs

    def _content(self, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The content of a schema file with these mappings of columns."""
        kind = None if self._label is None else columns[self._label]["kind"]
        is_class = kind in KINDS and KINDS[kind].is_categorical
        task = "none" if kind is None else "classification" if is_class else None if self._either else "regression"
        about = {"name": self.name, "source": self.source, "task": task}
        return {**about, **({} if kind is None else {"label": self._label}), "columns": columns, **self._ruled()}

    def comments(self) -> Comments:
        """What is said beside keys of the file of a draft."""
        return {
            **{(name, key): GUESSED for name in self for key in ("kind", "dtype", "ordered") if self[name].guessed},
            **{("", key): words for key, words in self._comments.items()},
            **{(question.column, question.key): f"# ? {question.words}" for question in self.questions()},
        }

    def text(self) -> str:
        """A schema file: each open question is ``null``, which no command accepts, with a comment ``# ?``."""
        if not self.questions() and not any(self[name].guessed for name in self):
            return schema_yaml(self.to_dict())
        return schema_yaml(self.to_dict(), self.comments()) + "".join(f"{line}\n" for line in self._suggested())

    def to_yaml(self, path: str | Path) -> None:
        """Write a schema file. An open question is ``null`` there, which ``likeness check`` lists."""
        Path(path).expanduser().write_text(self.text(), encoding="utf-8")

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
        return "\n".join([*lines, *map(repr, self._columns.values()), *self._suggested()])

    def _suggested(self) -> list[str]:
        """The proposals as comments."""
        lines = [f"#   {rule_text(spec)}" for spec in self.proposals()]
        return [_CONFIRM, *lines] if lines else []

    def _ruled(self) -> dict[str, Any]:
        """The sections of rules that have any."""
        sections = {"rules": list(self.rules), "derived": dict(self.derived)}
        return {key: value for key, value in sections.items() if value}

    def _named(self, label: Any) -> str:
        name = str(label) if str(label) in self._columns else normal_text(str(label))
        if name not in self._columns:
            raise SchemaError(f"'{name}' is not a column.{choices(name, self._columns, 'Columns')}")
        return name


def as_lines(missing: Mapping[str, str]) -> str:
    """Open questions as lines of Python to complete."""
    return "\n".join(f"{place} = ?  # {words}" for place, words in missing.items())


def _stand_in(kind: str) -> Mapping[str, Any]:
    """A column whose bounds or categories are open."""
    if kind in (DROP, Boolean.name):
        return {"kind": kind, **({"reason": "?"} if kind == DROP else {})}
    return {"kind": kind, **dict(zip(_BOUNDS, _WIDE[kind], strict=True))} if kind in _WIDE else _STAND_IN


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
