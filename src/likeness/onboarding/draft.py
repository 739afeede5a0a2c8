"""The draft of a public schema: names and guessed kinds, and a question wherever public knowledge is needed.

A question is a ``null`` that no command accepts, beside a comment that begins with ``# ?``. Nothing is filled in from
rows: no bound, category or missing code, not whether values are missing, not the number of rows.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from textwrap import indent
from typing import Any

import yaml

from likeness.config.edit import edited
from likeness.config.explain import plain
from likeness.config.load import params_from
from likeness.config.params import ONE_PERSON, FileFormat, Sample
from likeness.core.errors import SchemaError
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import NAMES_PERSON, held, questions_of, task_of
from likeness.data.schema.kinds import KINDS_BY_NAME, OTHER, PRIVATE, Date, Integer
from likeness.data.schema.schema import CoreDumper, entries

GUESSED = "# from the data: confirm from public knowledge"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ .-][A-Za-z0-9_]+)*", re.ASCII)
_WORDS_OF_YAML = ("null", "true", "false")
_OTHER_TRUTHS = ("yes", "no", "y", "n", "on", "off")  # texts here, but not to every reader of YAML
_NULLABLE = ("nullable", "true where a value may be missing, false where never")
_AT_ONCE = "# One answer to every question of nullable: likeness init --nullable none, or all, or NAME,NAME."
_DRAFT = (
    "# A DRAFT that a person completes. It becomes PUBLIC: all of it must be public knowledge, from a codebook,",
    "# a law, a questionnaire, never from the rows. Answer every question (# ?), confirm every guessed kind,",
    "# and run: likeness check. docs/own-data.md says what each key means.",
)
_SOURCE = "source: null  # ? where bounds and categories come from: the codebook, the law, the questionnaire"
_MOST = "the most events of a person that count; public"
ORDERED = tuple(name for name, kind in KINDS_BY_NAME.items() if not kind.is_categorical)
_COMPLETED = (
    "# PUBLIC: all of it must be public knowledge, from a codebook, a law, a questionnaire, never from the rows.",
    "# docs/own-data.md says what each key means.",
)
_TABLES = ("columns", "people", "events")  # sections of a schema that hold columns
_PEOPLE = "a name for the PEOPLE in the data; new versions of the data keep it"
_MAX_ROWS = "the most rows of one person that are used; public; noise grows with it"


def draft_schema(
    name: str,
    kinds: Mapping[str, str],
    label: str | None,
    person: str | None = None,
    answers: Mapping[str, Any] | None = None,
    nullable: frozenset[str] | None = None,
    private: bool = False,
    dtypes: Mapping[str, str] | None = None,
) -> str:
    """The draft as YAML text.

    Args:
        name: of the table.
        kinds: guessed kind by column name.
        label: the column to be predicted, if there is one.
        person: the column that names people, where they may have several rows.
        answers: a completed schema as in its file, such as that of an earlier year. Its columns of equal names and its
            source are taken over; its label too, if it is a column and none is given.
        nullable: the columns in which a value may be missing; None: a question for every column.
        private: whether all categories but the label's are private.
        dtypes: word of each column's dtype by name, where one is said.

    Raises:
        SchemaError: the label, or the column that names people, is not a column.
    """
    answered = {} if answers is None else dict(entries(answers.get("columns") or {}))
    label = label_of(kinds, label, answers)
    check_columns(kinds, label, person)
    lines = [
        *_DRAFT,
        "# A row is a person? Where one may have several, set ingest.unit in params.yaml, or init --person COLUMN."
        if person is None
        else "# A person may have several rows: ingest.unit in params.yaml asks how many of them are used at most.",
        *([_AT_ONCE] if nullable is None else []),
        f"name: {_key(name)}",
        _SOURCE if not (answers or {}).get("source") else _as_yaml({"source": (answers or {})["source"]}),
    ]
    if label is None:
        lines += ["task: none  # or classification or regression, with label: the column to be predicted"]
    else:
        kind = answered.get(label, {}).get("kind", kinds[label])
        if label not in answered and kind == Integer.name:
            task = "null  # ? regression; or classification, and its kind categorical, if its numbers are classes"
        else:
            task = f"{task_of(kind)}  {GUESSED}: classification or regression"
        lines += [f"task: {task}", f"label: {_key(label)}"]
    lines.append("columns:")
    for column, kind in kinds.items():
        if column == person:
            lines += [f"  {_key(column)}:", "    kind: drop", f"    reason: {NAMES_PERSON}"]
            continue
        if column in answered:
            lines.append(indent(_as_yaml({column: answered[column]}), "  "))
            continue
        lines += _questions(column, kind, (dtypes or {}).get(column), column == label, nullable, private)
    return "\n".join(lines) + "\n"


def _questions(
    column: str, kind: str, dtype: str | None, present: bool, nullable: frozenset[str] | None, private: bool = False
) -> list[str]:
    """The lines of a column without answers.

    Args:
        column: its name.
        kind: guessed.
        dtype: its word, where one is said.
        present: whether no value is missing, as in a label. Its categories are public.
        nullable: as of :func:`draft_schema`.
        private: whether categories of others are private.
    """
    lines = [f"  {_key(column)}:", f"    kind: {kind}  {GUESSED}"]
    lines += [f"    {key}: {_value(word)}  {GUESSED}" for key, word in _dtype(kind, dtype).items()]
    for question in (*questions_of(kind), *(() if kind == DROP or present else (_NULLABLE,))):
        key, text = question
        if question is _NULLABLE and nullable is not None:
            lines.append(f"    nullable: {_value(column in nullable)}")
        elif key == "categories" and private and not present:
            lines += [f"    categories: {PRIVATE}", f"    other: {OTHER}"]
        else:
            lines.append(f"    {key}: null  # ? {text}")
    return lines


def draft_histories(
    name: str,
    tables: Mapping[str, Mapping[str, str]],
    person: str,
    order: str | None,
    nullable: frozenset[str] | None = None,
    dtypes: Mapping[str, Mapping[str, str]] | None = None,
    answers: Mapping[str, Any] | None = None,
) -> str:
    """The draft of a schema of people with histories as YAML text.

    Args:
        name: of both tables.
        tables: guessed kind by column name, of events and, where there is such a table, of people.
        person: the key of each table.
        order: the column of events by which a history is ordered.
        nullable: the columns in which a value may be missing; None: a question for every column.
        dtypes: for each table the word of each column's dtype by name, where one is said.
        answers: mappings of columns, by name, that need no question.

    Raises:
        SchemaError: a table has no such key, or the events no such order.
    """
    for kinds in tables.values():
        check_columns(kinds, None, person)
    check_columns(tables["events"], None, order=order)
    lines = [
        *_DRAFT,
        *([_AT_ONCE] if nullable is None else []),
        f"name: {_key(name)}",
        _SOURCE,
        f"person: {_key(person)}  # the key of each table; it is never released",
        f"order: {'null' if order is None else _key(order)}  # null: the public hash of a row orders a history",
        f"most: null  # ? {_MOST}",
        "which: first  # of more events the first ones in order; or hash, for a choice by public hash",
        "ends: {}  # no event follows one with such a category, as {state: [dead]}",
        *([] if "people" in tables else ["fixed: []  # columns that never change for a person, as [sex]"]),
    ]
    for table, kinds in tables.items():
        lines.append(f"{table}:")
        for column, kind in kinds.items():
            if column in (answers or {}):
                lines.append(indent(_as_yaml({column: (answers or {})[column]}), "  "))
            elif column != person:
                kind = Date.name if column == order and kind not in ORDERED else kind
                word = (dtypes or {}).get(table, {}).get(column)
                lines += _questions(column, kind, word, column == order, nullable)
    return "\n".join(lines) + "\n"


def completed_schema(schema: Mapping[str, Any], dtypes: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """A schema that a person answered, as YAML text with one line a column.

    Args:
        schema: its mapping, of a table or of histories.
        dtypes: for each section of columns the word of each column's dtype by name, where one is said and the schema
            says none.
    """
    lines = [f"{key}: {_value(value)}" for key, value in schema.items() if key not in _TABLES]
    for table in [key for key in schema if key in _TABLES]:
        lines.append(f"{table}:")
        for name, spec in schema[table].items():
            word = (dtypes or {}).get(table, {}).get(name)
            lines.append(f"  {_key(name)}: {_value({**spec, **_dtype(spec.get('kind'), word), **spec})}")
    return "\n".join([*_COMPLETED, *lines]) + "\n"


def _dtype(kind: str | None, word: str | None) -> dict[str, str]:
    """The key of a dtype that can hold a column of the kind."""
    return {"dtype": word} if word is not None and held(kind, word) else {}


def draft_params(
    text: str,
    source: str,
    query: str | None,
    schema: str,
    person: str | None = None,
    split: str | None = None,
    layout: FileFormat | None = None,
    max_rows: int | None = None,
    population: str | None = None,
    people: str | None = None,
    histories: bool = False,
) -> str:
    """params.yaml for another table. Only lines about the table, its people and the sample change.

    Args:
        text: of the present params.yaml.
        source: a file, or the URL of a database.
        query: of a database.
        schema: place of the schema.
        person: the column that names people, where they may have several rows.
        split: the column that says which rows train.
        layout: how a CSV or Excel file is written; None: by the defaults.
        max_rows: most rows of a person that are used; None is a question.
        population: the name of the people; None is a question.
        people: of histories the table of people, if there is one.
        histories: whether the schema is that of people with histories, which says the most rows of a person.

    Raises:
        ParamsError: a setting that stays is wrong.
    """
    content = yaml.safe_load(text)
    ingest = content.get("ingest") or {}
    changes: dict[str, Any] = {"ingest.source": source, "ingest.schema": schema, "privacy.population": population}
    changes |= {"ingest.people": people} if people is not None or "people" in ingest else {}
    changes |= {"ingest.query": query} if query is not None or "query" in ingest else {}
    unit = None if person is None or histories else {"column": person, "max_rows": max_rows}
    before, default = ingest.get("format") or {}, asdict(FileFormat())
    written = asdict(layout or FileFormat())
    written = {key: value for key, value in written.items() if key in before or value != default[key]}
    changes |= {f"ingest.format.{key}": value for key, value in written.items()} if before else {}
    changes |= {"ingest.format": written} if written and not before else {}
    changes |= {"ingest.unit": unit} if unit is not None or "unit" in ingest else {}
    if ingest.get("split"):
        changes["ingest.split.column"] = split
    elif split is not None:
        changes["ingest.split"] = {"column": split, "train": "train", "test": "test"}
    sample, defaults = content.get("sample") or {}, Sample()
    changes |= {f"sample.{key}": plain(getattr(defaults, key)) for key in ("rows", "where") if key in sample}
    changes |= {} if person is None else {"privacy.unit": ONE_PERSON}
    questions = {"privacy.population": _PEOPLE} if population is None else {}
    questions |= {"ingest.unit": _MAX_ROWS} if unit is not None and max_rows is None else {}
    answered = {**changes, "privacy.population": population or "?"}
    answered |= {} if unit is None else {"ingest.unit": {**unit, "max_rows": max_rows or 1}}
    params_from(yaml.safe_load(edited(text, answered, {})))
    return edited(text, changes, questions)


def label_of(kinds: Mapping[str, str], label: str | None, answers: Mapping[str, Any] | None) -> str | None:
    """The given label, or else that of a completed schema if it is a column here."""
    return answers["label"] if label is None and answers is not None and answers.get("label") in kinds else label


def check_columns(
    kinds: Mapping[str, str],
    label: str | None,
    person: str | None = None,
    split: str | None = None,
    order: str | None = None,
) -> None:
    """Refuse a label, a name of people, a column of the split or an order that is no column.

    Raises:
        SchemaError: naming the option.
    """
    for option, column in (("--label", label), ("--person", person), ("--split", split), ("--order", order)):
        if column is not None and column not in kinds:
            # No error names the columns: a first line of words may be a row.
            words = "Give a name of the first line, which must be a header."
            if column.casefold() in {name.casefold() for name in kinds}:
                words = "One is that differs in capitals only: write it as in the first line."
            raise SchemaError(f"{option} {column} is not a column. {words}")
    if split is not None and split in (label, person):
        raise SchemaError(f"--split {split} is the label or names people. Give another column.")
    if person is not None and person == label:
        raise SchemaError(
            f"--person {person} is the label, but names of people are never released. Give another column."
        )


def _as_yaml(mapping: Mapping[str, Any]) -> str:
    return str(yaml.dump(mapping, Dumper=CoreDumper, sort_keys=False, allow_unicode=True, width=110)).rstrip("\n")


def _key(name: str) -> str:
    """A name in YAML, in quotes unless every reader takes it as text."""
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS_OF_YAML:
        return name
    return json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """A value on one line: like JSON, which is YAML, with fewer quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.lower() in _OTHER_TRUTHS else _key(value)
    return json.dumps(value)
