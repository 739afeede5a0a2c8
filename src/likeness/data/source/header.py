"""Header of a table, and a guess of each column's kind. Nothing else of the rows leaves this module.

A Parquet file tells types, and no row of it is read. A CSV or Excel file has only its first rows to guess from: each
kind is then a word that depends on rows, which is why a draft marks it, and why a person has to confirm it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pandas as pd
import pyarrow as pa

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import SourcePath, ending
from likeness.core.text import normal_text
from likeness.data.schema.dtypes import NUMBER
from likeness.data.schema.kinds import KINDS, SWAPPED_MARKS, Categorical, Datetime, Numeric, guess
from likeness.data.source.csv_files import csv_chunks, separator_of
from likeness.data.source.databases import Database
from likeness.data.source.excel_files import excel_chunks
from likeness.data.source.opening import FORMATS, is_excel, is_text
from likeness.data.source.parquet_files import parquet_dtypes, parquet_fields

_PLAIN = FileFormat()
_ROWS = 1000
# How CSV files of such columns are written.
_TRUTHS = {"bool": {"False", "True"}, "int64": {"0", "1"}, "float64": {"0.0", "1.0"}}
_TYPES = {
    r"(u?(tiny|small|big|huge)?int(eger)?\d*)$": pa.int64(),
    r"numeric|decimal|float|double|real": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("s"),
    "date": pa.date32(),
    "time": pa.time64("us"),
}
"""Types of Arrow by words of PostgreSQL and DuckDB."""
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", ".", "unknown", "missing"}


def header_of(source: SourcePath | Database, layout: FileFormat = _PLAIN) -> list[str]:
    """Names of the columns of a file, a folder or a query, without reading a row.

    Raises:
        DataError: there is no such file, it is no table, or the database refuses.
    """
    if isinstance(source, Database):
        return source.columns()
    if is_parquet(source):
        return [*types_of(source)]
    return [str(name) for name in next(_chunks(source, layout, 0)).columns]


def guesses_of(source: SourcePath | Database, layout: FileFormat = _PLAIN) -> tuple[dict[str, str], dict[str, str]]:
    """A guess of each column's kind, one of the kinds of a schema, and the word of its dtype where one is said.

    pandas says a dtype for the empty table of a Parquet file. Of a CSV or Excel file the first rows say true and false.
    Of a database types say kinds, and no row is read, but for SQLite, whose file is read here anyway.

    Raises:
        DataError: there is no such file, it is no table, or its first line does not look like a header: a name is
            empty, stands twice, is a number or a date, or stands among its own values. Or a query gives a name twice.
    """
    if not isinstance(source, Database) and is_parquet(source):
        _check_header([field.name for field in parquet_fields(source)], source.name, are_public=True)
        return {name: _kind_of_type(kind) for name, kind in types_of(source).items()}, parquet_dtypes(source)
    if isinstance(source, Database):
        names = source.columns()
        if len(set(names)) < len(names):
            raise DataError(f"{source.name}: {source.key} gives a name twice. Rename columns in it with AS.")
        if source.dialect != "sqlite":  # whose columns may hold anything
            return {name: _kind_of_word(word) for name, (_, word) in source.types().items()}, {}
        rows = source.read_first_rows(_ROWS)
        texts = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
        return {name: _kind_of_cells([row[index] for row in texts]) for index, name in enumerate(names)}, {}
    chunk = next(_chunks(source, layout, _ROWS))
    names = [str(name) for name in chunk.columns]
    columns = [chunk.iloc[:, index].fillna("").str.strip().tolist() for index in range(chunk.shape[1])]
    if any(name in column for name, column in zip(names, columns, strict=True)):
        _refuse_header(source.name, "a name stands among the values below it")
    _check_header(names, source.name, are_public=False)
    kinds = dict(zip(names, map(_kind_of_cells, columns), strict=True))
    if layout.decimal == ",":
        swapped = (_kind_of_cells([cell.translate(SWAPPED_MARKS) for cell in column]) for column in columns)
        kinds |= {name: kind for name, kind in zip(names, swapped, strict=True) if kind == Numeric.name}
    present = {name: _present(column) for name, column in zip(names, columns, strict=True)}
    return kinds, {
        name: dtype for name, cells in present.items() for dtype, forms in _TRUTHS.items() if cells and cells <= forms
    }


def kinds_of_frame(frame: "pd.DataFrame") -> dict[str, str]:
    """A guess of each column's kind from its dtype. No cell is read: the guess comes from the frame without rows.

    Raises:
        DataError: the frame's names do not look like a header.
    """
    empty = frame.iloc[:0]
    texts = [name for name in empty.columns if isinstance(name, str)]  # a number is pandas' own name, and of no row
    _check_header(texts, "the DataFrame", are_public=False)
    names = [normal_text(str(name)) for name in empty.columns]
    _check_header(names, "the DataFrame", are_public=True)
    return {name: _kind_of_series(empty.iloc[:, index]) for index, name in enumerate(names)}


def _check_header(names: Sequence[str], where: str, are_public: bool) -> None:
    """Names go into a public file: a first line that may be a row is refused, and not quoted.

    ``are_public``: whether the format keeps names apart from rows.
    """
    if not all(names):
        _refuse_header(where, "a column has no name")
    if not are_public and any(NUMBER.fullmatch(name) or Datetime().number(name) is not None for name in names):
        _refuse_header(where, "a name is a number or a date")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        numbers = [str(index) for index, name in enumerate(names, start=1) if name == twice]
        raise DataError(
            f"{where}: columns {' and '.join(numbers)} of its header have one name. Rename them, so that each "
            "column has its own name. Nothing was written."
        )


def _refuse_header(where: str, fault: str) -> NoReturn:
    raise DataError(
        f"{where}: its first line does not look like a header: {fault}. Names go into a public file, so nothing "
        "was written. Give each column a name in the first line."
    )


def layout_of(source: SourcePath | Database, layout: FileFormat) -> FileFormat:
    """The layout with the separator that the first line of a CSV shows, where it is no comma.

    Raises:
        DataError: the file is no table.
    """
    if isinstance(source, Database) or not is_text(source.name):
        return layout
    separator = separator_of(source, layout)
    return layout if separator == "," else replace(layout, separator=separator)


def _chunks(path: SourcePath, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """The cells of a CSV or Excel file as texts."""
    if not (is_text(path.name) or is_excel(path.name)):
        raise DataError(f"{path.name}: not a format that is read. Give {FORMATS}.")
    _check_exists(path)
    return (csv_chunks if is_text(path.name) else excel_chunks)(path, layout, rows)


def _check_exists(path: SourcePath) -> None:
    if not (path.is_file() or path.is_dir()):  # a reader would wait for a pipe
        raise DataError(f"{path.name}: no such file. Give the path of the table.")


def is_parquet(path: SourcePath) -> bool:
    """Tell whether a table is one of Parquet: a file, or a folder."""
    return ending(path) == ".parquet" or (not is_text(path.name) and not is_excel(path.name) and path.is_dir())


def types_of(path: SourcePath) -> dict[str, Any]:
    """The Arrow type of each column of a Parquet file or folder.

    Raises:
        DataError: there is no such file, or it is damaged.
    """
    _check_exists(path)
    return {normal_text(field.name): field.type for field in parquet_fields(path)}


def _kind_of_cells(cells: Sequence[str]) -> str:
    present = _present(cells)
    return guess(present) if present else Categorical.name


def _present(cells: Sequence[str]) -> set[str]:
    return {cell for cell in cells if cell.casefold() not in _MISSING}


def _kind_of_type(dtype: Any) -> str:
    kinds = KINDS.values()
    return next((kind.name for kind in kinds if any(getattr(pa.types, test)(dtype) for test in kind.arrow)), "drop")


def _kind_of_word(word: str) -> str:
    """The kind of a type as a database names it; texts where it is none of these."""
    return next(
        (_kind_of_type(kind) for pattern, kind in _TYPES.items() if re.match(pattern, word, re.I)), Categorical.name
    )


def _kind_of_series(empty: "pd.Series[Any]") -> str:
    """The kind of a column without rows. A dtype that may hold anything is most often one of texts."""
    if isinstance(empty.dtype, pd.CategoricalDtype):
        return Categorical.name  # its categories are values
    try:
        kind = pa.Array.from_pandas(empty).type
    except (pa.ArrowException, TypeError, ValueError):
        return "drop"
    return Categorical.name if pa.types.is_null(kind) else _kind_of_type(kind)
