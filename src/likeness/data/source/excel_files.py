"""Sheets of Excel files. Excel types each cell by itself, and a cell's text depends on that cell alone."""

import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import islice
from typing import Any

import pandas as pd

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import SourcePath
from likeness.core.text import code_points, normal_text
from likeness.data.source.opening import unbroken
from likeness.data.source.python_cells import python_texts, text_of

_Row = dict[int, Any]  # the cells that are not empty, by the number of their column


def excel_chunks(path: SourcePath, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """All cells as text, in chunks, as :func:`likeness.data.source.csv_files.csv_chunks`. ``layout`` names the sheet.

    The first row names the columns. A row without cells is left out.

    Raises:
        DataError: it is no table, or has several sheets of which none is named.
    """

    def chunks() -> Iterator[pd.DataFrame]:
        with path.open("rb") as file:
            read = _rows(file, path.name, layout)
            first = {number: normal_text(text_of(name) or "") for number, name in next(read).items()}
            last = max(number for number, name in first.items() if name)
            header = [first.get(number, "") for number in range(1, 1 + last)]
            yield _frame(header, list(islice(read, rows)), path.name)
            while chunk := list(islice(read, rows)):
                yield _frame(header, chunk, path.name)

    return unbroken(chunks(), path.name)


def _rows(file: Any, where: str, layout: FileFormat) -> Iterator[_Row]:
    """The rows that have cells. openpyxl's warnings quote cells, so nobody hears them."""
    with warnings.catch_warnings(action="ignore"):
        rows = _rows_of(_sheet(file, where, layout), where)
    while True:
        with warnings.catch_warnings(action="ignore"):
            row = next(rows, None)
        if row is None:
            return
        if row:
            yield row


def _rows_of(sheet: Any, where: str) -> Iterator[_Row]:
    """Rows as the file holds them. openpyxl's own loop drops all rows behind one with too large a number."""
    from openpyxl.worksheet._reader import FORMULA_TAG, VALUE_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> Any:
            stored = element.findtext(VALUE_TAG) or (element.get("t") == "str" and element.find(VALUE_TAG) is not None)
            if element.find(FORMULA_TAG) is not None and not stored:  # an empty text is one
                raise DataError(f"{where}: a formula has no stored value. Open the file in Excel and save it.")
            return super().parse_cell(element)

    book, last = sheet.parent, 0
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    with sheet._get_source() as source:
        parser = Parser(source, sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)
        for number, cells in parser.parse():
            if number <= last:
                raise DataError(f"{where}: the numbers of its rows do not rise. Open the file in Excel and save it.")
            last = number
            yield {cell["column"]: cell["value"] for cell in cells if cell["value"] is not None}
    if any(merged.max_row > merged.min_row for merged in getattr(parser.merged_cells, "mergeCell", ())):
        raise DataError(f"{where}: cells are merged over several rows. Unmerge them, and fill in each row.")


def _sheet(file: Any, where: str, layout: FileFormat) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        load_workbook = None
    if load_workbook is None:
        raise DataError(f"{where}: Excel files need openpyxl. Run: pip install 'likeness-dp[excel]'")
    sheets = load_workbook(file, read_only=True, data_only=True).worksheets
    matches = [sheet for sheet in sheets if layout.sheet in (None, normal_text(sheet.title))]
    if layout.sheet is None and len(matches) > 1:
        raise DataError(f"{where}: has several sheets. Name one in params.yaml, ingest.format.sheet.")
    if layout.sheet is not None and len(matches) != 1:
        # The other names may be private.
        count = "several sheets" if matches else "no sheet"
        named = f"'{layout.sheet}'{code_points(layout.sheet)}"
        raise DataError(f"{where}: has {count} {named}. Correct ingest.format.sheet, or rename the sheet.")
    return matches[0]


def _frame(header: Sequence[str], rows: Sequence[_Row], where: str) -> pd.DataFrame:
    if any(max(row) > len(header) for row in rows):
        raise DataError(f"{where}: a row has more cells than the header. Name each column in the first row.")
    columns = [python_texts(_plain(row.get(index)) for row in rows) for index in range(1, 1 + len(header))]
    if any(column is None for column in columns):
        raise ValueError("a cell has no text")
    return pd.DataFrame(dict(enumerate(columns))).set_axis(list(header), axis="columns")


def _plain(cell: Any) -> Any:
    """Excel has no dates without a time of day, so midnight is left out."""
    return cell.date() if isinstance(cell, datetime) and cell.time() == time() else cell
