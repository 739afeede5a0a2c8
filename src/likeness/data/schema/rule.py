"""Rules that forbid some combinations of values: ``if``, ``never`` and ``order``.

A rule sees rows as *values*: for each column one array of numbers, with the place of a category or the number in units
of the column, and NaN for missing.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import yaml
from numpy.typing import NDArray

from likeness.core.errors import SchemaError
from likeness.core.text import choices
from likeness.data.schema.allowed import Allowed, read
from likeness.data.schema.column import Column

Columns = Mapping[str, Column]
Values = dict[str, NDArray[np.float64]]
NUMBERS = "numbers"


@dataclass(frozen=True)
class Rule(ABC):
    """One rule of a schema.

    Attributes:
        kind: the key of the schema that makes a rule one of this kind.
        keys: further keys that it may have.
        spec: as it stands in the schema.
        number: its place in the list, from 1.
        columns: that it speaks of, by name.
    """

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    spec: Mapping[str, Any]
    number: int
    columns: Columns

    @classmethod
    @abstractmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """Read a rule.

        Args:
            spec: as it stands in the schema.
            number: its place in the list, from 1.
            columns: all columns of the schema.

        Raises:
            SchemaError: naming the rule.
        """

    def __str__(self) -> str:
        """Number and text, for messages and reports."""
        return f"rule {self.number} ({self.text})"

    @property
    def text(self) -> str:
        """The rule in one line, as in the schema."""
        return yaml.safe_dump(dict(self.spec), default_flow_style=True, sort_keys=False, width=10**6).strip()

    @property
    def forbidden(self) -> "tuple[Forbidden, ...]":
        """Combinations of conditions that no row may meet together. Some rules have none."""
        return ()

    @property
    def computes(self) -> tuple[str, ...]:
        """Columns whose values follow from others, so that no method models them."""
        return ()

    @abstractmethod
    def violations(self, values: Values) -> NDArray[np.bool_]:
        """Tell which rows break the rule."""

    @abstractmethod
    def project_on_rule(self, values: Values) -> Values:
        """The columns that the rule may change, so that broken rows keep it. Each row by itself."""


class Forbidden(dict[str, Allowed]):
    """Conditions by column that no row may meet together."""

    def matches(self, values: Values, columns: Columns) -> NDArray[np.bool_]:
        """Tell which rows meet all of them."""
        holds = [condition.holds(values[name], columns[name]) for name, condition in self.items()]
        together: NDArray[np.bool_] = np.logical_and.reduce(holds)
        return together


def refuse(number: int, fault: str) -> SchemaError:
    """A fault of a rule."""
    return SchemaError(f"rule {number}: {fault}")


def column_of(name: Any, number: int, columns: Columns) -> Column:
    """A column that a rule names.

    Raises:
        SchemaError: there is none, or its categories or bounds are private.
    """
    column = columns.get(str(name))
    if column is None:
        raise refuse(number, f"'{name}' is not a column.{choices(name, columns, 'Columns')}")
    if column.open or column.unbounded:
        what = "categories" if column.open else "bounds"
        raise refuse(number, f"column '{name}' has private {what}. A rule is public: give public ones, or drop it.")
    return column


def columns_of(names: Any, number: int, columns: Columns, least: int = 2) -> list[Column]:
    """Different columns that a rule lists.

    Raises:
        SchemaError: it is no list of as many columns.
    """
    if not isinstance(names, list | tuple) or len(names) < least or len({str(name) for name in names}) < len(names):
        raise refuse(number, f"needs a list of {least} different columns or more.")
    return [column_of(name, number, columns) for name in names]


def _conditions(spec: Any, number: int, columns: Columns) -> Forbidden:
    """Conditions by column, from a mapping of the schema."""
    if not isinstance(spec, Mapping) or not spec:
        raise refuse(number, "needs a mapping from columns to values, as {age: < 15}.")
    conditions = Forbidden()
    for name, value in spec.items():
        column = column_of(name, number, columns)
        condition = read(value, column, f"rule {number}: {name}").restrict_to(column)
        if condition.is_nothing:
            raise refuse(number, f"column '{name}' has no value {value}. Correct the rule, or the bounds.")
        conditions[column.name] = condition
    return conditions


@dataclass(frozen=True)
class IfThen(Rule):
    """Rows that meet all conditions of ``if`` meet all of ``then``.

    A private row that does not gets, in each column of ``then``, the nearest allowed number or first allowed category.
    """

    kind: ClassVar[str] = "if"
    keys: ClassVar[tuple[str, ...]] = ("then",)
    premise: Forbidden
    then: Forbidden

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """Two mappings of conditions."""
        premise, then = (_conditions(spec.get(key), number, columns) for key in ("if", "then"))
        twice = set(premise) & set(then)
        if twice:
            raise refuse(number, f"column '{min(twice)}' stands in if and in then. Keep it in one of them.")
        return cls(spec, number, {name: columns[name] for name in (*premise, *then)}, premise, then)

    @property
    def forbidden(self) -> tuple[Forbidden, ...]:
        """The forbidden conditions: for each column of ``then``, all of ``if`` with another value there."""
        others = {name: allowed.complement(self.columns[name]) for name, allowed in self.then.items()}
        return tuple(Forbidden({**self.premise, name: rest}) for name, rest in others.items() if not rest.is_nothing)

    def violations(self, values: Values) -> NDArray[np.bool_]:
        return self.premise.matches(values, self.columns) & ~self.then.matches(values, self.columns)

    def project_on_rule(self, values: Values) -> Values:
        """Columns of ``then`` where they do not hold."""
        wrong = self.violations(values)
        columns = {}
        for name, allowed in self.then.items():
            move = wrong & ~allowed.holds(values[name], self.columns[name])
            columns[name] = np.where(move, allowed.nearest(values[name]), values[name])
        return columns


@dataclass(frozen=True)
class Never(Rule):
    """No row meets all of these conditions.

    A private row that does gets, in the last column, the nearest other number or first other category.
    """

    kind: ClassVar[str] = "never"
    conditions: Forbidden

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """One mapping of conditions."""
        conditions = _conditions(spec["never"], number, columns)
        if len(conditions) < 2:
            raise refuse(number, "never needs two columns or more. Change bounds or categories of a single column.")
        rule = cls(spec, number, {name: columns[name] for name in conditions}, conditions)
        if rule.last_condition[1].is_nothing:
            raise refuse(number, f"leaves no value of '{rule.last_condition[0]}'. Leave that column out of the rule.")
        return rule

    @property
    def last_condition(self) -> tuple[str, Allowed]:
        """The last column, and what it may hold where the others meet their conditions."""
        name = list(self.conditions)[-1]
        return name, self.conditions[name].complement(self.columns[name])

    @property
    def forbidden(self) -> tuple[Forbidden, ...]:
        return (self.conditions,)

    def violations(self, values: Values) -> NDArray[np.bool_]:
        return self.conditions.matches(values, self.columns)

    def project_on_rule(self, values: Values) -> Values:
        name, rest = self.last_condition
        return {name: np.where(self.violations(values), rest.nearest(values[name]), values[name])}


def family(column: Column) -> str:
    """Columns of one family can be compared: numbers, or those of one other kind."""
    return "category" if column.is_categorical else "number" if column.type.numeric_source else column.kind


def require_family(listed: list[Column], number: int, expected: str = "numbers, or all of one kind, as dates") -> None:
    """Refuse columns that cannot be compared with each other: ``expected`` says which can."""
    names = {family(column) for column in listed}
    if len(names) > 1 or "category" in names or (expected == NUMBERS and names != {"number"}):
        kinds = ", ".join(f"'{column.name}' is {column.kind}" for column in listed)
        raise refuse(number, f"columns must all be {expected}, but {kinds}.")


@dataclass(frozen=True)
class Order(Rule):
    """Values ascend from column to column; equal ones are in order, and a missing one breaks nothing.

    In a private row that breaks the rule each value is raised to the one before it. Beyond a bound it is the bound,
    and the values before are lowered to it.
    """

    kind: ClassVar[str] = "order"

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """A list of columns of one family."""
        listed = columns_of(spec["order"], number, columns)
        require_family(listed, number)
        for before, after in pairwise(listed):
            if before.bounds[0] > after.bounds[1]:
                raise refuse(number, f"'{before.name}' begins where '{after.name}' ends. Correct the rule or bounds.")
        return cls(spec, number, {column.name: column for column in listed})

    def violations(self, values: Values) -> NDArray[np.bool_]:
        """A value is larger than the next."""
        wrong = [values[before] > values[after] for before, after in pairwise(self.columns)]
        broken: NDArray[np.bool_] = np.logical_or.reduce(wrong)
        return broken

    def project_on_rule(self, values: Values) -> Values:
        columns = {name: values[name] for name in self.columns}
        for before, after in pairwise(self.columns):
            columns[after] = np.minimum(np.maximum(columns[after], columns[before]), self.columns[after].bounds[1])
            columns[after] = np.where(np.isnan(columns[before]), values[after], columns[after])
        names = list(self.columns)
        for after, before in pairwise(reversed(names)):
            columns[before] = np.where(columns[before] > columns[after], columns[after], columns[before])
        return columns
