"""Rules that may hold, by the names of columns and categories alone. A codebook must confirm each; no row is read."""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby, permutations
from typing import TYPE_CHECKING, Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column import Column
from likeness.data.schema.rule import family
from likeness.data.schema.rules import rules_from

if TYPE_CHECKING:
    from likeness.data.schema.schema import Schema

_NUMBERED = re.compile(r"(.*\D)\d+")
_FEWEST = 3  # numbered columns that make a group
_CODES = ("code", "num", "id", "nr", "no")
_MEN, _WOMEN = {"husband", "father", "son", "widower"}, {"wife", "mother", "daughter", "widow"}
_SEXES = {"female": _MEN, "woman": _MEN, "male": _WOMEN, "man": _WOMEN}
_EARLIER = {
    "admitted": "discharged",
    "admission": "discharge",
    "start": "end",
    "begin": "end",
    "started": "ended",
    "birth": "death",
    "born": "died",
    "opened": "closed",
    "arrival": "departure",
    "entry": "exit",
    "ordered": "delivered",
    "hired": "left",
}


def proposed(schema: "Schema") -> list[dict[str, Any]]:
    """Candidates of rules that the schema does not have, as they stand in a schema file.

    A table that only a person can list is ``?``. Columns with private categories and the label are left out, where a
    rule would compute them.
    """
    columns = [column for column in schema.columns if not column.open]
    ruled = [set(rule.columns) for rule in schema.rules]
    return [
        spec
        for spec, names in (*_groups(columns), *_twins(columns), *_orders(columns), *_kin(columns))
        if not any(names <= one for one in ruled) and _possible(spec, schema)
    ]


_Candidates = Iterator[tuple[dict[str, Any], set[str]]]


def _possible(spec: Mapping[str, Any], schema: "Schema") -> bool:
    """Whether a schema may have the rule; one with an open table may, unless it computes the label."""
    if "table" in spec:
        return bool(spec["determines"][1] != schema.label)
    try:
        rules_from([spec], {}, schema.columns, schema.label)
    except SchemaError:
        return False
    return True


def _groups(columns: list[Column]) -> _Candidates:
    """Numbered columns of two values, as ``soil_1`` to ``soil_40``."""
    stems = {column.name: match[1] for column in columns if (match := _NUMBERED.fullmatch(column.name))}
    for stem, members in groupby(sorted(stems, key=lambda name: stems[name]), key=lambda name: stems[name]):
        names = list(members)
        every = [column.name for column in columns if column.name.startswith(stem)]
        if len(names) >= _FEWEST:
            yield {"one_of": [f"{stem}*"] if len(every) == len(names) else names}, set(names)


def _twins(columns: list[Column]) -> _Candidates:
    """A column of categories and its code, as ``education`` and ``education-num``."""
    by_words = {_words(column.name): column for column in columns}
    for words, column in by_words.items():
        first = by_words.get(words[:-1])
        if words[-1] in _CODES and first is not None and first.is_categorical:
            table = {} if column.is_categorical else {"table": "?"}
            yield {"determines": [first.name, column.name], **table}, {first.name, column.name}


def _orders(columns: list[Column]) -> _Candidates:
    """Dates whose names differ in a word for earlier and later, as ``admitted`` and ``discharged``."""
    dates = [column for column in columns if column.type.day]
    for first, second in permutations(dates, 2):
        later = [tuple(_EARLIER.get(word, word) for word in _words(first.name))]
        if family(first) == family(second) and later == [_words(second.name)]:
            yield {"order": [first.name, second.name]}, {first.name, second.name}


def _kin(columns: list[Column]) -> _Candidates:
    """A word for a relative and the other sex, as ``Husband`` and ``Female``."""
    for first, second in permutations([column for column in columns if column.is_categorical], 2):
        for sex in second.categories:
            for relative in first.categories:
                if relative.casefold() in _SEXES.get(sex.casefold(), ()):
                    yield {"never": {first.name: relative, second.name: sex}}, {first.name, second.name}


def _words(name: str) -> tuple[str, ...]:
    """A name in small words: ``Date_admitted`` and ``dateAdmitted`` are equal."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return tuple(word for word in re.split(r"[\W_]+", apart.casefold()) if word) or (name,)
