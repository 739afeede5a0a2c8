"""The draft of a column: what is said of it, and the questions that only a person can answer."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date
from typing import Any

from likeness.core.errors import SchemaError
from likeness.core.text import choices, normal_text
from likeness.data.schema.column_keys import DROP, column_from, keys_of
from likeness.data.schema.dtypes import parse_dtype
from likeness.data.schema.kinds import KINDS, PRIVATE

BOUNDS = ("lower", "upper")
_BESIDE = ("nullable", "missing_values", "dtype")  # said apart from the possible values


@dataclass(frozen=True)
class Question:
    """A key of the schema that only a person can give.

    Attributes:
        column: that has the key; empty: the table.
        key: of the schema.
        text: the question.
    """

    column: str
    key: str
    text: str


class ColumnDraft:
    """One column of a draft. Every key that the schema has for its kind is an attribute, and ``bounds`` is two of them.

    ``bounds`` may be ``"private"``, too. A value that breaks a rule of the schema is refused at once. None takes a
    value back.

    Examples:
        >>> column = ColumnDraft("age", "integer")
        >>> column.bounds = (0, 110)
        >>> column
        schema["age"].kind = "integer"; schema["age"].bounds = (0, 110)
    """

    def __init__(self, name: str, kind: str, dtype: str | None = None) -> None:
        """Begin with a guessed kind, and with the word of a dtype if such a column can have it."""
        parts = parse_dtype(dtype or "")
        order = {"ordered": True} if parts is not None and parts.ordered else {}
        self.__dict__.update(_name=name, _spec={"dtype": dtype, **order}, _guessed=True, _settled=False)
        self.guess(kind)

    def __getattr__(self, key: str) -> Any:
        """Look up a key of the column; None where it is open."""
        if key.startswith("_"):
            raise AttributeError(key)
        if key == "bounds" and key not in self._spec:
            return tuple(self._spec[end] for end in BOUNDS) if set(BOUNDS) <= set(self._spec) else None
        return self._spec.get(key)

    def __setattr__(self, key: str, value: Any) -> None:
        """Say more of the column.

        Raises:
            SchemaError: with all rules that are broken.
        """
        value = _yaml_value(value)
        edits = {key: value}
        if key == "kind":
            edits = self._spec_for_kind(value)
        elif key == "bounds":
            private = value == PRIVATE
            if value is not None and not private and not (isinstance(value, list) and len(value) == len(BOUNDS)):
                raise SchemaError(f"column '{self._name}': bounds must be a pair, as (0, 110), or '{PRIVATE}'.")
            pair = (None, None) if private or value is None else value
            edits = {**dict(zip(BOUNDS, pair, strict=True)), key: PRIVATE if private else None}
        elif (key, value) == ("categories", PRIVATE):
            edits = {key: value, "ordered": None}
        spec = edits if key == "kind" else {**self._spec, **edits}
        spec = {name: entry for name, entry in spec.items() if entry is not None}
        self._take(spec, edits, self._guessed and key in _BESIDE, set(spec))

    def guess(self, kind: str) -> None:
        """Take another kind that is still to be confirmed.

        Raises:
            SchemaError: there is no such kind.
        """
        self.__dict__.update(_spec=self._spec_for_kind(kind), _guessed=True)

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
        facts = self._spec_for_kind(str(kind)) if kind in (*KINDS, DROP) else {}
        keys = (*_BESIDE, "ordered") if isinstance(spec.get("categories"), list) else _BESIDE
        self._take({**spec, **{key: facts[key] for key in keys if key in facts and key not in spec}}, spec, False)

    def copy(self, other: "ColumnDraft") -> None:
        """Take the possible values of another column."""
        self.fill({key: value for key, value in other._spec.items() if key not in _BESIDE})

    def _spec_for_kind(self, kind: str) -> dict[str, Any]:
        """Keep the keys of the column that another kind has too."""
        if kind not in (*KINDS, DROP):
            raise SchemaError(f"column '{self._name}' has kind '{kind}'. Kinds: {', '.join(KINDS)}, {DROP}.")
        spec = {"kind": kind, **{key: value for key, value in self._spec.items() if key in keys_of(kind)[1:]}}
        dtype = spec.get("dtype")
        if dtype is None or not KINDS[kind].holds(dtype) or dtype.startswith("dictionary"):
            spec.pop("dtype", None)
        return spec

    def _take(self, spec: dict[str, Any], edits: Mapping[str, Any], guess: bool, keys: Set[str] | None = None) -> None:
        """Keep a mapping, without a dtype that cannot hold what a person says beside it; refuse faults of keys."""
        faults = _faults(self._name, spec)
        if "dtype" in dict(faults) and "dtype" not in edits:
            spec = {key: value for key, value in spec.items() if key != "dtype"}
            faults = _faults(self._name, spec)
        if faults := tuple(fault for fault in faults if keys is None or fault[0] in keys):
            raise SchemaError("\n".join(text for _, text in faults), faults)
        self.__dict__.update(_spec=spec, _guessed=guess)

    @property
    def is_guessed(self) -> bool:
        """Tell whether a person has still to say what is possible."""
        return bool(self._guessed)

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing of the column is a question, nor was one."""
        return bool(self._settled)

    def questions(self) -> list[Question]:
        """List the open questions, without ``nullable``, which a label has not."""
        why = ("reason", "why the column is left out; or another kind")
        questions = (why,) if self.kind == DROP else KINDS[self.kind].questions
        answered = {*self._spec, *(BOUNDS if "bounds" in self._spec else ())}
        return [Question(self._name, key, text) for key, text in questions if key not in answered]

    def to_dict(self) -> dict[str, Any]:
        """The column's mapping as a schema file has it; an open question is None."""
        usual = ("nullable", self._spec.get("bounds") == PRIVATE)
        spec = {key: value for key, value in self._spec.items() if (key, value) != usual}
        return {**spec, **{question.key: None for question in self.questions()}}

    def missing(self) -> dict[str, str]:
        """The open questions: from a key to the text of the question."""
        questions: dict[str, str] = {}
        for question in self.questions():
            key = "bounds" if question.key in BOUNDS else question.key
            questions[key] = "; ".join(filter(None, (questions.get(key), question.text)))
        return questions

    def __repr__(self) -> str:
        """Lines of Python, with a question mark for what is missing."""
        shown = {key: value for key, value in self._spec.items() if key not in BOUNDS}
        missing = self.missing()
        shown |= {} if "bounds" in missing or self.bounds is None else {"bounds": self.bounds}
        facts = [f"{self.python_name(key)} = {python_text(value)}" for key, value in shown.items()]
        facts += [f"{self.python_name(key)} = ?" for key in missing]
        return "; ".join(facts) + (f"  # {'; '.join(missing.values())}" if missing else "")

    def python_name(self, key: str) -> str:
        """A key of the column as Python sets it."""
        return f"schema[{python_text(self._name)}].{key}"


