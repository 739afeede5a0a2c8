"""Sources: a CSV or Parquet file, or an .npz file of images, typed against the public schema.

Messages name file, column and rule; never a value, a count or a place of a row.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likeness.data.booleans import spelled
from likeness.data.column import Column
from likeness.data.date_values import numbers_of_texts, typed_dates
from likeness.data.image_files import read_images
from likeness.data.people import people_of
from likeness.data.schema import Schema
from likeness.errors import DataError


def read_source(
    path: Path, schema: Schema, split_column: str | None = None
) -> tuple[pd.DataFrame, "pd.Series[str] | None"]:
    """Read and type a source: the columns of the schema in its order, and the split column as text if one is named.

    Numbers beyond the public bounds are clipped; unknown categories go to the declared catch-all.

    Args:
        path: .csv, .csv.gz or .parquet; other columns of the file are left out. Images may also come as .npz, see
            :func:`likeness.data.image_files.read_images`.

    Raises:
        DataError: a column is missing, or a value breaks the schema's rule for its column.
    """
    table, split, _ = read_people(path, schema, split_column)
    return table, split


def read_people(
    path: Path, schema: Schema, split_column: str | None = None, person_column: str | None = None
) -> tuple[pd.DataFrame, "pd.Series[str] | None", "pd.Series[str] | None"]:
    """The same, and whose row each is, by a column that names people if there is one.

    Raises:
        DataError: also where a row names nobody.
    """
    others = [name for name in (split_column, person_column) if name is not None]
    wanted = dict.fromkeys([*schema.names, *others])
    if path.suffix == ".npz":
        if person_column is not None:
            raise DataError(f"{path.name}: an .npz file says of no image whose it is. Set ingest.unit: null.")
        raw = read_images(path, schema, split_column)
    else:
        raw = _read_raw(path, list(wanted))
    people = None if person_column is None else people_of(raw[person_column], path.name)
    return typed(raw, schema, path.name), None if split_column is None else texts_of(raw[split_column]), people


def read_frame(df: pd.DataFrame, schema: Schema, where: str = "the DataFrame") -> pd.DataFrame:
    """Type a table that is in memory by the same rules as a Parquet file of it.

    Args:
        df: other columns than the schema's are left out, and so is the index. where: what messages call it.

    Raises:
        DataError: a column is missing, or a value breaks the schema's rule for its column.
    """
    return typed(_frame_cells(df, schema.names, where), schema, where)


def read_frame_people(
    df: pd.DataFrame, schema: Schema, person_column: str, where: str = "the DataFrame"
) -> tuple[pd.DataFrame, "pd.Series[str]"]:
    """The same, and whose row each is.

    Raises:
        DataError: also where a row names nobody.
    """
    raw = _frame_cells(df, [*schema.names, person_column], where)
    return typed(raw, schema, where), people_of(raw[person_column], where)


def _frame_cells(df: pd.DataFrame, names: Sequence[str], where: str) -> pd.DataFrame:
    if not isinstance(df, pd.DataFrame):
        raise DataError(f"{where}: must be a pandas DataFrame, got {type(df).__name__}.")
    chosen = _chosen(df.set_axis([str(name) for name in df.columns], axis="columns"), names, where)
    columns = {}
    for name in names:
        cells = _arrow(chosen[name])
        if cells is None:
            raise DataError(f"{where}: column '{name}' mixes values of several types. Give all of them one type.")
        columns[name] = cells
    raw = _raw(pa.table(columns), names)
    if raw is None:
        raise DataError(f"{where}: holds bytes that are not UTF-8 text. Decode them first.")
    return raw


def cells_of(names: Sequence[str], values: Sequence[Sequence[Any]], wanted: Sequence[str], where: str) -> pd.DataFrame:
    """Wanted columns of what a database's driver gave, as raw cells like those of a Parquet file.

    Args:
        names: of all columns. values: of each column, Python's own. where: what messages call the source.

    Raises:
        DataError: a column is missing, stands there twice, or mixes types.
    """
    columns = {}
    for name in wanted:
        if names.count(name) != 1:
            fault = "is given twice" if name in names else "is missing"
            raise DataError(f"{where}: column '{name}' {fault}. ingest.query must give: {', '.join(wanted)}.")
        cells = _arrow(values[names.index(name)])
        if cells is None:
            raise DataError(f"{where}: column '{name}' mixes values of several types. CAST it to one in ingest.query.")
        columns[name] = cells
    raw = _raw(pa.table(columns), wanted)
    if raw is None:
        raise DataError(f"{where}: holds bytes that are not UTF-8 text. Decode them in ingest.query.")
    return raw


def typed(raw: pd.DataFrame, schema: Schema, where: str) -> pd.DataFrame:
    """The columns of the schema, in its order and its types.

    Raises:
        DataError: a value breaks the schema's rule for its column.
    """
    return pd.DataFrame({column.name: _typed(raw[column.name], column, where) for column in schema.columns})


def _read_raw(path: Path, wanted: Sequence[str]) -> pd.DataFrame:
    """Read the wanted columns; a CSV as text, so that no guess of a type can change a value."""
    if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise DataError(f"{path.name}: not a format that is read. Give a .csv, .csv.gz, .parquet or .npz file.")
    if not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the source in params.yaml, ingest.source.")
    raw = _read_parquet(path, wanted) if path.suffix == ".parquet" else _read_csv(path)
    if raw is None:
        # Raised here and not in an except block: the library's error, which may quote a row, must not hang on to it.
        raise DataError(
            f"{path.name}: cannot be read as a table. Check that it is complete, in UTF-8 (CSV), and that no row has "
            "more cells than the header."
        )
    return _chosen(raw, wanted, path.name)


def _chosen(raw: pd.DataFrame, wanted: Sequence[str], where: str) -> pd.DataFrame:
    present = [str(name) for name in raw.columns]
    for name in wanted:
        if present.count(name) > 1:
            raise DataError(f"{where}: column '{name}' stands twice in the header. Keep one.")
        if name not in present:
            # The file's own header is not told: where there is none, its first row stands in its place.
            raise DataError(
                f"{where}: column '{name}' is missing. The first row must be a header with the columns that the "
                f"schema and ingest.split name: {', '.join(wanted)}."
            )
    return raw[list(wanted)]


def _read_parquet(path: Path, wanted: Sequence[str]) -> pd.DataFrame | None:
    try:
        return _cells(pq.read_table(path), wanted)
    except (pa.ArrowException, ValueError, OSError):
        return None


def _raw(table: pa.Table, wanted: Sequence[str]) -> pd.DataFrame | None:
    try:
        return _cells(table, wanted)
    except (pa.ArrowException, ValueError):
        return None


def _cells(table: pa.Table, wanted: Sequence[str]) -> pd.DataFrame:
    for place, field in enumerate(table.schema):
        if field.name in wanted:
            table.column(place).validate(full=True)  # a damaged file can hold text that is not UTF-8
        # Cell by cell: pandas would choose one format for all from what the others hold.
        if pa.types.is_temporal(field.type):
            cells = table.column(place).cast(pa.int64() if pa.types.is_duration(field.type) else pa.string())
            table = table.set_column(place, field.name, cells)
        elif field.name in wanted and (pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)):
            # Text in UTF-8, or refused here.
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    return frame


def _arrow(values: "pd.Series[Any] | Sequence[Any]") -> pa.Array | None:
    try:
        return pa.Array.from_pandas(values) if isinstance(values, pd.Series) else pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _read_csv(path: Path) -> pd.DataFrame | None:
    """All cells as text. The header is read as a row: else pandas renames doubles and lets a long row pass."""
    try:
        cells = pd.read_csv(path, header=None, dtype="str", na_filter=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, ValueError, OSError, EOFError, zlib.error):
        return None
    header = cells.iloc[0].astype("object").str.strip().tolist()
    return cells.iloc[1:].set_axis(header, axis="columns").reset_index(drop=True)


def _typed(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    if column.kind == "integer" and not column.nullable and values.dtype.kind in "iu" and not column.missing_values:
        # Whole numbers without a gap need no detour over text, which takes a minute for the pixels of MNIST.
        return values.astype("float64").clip(*column.bounds).astype("int64")
    texts = texts_of(values)
    missing = texts.isna() | texts.isin(["", *column.missing_values])
    if missing.any() and not column.nullable:
        raise DataError(
            f"{file}: column '{column.name}' has a missing value, but is not nullable. "
            "Set nullable: true in the schema."
        )
    if column.is_categorical:
        return _typed_categories(texts, missing, column, file)
    if column.is_date:
        return _typed_dates(texts.mask(missing), column, file)
    numbers = pd.to_numeric(texts.where(~missing), errors="coerce").astype("float64")
    if not np.isfinite(numbers[~missing]).all():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not a number, but its kind is {column.kind}."
        )
    if column.kind == "integer" and (numbers[~missing] % 1 != 0).any():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not whole, but its kind is integer. Or use numeric."
        )
    numbers = numbers.clip(*column.bounds)
    if column.kind == "numeric":
        return numbers
    whole = numbers.astype("Float64").astype("Int64")
    return whole if column.nullable else whole.astype("int64")


def _typed_categories(
    texts: "pd.Series[str]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    dtype = pd.CategoricalDtype(list(column.categories), ordered=column.kind == "ordinal")
    if column.kind == "boolean":
        texts = texts.map({text: spelled(text, column.categories) for text in texts.dropna().unique()})
    unknown = ~missing & ~texts.isin(column.categories)
    if unknown.any():
        if column.other is None:
            raise DataError(
                f"{file}: column '{column.name}' has a value that is not among its public categories. Add the category "
                "to the schema if it is publicly known, or name a catch-all with other."
            )
        texts = texts.mask(unknown, column.other)
    return texts.mask(missing).astype(dtype)


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
