"""CSV files of any separator, decimal mark, encoding and compression. Every cell is a text.

``ingest.format`` says how a file is written, or its first line does. No later line is looked at: its rows are private,
and a row must not change how others are read.
"""

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import chain, islice
from typing import IO, Any

import pandas as pd

from likeness.config.params import FileFormat
from likeness.core.remote import Place
from likeness.core.text import normal_text
from likeness.data.source.opening import unbroken, unpacked

_LONGEST = 1 << 20  # bytes of a header
_AT_ONCE = 1000  # rows that are looked at before pandas reads them
_SEPARATORS = ",;\t|"  # the first of those that divide the first line most often
_MARKS = {  # UTF-32's begins with UTF-16's
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def csv_names(path: Place, layout: FileFormat) -> list[str]:
    """Names of the columns. No byte behind the first line is decoded.

    Args:
        path: of the file.
        layout: how it is written.

    Raises:
        DataError: it is no table.
    """
    return next(unbroken(_names(path, layout), path))


def csv_chunks(path: Place, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """All cells as text, in chunks, at least one.

    Args:
        path: of the file.
        layout: how it is written.
        rows: most rows of a chunk.

    Raises:
        DataError: it is no table.
    """
    header = None
    for cells in unbroken(_cells(path, layout, rows), path):
        if header is None:
            header = list(map(normal_text, cells.iloc[0]))
            cells = cells.iloc[1:]
        yield cells.set_axis(header, axis="columns").reset_index(drop=True)


def _names(path: Place, layout: FileFormat) -> Iterator[list[str]]:
    with unpacked(path) as file:
        line, _ = _first_line(file, layout)
    yield _header(line, _rules(line, layout))


def _header(line: str, rules: dict[str, Any]) -> list[str]:
    """The names in the first line. One whose end lies in quotes is refused: the header would have another line."""
    (cells,) = csv.reader([line], strict=True, **rules)
    if not cells:
        raise ValueError("no header")
    return list(map(normal_text, cells))


def _cells(path: Place, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """The header is a row here: else pandas renames doubles and accepts a long row."""
    with unpacked(path) as file:
        line, encoding = _first_line(file, layout)
    rules = _rules(line, layout)
    _header(line, rules)
    with unpacked(path) as file, TextIOWrapper(file, encoding, newline="") as lines:
        text: Any = _Checked(lines, rules)
        yield from pd.read_csv(text, header=None, dtype="str", na_filter=False, chunksize=rows, iterator=True, **rules)


class _Checked:
    """A file for pandas, without stray quotes. pandas would take the rows up to the next quote for one cell.

    csv refuses text behind a closing quote, and a file that ends within quotes.
    """

    def __init__(self, lines: Iterable[str], rules: dict[str, Any]) -> None:
        self._lines, self._passed = lines, list[str]()
        self._rows = csv.reader(self, strict=True, **rules)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._passed.append(line)
            yield line

    def read(self, _size: int = -1) -> str:
        """The text of the next rows, whatever size is asked for."""
        deque(islice(self._rows, _AT_ONCE), maxlen=0)
        text = "".join(self._passed)
        self._passed.clear()
        return text


def _first_line(file: IO[bytes], layout: FileFormat) -> tuple[str, str]:
    """The first line that is not blank, and the encoding of the file."""
    start = file.read(4)
    encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8-sig")
    if layout.encoding is not None and codecs.lookup(layout.encoding).name != "utf-8":
        encoding = layout.encoding
    decoder, line = codecs.getincrementaldecoder(encoding)(), ""
    single = chain((start[place : place + 1] for place in range(len(start))), iter(lambda: file.read(1), b""))
    for byte in islice(single, _LONGEST):
        line += decoder.decode(byte)
        if line.endswith(("\n", "\r")):
            if line.strip():
                break
            line = ""
    return line.rstrip("\r\n"), encoding


def _separator(line: str, layout: FileFormat) -> str:
    """That of the settings; else the candidate that stands in the first line most often, outside of quotes."""
    if layout.separator is not None:
        return layout.separator
    if layout.quote:
        quote = re.escape(layout.quote)
        line = re.sub(f"{quote}[^{quote}]*{quote}", "", line)
    return max(_SEPARATORS, key=line.count)


def _rules(line: str, layout: FileFormat) -> dict[str, Any]:
    """How rows are written, in the words of csv and of pandas."""
    quotes = {"quotechar": layout.quote} if layout.quote else {"quoting": csv.QUOTE_NONE}
    return {"delimiter": _separator(line, layout), **quotes}