class ColumnDrafts(dict[str, ColumnDraft]):
    """The columns of a draft by their names, in table order."""

    def name_of(self, label: Any) -> str:
        """The name of a column, from its label in a frame.

        Raises:
            SchemaError: there is no such column.
        """
        name = str(label) if str(label) in self else normal_text(str(label))
        if name not in self:
            raise SchemaError(f"'{name}' is not a column.{choices(name, self, 'Columns')}")
        return name

    def open_nullable(self, names: Iterable[str]) -> list[str]:
        """Those of these columns of which it is open whether a value may be missing."""
        return [name for name in names if self[name].nullable is None and not self[name].is_settled]

    def set_nullable(self, names: Iterable[str], nullable: Set[str]) -> None:
        """Say of these columns whether a value may be missing, but for those that a schema file settled."""
        for name in names:
            if not self[name].is_settled:
                self[name].nullable = name in nullable

    def to_dict(self, label: str | None) -> dict[str, dict[str, Any]]:
        """The mappings of the columns as a schema file has them; a label is never missing."""
        specs = {name: column.to_dict() for name, column in self.items()}
        if label is not None and not self[label].is_settled:
            specs[label].pop("nullable", None)
        return specs


def _faults(name: str, spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    try:
        column_from(name, spec)
    except SchemaError as error:
        return error.faults
    return ()


def _yaml_value(value: Any) -> Any:
    """A value as YAML has it: arrays and tuples as lists, dates as texts."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple | range):
        return [_yaml_value(item) for item in value]
    return str(value) if isinstance(value, date) else value


def python_text(value: Any) -> str:
    """A value as Python has it, texts in double quotes."""
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() and not {'"', "\\"} & set(value) else repr(value)
    if isinstance(value, list | tuple):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(map(python_text, value)) + right
    return repr(value)
