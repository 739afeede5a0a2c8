"""Cells of a source, as the public schema types them.

Messages name file, column and rule; never a value, a count or a place of a row. A cell's type and value depend on that
cell and on the schema only.
"""

from typing import Any

import numpy as np
import pandas as pd

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import Categorical
from likeness.data.schema.private_categories import unfit
from likeness.data.schema.schema import Schema


def typed(raw: pd.DataFrame, schema: Schema, where: str) -> pd.DataFrame:
    """The columns of the schema, in its order and its types.

    Raises:
        DataError: values break the schema's rules for their columns; all such columns.
    """
    columns: dict[str, pd.Series[Any]] = {}
    faults = []
    for column in schema.columns:
        try:
            columns[column.name] = typed_column(raw[column.name], column, where)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    return pd.DataFrame(columns)


def typed_column(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    """The same for one column. file: what messages call the source."""
    if column.is_categorical and not column.open and isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
        return _typed_by_kind(values, column, file)
    plain = isinstance(values.dtype, np.dtype) and not column.missing_values
    numbers = not column.is_categorical and column.number.are_numbers
    if plain and numbers and (values.dtype == np.float64 or values.dtype.kind in "iu"):
        # Numbers need no detour over text, which gives the same value and takes ten times as long. (+ 0.0: text knows
        # no negative zero.)
        return _typed_numbers(values.astype("float64") + 0.0, values.isna(), column, file)
    texts = texts_of(values)
    missing = texts.isna() | texts.isin(["", *column.missing_values])
    _check_missing(missing, column, file)
    if column.open:
        return texts.mask(unfit(texts), str(column.other)).mask(missing).astype("str")
    if column.is_categorical:
        return _typed_categories(texts, missing, column, file)
    read = pd.Series(column.number.read(texts.mask(missing), column), index=values.index)
    return _typed_numbers(read, missing, column, file)


def _check_missing(missing: "pd.Series[bool]", column: Column, file: str) -> None:
    if missing.any() and not column.nullable:
        raise DataError(
            f"{file}: column '{column.name}' has a missing value, but is not nullable. "
            "Set nullable: true in the schema."
        )


def _typed_numbers(
    numbers: "pd.Series[float]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    _check_missing(missing, column, file)
    if not np.isfinite(numbers[~missing]).all():
        raise DataError(f"{file}: column '{column.name}' has a value that is not {column.number.unreadable(column)}")
    if column.is_whole and (numbers[~missing] % 1 != 0).any():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not whole, but its kind is {column.kind}. Or use "
            "numeric."
        )
    lower, upper = column.bounds
    clipped = np.clip(numbers.to_numpy(np.float64), lower, upper) + 0.0  # one zero, whatever its sign
    return column.number.typed(np.asarray(clipped, np.float64), column).set_axis(numbers.index)


def _typed_by_kind(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    """Type each different text once: there are few."""
    codes, distinct = pd.factorize(values)
    texts = texts_of(pd.Series(distinct))
    missing = texts.isin(["", *column.missing_values])
    _check_missing(pd.Series([*missing, bool((codes < 0).any())]), column, file)
    categories = _typed_categories(texts, missing, column, file)
    places = np.append(categories.cat.codes.to_numpy().astype(np.int64), -1)[
        codes
    ]  # a missing cell has code -1: the last place
    return pd.Series(pd.Categorical.from_codes(places, dtype=category_type(column)), index=values.index)


def _typed_categories(
    texts: "pd.Series[str]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    kind = column.type
    assert isinstance(kind, Categorical)
    texts = texts.map({text: kind.spelling(text, column) for text in texts.dropna().unique()})
    unknown = ~missing & ~texts.isin(column.categories)
    if unknown.any():
        if column.other is None:
            rule = f"{file}: column '{column.name}' has a value that is not among its public categories."
            raise DataError(f"{rule} {kind.unknown}")
        texts = texts.mask(unknown, column.other)
    return texts.mask(missing).astype(category_type(column))


def category_type(column: Column) -> "pd.CategoricalDtype[Any]":
    """The type of a categorical column."""
    return pd.CategoricalDtype(list(column.categories), ordered=column.type.is_ordered)


def texts_of(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as stripped text; whole floats lose their '.0', which a null in an integer column of Parquet brings."""
    if pd.api.types.is_float_dtype(values.dtype):
        whole = values.notna() & (values % 1 == 0) & (values.abs() < 2**53)
        as_text = values.astype("object").where(~whole, values.where(whole, 0).astype("int64").astype("object"))
        return as_text.where(values.notna(), None).astype("str")
    return values.astype("str").str.strip()
