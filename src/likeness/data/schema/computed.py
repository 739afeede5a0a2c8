"""Rules that compute columns from others: ``determines``, ``equal``, ``one_of`` and ``derived``.

A computed column is not modeled. It is left out of what a private row says, or another column stands for it. Each
synthetic row gets it computed.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import SchemaError
from likeness.core.extras import pd
from likeness.core.typed import check_allowed
from likeness.data.schema.allowed import Allowed, Range, read
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.rule import (
    NUMBERS,
    Columns,
    Rule,
    Values,
    column_of,
    columns_of,
    family,
    refuse,
    require_family,
)

_MINUS = re.compile(r"\s+-\s+")
MOST_LEARNED = 128  # whole numbers of a column in a function that no table lists
_SAME = 1e-9  # relative: numbers this near are equal but for their rounding


@dataclass(frozen=True)
class Computing(Rule):
    """A rule that computes columns."""

    @property
    def stand_in_columns(self) -> tuple[Column, ...]:
        """The columns that are modeled in the place of the computed ones; none if the others say all."""
        return ()

    def modeled_values(self, values: Values) -> Values:
        """Values of :attr:`stand_in_columns` in rows of the table. Each row by itself."""
        return {}

    @abstractmethod
    def compute(self, values: Values) -> Values:
        """The computed columns, from the modeled ones. A number may lie beyond its bounds."""

    def translate(self, name: str, allowed: Allowed) -> tuple[str, Allowed] | None:
        """A condition on a computed column as one on a modeled column; None if it cannot be written so."""
        return None

    def project_on_rule(self, values: Values) -> Values:
        """Nothing: no computed column is read from a private row."""
        return {}

    def _differing_rows(self, values: Values) -> NDArray[np.bool_]:
        """Rows in which a computed column has another value than the rule says."""
        wrong = np.zeros(len(values[next(iter(self.columns))]), dtype=bool)
        for name, expected in self.compute(values).items():
            near = np.abs(values[name] - expected) <= _SAME * (1 + np.abs(expected))
            wrong |= ~(near | (np.isnan(values[name]) & np.isnan(expected)))
        return wrong


@dataclass(frozen=True)
class Determines(Computing):
    """The first column determines the second: by a listed table, else by a function that the method learns.

    Attributes:
        table: value of the second column for each condition on the first, NaN for missing; None: learned.
    """

    kind: ClassVar[str] = "determines"
    keys: ClassVar[tuple[str, ...]] = ("table",)
    table: tuple[tuple[Allowed, float], ...] | None

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """Two columns, and a table from values of the first to a value of the second."""
        listed = columns_of(spec["determines"], number, columns)
        if len(listed) > 2:
            raise refuse(number, "determines lists two columns: the second follows from the first.")
        first, second = listed
        table = None
        if spec.get("table") is not None:
            table = _table(spec["table"], first, second, number)
        elif many := [column.name for column in listed if not _is_short(column)]:
            fault = (
                f"needs a table, because '{many[0]}' has no categories, and no {MOST_LEARNED} whole numbers at most."
            )
            raise refuse(number, f"{fault} List it.")
        elif first.nullable and not second.nullable:
            raise refuse(number, f"'{first.name}' may be missing, and '{second.name}' not. List a table.")
        return cls(spec, number, {column.name: column for column in listed}, table)

    @property
    def computes(self) -> tuple[str, ...]:
        return () if self.table is None else (list(self.columns)[1],)

    @property
    def pair(self) -> tuple[str, str]:
        """The column that determines, and the one that follows."""
        first, second = self.columns
        return first, second

    def compute(self, values: Values) -> Values:
        first, second = self.pair
        result = np.full(len(values[first]), np.nan)
        for condition, value in self.table or ():
            result[condition.holds(values[first], self.columns[first])] = value
        return {second: result} if self.table is not None else {}

    def violations(self, values: Values) -> NDArray[np.bool_]:
        """Rows with another value than the table; without one, than the most frequent of rows with an equal first."""
        if self.table is not None:
            return self._differing_rows(values)
        first, second = self.pair
        rows = pd.DataFrame({"first": values[first], "second": np.nan_to_num(values[second], nan=-1.0)})
        usual = rows.groupby("first", dropna=False)["second"].transform(lambda group: group.mode().iloc[0])
        wrong: NDArray[np.bool_] = (rows["second"] != usual).to_numpy()
        return wrong

    def translate(self, name: str, allowed: Allowed) -> tuple[str, Allowed] | None:
        """All values of the first column that have an allowed one."""
        first, second = self.pair
        indices, ranges, missing = frozenset[int](), tuple[Range, ...](), False
        for condition, value in self.table or ():
            if allowed.holds(np.array([value]), self.columns[second])[0]:
                indices, ranges = indices | condition.indices, (*ranges, *condition.ranges)
                missing |= condition.missing
        return first, Allowed(indices, ranges, missing)


def _is_short(column: Column) -> bool:
    """Tell whether each value may have a cell of its own, so that a method can learn a function of it."""
    whole = column.kind == "integer" and column.transform == "none"
    return column.is_categorical or (whole and column.bounds[1] - column.bounds[0] < MOST_LEARNED)


def _table(spec: Any, first: Column, second: Column, number: int) -> tuple[tuple[Allowed, float], ...]:
    """Conditions on the first column with their values of the second; together they are all values of the first."""
    if not isinstance(spec, Mapping) or not spec:
        raise refuse(number, f"table must be a mapping from values of '{first.name}' to one of '{second.name}'.")
    table: list[tuple[Allowed, float]] = []
    rest = Allowed().complement(first)
    for text, value in spec.items():
        key = f"rule {number}: table.{text}"
        condition = read(text, first, key).restrict_to(first)
        if not condition.intersect(rest, first) == condition:
            raise refuse(number, f"table gives '{text}' of '{first.name}' twice. Keep one.")
        rest = rest.intersect(condition.complement(first), first)
        table.append((condition, _one_value(value, second, key)))
    if rest.missing and second.nullable:
        rest = Allowed(rest.indices, rest.ranges)
        table.append((Allowed(missing=True), float("nan")))
    if not rest.is_nothing:
        left = ", ".join([first.categories[index] for index in sorted(rest.indices)][:3]) or "a number, or missing"
        raise refuse(number, f"table has no value for {left} of '{first.name}'. Complete it.")
    return tuple(table)


def _one_value(value: Any, column: Column, key: str) -> float:
    """A single value of a column: the index of a category, a number, or NaN for missing."""
    allowed = read(value, column, key).restrict_to(column)
    ends = {end for pair in allowed.ranges for end in pair}
    if len(allowed.indices) + len(ends) + allowed.missing != 1:
        raise SchemaError(f"{key} must be one value of '{column.name}', within its bounds.")
    return float("nan") if allowed.missing else float(next(iter([*allowed.indices, *ends])))


_OPERATIONS: dict[str, np.ufunc] = {
    "sum": np.add, "difference": np.subtract, "product": np.multiply, "ratio": np.divide,
}  # fmt: skip


@dataclass(frozen=True)
class Equal(Computing):
    """A column is the sum, difference, product or ratio of others and of numbers; it is missing where a part is.

    A difference takes all later parts from the first one. A ratio divides the first one by all later parts, and is
    missing where one of these is 0. A part may come twice. A date is a date and numbers of days, a time one and
    seconds.

    Attributes:
        operation: one of :data:`_OPERATIONS`.
        parts: names of columns, and numbers.
    """

    kind: ClassVar[str] = "equal"
    keys: ClassVar[tuple[str, ...]] = ("kind",)
    operation: str
    parts: tuple[str | float, ...]

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """A column and a list of parts."""
        operation, sides = str(spec.get("kind", "sum")), spec["equal"]
        check_allowed(f"rule {number}: kind", operation, tuple(_OPERATIONS))
        if not isinstance(sides, list | tuple) or len(sides) != 2 or not isinstance(sides[1], list | tuple):
            raise refuse(number, "equal must be a column and its parts, as [total, [part_a, part_b]].")
        parts = tuple(float(part) if _is_number(part, columns) else str(part) for part in sides[1])
        if len(parts) < 2 or not all(math.isfinite(part) for part in parts if isinstance(part, float)):
            raise refuse(number, "equal needs two parts or more. A part is a column or a number.")
        names = dict.fromkeys(part for part in parts if isinstance(part, str))
        total, *listed = columns_of([sides[0], *names], number, columns)
        leading = int(operation == "sum" and parts[0] in names)
        require_family([total, *listed[:leading]], number)
        if rest := listed[1:] if leading else [total, *listed]:
            require_family(rest, number, NUMBERS)
        finer = [part.name for part in listed if _digits(part) > _digits(total)]
        if finer and operation in ("sum", "difference"):
            raise refuse(
                number, f"'{finer[0]}' has more decimals than '{total.name}', which is a sum. Give it as many."
            )
        if any(part.nullable for part in listed) and not total.nullable:
            raise refuse(number, f"a part may be missing, and '{total.name}' not. Set nullable: true for it.")
        return cls(spec, number, {column.name: column for column in (total, *listed)}, operation, parts)

    @property
    def computes(self) -> tuple[str, ...]:
        return (next(iter(self.columns)),)

    def compute(self, values: Values) -> Values:
        total = next(iter(self.columns.values()))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a warning would depend on a private row
            joined = reduce(
                _OPERATIONS[self.operation], [values[part] if isinstance(part, str) else part for part in self.parts]
            )
            joined = np.where(np.isfinite(joined), joined, np.nan)
            return {total.name: joined if self.digits is None else np.round(joined, self.digits)}

    @property
    def digits(self) -> int | None:
        """Decimals to which the computed number is rounded; None: it is not."""
        digits = _digits(next(iter(self.columns.values())))
        return int(digits) if digits < float("inf") else None

    def violations(self, values: Values) -> NDArray[np.bool_]:
        return self._differing_rows(values)


def _is_number(part: Any, columns: Columns) -> bool:
    """Tell whether a part stands for itself: a column may have a number as its name."""
    return isinstance(part, int | float) and not isinstance(part, bool) and str(part) not in columns


def _digits(column: Column) -> float:
    return 0 if column.is_integral else float("inf") if column.decimals is None else column.decimals


@dataclass(frozen=True)
class OneOf(Computing):
    """Exactly one of several columns of two values has its second value: yes, true or 1.

    One column with a category for each of them is modeled. In a private row the first such column counts; in a row
    without one, the first column.
    """

    kind: ClassVar[str] = "one_of"

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """Columns, or patterns of their names as ``soil_*``."""
        names = spec["one_of"]
        if isinstance(names, list | tuple):
            names = [name for word in names for name in _matching(str(word), columns)]
        listed = columns_of(names, number, columns)
        for column in listed:
            is_binary = len(column.categories) == 2 or (column.is_integral and column.bounds == (0, 1))
            if column.nullable or not is_binary:
                raise refuse(number, f"'{column.name}' must have two values, as boolean or 0..1, and none missing.")
        rule = cls(spec, number, {column.name: column for column in listed})
        if rule.stand_in_columns[0].name in columns:
            raise refuse(number, f"'{rule.stand_in_columns[0].name}' is already a column. Rename it.")
        return rule

    @property
    def computes(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def stand_in_columns(self) -> tuple[Column, ...]:
        names = tuple(self.columns)
        return (Column(f"one of {names[0]} to {names[-1]}", "categorical", categories=names),)

    def modeled_values(self, values: Values) -> Values:
        second = np.stack([values[name] == 1 for name in self.columns])
        return {self.stand_in_columns[0].name: second.argmax(axis=0).astype(float)}

    def compute(self, values: Values) -> Values:
        chosen = values[self.stand_in_columns[0].name]
        return {name: (chosen == index).astype("float64") for index, name in enumerate(self.columns)}

    def violations(self, values: Values) -> NDArray[np.bool_]:
        """None of them has it, or several."""
        several: NDArray[np.bool_] = np.sum([values[name] == 1 for name in self.columns], axis=0) != 1
        return several

    def translate(self, name: str, allowed: Allowed) -> tuple[str, Allowed] | None:
        """The category of that column, or all others."""
        yes, no = allowed.holds(np.array([1.0, 0.0]), self.columns[name]).tolist()
        index = list(self.columns).index(name)
        every = frozenset(range(len(self.columns)))
        return self.stand_in_columns[0].name, Allowed(
            (frozenset([index]) if yes else frozenset()) | (every - {index} if no else frozenset())
        )


def _matching(word: str, columns: Columns) -> list[str]:
    """The column of that name, or those that the pattern means; the word itself if there is none."""
    return [word] if word in columns else [name for name in columns if fnmatchcase(name, word)] or [word]


def _differences(text: str) -> list[tuple[str, str]]:
    """List the pairs that may stand on both sides of a minus: a name may hold one too."""
    return [(text[: match.start()], text[match.end() :]) for match in _MINUS.finditer(text)]


@dataclass(frozen=True)
class Derived(Computing):
    """The difference of two columns is modeled in the place of the first: ``stay: "discharged - admitted"``.

    Dates differ in days, times in seconds. The difference is clipped to its bounds, as every number is.
    """

    kind: ClassVar[str] = "derived"
    difference: Column

    @classmethod
    def parse(cls, spec: Mapping[str, Any], number: int, columns: Columns) -> Self:
        """A name with a difference, or with a mapping: ``is`` and keys of a column."""
        ((name, content),) = spec["derived"].items()
        content = content if isinstance(content, Mapping) else {"is": content}
        pairs = _differences(str(content.get("is")))
        if name in columns or not pairs:
            raise refuse(number, f"derived.{name} must be a new name and the difference of two columns, as 'b - a'.")
        candidates = [pair for pair in pairs if set(pair) <= set(columns)] or pairs[:1]
        if len(candidates) > 1:
            raise refuse(number, f"derived.{name} may be the difference of other columns too. Rename one of them.")
        listed = [column_of(word, number, columns) for word in candidates[0]]
        later, earlier = listed
        require_family(listed, number)
        if later.name == earlier.name or (earlier.nullable and not later.nullable):
            fault = (
                f"'{earlier.name}' may be missing, and '{later.name}' not" if earlier.nullable else "names one column"
            )
            raise refuse(number, f"derived.{name}: {fault}. Correct it.")
        default = {
            "kind": "integer" if later.is_integral and earlier.is_integral else "numeric",
            "lower": later.bounds[0] - earlier.bounds[1],
            "upper": later.bounds[1] - earlier.bounds[0],
        }
        keys = {key: value for key, value in content.items() if key != "is"}
        difference = column_from(name, {**default, **keys, "nullable": later.nullable})
        if not isinstance(difference, Column) or family(difference) != "number":
            raise refuse(number, f"derived.{name} must be integer or numeric.")
        return cls(spec, number, {column.name: column for column in listed}, difference)

    @property
    def computes(self) -> tuple[str, ...]:
        return (next(iter(self.columns)),)

    @property
    def stand_in_columns(self) -> tuple[Column, ...]:
        return (self.difference,)

    def modeled_values(self, values: Values) -> Values:
        later, earlier = self.columns
        return {self.difference.name: values[later] - values[earlier]}

    def compute(self, values: Values) -> Values:
        later, earlier = self.columns
        column, added = self.columns[later], values[earlier] + values[self.difference.name]
        return {later: added.round(int(_digits(column))) if _digits(column) < float("inf") else added}

    def violations(self, values: Values) -> NDArray[np.bool_]:
        """The difference lies outside of its bounds."""
        lower, upper = self.difference.bounds
        margin = _SAME * (1 + abs(lower) + abs(upper))
        apart = self.modeled_values(values)[self.difference.name]
        outside: NDArray[np.bool_] = (apart < lower - margin) | (apart > upper + margin)
        return outside
