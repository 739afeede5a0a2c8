"""All rules of a schema: read, checked against each other, and applied to rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError, SchemaError
from likeness.core.text import choices, normal_texts
from likeness.data.schema.allowed import Allowed
from likeness.data.schema.calendars import Calendar
from likeness.data.schema.column import Column
from likeness.data.schema.computed import Computing, Derived, Determines, Equal, OneOf
from likeness.data.schema.rule import Columns, Forbidden, IfThen, Never, Order, Rule, Values, refuse

KINDS: dict[str, type[Rule]] = {kind.kind: kind for kind in (IfThen, Never, Determines, Order, Equal, OneOf, Calendar)}
"""The only list of them. ``derived`` is a section of its own, because it names a new column."""
_MOST_RULES = 1000  # each is compared with each
PASSES = 3  # a mended column may break another rule


def rules_from(spec: Any, derived: Any, columns: Iterable[Column], label: str | None) -> tuple[Rule, ...]:
    """The rules in sections ``rules`` and ``derived`` of a schema. None may compute the label.

    Raises:
        SchemaError: naming the rule, or two that contradict each other.
    """
    by_name = {column.name: column for column in columns}
    spec, derived = normal_texts(spec), normal_texts(derived)
    if not isinstance(spec, list | tuple):
        raise SchemaError("rules must be a list, as - {if: {age: < 15}, then: {marital_status: never-married}}.")
    if len(spec) > _MOST_RULES:
        raise SchemaError(f"rules has {len(spec):,} rules. A schema may have {_MOST_RULES:,}.")
    if not isinstance(derived, Mapping):
        raise SchemaError("derived must be a mapping, as {stay: discharged - admitted}.")
    try:
        rules = [_parse_rule(entry, number, by_name) for number, entry in enumerate(spec, start=1)]
        for number, (name, content) in enumerate(derived.items(), start=len(rules) + 1):
            rules.append(Derived.parse({"derived": {str(name): content}}, number, by_name))
    except ParamsError as error:
        raise SchemaError(str(error)) from None
    _check_computed(rules, label)
    _check_contradictions(rules, by_name)
    return tuple(rules)


def _parse_rule(spec: Any, number: int, columns: Columns) -> Rule:
    names = [kind for kind in KINDS if isinstance(spec, Mapping) and kind in spec]
    if len(names) != 1:
        raise refuse(number, f"must be a mapping with one of {', '.join(KINDS)}.")
    kind = KINDS[names[0]]
    keys = (kind.kind, *kind.keys)
    for key in spec:
        if key not in keys:
            raise refuse(number, f"{key} is not a key of such a rule.{choices(key, keys, 'Keys')}")
    return kind.parse(spec, number, columns)


def _check_computed(rules: Iterable[Rule], label: str | None) -> None:
    """No column is computed twice, or from a computed one; the label is never computed."""
    by: dict[str, Rule] = {}
    for rule in rules:
        pair = learned_pairs([rule])
        if pair and label in rule.columns:
            raise refuse(rule.number, f"needs a table, because '{label}' is the label. List it.")
        for name in (*rule.computes, *(second for _, second in pair)):
            if name == label:
                raise refuse(rule.number, f"computes the label '{name}'. The label is modeled: name it as a part.")
            if name in by:
                raise SchemaError(f"{by[name]} and {rule} compute '{name}' both. Keep one.")
            by[name] = rule
    for rule in rules:
        parts = {name for name in rule.columns if by.get(name) is not rule} if isinstance(rule, Computing) else set()
        for name in sorted(parts & set(by)):
            if isinstance(by[name], Calendar):  # these are computed first
                continue
            raise SchemaError(f"{rule} reads '{name}', which {by[name]} computes. Read what that one reads.")


def _check_contradictions(rules: Iterable[Rule], columns: Columns) -> None:
    """Refuse two rules that together forbid all values of a column wherever the conditions of one of them hold."""
    listed = [(rule, forbidden) for rule in rules for forbidden in rule.forbidden]
    for (rule, first), (other, second) in combinations(listed, 2):
        for name in set(first) & set(second):
            column = columns[name]
            left = first[name].complement(column).intersect(second[name].complement(column), column)
            if (
                rule is not other
                and left.is_nothing
                and (_implies(first, second, name, columns) or _implies(second, first, name, columns))
            ):
                raise SchemaError(
                    f"{rule} and {other} contradict each other: together they leave no value of '{name}'. Correct one."
                )


def _implies(first: Forbidden, second: Forbidden, name: str, columns: Columns) -> bool:
    """Tell whether all other conditions of ``second`` hold wherever those of ``first`` do."""
    return all(
        key in first and first[key].intersect(second[key], columns[key]) == first[key] for key in second.keys() - {name}
    )


@dataclass(frozen=True)
class ConstrainedTable:
    """A table under rules: which columns are modeled, and how rows go there and back.

    Attributes:
        columns: of the table.
        rules: of its schema.
    """

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]

    @property
    def computing(self) -> list[Computing]:
        """Rules that compute columns of each synthetic row, in the order in which they do. Others may read dates."""
        listed = [rule for rule in self.rules if isinstance(rule, Computing) and rule.computes]
        return sorted(listed, key=lambda rule: not isinstance(rule, Calendar))

    @property
    def modeled_columns(self) -> tuple[Column, ...]:
        """The columns that a method sees. Those that stand for others have the place of the first of them."""
        stands: dict[str, tuple[Column, ...]] = {name: () for rule in self.computing for name in rule.computes}
        stands |= {rule.computes[0]: rule.stand_in_columns for rule in self.computing}
        return tuple(modeled for column in self.columns for modeled in stands.get(column.name, (column,)))

    @property
    def modeled_rules(self) -> tuple[Rule, ...]:
        """Rules about modeled columns alone."""
        names = {column.name for column in self.modeled_columns}
        return tuple(rule for rule in self.rules if set(rule.columns) <= names)

    def forward_transform(self, values: Values) -> Values:
        """Columns of private rows: mended by the rules, and with those that stand for others.

        A rule's map is fixed by the schema and maps every row by itself. All rules are applied in order, three times. A
        row that then still breaks a rule stays.

        **Privacy.** Let m be this map of a row, and m(D) the table of m(r) for all rows r of a table D. The schema
        alone fixes m. So if D and D' differ in one row, added, removed or replaced, m(D) and m(D') differ in at most
        that row. If they differ in all rows of a person, m(D) and m(D') do, and the person has as many rows in both. So
        m(D) and m(D') are neighbors or equal, and every bound on the sensitivity of a sum holds for the sum over m(D).
        The number of passes is fixed, so no row changes what happens to another. Nothing counts the rows that m
        changes.
        """
        mended = dict(values)
        for _ in range(PASSES):
            for rule in self.modeled_rules:
                mended |= rule.project_on_rule(mended)
        stands = [rule.modeled_values(mended) for rule in self.computing]
        return {name: cells for columns in (mended, *stands) for name, cells in columns.items()}

    def inverse_transform(self, values: Values) -> tuple[Values, dict[str, NDArray[np.bool_]]]:
        """Values of all columns of the table from modeled ones, and which rows each rule rejects, by its words."""
        rejected = {}
        by_name, complete = {column.name: column for column in self.columns}, dict(values)
        for computing in self.computing:
            outside = np.zeros(len(next(iter(values.values()))), dtype=bool)
            for name, computed in computing.compute(complete).items():
                column, complete[name] = by_name[name], computed
                if not column.is_categorical:
                    outside |= (computed < column.bounds[0]) | (computed > column.bounds[1])
                if not column.nullable:
                    outside |= np.isnan(computed)
            rejected[f"bounds of what {computing} computes"] = outside
        for rule in self.rules:
            if not (isinstance(rule, Determines) and rule.table is None):  # the generator keeps that one
                rejected[str(rule)] = rule.violations(complete)
        return complete, rejected

    def translate(self, conditions: Mapping[str, Allowed]) -> "tuple[dict[str, Allowed], dict[str, Allowed]]":
        """Conditions on columns of the table as those on modeled columns, and the rest."""
        by_name = {column.name: column for column in self.modeled_columns}
        by_computed = {name: rule for rule in self.computing for name in rule.computes}
        exact: dict[str, Allowed] = {}
        rest: dict[str, Allowed] = {}
        for name, allowed in conditions.items():
            written = by_computed[name].translate(name, allowed) if name in by_computed else (name, allowed)
            if written is None:
                rest[name] = allowed
            else:
                column, limit = written
                exact[column] = limit if column not in exact else exact[column].intersect(limit, by_name[column])
        return exact, rest


def learned_pairs(rules: Iterable[Rule]) -> list[tuple[str, str]]:
    """Pairs of columns of which the first determines the second, by a function that no table lists."""
    return [rule.pair for rule in rules if isinstance(rule, Determines) and rule.table is None]


def thresholds(rules: Iterable[Rule], name: str) -> tuple[float, ...]:
    """Numbers of a column at which a condition of a rule begins to hold, or ceases to; ascending.

    All of a column of whole numbers in a function that no table lists: each value has a cell of its own.
    """
    numbers: set[float] = set()
    for rule in rules:
        if learned_pairs([rule]) and name in rule.columns:
            lower, upper = rule.columns[name].bounds
            numbers |= {float(value) for value in range(math.floor(lower) + 1, math.floor(upper) + 1)}
        for forbidden in rule.forbidden:
            if name in forbidden:
                column = rule.columns[name]
                ranges = (*forbidden[name].ranges, *forbidden[name].complement(column).ranges)
                numbers |= {low for low, _ in ranges if low > column.bounds[0]}
    return tuple(sorted(numbers))


def rules_section(rules: Iterable[Rule]) -> dict[str, Any]:
    """The rules as they stand in a schema's file; nothing where there are none."""
    listed = [dict(rule.spec) for rule in rules if not isinstance(rule, Derived)]
    derived: dict[str, Any] = {}
    for rule in rules:
        if isinstance(rule, Derived):
            derived |= rule.spec["derived"]
    return {**({"rules": listed} if listed else {}), **({"derived": derived} if derived else {})}
