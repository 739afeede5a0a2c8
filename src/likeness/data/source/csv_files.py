"""CSV files of any separator, decimal mark, encoding and compression. Every cell is a text.

``ingest.format`` says how a file is written, or its first line does. No later line is looked at: its rows are private,
and a row must not change how others are read.

A record is a line. Lines are split first, and each is parsed by itself:

- LF or CRLF ends a line. Any other carriage return is refused, and so is a NUL. U+0085 and U+2028 are text.
- In UTF-16 and UTF-32, a line whose bytes are out of step is refused.
- A line of spaces and tabs alone is no record. A line without its last cells lacks them. One with too many is refused.
- A cell that begins with a quote ends with one, on its own line. A quote inside another cell is text.
- A first line ``sep=;`` is Excel's word for the separator, and no header.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import SourcePath
from likeness.core.text import normal_text
from likeness.data.source.opening import MOST_CELLS, read_unpacked, unbroken
from likeness.data.table_columns import TEXT, equal_chunks, has_few_values

_LONGEST = 1 << 20  # characters of a line
_BLOCK = 1 << 18  # bytes of one read
_AT_ONCE = 4096  # lines whose cells are Python's objects at one time
_WINDOW = csv.field_size_limit() // 2  # bytes: a longer cell than two of them is refused
_ODD_STARTS = " \t\n\ufeff"  # of text: the last one Arrow's reader would take for a mark of the encoding
_SEPARATORS = ",;\t|"  # the first of those that divide the first line most often
_HINT = re.compile(r'"?sep=([\t !#-&(-/:-@[-^`{-~])"?', re.IGNORECASE)
_MARKS = {  # UTF-32's begins with UTF-16's
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def csv_chunks(path: SourcePath, layout: FileFormat, rows: int) -> Iterator[pd.DataFrame]:
    """All cells as text, in chunks, at least one.

    Args:
        path: of the file.
        layout: how it is written.
        rows: most rows of a chunk. With 0 no byte behind the header is decoded.

    Raises:
        DataError: it is no table, or a line of it is no record.
    """

    def chunks() -> Iterator[pd.DataFrame]:
        with read_unpacked(path) as file:
            table = _Table(file, layout, path.name)
            most = min(rows, max(1, MOST_CELLS // len(table.names)))
            yield from map(table.frame, equal_chunks(chain([table.empty], table.rows() if most else ()), max(1, most)))

    return unbroken(chunks(), path.name)


def separator_of(path: SourcePath, layout: FileFormat) -> str:
    """The separator that the layout or the first line of a file says.

    Raises:
        DataError: it is no table.
    """
    with read_unpacked(path) as file:
        return _Table(file, layout, path.name).separator


class _Table:
    """An open file whose header is read."""

    def __init__(self, file: IO[bytes], layout: FileFormat, where: str) -> None:
        self._file, self._where = file, where
        start = file.read(4)
        encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8-sig")
        if layout.encoding is not None and codecs.lookup(layout.encoding).name != "utf-8":
            encoding = layout.encoding
        self._decoder, self._ahead = codecs.getincrementaldecoder(encoding)(), iter(start)
        self._feed, self._seen, self._place = _line_feed(encoding, start), bytearray(), 0
        line, separator = self._first_line(), layout.separator
        if hint := _HINT.fullmatch(line):
            line, separator = self._first_line(), separator or hint[1]
        quotes = {"quotechar": layout.quote} if layout.quote else {"quoting": csv.QUOTE_NONE}
        self.separator = separator or _separator(line, layout.quote)
        self._rules: dict[str, Any] = {"delimiter": self.separator, **quotes}
        (cells,) = self._records([line])
        if not cells:
            raise self._refusal("cannot be read as a table: its header is empty. Name each column in the first line.")
        self.names = list(map(normal_text, cells))
        self._places = [str(index) for index in range(len(cells))]  # names may come twice
        self._blank = " \t".replace(self.separator, "")

    @property
    def empty(self) -> pa.Table:
        """No row."""
        return pa.table(self._columns([]), names=self._places)

    def rows(self) -> Iterator[pa.Table]:
        """Rows behind the header, in steps: a line that is not blank is one."""
        for text in self._blocks():
            table = self._plain(text)
            if table is None:
                lines = [line for line in text.split("\n") if line.strip(self._blank)]
                for start in range(0, len(lines), _AT_ONCE):
                    yield pa.table(self._columns(lines[start : start + _AT_ONCE]), names=self._places)
            else:
                yield table

    def frame(self, table: pa.Table) -> pd.DataFrame:
        """Rows as cells of text: as categories where most come again, which takes less time from here on."""
        columns = [
            cells.dictionary_encode().to_pandas() if has_few_values(cells) else pd.Series(TEXT.__from_arrow__(cells))
            for cells in (column.combine_chunks() for column in table.columns)
        ]
        return pd.DataFrame(dict(enumerate(columns)), range(len(table))).set_axis(self.names, axis="columns")

    def _plain(self, text: str) -> pa.Table | None:
        """The rows of whole lines by Arrow's reader, which is fast; None where it may read one otherwise than alone.

        It is asked only about text without a blank at the start of a line and without a long line, whose quotes are
        around whole cells (:func:`_are_around_cells`). Then each line is its cells between separators. It refuses lines
        of other lengths, and skips only empty ones.
        """
        quote = self._rules.get("quotechar", "")
        if text[0] in _ODD_STARTS or "\n " in text or "\n\t" in text or not (self.separator + quote).isascii():
            return None
        data = text.encode()
        if not all(data.find(b"\n", at, at + _WINDOW) >= 0 for at in range(0, len(data) - _WINDOW + 1, _WINDOW)):
            return None
        has_quotes = bool(quote) and quote in text
        if has_quotes and not _are_around_cells(data, ord(quote), ord(self.separator)):
            return None
        reading = ReadOptions(use_threads=False, column_names=self._places, block_size=len(data) + 1)
        types = dict.fromkeys(self._places, pa.large_string())
        with suppress(pa.ArrowInvalid):
            return read_csv(
                pa.BufferReader(data),
                reading,
                ParseOptions(delimiter=self.separator, quote_char=quote if has_quotes else False),
                ConvertOptions(column_types=types, strings_can_be_null=False),
            )
        return None

    def _columns(self, lines: Sequence[str]) -> list[pa.Array]:
        columns = list(zip_longest(self.names, *self._records(lines), fillvalue=""))
        if len(columns) > len(self.names):
            raise self._refusal(
                "a row has more cells than the header. Put quotes around cells that hold the separator, or correct "
                "ingest.format.separator."
            )
        return [pa.array(cells[1:], pa.large_string()) for cells in columns]

    def _records(self, lines: Sequence[str]) -> list[list[str]]:
        """The cells of each line. A quote without its partner would join two lines."""
        records = None
        with suppress(csv.Error):
            records = list(csv.reader(lines, strict=True, **self._rules))
        if records is None or len(records) != len(lines):
            raise self._refusal(
                "a cell begins with a quote, and does not end with one on its own line. Or a cell has more than "
                f"{csv.field_size_limit():,} characters. Excel, Parquet and databases hold cells with line breaks. If "
                "quotes are plain text, set ingest.format.quote: ''."
            )
        return records

    def _first_line(self) -> str:
        """The next line that is not blank, read byte by byte."""
        single = chain((bytes([byte]) for byte in self._ahead), iter(lambda: self._file.read(1), b""))
        line = ""
        while len(line) <= _LONGEST and (byte := next(single, b"")):
            self._seen += byte
            line += self._decoder.decode(byte)
            if line.endswith("\n"):
                if line.strip():
                    break
                line = ""
        return self._check_lines(line if line.endswith("\n") else f"{line}\r\n").partition("\n")[0]

    def _blocks(self) -> Iterator[str]:
        """Whole lines."""
        rest, more = "", True
        while more:
            data = bytes(self._ahead) + self._file.read(_BLOCK)
            more = bool(data)
            self._check_steps(data)
            whole, end, rest = (rest + self._decoder.decode(data, not more) + "\r\n" * (not more)).rpartition("\n")
            if end:
                yield self._check_lines(whole + end)
            if len(rest) > _LONGEST:
                self._check_lines(rest)

    def _check_steps(self, data: bytes) -> None:
        """Refuse line feeds out of step: in UTF-16 a byte too many would hide all of them up to another such byte."""
        seen, width = self._seen + data, len(self._feed)
        if width > 1 and any((self._place + feed.start()) % width for feed in re.finditer(re.escape(self._feed), seen)):
            raise self._refusal("a line has a byte too few or too many for its encoding. Save the file in UTF-8.")
        checked = max(0, len(seen) - width + 1)
        self._place, self._seen = self._place + checked, seen[checked:]

    def _check_lines(self, text: str) -> str:
        """Lines that end with LF. Each byte of them may stand in a line."""
        text = text.replace("\r\n", "\n")
        if "\r" in text or "\0" in text:
            raise self._refusal(
                "holds a carriage return within a line, or a NUL. A line ends with LF or CRLF. Save the file so. "
                "Excel, Parquet and databases hold such cells."
            )
        if len(text) > _LONGEST and max(map(len, text.split("\n"))) > _LONGEST:
            raise self._refusal(f"a line has more than {_LONGEST:,} characters. Correct it.")
        return text

    def _refusal(self, fault: str) -> DataError:
        return DataError(f"{self._where}: {fault}")


def _are_around_cells(lines: bytes, quote: int, separator: int) -> bool:
    """Tell whether quotes of whole lines are in pairs around cells: no cell holds one, and no pair spans two lines.

    Let the quotes be counted from 0. Each even one stands where a cell begins, and each odd one where a cell ends. Then
    between two pairs nothing is quoted, so those borders are true ones, and a line is read the same without the others.
    """
    signs = np.frombuffer(lines, np.uint8)
    positions, ends = np.flatnonzero(signs == quote), np.flatnonzero(signs == ord("\n"))
    if len(positions) % 2:
        return False
    opening, closing = positions[::2], positions[1::2]
    before, after = signs[opening - 1], signs[closing + 1]  # before the first sign is the last, which ends a line
    borders = all(((near == separator) | (near == ord("\n"))).all() for near in (before, after))
    return borders and bool((np.searchsorted(ends, opening) == np.searchsorted(ends, closing)).all())


def _line_feed(encoding: str, start: bytes) -> bytes:
    """The bytes of a line feed."""
    name = codecs.lookup(encoding).name
    if not name.startswith(("utf-16", "utf-32")):
        return b"\n"
    is_big = start.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)) if name[6:] == "" else name.endswith("be")
    return "\n".encode(f"{name[:6]}-{'be' if is_big else 'le'}")


def _separator(line: str, quote: str) -> str:
    """The candidate that stands in the first line most often, outside of quotes."""
    if quote:
        quote = re.escape(quote)
        line = re.sub(f"{quote}[^{quote}]*{quote}", "", line)
    return max(_SEPARATORS, key=line.count)
