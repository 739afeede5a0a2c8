"""Cells of a source, as the public schema types them.

Messages name file, column and rule; never a value, a count or a place of a row. A cell's type and value depend on that
cell and on the schema only.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from likeness.core.errors import DataError
from likeness.data.booleans import spelled
from likeness.data.schema.column import Column
from likeness.data.schema.private_categories import unfit
from likeness.data.schema.schema import Schema
from likeness.data.source.date_cells import numbers_of_texts, typed_dates


def typed(raw: pd.DataFrame, schema: Schema, where: str) -> pd.DataFrame:
    """The columns of the schema, in its order and its types.

    Raises:
        DataError: a value breaks the schema's rule for its column.
    """
    return pd.DataFrame({column.name: typed_column(raw[column.name], column, where) for column in schema.columns})


def typed_column(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    """The same for one column. file: what messages call the source."""
    plain = isinstance(values.dtype, np.dtype) and not column.missing_values
    if plain and column.kind == "integer" and not column.nullable and values.dtype.kind in "iu":
        return values.astype("float64").clip(*column.bounds).astype("int64")
    if column.is_categorical and not column.open and isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
        return _typed_by_kind(values, column, file)
    if plain and column.kind in ("integer", "numeric") and (values.dtype == np.float64 or values.dtype.kind in "iu"):
        # Numbers need no detour over text, which gives the same value and takes ten times as long. (+ 0.0: text knows
        # no negative zero.)
        numbers = values.astype("float64") + 0.0
        missing = numbers.isna()
        _check_missing(missing, column, file)
        return _typed_numbers(numbers, missing, column, file)
    texts = texts_of(values)
    missing = texts.isna() | texts.isin(["", *column.missing_values])
    _check_missing(missing, column, file)
    if column.open:
        return texts.mask(unfit(texts), str(column.other)).mask(missing).astype("str")
    if column.is_categorical:
        return _typed_categories(texts, missing, column, file)
    if column.is_date:
        return _typed_dates(texts.mask(missing), column, file)
    return _typed_numbers(_numbers_of_texts(texts.mask(missing)), missing, column, file)


def _numbers_of_texts(texts: "pd.Series[str]") -> "pd.Series[float]":
    """The number nearest to each text, NaN where it is missing; all NaN where a text is not a number.

    Arrow casts each cell by itself. pandas chooses one type for a column, and reads +6e72 with another last digit.
    """
    cells = pa.array(texts, from_pandas=True)
    try:
        return pd.Series(cells.cast(pa.float64()).to_numpy(zero_copy_only=False), index=texts.index)
    except pa.ArrowInvalid:
        return pd.Series(np.nan, index=texts.index)


def _check_missing(missing: "pd.Series[bool]", column: Column, file: str) -> None:
    if missing.any() and not column.nullable:
        raise DataError(
            f"{file}: column '{column.name}' has a missing value, but is not nullable. "
            "Set nullable: true in the schema."
        )


def _typed_numbers(
    numbers: "pd.Series[float]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    if not np.isfinite(numbers[~missing]).all():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not a number, but its kind is {column.kind}. If it "
            "means missing, name it in missing_values. Decimals are written with a point, thousands without a mark."
        )
    if column.kind == "integer" and (numbers[~missing] % 1 != 0).any():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not whole, but its kind is integer. Or use numeric."
        )
    numbers = numbers.clip(*column.bounds) + 0.0  # one zero, whatever its sign
    if column.kind == "numeric":
        return numbers
    whole = numbers.astype("Float64").astype("Int64")
    return whole if column.nullable else whole.astype("int64")


def _typed_by_kind(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    """Type each different text once: there are few."""
    codes, distinct = pd.factorize(values)
    texts = texts_of(pd.Series(distinct))
    missing = texts.isin(["", *column.missing_values])
    _check_missing(pd.Series([*missing, bool((codes < 0).any())]), column, file)
    own = _typed_categories(texts, missing, column, file)
    known = own.cat.codes.to_numpy().astype(np.int64)
    places = np.append(known, -1)[codes]  # a missing cell has code -1: the last place
    return pd.Series(pd.Categorical.from_codes(places, dtype=_dtype(column)), index=values.index)


def _typed_categories(
    texts: "pd.Series[str]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    if column.kind == "boolean":
        texts = texts.map({text: spelled(text, column.categories) for text in texts.dropna().unique()})
    unknown = ~missing & ~texts.isin(column.categories)
    if unknown.any():
        if column.other is None:
            rule = f"{file}: column '{column.name}' has a value that is not among its public categories."
            raise DataError(f"{rule} {_TRUTH if column.kind == 'boolean' else _ADD}")
        texts = texts.mask(unknown, column.other)
    return texts.mask(missing).astype(_dtype(column))


_ADD = (
    "Add the category to the schema if it is publicly known, written as in the source (3 and 3.0 are two texts), or "
    "name a catch-all with other."
)
_TRUTH = (
    "A boolean is written true, yes, t, y or 1 and false, no, f, n or 0, in any case, or in its own two categories. "
    "Set missing_values if it is missing; a column of more than two values is categorical, integer or numeric."
)


def _dtype(column: Column) -> "pd.CategoricalDtype[Any]":
    return pd.CategoricalDtype(list(column.categories), ordered=column.kind == "ordinal")


def _typed_dates(texts: "pd.Series[str]", column: Column, file: str) -> "pd.Series[Any]":
    numbers = numbers_of_texts(texts, column)
    if np.isnan(numbers[texts.notna().to_numpy()]).any():
        written = f"like {column.format}" if column.format else "in ISO 8601"
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not a {column.kind} {written}. Set format in the "
            "schema to how dates are written there, or missing_values; a date with a time of day is a datetime."
        )
    return typed_dates(np.clip(numbers, *column.bounds), column)


def texts_of(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as stripped text; whole floats lose their '.0', which a null in an integer column of Parquet brings."""
    if pd.api.types.is_float_dtype(values.dtype):
        whole = values.notna() & (values % 1 == 0) & (values.abs() < 2**53)
        as_text = values.astype("object").where(~whole, values.where(whole, 0).astype("int64").astype("object"))
        return as_text.where(values.notna(), None).astype("str")
    return values.astype("str").str.strip()
