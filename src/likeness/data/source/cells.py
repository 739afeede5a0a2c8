"""Cells of a source, as the public schema types them.

Messages name file, column and rule; never a value, a count or a place of a row. A cell's type and value depend on that
cell and on the schema only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from likeness.core.errors import DataError
from likeness.core.text import normal_text
from likeness.data.pixels import PIXEL, leading_pixels, matrix, with_pixels
from likeness.data.schema.categories import category_type, unfit
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import Categorical, whole_text
from likeness.data.schema.schema import Schema
from likeness.data.source.names import check_names
from likeness.data.source.opening import SWAPPED_MARKS
from likeness.data.source.python_cells import TEXT, python_texts, texts_or_missing
from likeness.data.source.row_digests import SourceDigest


def typed(raw: pd.DataFrame, schema: Schema, where: str, decimal: str = ".", exact: bool = False) -> pd.DataFrame:
    """The columns of the schema, in its order and its types.

    Args:
        raw: raw cells.
        schema: public schema.
        where: name of the source in messages.
        decimal: mark of decimals in texts.
        exact: refuse a value instead of clipping it to the bounds, or taking it for the category ``other``.

    Raises:
        DataError: values break the schema's rules for their columns; all such columns.
    """
    columns: dict[str, pd.Series[Any]] = {}
    faults = []
    pixels = leading_pixels(raw) if schema.pixels else []
    given = tuple(pixels[: len(schema.pixels)]) == schema.pixels
    for column in schema.columns[len(schema.pixels) if given else 0 :]:
        try:
            columns[column.name] = typed_column(raw[column.name], column, where, decimal, exact)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    if not schema.pixels:
        return pd.DataFrame(columns)
    # Of images as one block of bytes: what a pixel becomes is between 0 and 255 either way.
    values = matrix(raw, schema.pixels) if given else np.stack([columns.pop(name) for name in schema.pixels], axis=1)
    return with_pixels(values.astype(PIXEL, copy=False), schema.pixels, pd.DataFrame(columns, raw.index))


def typed_column(
    values: "pd.Series[Any]", column: Column, file: str, decimal: str = ".", exact: bool = False
) -> "pd.Series[Any]":
    """One column, as :func:`typed`."""
    if exact and column.is_categorical:
        column = replace(column, other=None)
    if column.is_categorical and not column.open and isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
        return _typed_by_kind(values, column, file, decimal)
    plain = isinstance(values.dtype, np.dtype) and (values.dtype == np.float64 or values.dtype.kind in "iu")
    codes = [] if column.is_categorical else column.number.missing_numbers(column, decimal)
    if plain and not column.is_categorical and column.number.are_numbers:
        # Numbers need no detour over text, which gives the same value and takes ten times as long. (+ 0.0: text knows
        # no negative zero.)
        numbers = values.astype("float64") + 0.0
        return _typed_numbers(numbers, numbers.isna() | numbers.isin(codes), column, file, exact)
    texts = texts_of(values)
    missing = _missing(texts, column, decimal)
    _check_missing(missing, column, file)
    if column.open:
        return texts.mask(unfit(texts), str(column.other)).mask(missing).astype(TEXT)
    if column.is_categorical:
        return _typed_categories(texts, missing, column, file)
    texts = texts.mask(missing)
    if decimal == "," and column.number.are_numbers:
        texts = texts.str.translate(SWAPPED_MARKS)
    read = pd.Series(column.number.read(texts, column), index=values.index)
    return _typed_numbers(read, missing | read.isin(codes), column, file, exact)


def _missing(texts: "pd.Series[str]", column: Column, decimal: str) -> "pd.Series[bool]":
    """Which texts are missing. The code -9 is also -9.0, or -9,0 under a decimal comma, unless that is a category."""
    missing = texts.isna() | texts.isin(["", *column.missing_values])
    if column.is_categorical and column.missing_values:
        codes = {whole_text(word, mark) for word in column.missing_values for mark in (".", decimal)}
        alike = {text for text in texts.dropna().unique() if whole_text(text, decimal) in codes}
        missing |= texts.isin(alike - set(column.categories))
    return missing


def _check_missing(missing: "pd.Series[bool]", column: Column, file: str) -> None:
    if missing.any() and not column.nullable:
        raise DataError(
            f"{file}: column '{column.name}' has a missing value, but is not nullable. "
            "Set nullable: true in the schema."
        )


def _typed_numbers(
    numbers: "pd.Series[float]", missing: "pd.Series[bool]", column: Column, file: str, exact: bool
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
    numbers = numbers.mask(missing)
    if exact and ((numbers < lower) | (numbers > upper)).any():
        raise DataError(f"{file}: column '{column.name}' has a value beyond {column.range_text}. Correct it.")
    clipped = np.clip(numbers.to_numpy(np.float64), lower, upper) + 0.0  # one zero, whatever its sign
    return column.number.typed(np.asarray(clipped, np.float64), column).set_axis(numbers.index)


def _typed_by_kind(values: "pd.Series[Any]", column: Column, file: str, decimal: str) -> "pd.Series[Any]":
    """Type each different text once: there are few."""
    codes, distinct = pd.factorize(values)
    texts = texts_of(pd.Series(distinct))
    missing = _missing(texts, column, decimal)
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


def texts_of(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as texts in their normal form. Whole floats lose '.0', which a null in a column of integers brings."""
    if pd.api.types.is_float_dtype(values.dtype):
        wide = values.astype("float64")
        whole = wide.notna() & (wide % 1 == 0) & (wide.abs() < 2**53)
        # The shortest text that the type reads back: 0.1 of 32 bits is 0.1.
        shown = wide.astype("object") if values.dtype == np.float64 else values.to_numpy().astype(str)
        as_text = pd.Series(shown, values.index, dtype="object")
        as_text = as_text.where(~whole, wide.where(whole, 0).astype("int64").astype("object"))
        return as_text.where(wide.notna(), None).astype(TEXT)
    texts = values.astype(TEXT).str.strip()
    if pc.all(pc.string_is_ascii(pa.array(texts, pa.large_string(), from_pandas=True))).as_py() is False:
        texts = texts.map({text: normal_text(text) for text in texts.dropna().unique()}).astype(TEXT)
    return texts


