"""Conditions on the rows that are drawn: ``sample.where``, ``likeness sample --where`` and ``Synthesizer.sample``.

A condition on a column is one value, a range, null for missing, or a list of these. A range is a pair in Python and
``30..40`` in a text. Both ends belong to it, and one of them may be open: ``30..``. A frame has one row of values for
each row that is drawn.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.config.typed import allowed
from likeness.core import rng
from likeness.core.errors import ParamsError
from likeness.data.encoding.bins import unit_of
from likeness.data.encoding.condition import Condition
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import Categorical
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

    from likeness.methods.saved_generator import SavedGenerator

_RANGE = ".."
_MARGIN = 1e-6  # of a step: a value on the line between two whole numbers may be rounded to either
_DIGITS = 1e-13  # of a column's range: the last digits of its unit scale
_SAME = 1e-12  # of a column's range: a drawn number this near to an end of a range is that end

Conditions = dict[int, Condition]


def conditions(where: Mapping[str, Any], schema: Schema) -> tuple[tuple[int, ...], Conditions]:
    """The classes that ``where`` allows (empty: all), and its conditions on feature columns by their place.

    Args:
        where: from the name of a column to a value, a range, null for missing, or a list of these.
        schema: of the table.

    Raises:
        ParamsError: naming the key, the value and what is allowed.
    """
    given = {}
    for name, value in where.items():
        key = f"sample.where.{name}"
        allowed(key, name, schema.names)
        column, values = schema.column(name), _alternatives(value)
        missing, present = None in values, [one for one in values if one is not None]
        if not values:
            raise ParamsError(f"{key} is an empty list. Give a value, a range, or leave it out.")
        if missing and not column.nullable:
            raise ParamsError(f"{key} asks for missing values, but '{name}' is not nullable. Give other values.")
        if column.is_categorical:
            places = {place for one in present for place in _places(one, column, key)}
            given[name] = Condition(tuple(sorted(places | ({len(column.categories)} if missing else set()))))
        else:
            given[name] = _of_numbers([_numbers(one, column, key) for one in present], missing, column, key)
    return _by_place(given, schema)


def _by_place(given: Mapping[str, Condition], schema: Schema) -> tuple[tuple[int, ...], Conditions]:
    """Conditions by name as generators take them: the classes, and the rest by the place of the feature column."""
    places = {column.name: place for place, column in enumerate(schema.feature_columns)}
    classes = [condition.categories for name, condition in given.items() if name not in places]
    return (classes[0] if classes else ()), {places[name]: given[name] for name in given if name in places}


def _alternatives(value: Any) -> list[Any]:
    """The values and ranges of a condition, missing ones as None."""
    values = [
        one.tolist() if hasattr(one, "tolist") else one for one in (value if isinstance(value, list) else [value])
    ]
    return [None if isinstance(one, float) and math.isnan(one) else one for one in values]


def _places(value: Any, column: Column, key: str) -> Iterator[int]:
    """Places of the categories that a value means; of an ordinal column, also those of a range."""
    kind, ends = column.type, _ends(value)
    assert isinstance(kind, Categorical)
    text = kind.spelling(str(value), column)
    if text in column.categories or ends is None or not kind.is_ordered:
        allowed(key, text, column.categories)
        yield column.categories.index(text)
        return
    first, last = column.categories[0], column.categories[-1]
    words = [str(default if end is None else end) for end, default in zip(ends, (first, last), strict=True)]
    for word in words:
        allowed(key, word, column.categories)
    low, high = (column.categories.index(word) for word in words)
    if low > high:
        raise ParamsError(f"{key}: the range {value} ends before it begins. Exchange its ends.")
    yield from range(low, high + 1)


def _ends(value: Any) -> tuple[Any, Any] | None:
    """Both ends of a range, None where one is open; None for a single value."""
    if isinstance(value, tuple) and len(value) == 2:
        return value
    if isinstance(value, str) and _RANGE in value:
        low, _, high = value.partition(_RANGE)
        return low.strip() or None, high.strip() or None
    return None


def _numbers(value: Any, column: Column, key: str) -> tuple[float, float]:
    """Both ends of a value or a range in units of the column; infinite where one is open."""
    low, high = _ends(value) or (value, value)
    ends = _number(low, "lower", column, key), _number(high, "upper", column, key)
    if ends[0] > ends[1]:
        raise ParamsError(f"{key}: the range {value} ends before it begins. Exchange its ends.")
    return ends


def _number(value: Any, end: str, column: Column, key: str) -> float:
    if value is None:
        return -math.inf if end == "lower" else math.inf
    if isinstance(value, str) and column.number.are_numbers:
        try:
            value = float(value)
        except ValueError:
            raise ParamsError(
                f"{key} must be a number, a range like 30..40, or a list of these, got {value!r}"
            ) from None
    bound = column.number.bound(end, value)
    if isinstance(bound, str):
        raise ParamsError(f"{key} {bound}")
    return bound


def _of_numbers(ranges: Sequence[tuple[float, float]], missing: bool, column: Column, key: str) -> Condition:
    """Ranges in units of the column as intervals of its unit scale, ascending and apart."""
    intervals: list[tuple[float, float]] = []
    for low, high in sorted(_outside(ends, column) for ends in ranges):
        if intervals and low <= intervals[-1][1]:
            intervals[-1] = intervals[-1][0], max(high, intervals[-1][1])
        elif low <= high:
            intervals.append((low, high))
    if not intervals and not missing:
        raise ParamsError(f"{key}: the column has no such value. Give a value or a range that has one.")
    lower, upper = column.bounds
    units = [(unit_of(column, max(low, lower)), unit_of(column, min(high, upper))) for low, high in intervals]
    # Bins of whole numbers reach half a step over the bounds, so an interval that does has no end there.
    opened = [
        (-math.inf if low <= lower else start, math.inf if high >= upper else end)
        for (low, high), (start, end) in zip(intervals, units, strict=True)
    ]
    return Condition(intervals=tuple(opened), missing=missing)


def _outside(ends: tuple[float, float], column: Column) -> tuple[float, float]:
    """A range with all that is rounded into it: for whole numbers and decimals, half a step more on each side."""
    step = _step(column)
    if step is None:
        return ends
    low, high = (end / step for end in ends)
    half = 0.5 - _MARGIN - _DIGITS * (column.bounds[1] - column.bounds[0]) / step
    low = math.ceil(low - _MARGIN) if math.isfinite(low) else low
    high = math.floor(high + _MARGIN) if math.isfinite(high) else high
    return (low - half) * step, (high + half) * step if low <= high else -math.inf


def _step(column: Column) -> float | None:
    """The distance of two values of a column that is rounded."""
    return 1.0 if column.is_whole else None if column.decimals is None else 10.0**-column.decimals


def with_exact_ends(table: "DataFrame", where: Mapping[str, Any], schema: Schema) -> "DataFrame":
    """A drawn table whose numbers at the end of a range are that end, in spite of the last digits of a unit scale."""
    for name, value in where.items():
        column = schema.column(name)
        if column.is_categorical or _step(column) is not None:
            continue
        numbers = table[name].to_numpy(copy=True)
        given = [_numbers(one, column, name) for one in _alternatives(value) if one is not None]
        for end in {end for ends in given for end in ends if math.isfinite(end)}:
            numbers[np.abs(numbers - end) <= _SAME * (column.bounds[1] - column.bounds[0])] = end
        table[name] = numbers
    return table


def drawn_beside(saved: "SavedGenerator", schema: Schema, given: "DataFrame", seed: int) -> "DataFrame":
    """Rows that have the values of a frame in its columns, row by row; a missing cell stays missing.

    Args:
        saved: the generator.
        schema: of the table.
        given: some columns of the table. The values become part of the result, typed as the schema says.
        seed: public.

    Raises:
        ParamsError: there is no column, one is not in the schema, or the model makes no such row.
        DataError: a value breaks the schema's rule for its column.
    """
    from likeness.data.encoding.encoder import Encoder
    from likeness.data.source.files import read_frame

    if given.columns.empty:
        raise ParamsError("sample.where: the frame has no column. Give some columns of the schema.")
    for name in given.columns:
        allowed("sample.where", str(name), schema.names)
    columns = tuple(column for column in schema.columns if column.name in given.columns)
    part = replace(schema, columns=columns, task="none", label=None, image=None, dropped=())
    typed = read_frame(given, part, "where")
    different, rows = np.unique(np.stack([_cells(typed, column) for column in columns]), axis=1, return_inverse=True)
    encoder = Encoder(schema)
    x, labels = np.empty((len(typed), encoder.layout.width)), np.empty(len(typed), dtype=np.int64)
    for place, values in enumerate(different.T):
        alike = np.flatnonzero(rows.reshape(-1) == place)
        cells = {column.name: _of_cell(value, column) for column, value in zip(columns, values, strict=True)}
        stream = rng.public_seed(seed, f"sample.where.{place}")
        x[alike], labels[alike] = saved.draw(len(alike), stream, *_by_place(cells, schema))
    table = encoder.decode(x, labels)
    for name in typed.columns:
        table[name] = typed[name]  # in spite of the last digit
    return table.set_axis(given.index)


def _cells(typed: "DataFrame", column: Column) -> "NDArray[np.float64]":
    """A typed column as numbers: places of categories, or values; -inf for missing, which equals itself."""
    if column.is_categorical:
        codes = typed[column.name].cat.codes.to_numpy(np.float64)
        return np.where(codes < 0, -math.inf, codes)
    numbers = column.number.numbers(typed[column.name], column)
    return np.where(np.isnan(numbers), -math.inf, numbers)


def _of_cell(value: float, column: Column) -> Condition:
    """The condition that a cell of :func:`_cells` is."""
    missing = value == -math.inf
    if column.is_categorical:
        return Condition((len(column.categories) if missing else int(value),))
    return _of_numbers([] if missing else [(value, value)], bool(missing), column, f"sample.where.{column.name}")


def pairs(words: Sequence[str]) -> dict[str, Any]:
    """Read ``COLUMN=VALUE`` of a command line for :func:`conditions`. A column given twice may have either value.

    Raises:
        ParamsError: a word has another form.
    """
    where: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ParamsError(f"--where {word} must have the form COLUMN=VALUE")
        where[name] = [*where.get(name, []), text or None]
    return {name: values[0] if len(values) == 1 else values for name, values in where.items()}
