"""A record's border and cells depend on that record alone: hostile lines and cells in pairs, for each reader."""

from collections.abc import Sequence
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from likeness.config.params import FileFormat
from likeness.core.errors import DataError, ParamsError
from likeness.data.source import csv_files
from likeness.data.source.csv_files import csv_chunks, csv_names

SECRET = "Xq7Secret"  # stands for a private value: it must never be in a message
PLAIN = FileFormat()

# Lines of a table with the columns a, b, c.
LINES = [
    '"lies awake,51,yes', '"x', '"a\\"",9,q', '"a"" ,9', 'bed 5",44,no', '"bed 5",44,no', '""', '"""', '""""', '1,2,"',
    ',"",', '1,2",3"', 'x "y, z" q,1', '"a"b,1,2', '"a" ,1', ' "a,b"', '"a\r",1,2', "a\rb,1,2", "a\0b,1", '"\0',
    "\u2028", "a\x85b,\x0b,\x0c", "a\u2029b,\x1c\x1d,\x1e", "", "  ", " \t ", ",,", ",,,", "1,2", "1,2,3,",
    "\ufeff1,2,3", '\ufeff"1,2', "'x,1,2'", '\\"', 'a\\,"b', "sep=;", "#1,2,3", "NA,null,nan", "\x1a", "a;b;c",
    "x" * 132_000, '"x"\n"y', '"x\r\ny",1,2', "1,2,3\r",
]  # fmt: skip
OTHERS = ["1,one,yes", '2,"t, wo",no', "", '3,"q""3",', ',five" bed,yes', '"",,6']


def written(lines: Sequence[str], header: str = "a,b,c") -> bytes:
    return "".join(f"{line}\n" for line in (header, *lines)).encode()


class InMemory:
    """A file without a disk."""

    def __init__(self, data: bytes, name: str = "t.csv") -> None:
        self._data, self.name, self.suffix = data, name, Path(name).suffix

    def open(self, _mode: str) -> BytesIO:
        return BytesIO(self._data)


def cells(data: bytes, layout: FileFormat = PLAIN, rows: int = 100) -> "list[list[str]] | None":
    """The rows of a file; None if it is refused."""
    place: Any = InMemory(data)
    try:
        return [row for chunk in csv_chunks(place, layout, rows) for row in chunk.astype("object").to_numpy().tolist()]
    except DataError as error:
        assert error.__cause__ is None and error.__context__ is None
        return None


def test_no_line_changes_the_record_of_another() -> None:
    """All ordered pairs at the first, middle and last place: a line gives its own rows, or the file is refused."""

    def read(lines: Sequence[str], end: str = "\n") -> "list[list[str]] | None":
        return cells(end.join(["a,b,c", *lines, ""]).encode())

    ends = ("\n", "\r\n")
    others = [read([line]) for line in OTHERS]
    alone = {(line, end): read([line], end) for line in LINES for end in ends}
    assert None not in others and 30 < sum(own is None for own in alone.values()) < 2 * len(LINES) - 30
    for (at, a), b, place in product(enumerate(LINES), LINES, (0, 3, len(OTHERS))):
        end = ends[at % 2]
        around = [*others[:place], alone[b, end], alone[a, end], *others[place:]]
        expected = None if None in around else [row for own in around for row in own or []]
        got = read([*OTHERS[:place], b, a, *OTHERS[place:]], end)
        assert got == expected, f"{b!r}, then {a!r} at {place}"


BORDERS = ["1,2,3", '"x', '"y",2,3', 'bed 5",4,5', '1,"', '",2', "a\rb", '"a\r', "", "é" * 40, "1,2,3,4", "a\0"]


@pytest.mark.parametrize(
    ("encoding", "quote"),
    [
        ("utf-8", '"'),
        ("utf-8-sig", '"'),
        ("utf-16", '"'),
        ("utf-32", '"'),
        ("latin-1", "'"),
        ("cp1252", ""),
        ("gb18030", '"'),
    ],
)
def test_no_encoding_quote_or_border_of_a_block_joins_lines(
    monkeypatch: pytest.MonkeyPatch, encoding: str, quote: str
) -> None:
    """Blocks of 7 bytes and chunks of 2 rows: borders lie everywhere."""
    monkeypatch.setattr(csv_files, "_BLOCK", 7)
    monkeypatch.setattr(csv_files, "_AT_ONCE", 1)
    layout = FileFormat(encoding=None if encoding.startswith("utf") else encoding, quote=quote)

    def read(lines: Sequence[str]) -> "list[list[str]] | None":
        text = "\r\n".join(["a,b,c", *lines])
        return cells(text.replace('"', quote or '"').replace("é", "ü").encode(encoding), layout, 2)

    alone = {line: read([line]) for line in BORDERS}
    for a, b in product(BORDERS, BORDERS):
        around = [alone[b], [["0", "0", "0"]], alone[a]]
        expected = None if None in around else [row for own in around for row in own or []]
        assert read([b, "0,0,0", a]) == expected, f"{b!r}, then {a!r}"


@pytest.mark.parametrize("line", ['"lies awake,51,yes', "a\rb", "a\0b", '"x\ny",1', "x" * 2_000, "y" * 1_100, "1\r"])
@pytest.mark.parametrize("is_header", [False, True])
def test_a_refused_line_is_said_in_words_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, line: str, is_header: bool
) -> None:
    monkeypatch.setattr(csv_files, "_LONGEST", 1_000)
    monkeypatch.setattr(csv_files, "_BLOCK", 500)
    line = f"{SECRET},{line}"
    place: Any = InMemory(line.encode() if is_header else written(["1,2,3", line], "a,b,c,d")[: -len("\n")])
    with pytest.raises(DataError, match=r"^t\.csv: ") as caught:
        list(csv_chunks(place, PLAIN, 100))
    words = str(caught.value)
    assert SECRET not in words and "awake" not in words
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    if "\n" in line:
        assert "Parquet" in words and "Excel" in words and "databases" in words
    if is_header:
        with pytest.raises(DataError, match=r"^t\.csv: "):
            csv_names(place, PLAIN)


@pytest.mark.parametrize("hint", ["sep=;", '"sep=;"', "SEP=;", "\r\nsep=;"])
def test_the_first_line_of_excel_names_the_separator(hint: str) -> None:
    data = f"{hint}\r\na,x;b\r\n1,5;sep=;\r\n".encode()
    place: Any = InMemory(data)
    assert csv_names(place, PLAIN) == ["a,x", "b"]
    assert cells(data.replace(b"5;", b"5 ")) == [["1,5 sep=", ""]]
    assert cells(data.replace(b"a,x;b", b"b")) is None
    assert cells(data, FileFormat(separator=",")) == [["1", "5;sep=;"]]


@pytest.mark.parametrize(
    "name", ["unicode_escape", "raw_unicode_escape", "punycode", "idna", "utf-7", "hz", "iso2022_jp"]
)
def test_an_encoding_in_which_a_line_moves_others_is_refused(name: str) -> None:
    r"""In unicode_escape, a backslash at the end of a line joins the next one, and '\n' is two records."""
    with pytest.raises(ParamsError, match=r"ingest\.format\.encoding"):
        FileFormat(encoding=name)
