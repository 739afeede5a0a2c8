"""Conditions on the rows that are drawn: ``sample.where``, ``likeness sample --where`` and ``Synthesizer.sample``.

See :mod:`likeness.data.schema.allowed` for the words of a condition.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.core.errors import ParamsError
from likeness.core.text import normal_text
from likeness.core.typed import check_allowed, require
from likeness.data.encoding.bins import unit_of
from likeness.data.encoding.layout import Condition
from likeness.data.schema.allowed import Allowed, read, step_of
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    from pandas import DataFrame

_MARGIN = 1e-6  # of a step: a value on the line between two whole numbers may be rounded to either
_DIGITS = 1e-13  # of a column's range: the last digits of its unit scale
_SAME = 1e-12  # of a column's range: a drawn number this near to an end of a range is that end

_PAIR = re.compile(r'(?:"((?:[^"]|"")*)"|([^"=][^=]*))=(.*)', re.DOTALL)

Conditions = dict[int, Condition]


def conditions(where: Mapping[str, Any], schema: Schema) -> tuple[tuple[int, ...], Conditions]:
    """The classes that ``where`` allows (empty: all), and its conditions on feature columns by their place.

    Args:
        where: from the name of a column to a value, a range, null for missing, or a list of these.
        schema: of the table.

    Raises:
        ParamsError: naming the key, the value and what is allowed.
    """
    return split_conditions(allowed_values(where, schema), schema)


def allowed_values(where: Mapping[str, Any], schema: Schema) -> dict[str, Allowed]:
    """Read what ``where`` allows, by the name of the column; see :func:`conditions`."""
    allowed = {}
    for name, value in conditions_by_name(where).items():
        key = f"sample.where.{name}"
        check_allowed(key, name, schema.names)
        allowed[name] = read(value, schema.column(name), key)
        _condition(allowed[name], schema.column(name))  # which refuses ranges without a value
    return allowed


def conditions_by_name(where: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions by the names that columns have in the schema: labels of a frame as texts, in their normal form.

    They are in the order of names, so that their order in a file changes no draw and no word.

    Raises:
        ParamsError: two labels are one name.
    """
    conditions = {normal_text(str(name)): value for name, value in where.items()}
    require(len(conditions) == len(where), "where", list(where), "a mapping that names each column once")
    return dict(sorted(conditions.items()))


def split_conditions(allowed: Mapping[str, Allowed], schema: Schema) -> tuple[tuple[int, ...], Conditions]:
    """Conditions by name as generators take them: the classes, and the rest by the place of the feature column."""
    indices = {column.name: index for index, column in enumerate(schema.feature_columns)}
    written = {name: _condition(values, schema.column(name)) for name, values in allowed.items()}
    classes = [condition.categories for name, condition in written.items() if name not in indices]
    return (classes[0] if classes else ()), {indices[name]: written[name] for name in written if name in indices}


def _condition(allowed: Allowed, column: Column) -> Condition:
    """Translate what a column may hold into the terms of encoded rows."""
    if column.is_categorical:
        return Condition((*sorted(allowed.indices), *([len(column.categories)] if allowed.missing else [])))
    return _unit_intervals(allowed.ranges, allowed.missing, column, f"sample.where.{column.name}")


def _unit_intervals(ranges: Sequence[tuple[float, float]], missing: bool, column: Column, key: str) -> Condition:
    """Ranges in units of the column as intervals of its unit scale, ascending and apart."""
    intervals: list[tuple[float, float]] = []
    (lower, upper), spans = column.bounds, sorted(_widen_range(ends, column) for ends in ranges)
    if any(high < lower or low > upper for low, high in spans) or not (spans or missing):
        raise ParamsError(f"{key}: {no_such_value(column)}")
    for low, high in spans:
        if intervals and low <= intervals[-1][1]:
            intervals[-1] = intervals[-1][0], max(high, intervals[-1][1])
        else:
            intervals.append((low, high))
    units = [(unit_of(column, max(low, lower)), unit_of(column, min(high, upper))) for low, high in intervals]
    # Bins of whole numbers reach half a step over the bounds, so an interval that does has no end there.
    opened = [
        (-math.inf if low <= lower else start, math.inf if high >= upper else end)
        for (low, high), (start, end) in zip(intervals, units, strict=True)
    ]
    return Condition(intervals=tuple(opened), missing=missing)


def no_such_value(column: Column) -> str:
    """Say why a column does not have a number, and the remedy."""
    step = step_of(column)
    form = "" if step is None or not column.type.numeric_source else f", in steps of {step:g}"
    return f"column '{column.name}' has no such value. Its values are {column.range_text}{form}. Ask for some of these."


def _widen_range(ends: tuple[float, float], column: Column) -> tuple[float, float]:
    """A range with all that is rounded into it: for whole numbers and decimals, half a step more on each side."""
    step = step_of(column)
    if step is None:
        return ends
    low, high = (end / step for end in ends)
    half = 0.5 - _MARGIN - _DIGITS * (column.bounds[1] - column.bounds[0]) / step
    low = math.ceil(low - _MARGIN) if math.isfinite(low) else low
    high = math.floor(high + _MARGIN) if math.isfinite(high) else high
    return (low - half) * step, (high + half) * step if low <= high else -math.inf


def with_exact_ends(table: "DataFrame", allowed: Mapping[str, Allowed], schema: Schema) -> "DataFrame":
    """A drawn table whose numbers at the end of a range are that end, in spite of the last digits of a unit scale."""
    for name, values in allowed.items():
        column = schema.column(name)
        if column.is_categorical or step_of(column) is not None:
            continue
        numbers = table[name].to_numpy(copy=True)
        for end in {end for ends in values.ranges for end in ends if math.isfinite(end)}:
            numbers[np.abs(numbers - end) <= _SAME * (column.bounds[1] - column.bounds[0])] = end
        table[name] = numbers
    return table


def pairs(arguments: Sequence[str]) -> dict[str, Any]:
    """Read ``COLUMN=VALUE`` of a command line for :func:`conditions`. A column given twice may have either value.

    A name with ``=``, or with a quote at its beginning, stands in double quotes, and a quote in it twice, as in CSV.

    Raises:
        ParamsError: a word has another form.
    """
    where: dict[str, Any] = {}
    for word in arguments:
        match = _PAIR.fullmatch(word)
        if match is None:
            raise ParamsError(f"--where {word} must have the form COLUMN=VALUE. Put a name with = in double quotes.")
        quoted, plain, text = match.groups()
        name = plain if quoted is None else quoted.replace('""', '"')
        where[name] = [*where.get(name, []), text or None]
    return {name: values[0] if len(values) == 1 else values for name, values in where.items()}
