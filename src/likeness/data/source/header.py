"""Header of a table, and a guess of each column's kind. Nothing else of the rows leaves this module.

A Parquet file tells types, and no row of it is read. A CSV file has only its first rows to guess from: each kind is
then a word that depends on rows, which is why a draft marks it, and why a person has to confirm it.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from likeness.core.errors import DataError
from likeness.data.schema.dates import number_of
from likeness.data.schema.kinds import KINDS_BY_NAME, NUMBER, Categorical, guess

if TYPE_CHECKING:
    import pandas as pd

    from likeness.data.source.databases import Database

_ROWS = 1000
_LONGEST = 1 << 20  # bytes of a header
_SEPARATORS = ";\t|"
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", ".", "unknown", "missing"}


def check_names(present: Sequence[str], wanted: Iterable[str], where: str, rule: str) -> None:
    """Refuse a table that lacks wanted columns, or has two of one name. One error lists all of them.

    Without a header, the first line of a file is a row. So other names are shown only beside most of the wanted ones.

    Args:
        present: names of the table's columns.
        wanted: names that it must have, each once.
        where: name of the table in messages.
        rule: a sentence that says which columns the table must have; an end without a point.

    Raises:
        DataError: a wanted column is missing, or occurs twice.
    """
    wanted = list(dict.fromkeys(wanted))
    missing = [name for name in wanted if name not in present]
    twice = [name for name in wanted if present.count(name) > 1]
    faults = []
    if missing:
        faults.append(f"{_columns(missing)} {'are' if missing[1:] else 'is'} missing. {rule}: {', '.join(wanted)}.")
        others = [name for name in present if name not in wanted]
        if others and 2 * len(missing) < len(wanted):
            faults.append(f"the schema does not name {_columns(others)}.")
    if twice:
        faults.append(f"{_columns(twice)} {'occur' if twice[1:] else 'occurs'} twice. Give each column its own name.")
    if faults:
        raise DataError(f"{where}: {' Also: '.join(faults)}")


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if names[1:] else ''} " + ", ".join(f"'{name}'" for name in names)


def header_of(path: Path) -> list[str]:
    """Names of the columns, without reading a row.

    Raises:
        DataError: there is no such file, it is no table, or its columns are not separated by commas.
    """
    if path.suffix == ".parquet" or path.is_dir():
        return [str(name) for name in _parquet_schema(path).names]
    names = [name.strip() for name in _records(path, None)[0]]
    if len(names) == 1 and any(mark in names[0] for mark in _SEPARATORS):
        raise DataError(
            f"{path.name}: its first line has no comma, but a semicolon, tab or bar: columns must be separated by "
            "commas, and decimals be written with a point. Write it again, best as Parquet; docs/own-data.md says how."
        )
    return names


def kinds_of(path: Path) -> dict[str, str]:
    """A guess of each column's kind, by name: one of the kinds of a schema.

    Raises:
        DataError: there is no such file, it is no table, or its first line does not look like a header: a name is
            empty, stands twice, is a number or a date, or stands among its own values.
    """
    names = header_of(path)
    if path.suffix == ".parquet" or path.is_dir():
        _check_header(names, path.name, numbers=True)
        types = _parquet_schema(path).types
        return {name: _kind_of_type(kind) for name, kind in zip(names, types, strict=True)}
    _check_header(names, path.name, numbers=False)
    rows = _records(path, 1 + _ROWS)[1:]
    cells = [[row[place].strip() for row in rows if place < len(row)] for place in range(len(names))]
    if any(name in own for name, own in zip(names, cells, strict=True)):
        _refuse_header(path.name)
    return {name: _kind_of_cells(own) for name, own in zip(names, cells, strict=True)}


def kinds_of_frame(frame: "pd.DataFrame") -> dict[str, str]:
    """A guess of each column's kind from its dtype. No cell is read: the guess comes from the frame without rows.

    Raises:
        DataError: the frame's names do not look like a header.
    """
    empty = frame.iloc[:0]
    texts = [name for name in empty.columns if isinstance(name, str)]  # a number is pandas' own name, and of no row
    _check_header(texts, "the DataFrame", numbers=False)
    names = [str(name) for name in empty.columns]
    _check_header(names, "the DataFrame", numbers=True)
    return {name: _kind_of_series(empty.iloc[:, place]) for place, name in enumerate(names)}


def never_missing(frame: "pd.DataFrame") -> frozenset[str]:
    """The columns whose dtype has no missing value: numpy's integers and booleans."""
    import numpy as np

    dtypes = zip(map(str, frame.columns), frame.dtypes, strict=True)
    return frozenset(name for name, dtype in dtypes if isinstance(dtype, np.dtype) and dtype.kind in "iub")


