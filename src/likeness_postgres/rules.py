"""The rules of a schema as SQL: the map of private rows of :class:`likeness.data.schema.rules.ConstrainedTable`.

**Privacy.** Each expression here is made of constants of the schema and of columns of one row. There is no window, join
or aggregate among them. So a row becomes one row, by itself, and a row or person that is added, removed or replaced
changes as many mapped rows: what ``ConstrainedTable.forward_transform`` proves of the map holds for these steps too. A
mapped row lies in one cell of each table that is counted, so it adds to one cell of each part.
"""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from likeness.data.schema.allowed import MARGIN, Allowed, step_of
from likeness.data.schema.calendars import Calendar
from likeness.data.schema.column import Column
from likeness.data.schema.computed import Computing, Derived, Equal, OneOf
from likeness.data.schema.rule import Forbidden, IfThen, Never, Order, Rule
from likeness.data.schema.rules import PASSES, ConstrainedTable
from likeness_postgres import columns

_EPOCH = 719_468  # days from 0000-03-01 to 1970-01-01: no date has a negative number, and a leap day ends a year
_SIGNS = {"sum": "+", "difference": "-", "product": "*", "ratio": "/"}
_LARGEST = 1e300  # what lies beyond could be no float64, at which a database stops
_NEAR = 2.0**-50  # two ends of ranges this near, beside the width of the bounds, may have one distance in float64


class Steps:
    """Columns that follow from others of the same row, in as few steps as their order allows.

    Attributes:
        steps: of each step its columns, as ``EXPRESSION AS m_3``.
    """

    def __init__(self) -> None:
        """Start without columns."""
        self.steps: list[list[str]] = []
        self._levels: dict[str, int] = {}

    def add(self, expression: str) -> str:
        """The name of a new column."""
        level = max((self._levels[name] + 1 for name in re.findall(r"\bm_\d+\b", expression)), default=0)
        name = f"m_{len(self._levels)}"
        self._levels[name] = level
        self.steps += [[]] * (level == len(self.steps))
        self.steps[level] = [*self.steps[level], f"{expression} AS {name}"]
        return name


def reasons_against(table: ConstrainedTable) -> list[str]:
    """List the reasons why a database cannot map rows as Python does; empty where it can."""
    reasons = [
        f"{rule}: its difference is whole, and a column of it is not"
        for rule in table.computing
        if isinstance(rule, Derived)
        and rule.difference.is_integral
        and not all(column.is_integral for column in rule.columns.values())
    ]
    for rule in table.modeled_rules:
        if isinstance(rule, Equal):
            listed = [rule.columns[part] for part in rule.parts if isinstance(part, str)]
            if rule.operation in ("product", "ratio") and not all(column.is_integral for column in listed):
                reasons.append(f"{rule}: it is a {rule.operation}, and a column of it is not whole")
            if _largest_number(rule) > _LARGEST:
                reasons.append(f"{rule}: its numbers are too large")
    return reasons


def _largest_number(rule: Equal) -> float:
    """A bound on all that is computed, times the power of ten by which it is rounded.

    Whole numbers are 0 or at least 1. So nothing in a product or ratio of them is below the inverse of the bound but 0.
    """
    parts = [part if isinstance(part, float) else max(map(abs, rule.columns[part].bounds)) for part in rule.parts]
    sizes = [abs(part) for part in parts if part]
    if rule.operation in ("product", "ratio"):
        return math.prod(max(size, 1 / size) for size in sizes) * 10.0 ** (rule.digits or 0)
    return math.fsum(sizes) * 10.0 ** (rule.digits or 0)


