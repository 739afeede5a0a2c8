"""Header of a table, and a guess of each column's kind. Nothing else of the rows leaves this module.

A Parquet file tells types, and no row of it is read. A CSV or Excel file has only its first rows to guess from: each
kind is then a word that depends on rows, which is why a draft marks it, and why a person has to confirm it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import Place, ending
from likeness.core.text import normal_text
from likeness.data.schema.dtypes import NUMBER
from likeness.data.schema.kinds import KINDS, SWAPPED_MARKS, Categorical, Datetime, Numeric, guess
from likeness.data.source.opening import FORMATS, is_excel, is_text

if TYPE_CHECKING:
    import pandas as pd

    from likeness.data.source.databases import Database

_PLAIN = FileFormat()
_ROWS = 1000
# How CSV files of such columns are written.
_TRUTHS = {"bool": {"False", "True"}, "int64": {"0", "1"}, "float64": {"0.0", "1.0"}}
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", ".", "unknown", "missing"}


def header_of(path: Place, layout: FileFormat = _PLAIN) -> list[str]:
    """Names of the columns, without reading a row.

    Args:
        path: of the table.
        layout: how a CSV or Excel file is written.

    Raises:
        DataError: there is no such file, or it is no table.
    """
    if is_parquet(path):
        return _fields(path)[0]
    _check_file(path)
    from likeness.data.source.csv_files import csv_names
    from likeness.data.source.excel_files import excel_names

    return (csv_names if is_text(path.name) else excel_names)(path, layout)


def kinds_of(path: Place, layout: FileFormat = _PLAIN) -> dict[str, str]:
    """A guess of each column's kind, by name: one of the kinds of a schema.

    Args:
        path: of the table.
        layout: how a CSV or Excel file is written.

    Raises:
        DataError: there is no such file, it is no table, or its first line does not look like a header: a name is
            empty, stands twice, is a number or a date, or stands among its own values.
    """
    if is_parquet(path):
        _check_header(_fields(path)[0], path.name, are_public=True)
        return {name: _kind_of_type(kind) for name, kind in types_of(path).items()}
    names, cells = _first_rows(path, layout, _ROWS)
    if any(name in column for name, column in zip(names, cells, strict=True)):
        _refuse_header(path.name, "a name stands among the values below it")
    _check_header(names, path.name, are_public=False)
    kinds = {name: _kind_of_cells(column) for name, column in zip(names, cells, strict=True)}
    if layout.decimal == ",":
        swapped = (_kind_of_cells([cell.translate(SWAPPED_MARKS) for cell in column]) for column in cells)
        kinds |= {name: kind for name, kind in zip(names, swapped, strict=True) if kind == Numeric.name}
    return kinds


def dtypes_of(path: Place, layout: FileFormat = _PLAIN) -> dict[str, str]:
    """The word of each column's dtype, by name, where one is said.

    pandas says it for the empty table of a Parquet file. Of a CSV or Excel file the first rows say
    it for true and false.

    Args:
        path: of the table.
        layout: how a CSV or Excel file is written.

    Raises:
        DataError: there is no such file, or it is no table.
    """
    if is_parquet(path):
        from likeness.data.source.parquet_files import parquet_dtypes

        return parquet_dtypes(path)
    dtypes: dict[str, str] = {}
    for name, cells in zip(*_first_rows(path, layout, _ROWS), strict=True):
        present = {cell for cell in cells if cell.casefold() not in _MISSING}
        fitting = [dtype for dtype, words in _TRUTHS.items() if present and present <= words]
        if fitting:
            dtypes[name] = fitting[0]
    return dtypes


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
    return {name: _kind_of_series(empty.iloc[:, place]) for place, name in enumerate(names)}


def kinds_of_query(database: "Database") -> dict[str, str]:
    """The same of a database's answer: from its first rows, as of a CSV.

    Raises:
        DataError: the database cannot be read, or gives a name twice.
    """
    names, rows = database.columns(), database.first(_ROWS)
    if len(set(names)) < len(names):
        raise DataError(f"{database.name}: {database.key} gives a name twice. Rename columns in it with AS.")
    cells = [["" if row[place] is None else str(row[place]).strip() for row in rows] for place in range(len(names))]
    return {name: _kind_of_cells(own) for name, own in zip(names, cells, strict=True)}


def _check_header(names: Sequence[str], where: str, are_public: bool) -> None:
    """Names go into a public file: a first line that may be a row is refused, and not quoted.

    Args:
        names: of the columns.
        where: name of the table in messages.
        are_public: whether the format keeps names apart from rows.
    """
    if not all(names):
        _refuse_header(where, "a column has no name")
    if not are_public and any(NUMBER.fullmatch(name) or Datetime().number(name) is not None for name in names):
        _refuse_header(where, "a name is a number or a date")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        places = [str(place) for place, name in enumerate(names, start=1) if name == twice]
        raise DataError(
            f"{where}: columns {' and '.join(places)} of its header have one name. Rename them, so that each "
            "column has its own name. Nothing was written."
        )


def _refuse_header(where: str, fault: str) -> NoReturn:
    raise DataError(
        f"{where}: its first line does not look like a header: {fault}. Names go into a public file, so nothing "
        "was written. Give each column a name in the first line."
    )


def _first_rows(path: Place, layout: FileFormat, count: int) -> tuple[list[str], list[list[str]]]:
    """Names and first cells of the columns of a CSV or Excel file."""
    from likeness.data.source.csv_files import csv_chunks
    from likeness.data.source.excel_files import excel_chunks

    _check_file(path)
    chunk = next((csv_chunks if is_text(path.name) else excel_chunks)(path, layout, count))
    cells = [chunk.iloc[:, place].fillna("").str.strip().tolist() for place in range(chunk.shape[1])]
    return [str(name) for name in chunk.columns], cells


def _check_file(path: Place) -> None:
    if not (is_text(path.name) or is_excel(path.name)):
        raise DataError(f"{path.name}: not a format that is read. Give {FORMATS}.")
    if not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the table.")


def is_parquet(path: Place) -> bool:
    """Whether a table is one of Parquet: a file, or a folder."""
    return ending(path) == ".parquet" or (not is_text(path.name) and not is_excel(path.name) and path.is_dir())


def types_of(path: Place) -> dict[str, Any]:
    """The Arrow type of each column of a Parquet file or folder.

    Raises:
        DataError: there is no such file, or it is damaged.
    """
    return dict(zip(*_fields(path), strict=True))


def _fields(path: Place) -> tuple[list[str], list[Any]]:
    from likeness.data.source.parquet_files import parquet_fields

    if not (path.is_file() or path.is_dir()):
        raise DataError(f"{path.name}: no such file. Give the path of the table.")
    fields = parquet_fields(path)
    return [normal_text(field.name) for field in fields], [field.type for field in fields]


def _kind_of_cells(cells: Sequence[str]) -> str:
    present = {cell for cell in cells if cell.casefold() not in _MISSING}
    return guess(present) if present else Categorical.name


def _kind_of_type(kind: Any) -> str:
    kinds = KINDS.values()
    return next((one.name for one in kinds if any(getattr(pa.types, test)(kind) for test in one.arrow)), "drop")


def _kind_of_series(empty: "pd.Series[Any]") -> str:
    """Of a column without rows. A dtype that may hold anything is most often one of texts."""
    import pandas as pd

    if isinstance(empty.dtype, pd.CategoricalDtype):
        return Categorical.name  # its categories are values
    try:
        kind = pa.Array.from_pandas(empty).type
    except (pa.ArrowException, TypeError, ValueError):
        return "drop"
    return Categorical.name if pa.types.is_null(kind) else _kind_of_type(kind)
