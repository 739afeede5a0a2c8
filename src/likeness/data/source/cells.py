"""Cells of a source, as the public schema types them.

Messages name file, column and rule; never a value, a count or a place of a row. A cell's type and value depend on that
cell and on the schema only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.text import code_points, fault_of, normal_text
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source.python_cells import python_texts, texts_or_missing
from likeness.data.source.row_digests import SourceDigest
from likeness.data.table_columns import PIXEL, TEXT, has_few_values, leading_pixels, matrix, with_columns, with_pixels

IN_FILE = "The first row must be a header with the columns that the schema and ingest.split name"


def check_names(present: Sequence[str], wanted: Iterable[str], where: str, rule: str) -> None:
    """Refuse a table that lacks wanted columns, or has two of one name. One error lists all of them.

    Without a header, the first line of a file is a row. So other names are counted, and not shown.

    Args:
        present: names of the table's columns.
        wanted: names that it must have, each once.
        where: name of the table in messages.
        rule: a sentence that says which columns the table must have; an end without a point.

    Raises:
        DataError: a wanted column is missing, or occurs twice.
    """
    wanted, counts = dict.fromkeys(wanted), Counter(present)
    missing = [name for name in wanted if not counts[name]]
    twice = [name for name in wanted if counts[name] > 1]
    faults = []
    if missing:
        named = ", ".join(f"{name}{code_points(name)}" for name in wanted)
        faults.append(f"{_columns(missing)} {'are' if missing[1:] else 'is'} missing. {rule}: {named}.")
        if others := sum(name not in wanted for name in present):
            faults.append(f"the schema does not name {others} of the table's columns.")
    if twice:
        faults.append(f"{_columns(twice)} {'occur' if twice[1:] else 'occurs'} twice. Give each column its own name.")
    if faults:
        raise DataError(f"{where}: {' Also: '.join(faults)}")


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if names[1:] else ''} " + ", ".join(f"'{name}'" for name in names)


_PLAIN = ("f8", *(f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)))

MOST_LETTERS = 100
"""Most characters of a category that is private; longer texts are ``other``."""


def type_table(raw: pd.DataFrame, schema: Schema, where: str, decimal: str = ".", exact: bool = False) -> pd.DataFrame:
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
    is_block = tuple(pixels[: len(schema.pixels)]) == schema.pixels
    for column in schema.columns[len(schema.pixels) if is_block else 0 :]:
        try:
            columns[column.name] = typed_column(raw[column.name], column, where, decimal, exact)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    if not schema.pixels:
        return pd.DataFrame(columns)
    # Of images as one block of bytes: what a pixel becomes is between 0 and 255 either way.
    values = matrix(raw, schema.pixels) if is_block else np.stack([columns.pop(name) for name in schema.pixels], axis=1)
    return with_pixels(values.astype(PIXEL, copy=False), schema.pixels, pd.DataFrame(columns, raw.index))


def typed_column(
    values: "pd.Series[Any]", column: Column, file: str, decimal: str = ".", exact: bool = False
) -> "pd.Series[Any]":
    """One column, as :func:`type_table`. Each different cell is read once, and becomes one typed cell for all its rows.

    That cell follows from its text, the schema and the mark of decimals alone. The other rows of a chunk decide only in
    which place of a list it stands, which nothing keeps. So no row changes another one, wherever chunks end.
    """
    kind, column = column.type, replace(column, other=None) if exact and not column.open else column
    is_plain = kind.numeric_source and isinstance(values.dtype, np.dtype) and values.dtype.str[1:] in _PLAIN
    codes = np.zeros(0, np.int64)
    if is_plain:
        # Numbers need no detour over text, which gives the same value and takes ten times as long. (+ 0.0: text knows
        # no negative zero.)
        numbers, texts = values.to_numpy("float64") + 0.0, pd.Series(dtype=TEXT)
        missing = np.isnan(numbers)
    else:
        codes, cells = _distinct_cells(values)
        texts = texts_of(pd.Series(cells))
        missing = (texts.isna() | texts.isin(["", *column.missing_values])).to_numpy()
        numbers = np.zeros(len(texts)) if column.open else kind.read(texts.mask(missing), column, decimal)
    missing = missing | kind.means_missing(texts, numbers, column, decimal)
    if not column.nullable and (missing.any() or (codes < 0).any()):
        raise refusal("missing", column, file)
    if column.open:
        cells = texts.mask(_invalid_texts(texts), str(column.other)).mask(missing).astype(TEXT)
        return pd.Series(cells.array.take(codes, allow_fill=True), values.index)
    if not (np.isfinite(numbers) | missing).all():
        raise refusal("unreadable", column, file)
    numbers = np.where(missing, np.nan, numbers)
    if not kind.is_categorical:
        numbers = _clip_numbers(numbers, column, file, exact)
    if is_plain:
        return pd.Series(column.to_typed(numbers).array, values.index)
    cells = column.to_typed(np.append(numbers, np.nan) if column.nullable else numbers).array
    return pd.Series(cells.take(codes), values.index)  # a missing cell has the last place


def _distinct_cells(values: "pd.Series[Any]") -> "tuple[NDArray[Any], Any]":
    """The code of each cell, -1 where it is missing, and the cell of each code; a code has a row at least."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, categories = values.array.codes, values.cat.categories
        used = np.bincount(codes + np.int64(1), minlength=len(categories) + 1)[1:] > 0
        return (codes, categories) if used.all() else (np.append(used.cumsum() - 1, -1)[codes], categories[used])
    if isinstance(values.dtype, pd.StringDtype) and not has_few_values(pa.array(values, from_pandas=True)):
        return np.arange(len(values)), values.array
    # Python's objects as texts first: to factorize, True and 1 and 1.0 are one.
    return pd.factorize(texts_of(values) if values.dtype == object else values)


