"""Sheets of Excel files. Excel types each cell by itself, and a cell's text depends on that cell alone."""

import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import islice
from typing import Any

import pandas as pd

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import Place
from likeness.core.text import normal_text
from likeness.data.source.opening import unbroken
from likeness.data.source.python_cells import python_texts, text_of


def excel_chunks(path: Place, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """All cells as text, in chunks, at least one. The first row names the columns; a row without cells is left out.

    Args:
        path: of the file.
        layout: names the sheet.
        rows: most rows of a chunk.

    Raises:
        DataError: it is no table, or has several sheets of which none is named.
    """
    return unbroken(_chunks(path, layout, rows), path)


def excel_names(path: Place, layout: FileFormat) -> list[str]:
    """Names of the columns. No row behind the header is parsed.

    Args:
        path: of the file.
        layout: names the sheet.

    Raises:
        DataError: as :func:`excel_chunks`.
    """
    return next(unbroken(_names(path, layout), path))


def _names(path: Place, layout: FileFormat) -> Iterator[list[str]]:
    with path.open("rb") as file:
        yield _header(_full_rows(file, path.name, layout))


def _full_rows(file: Any, where: str, layout: FileFormat) -> Iterator[tuple[Any, ...]]:
    rows = _silent(_sheet(file, where, layout).iter_rows(values_only=True))
    return (row for row in rows if any(map(_is_full, row)))


def _header(cells: Iterator[tuple[Any, ...]]) -> list[str]:
    header = [normal_text(text_of(name) or "") for name in next(cells)]
    return header[: max(place for place, name in enumerate(header, start=1) if name)]


def _chunks(path: Place, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    with path.open("rb") as file:
        cells = _full_rows(file, path.name, layout)
        header = _header(cells)
        chunk = list(islice(cells, rows))
        yield _frame(header, chunk)
        while chunk := list(islice(cells, rows)):
            yield _frame(header, chunk)


def _sheet(file: Any, where: str, layout: FileFormat) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        load_workbook = None
    if load_workbook is None:
        raise DataError(f"{where}: Excel files need openpyxl. Run: pip install 'likeness[excel]'")
    with warnings.catch_warnings(action="ignore"):
        sheets = {sheet.title: sheet for sheet in load_workbook(file, read_only=True, data_only=True).worksheets}
    if layout.sheet is None and len(sheets) > 1:
        raise DataError(f"{where}: has several sheets. Name one in params.yaml, ingest.format.sheet.")
    if layout.sheet is not None and layout.sheet not in sheets:
        # The other names may be private.
        raise DataError(f"{where}: has no sheet '{layout.sheet}'. Correct ingest.format.sheet.")
    sheet = next(iter(sheets.values())) if layout.sheet is None else sheets[layout.sheet]
    sheet.reset_dimensions()  # a file may say another size than it has
    return sheet


def _silent(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows without openpyxl's warnings, which quote cells."""
    while True:
        with warnings.catch_warnings(action="ignore"):
            row = next(rows, None)
        if row is None:
            return
        yield row


def _frame(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    width = len(header)
    if any(_is_full(cell) for row in rows for cell in row[width:]):
        raise ValueError("a row has more cells than the header")
    columns = [python_texts(_plain(row[place]) if place < len(row) else None for row in rows) for place in range(width)]
    if any(column is None for column in columns):
        raise ValueError("a cell has no text")
    return pd.DataFrame(dict(enumerate(columns))).set_axis(list(header), axis="columns")


def _plain(cell: Any) -> Any:
    """Excel has no dates without a time of day, so midnight is left out."""
    return cell.date() if isinstance(cell, datetime) and cell.time() == time() else cell


def _is_full(cell: Any) -> bool:
    return cell is not None
