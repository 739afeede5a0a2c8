"""Dtypes of frames: their words, a typed table in them, and the way back.

A value is written by its cell, the schema and the dtype, all public after the release. A dtype never comes from values
here: ``frame.dtypes`` says it. The categories of a category dtype are those of the schema and not those of the frame.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from likeness.data.schema.column import Column
from likeness.data.schema.dtypes import Dtype, parse_dtype
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import typed_column
from likeness.data.source.files import raw_cells
from likeness.data.table_columns import OLD_PANDAS, with_columns

_SIBLINGS = {
    "bool": "boolean",
    **{f"{u}int{bits}": f"{u.upper()}Int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)},
}


def to_dtypes(table: pd.DataFrame, schema: Schema, dtypes: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A typed table in the dtypes of a frame, for people.

    A column stays typed if nothing says a dtype, or the dtype cannot hold its kind, all its categories and its bounds.
    An integer or bool column with a missing value takes pandas' dtype of that width that has one: ``Int16`` for
    ``int16``. Words of ``dtypes`` go before those of the schema.
    """
    parts = _dtype_parts(schema, dtypes)
    written = {name: _to_dtype(table[name], schema.column(name), dtype) for name, dtype in parts.items()}
    return with_columns(table, written)


def source_texts(values: "pd.Series[Any]", column: Column) -> "pd.Series[Any]":
    """A typed column of dates or times as texts in the column's format."""
    dtype = parse_dtype("str")
    assert dtype is not None
    return _to_dtype(values, column, dtype)


def typed_again(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The typed form of a table in the dtypes of its schema, also as Parquet gives them back.

    Raises:
        DataError: a value is none of its column.
    """
    parts = _dtype_parts(schema)
    return with_columns(table, {name: _read(table[name], schema.column(name), dtype) for name, dtype in parts.items()})


def _dtype_parts(schema: Schema, dtypes: Mapping[str, str] | None = None) -> dict[str, Dtype]:
    """The parts of each column's dtype, where one is said that can hold the column."""
    parts = {}
    for column in schema.columns:
        text = (dtypes or {}).get(column.name, column.dtype)
        dtype = parse_dtype(text) if text is not None and column.type.holds(text, column.format) else None
        texts = dtype is not None and dtype.family == "text" and not dtype.container
        if (
            dtype is None
            or column.type.unsupported_values(dtype, column)
            or (column.ordered and texts and column.dtype is None)
        ):
            continue  # texts of a frame give way to an order
        parts[column.name] = replace(dtype, ordered=True) if column.ordered else dtype
    return parts


def _to_dtype(values: "pd.Series[Any]", column: Column, dtype: Dtype) -> "pd.Series[Any]":
    """A typed column in a dtype: each different value once, and its place for each row."""
    if not dtype.container and values.dtype == _pandas_dtype(dtype.element):
        return values
    codes, elements = _elements(column.numbers(values), column, dtype)
    ranks: dict[Any, int] = {}  # two values may be one element: 1 and 1.0
    ranked = [ranks.setdefault(element, len(ranks)) for element in elements]
    cells: Any = _take_elements(list(ranks), np.array([*ranked, -1], np.int64)[codes], dtype)
    written: pd.Series[Any] = pd.Series(cells, index=values.index, dtype=cells.dtype)  # else objects become texts
    return written


def _take_elements(elements: list[Any], codes: NDArray[np.int64], dtype: Dtype) -> Any:
    """An array of elements by their codes, -1 for missing."""
    if dtype.container == "category":
        index = pd.Index(_array(elements, dtype.element), dtype=_pandas_dtype(dtype.element))
        return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(index, dtype.ordered))
    missing = codes < 0
    if dtype.container == "dictionary":
        indices = pa.array(np.maximum(codes, 0), mask=missing).cast(pa.type_for_alias(dtype.index))
        values = pa.array(elements, _pandas_dtype(dtype.element).pyarrow_dtype)
        return pd.arrays.ArrowExtensionArray(pa.DictionaryArray.from_arrays(indices, values, ordered=dtype.ordered))
    element = _SIBLINGS.get(dtype.element, dtype.element) if missing.any() else dtype.element
    return _array(elements, element).take(codes, allow_fill=True)


def _array(elements: list[Any], element: str) -> Any:
    dtype = _pandas_dtype(element)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(pa.array(elements, dtype.pyarrow_dtype))
    return pd.array(np.array(elements, dtype) if element.startswith("timedelta") else elements, dtype=dtype)


def _pandas_dtype(element: str) -> Any:
    """The dtype of a word that is no container."""
    if element.startswith("str"):
        name, _, storage = element.rstrip("]").partition("[")
        if name == "string":
            return pd.StringDtype(storage or None)
        return np.dtype("object") if OLD_PANDAS else pd.StringDtype(storage or None, na_value=np.nan)
    if match := re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)\[pyarrow\]", element):
        return pd.ArrowDtype(getattr(pa, match[1])(int(match[2]), int(match[3])))
    if element == "utf8[pyarrow]":
        return pd.ArrowDtype(pa.string())
    return pd.api.types.pandas_dtype(element)


def _elements(numbers: NDArray[np.float64], column: Column, dtype: Dtype) -> tuple[NDArray[np.int64], list[Any]]:
    """The code of each number among the elements, -1 for missing, and the elements: of categories all of them."""
    if column.is_categorical:
        codes, distinct = np.nan_to_num(numbers, nan=-1).astype(np.int64), np.arange(float(len(column.categories)))
    else:
        codes, distinct = pd.factorize(numbers, sort=bool(dtype.container))
    return codes, [column.type.value(number, dtype, column) for number in distinct.tolist()]


def _read(values: "pd.Series[Any]", column: Column, dtype: Dtype) -> "pd.Series[Any]":
    """A typed column from its form in a dtype."""
    if not column.is_categorical:
        cells = raw_cells(values)
        assert cells is not None
        return typed_column(cells, column, "the synthetic table")
    _, elements = _elements(np.empty(0), column, dtype)
    positions = dict(zip(_array(elements, dtype.element), range(len(elements)), strict=True))
    codes, distinct = pd.factorize(values)
    ranks = np.array([*(positions.get(value, np.nan) for value in distinct), np.nan])
    return column.to_typed(ranks[codes]).set_axis(values.index)