def kinds_of_query(database: "Database") -> dict[str, str]:
    """The same of a database's answer: from its first rows, as of a CSV.

    Raises:
        DataError: the database cannot be read, or gives a name twice.
    """
    names, rows = database.columns(), database.first(_ROWS)
    if len(set(names)) < len(names):
        raise DataError(f"{database.name}: ingest.query gives a name twice. Rename columns in it with AS.")
    cells = [["" if row[place] is None else str(row[place]).strip() for row in rows] for place in range(len(names))]
    return {name: _kind_of_cells(own) for name, own in zip(names, cells, strict=True)}


def _check_header(names: Sequence[str], where: str, numbers: bool) -> None:
    """Names go into a public file: a first line that may be a row is refused, and not quoted."""

    def looks_like_a_value(name: str) -> bool:
        return not name or (not numbers and (bool(NUMBER.fullmatch(name)) or number_of("datetime", name) is not None))

    if any(looks_like_a_value(name) for name in names) or len(set(names)) < len(names):
        _refuse_header(where)


def _refuse_header(where: str) -> NoReturn:
    raise DataError(
        f"{where}: its first line does not look like a header: a name is empty, stands twice, is a number or a "
        "date, or stands among the values below it. Names go into a public file, so nothing was written. Add a header."
    )


def _records(path: Path, count: int | None) -> list[list[str]]:
    """The first records of a CSV file, as cells; None: its first line, and not a byte behind it is decoded."""
    if not path.name.endswith((".csv", ".csv.gz")):
        raise DataError(f"{path.name}: not a format that is read. Give a .csv, .csv.gz or .parquet file.")
    if not path.is_file():
        raise DataError(f"{path}: no such file. Give the path of the table.")
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    found = None
    try:
        with opener(path, "rb") as file:
            if count is None:
                found = list(csv.reader([file.readline(_LONGEST).decode("utf-8-sig")]))
            else:
                found = list(islice(csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline="")), count))
    except (OSError, UnicodeDecodeError, csv.Error, EOFError, zlib.error):
        found = None
    if not found or not found[0]:
        # Raised here and not in an except block: the library's error may quote a row.
        raise DataError(f"{path.name}: cannot be read as a table. Check that it is complete, and in UTF-8.")
    return found


def _kind_of_cells(cells: Sequence[str]) -> str:
    present = {cell for cell in cells if cell.casefold() not in _MISSING}
    return guess(present) if present else Categorical.name


def _parquet_schema(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.is_dir():  # a table in several files: what the first one says
        path = min(path.glob("*.parquet"), default=path / "*.parquet")
    if not path.is_file():
        raise DataError(f"{path}: no such file. Give the path of the table.")
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        pass
    raise DataError(f"{path.name}: cannot be read as a table. Check that it is complete.")


def _kind_of_type(kind: Any) -> str:
    import pyarrow as pa

    kinds = KINDS_BY_NAME.values()
    return next((one.name for one in kinds if any(getattr(pa.types, test)(kind) for test in one.arrow)), "drop")


def _kind_of_series(empty: "pd.Series[Any]") -> str:
    """Of a column without rows. A dtype that may hold anything is most often one of texts."""
    import pyarrow as pa

    try:
        kind = pa.Array.from_pandas(empty).type
    except (pa.ArrowException, TypeError, ValueError):
        return "drop"
    return Categorical.name if pa.types.is_null(kind) else _kind_of_type(kind)