def refusal(fault: str, column: Column, where: str) -> DataError:
    """The refusal of a column with a cell that breaks a rule.

    Args:
        fault: ``missing``, ``unreadable`` or ``not whole``.
        column: of the schema.
        where: name of the source.
    """
    reasons = {
        "missing": "has a missing value, but is not nullable. Set nullable: true in the schema.",
        "unreadable": f"has a value that is not {column.type.unreadable(column)}",
        "not whole": f"has a value that is not whole, but its kind is {column.kind}. Or use numeric.",
    }
    return DataError(f"{where}: column '{column.name}' {reasons[fault]}")


def _clip_numbers(numbers: NDArray[np.float64], column: Column, file: str, exact: bool) -> NDArray[np.float64]:
    """Numbers within the bounds; NaN for missing."""
    if column.is_integral and ((np.rint(numbers) != numbers) & ~np.isnan(numbers)).any():
        raise refusal("not whole", column, file)
    lower, upper = column.bounds
    if exact and ((numbers < lower) | (numbers > upper)).any():
        raise DataError(f"{file}: column '{column.name}' has a value beyond {column.range_text}. Correct it.")
    return np.clip(numbers, lower, upper) + 0.0  # one zero, whatever its sign


def _invalid_texts(texts: "pd.Series[str]") -> "pd.Series[bool]":
    """Tell which texts cannot be categories: too long, or with a control character or a line end inside.

    A released text goes into CSV files, YAML, pages and terminals, and they read such characters differently.
    """
    return texts.isin([text for text in texts.dropna().unique() if fault_of(text, MOST_LETTERS)])


def apply_released(table: pd.DataFrame, written: Schema, schema: Schema) -> pd.DataFrame:
    """Type columns of a table by their released categories and bounds. ``written`` is without these."""
    columns = {}
    for column in written.unbounded_columns:
        bounded = schema.column(column.name)
        numbers = np.clip(column.numbers(table[column.name]), *bounded.bounds)
        columns[column.name] = pd.Series(bounded.to_typed(numbers).array, table.index)
    for column in written.open_columns:
        categories = schema.column(column.name).categories
        texts = table[column.name]
        texts = texts.where(texts.isna() | texts.isin(categories), str(column.other))
        columns[column.name] = texts.astype(schema.column(column.name).to_typed([]).dtype)
    return with_columns(table, columns)


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
        names: of all columns.
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
    """Refuse wanted columns that have no texts, which are None here. One error names all of them."""
    faults = [
        f"{where}: column '{name}' holds cells that are not single values: lists, records, objects, or bytes that are "
        f"not UTF-8. {remedy}, or give the column kind drop."
        for name in wanted
        if columns[name] is None
    ]
    if faults:
        raise DataError("\n".join(faults))