def transform(table: ConstrainedTable, values: Mapping[str, str], steps: Steps) -> dict[str, str]:
    """The names of modeled values by column, as ``ConstrainedTable.forward_transform`` makes them.

    A rule that changed a row changes it no more until another one does: what it puts into a column is allowed there.
    So a rule is left out of a pass if its columns are those that it left.

    Args:
        table: columns and rules of the schema.
        values: names of typed values by column.
        steps: gets the expressions.
    """
    names, settled = dict(values), dict[int, list[str]]()
    for _ in range(PASSES):
        for rule in table.modeled_rules:
            if settled.get(rule.number) == [names[name] for name in rule.columns]:
                continue
            for name, expression in _projections(rule, names):
                names[name] = steps.add(expression)
            settled[rule.number] = [names[name] for name in rule.columns]
    for computing in table.computing:
        for column, expression in zip(computing.stand_in_columns, _stand_ins(computing, names, steps), strict=True):
            names[column.name] = steps.add(expression)
    for column in table.columns:
        if names[column.name] != values[column.name] and not column.is_categorical:
            value = names[column.name]
            if column.is_integral:  # an order may raise it to a number with decimals
                value = steps.add(f"L_WHOLE({value})")
            names[column.name] = steps.add(columns.typed_value(column, f"{value} IS NULL", value))
    return {column.name: names[column.name] for column in table.modeled_columns}


