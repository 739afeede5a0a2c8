"""Settings of a new table: params.yaml points to it, and asks what only a person can say of its people."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import yaml

from likeness.config.edit import edit_text
from likeness.config.load import params_from, section_in
from likeness.config.params import ONE_PERSON, FileFormat, Sample
from likeness.core.errors import SchemaError
from likeness.core.hashing import json_value
from likeness.methods import DEFAULT

_PEOPLE = "a name for the PEOPLE in the data; new versions of the data keep it"
_MAX_ROWS = "the most rows of one person that are used; public; noise grows with it"


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
    unit: str | None = None,
    of_records: Mapping[str, Any] = {},
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
        unit: the column that names people, where the settings say the most rows of a person.
        of_records: keys that the format of the source asks for. A method that a person chose stays.

    Raises:
        ParamsError: a setting that stays is wrong, or a section is none.
    """
    content = yaml.safe_load(text)
    ingest = section_in(content, "ingest")
    changes: dict[str, Any] = {"ingest.source": source, "ingest.schema": schema, "privacy.population": population}
    changes |= {"ingest.people": people} if people is not None or "people" in ingest else {}
    changes |= {"ingest.query": query} if query is not None or "query" in ingest else {}
    bound = None if unit is None else {"column": unit, "max_rows": max_rows}
    before, default = section_in(ingest, "format"), asdict(FileFormat())
    written = asdict(layout or FileFormat())
    written = {key: value for key, value in written.items() if key in before or value != default[key]}
    changes |= {f"ingest.format.{key}": value for key, value in written.items()} if before else {}
    changes |= {"ingest.format": written} if written and not before else {}
    changes |= {"ingest.unit": bound} if bound is not None or "unit" in ingest else {}
    if section_in(ingest, "split"):
        changes["ingest.split.column"] = split
    elif split is not None:
        changes["ingest.split"] = {"column": split, "train": "train", "test": "test"}
    sample, defaults = section_in(content, "sample"), Sample()
    changes |= {f"sample.{key}": json_value(getattr(defaults, key)) for key in ("rows", "where") if key in sample}
    changes |= {} if person is None else {"privacy.unit": ONE_PERSON}
    chosen = content.get("method") != DEFAULT
    changes |= {key: value for key, value in of_records.items() if not (chosen and key == "method")}
    questions = {"privacy.population": _PEOPLE} if population is None else {}
    questions |= {"ingest.unit": _MAX_ROWS} if bound is not None and max_rows is None else {}
    answered = {**changes, "privacy.population": population or "?"}
    answered |= {} if bound is None else {"ingest.unit": {**bound, "max_rows": max_rows or 1}}
    params_from(yaml.safe_load(edit_text(text, answered, {})))
    return edit_text(text, changes, questions)


def check_columns(kinds: Mapping[str, str], **options: str | None) -> None:
    """Refuse a label, a name of people, a column of the split or an order that is no column.

    Raises:
        SchemaError: naming the option.
    """
    label, person, split = map(options.get, ("label", "person", "split"))
    for option, column in options.items():
        if column is not None and column not in kinds:
            # No error names the columns: a first line of words may be a row.
            remedy = "Give a name of the first line, which must be a header."
            if column.casefold() in {name.casefold() for name in kinds}:
                remedy = "One is that differs in capitals only: write it as in the first line."
            raise SchemaError(f"--{option} {column} is not a column. {remedy}")
    if split is not None and split in (label, person):
        raise SchemaError(f"--split {split} is the label or names people. Give another column.")
    if person is not None and person == label:
        fault = "is the label, but names of people are never released"
        raise SchemaError(f"--person {person} {fault}. Give another column.")