def cells_of(
    names: Sequence[str],
    values: Sequence[Sequence[Any]],
    wanted: Sequence[str],
    where: str,
    source: SourceDigest | None = None,
    key: str = "ingest.query",
) -> pd.DataFrame:
    """Wanted columns of a database's answer as texts, each cell by itself.

    Args:
        names: names of all columns.
        values: cells of each column, Python's objects.
        wanted: names of the wanted columns.
        where: name of the source in messages.
        source: digest that takes all columns.
        key: of params.yaml where the query stands.

    Raises:
        DataError: a column is missing, occurs twice, or has a cell without a text.
    """
    columns = {}
    check_names(names, wanted, where, f"{key} must give")
    for name, cells in zip(names, values, strict=True):
        if source is not None or name in wanted:
            columns[name] = python_texts(cells)
    if source is not None:
        texts = {
            name: texts_or_missing(cells) if columns[name] is None else columns[name]
            for name, cells in zip(names, values, strict=True)
        }
        source.add_frame(pd.DataFrame(texts))
    check_texts(columns, wanted, where, f"CAST them in {key}")
    return pd.DataFrame({name: columns[name] for name in wanted})


def check_texts(columns: Mapping[str, Any], wanted: Sequence[str], where: str, remedy: str) -> None:
    """Refuse wanted columns that have no texts, which are None here.

    Raises:
        DataError: naming all of them.
    """
    faults = [
        f"{where}: column '{name}' holds cells that are not single values: lists, records, objects, or bytes that are "
        f"not UTF-8. {remedy}, or give the column kind drop."
        for name in wanted
        if columns[name] is None
    ]
    if faults:
        raise DataError("\n".join(faults))