def _projections(rule: Rule, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Columns that a rule changes, in order, by :meth:`Rule.project_on_rule`; ``names`` gets the new name of each."""
    latest = dict(names)
    if isinstance(rule, IfThen):
        broken = _condition(rule.premise, rule.columns, latest)
        for name, allowed in rule.then.items():
            column = rule.columns[name]
            wrong = f"{broken} AND NOT {_allows(allowed, column, latest[name])}"
            yield (
                name,
                f"CASE WHEN {wrong} THEN {_nearest_allowed(allowed, column, latest[name])} ELSE {latest[name]} END",
            )
    elif isinstance(rule, Never):
        name, rest = rule.last_condition
        broken, nearest = (
            _condition(rule.conditions, rule.columns, latest),
            _nearest_allowed(rest, rule.columns[name], latest[name]),
        )
        yield name, f"CASE WHEN {broken} THEN {nearest} ELSE {latest[name]} END"
    elif isinstance(rule, Order):
        for before, after in pairwise(rule.columns):
            first, second, most = (
                names[before],
                names[after],
                _number_text(rule.columns[after], rule.columns[after].bounds[1]),
            )
            raised = f"CASE WHEN {first} > {most} THEN {most} ELSE {first} END"
            yield after, f"CASE WHEN {second} < {first} THEN {raised} ELSE {second} END"
        for after, before in pairwise(reversed(list(rule.columns))):
            yield before, f"CASE WHEN {names[before]} > {names[after]} THEN {names[after]} ELSE {names[before]} END"
    elif isinstance(rule, Equal):
        yield from _computations(rule, names)


def _computations(rule: Equal, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A computed number, step by step: the sum, rounded, within the bounds."""
    column = next(iter(rule.columns.values()))
    parts = [
        columns.float_literal(part) if isinstance(part, float) else f"CAST({names[part]} AS DOUBLE PRECISION)"
        for part in rule.parts
    ]
    if rule.operation == "ratio":
        parts[1:] = [f"NULLIF({part}, 0)" for part in parts[1:]]
    yield column.name, f" {_SIGNS[rule.operation]} ".join(parts)
    if rule.digits is not None:
        power = columns.float_literal(10.0**rule.digits)
        yield column.name, f"L_EVEN({names[column.name]} * {power}) / {power}"
    lower = (
        "" if column.nullable else f"WHEN {names[column.name]} IS NULL THEN {columns.float_literal(column.bounds[0])} "
    )
    clipped = columns.clip(column, names[column.name])
    yield column.name, f"CASE {lower}ELSE {clipped} END" if lower else clipped


def _condition(conditions: Forbidden, by_name: Mapping[str, Column], names: Mapping[str, str]) -> str:
    return " AND ".join(_allows(allowed, by_name[name], names[name]) for name, allowed in conditions.items())


def _allows(allowed: Allowed, column: Column, value: str) -> str:
    """Write the condition of :meth:`Allowed.holds`; never NULL."""
    margin = 0.0 if column.is_integral else MARGIN * (step_of(column) or 0.0)
    if column.is_categorical:
        inside = [f"{value} IN {columns.sql_list(map(str, sorted(allowed.indices)))}"] if allowed.indices else []
    else:
        inside = [
            f"({value} >= {_number_text(column, low - margin)} AND {value} <= {_number_text(column, high + margin)})"
            for low, high in allowed.ranges
        ]
    if allowed.missing:
        return f"({' OR '.join([f'{value} IS NULL', *inside])})"
    return f"({value} IS NOT NULL AND ({' OR '.join(inside) or '1 = 0'}))"


def _nearest_allowed(allowed: Allowed, column: Column, value: str) -> str:
    """Write :meth:`Allowed.nearest`. Ranges ascend, so one of two neighbors is nearest; of equal ones the first."""
    if allowed.indices or not allowed.ranges:
        return str(min(allowed.indices)) if allowed.indices else "NULL"
    lows, highs = ([_number_text(column, end) for end in ends] for ends in zip(*allowed.ranges, strict=True))
    near = _NEAR * (column.bounds[1] - column.bounds[0])
    cases = [f"{value} IS NULL OR {value} < {lows[0]} THEN {lows[0]}"]
    for index, (low, high) in enumerate(zip(lows[1:], highs, strict=False)):
        between = f"{value} > {high} AND {value} < {low} AND"
        cases.append(f"{between} {low} - {value} < {value} - {high} THEN {low}")
        ends = [end for _, end in allowed.ranges[: index + 1]]
        equal = [other for other, end in zip(highs, ends, strict=False) if ends[-1] - end <= near]
        cases += [f"{between} {value} - {other} <= {value} - {high} THEN {other}" for other in equal]
    cases.append(f"{value} > {highs[-1]} THEN {highs[-1]}")
    return f"CASE {' '.join(f'WHEN {case}' for case in cases)} ELSE {value} END"


def _number_text(column: Column, number: float) -> str:
    return str(int(number)) if column.is_integral else columns.float_literal(float(number))


def _stand_ins(rule: Computing, names: Mapping[str, str], steps: Steps) -> list[str]:
    """Write :meth:`Computing.modeled_values`, within the bounds."""
    values = [names[name] for name in rule.columns]
    if isinstance(rule, OneOf):
        cases = " ".join(f"WHEN {value} = 1 THEN {index}" for index, value in enumerate(values))
        return [f"CASE {cases} ELSE 0 END"]
    if isinstance(rule, Derived):
        difference = steps.add(f"{values[0]} - {values[1]}")
        return [columns.typed_value(rule.difference, f"{difference} IS NULL", difference)]
    return _calendar(values[0], steps) if isinstance(rule, Calendar) else []


def _calendar(day: str, steps: Steps) -> list[str]:
    """Year with the place of the weekday in its month, month and weekday of a number of days.

    Years begin in March and 400 of them have 146,097 days, so quotients of whole numbers give year and month.
    """
    days = steps.add(f"{day} + {_EPOCH}")
    era = steps.add(f"L_DIV({days}, 146097)")
    rest = steps.add(f"{days} - 146097 * {era}")
    years = steps.add(f"L_DIV({rest} - L_DIV({rest}, 1460) + L_DIV({rest}, 36524) - L_DIV({rest}, 146096), 365)")
    of_year = steps.add(f"{rest} - (365 * {years} + L_DIV({years}, 4) - L_DIV({years}, 100))")
    of_march = steps.add(f"L_DIV(5 * {of_year} + 2, 153)")
    of_month = steps.add(f"{of_year} - L_DIV(153 * {of_march} + 2, 5)")
    month = steps.add(f"CASE WHEN {of_march} < 10 THEN {of_march} + 2 ELSE {of_march} - 10 END")
    year = steps.add(f"{years} + 400 * {era} + CASE WHEN {of_march} < 10 THEN 0 ELSE 1 END")
    leap = f"{year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0)"
    february = f"CASE WHEN {leap} THEN 29 ELSE 28 END"
    length = steps.add(f"CASE WHEN {month} = 1 THEN {february} WHEN {month} IN (3, 5, 8, 10) THEN 30 ELSE 31 END")
    before = steps.add(f"L_DIV({of_month}, 7)")  # such weekdays of the month
    count = f"({before} + 1 + L_DIV({length} - 1 - {of_month}, 7))"
    return [f"{year} + ({before} + {columns.float_literal(0.5)}) / {count}", month, f"({days} + 2) % 7"]
