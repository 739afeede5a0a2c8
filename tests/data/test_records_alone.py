"""A record's border and cells depend on that record alone: hostile lines and cells in pairs, for each reader."""

import re
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest import MonkeyPatch
from toys import schema_with

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.data.encoding.frames import pandas_frame
from likeness.data.source import csv_files
from likeness.data.source.csv_files import csv_chunks
from likeness.data.source.databases import Database
from likeness.data.source.files import parquet_rows, read_frame, read_source
from likeness.data.source.header import guesses_of, header_of
from likeness.data.source.opening import table_name
from likeness.data.source.row_digests import SourceDigest

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


@pytest.mark.long
def test_no_line_changes_the_record_of_another() -> None:
    """All ordered pairs at the first, middle and last place: a line gives its own rows, or the file is refused."""

    def read(lines: Sequence[str], end: str = "\n") -> "list[list[str]] | None":
        return cells(end.join(["a,b,c", *lines, ""]).encode())

    ends = ("\n", "\r\n")
    others = [read([line]) for line in OTHERS]
    alone = {(line, end): read([line], end) for line in LINES for end in ends}
    assert None not in others and 30 < sum(own is None for own in alone.values()) < 2 * len(LINES) - 30
    for (line, _), own in alone.items():
        inside = line.removesuffix("\r").replace("\r\n", "\n")
        assert own is None if {"\r", "\0"} & {*inside} else own is None or len(own) <= 1 + line.count("\n"), line
    for (at, a), b, place in product(enumerate(LINES), LINES, (0, 3, len(OTHERS))):
        end = ends[at % 2]
        around = [*others[:place], alone[b, end], alone[a, end], *others[place:]]
        expected = None if None in around else [row for own in around for row in own or []]
        got = read([*OTHERS[:place], b, a, *OTHERS[place:]], end)
        assert got == expected, f"{b!r}, then {a!r} at {place}"


@pytest.mark.long
@pytest.mark.parametrize("separator", [",", " ", "\t"])
def test_the_fast_reader_gives_the_cells_of_the_exact_one(monkeypatch: MonkeyPatch, separator: str) -> None:
    quoted = [
        *('"a",2,"c"', '1,"b,""', '"",2,""', '"a,b",2,3', '"a","b"c,3', '",""",3', '"1",2,"3\n4",5,"6"', '1,",2"c,"')
    ]
    lines = [
        line.replace(",", separator)
        for line in (*LINES, *quoted, "1,2,3", f"{'y' * 132_000},2,3", f"{'é' * 66_000},2,3")
    ]
    pairs = [*product(lines, ["4,5,6".replace(",", separator), ""]), ("7", "\t")]
    files = [written(pair, header) for pair in pairs for header in (separator.join("abc"), "a")]
    layout, read = FileFormat(separator=separator), csv_files.read_csv
    fast: list[int] = []

    def counted(*given: Any) -> Any:
        fast.append(1)
        return read(*given)

    monkeypatch.setattr(csv_files, "read_csv", counted)
    got = [cells(data, layout) for data in files]
    monkeypatch.setattr(csv_files._Table, "_plain", lambda *_: None)
    assert got == [cells(data, layout) for data in files] and len(fast) > len(files) // 4


BORDERS = ["1,2,3", '"x', '"y",2,3', 'bed 5",4,5', '1,"', '",2', "a\rb", '"a\r', "", "é" * 40, "1,2,3,4", "a\0"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("encoding", "quote"),
    [
        *(("utf-8", '"'), ("utf-8-sig", '"'), ("utf-16", '"'), ("utf-32", '"'), ("latin-1", "'"), ("cp1252", "")),
        ("gb18030", '"'),
    ],
)
def test_no_encoding_quote_or_border_of_a_block_joins_lines(
    monkeypatch: MonkeyPatch, encoding: str, quote: str
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


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("block", [5, 1000])
def test_no_byte_too_many_hides_the_lines_up_to_another(monkeypatch: MonkeyPatch, encoding: str, block: int) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", block)
    end, others = "\n".encode(encoding), [[str(place), "é", ""] for place in range(6)]
    lines = [",".join(row).encode(encoding) for row in others]
    odd = [b"", b"x", b"xy", b"xyz", b"\0", b"\n", b"\0\0", b"\0\n", b"\n\0", "\u0a0a\u0a00\u000a0".encode(encoding)]
    refused = 0
    for header, b, a in product((b"", b"z"), odd, odd):
        some = ["a,b,c".encode(encoding) + header, *lines[:2], b, *lines[2:4], a, *lines[4:]]
        got = cells("\ufeff".encode(encoding) + end.join(some))
        assert got is None or [row for row in got if row[1] == "é"] == others, (header, b, a)
        refused += got is None
    assert 100 < refused < 200


@pytest.mark.parametrize("line", ['"lies awake,51,yes', "a\rb", "a\0b", '"x\ny",1', "x" * 2_000, "y" * 1_100, "1\r"])
@pytest.mark.parametrize("is_header", [False, True])
def test_a_refused_line_is_said_in_words_and_not_quoted(monkeypatch: MonkeyPatch, line: str, is_header: bool) -> None:
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
            next(csv_chunks(place, PLAIN, 0))


@pytest.mark.parametrize("hint", ["sep=;", '"sep=;"', "SEP=;", "\r\nsep=;"])
def test_the_first_line_of_excel_names_the_separator(hint: str) -> None:
    data = f"{hint}\r\na,x;b\r\n1,5;sep=;\r\n".encode()
    place: Any = InMemory(data)
    assert [*next(csv_chunks(place, PLAIN, 0)).columns] == ["a,x", "b"]
    assert cells(data.replace(b"5;", b"5 ")) == [["1,5 sep=", ""]] and cells(data.replace(b"a,x;b", b"b")) is None
    assert cells(data, FileFormat(separator=",")) == [["1", "5;sep=;"]]


@pytest.mark.parametrize("name", ["T.CSV", "T.TSV", "T.Csv.GZ", "T.csv.ZIP", "T.XLSX", "T.PARQUET"])
def test_an_ending_in_capitals_is_an_ending(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"c": ["x", "y"]})
    path, small = tmp_path / name, tmp_path / name.lower()
    if small.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'likeness-dp[excel]'")
    writes = {".xlsx": frame.to_excel, ".parquet": frame.to_parquet}
    writes.get(small.suffix, frame.to_csv)(small, index=False)
    small.rename(path)
    assert read_source(path, OPEN)[0]["c"].tolist() == ["x", "y"]
    assert header_of(path) == ["c"] and list(guesses_of(path)[0]) == ["c"] and table_name(name) == "T"
    if small.suffix == ".parquet":
        assert read_source(path.parent, OPEN)[0]["c"].tolist() == ["x", "y"] and parquet_rows(path) == 2


OPEN = schema_with({"c": {"kind": "categorical", "categories": "private", "nullable": True}}, name="t")


def assert_no_private_word(error: BaseException) -> None:
    assert SECRET not in str(error) and error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize("kind", [pa.binary(9), pa.binary(), pa.large_binary(), pa.binary_view(), pa.uuid()])
def test_bytes_are_text_in_utf_8_or_refused_without_the_cell(tmp_path: Path, kind: pa.DataType) -> None:
    def read(cell: bytes, in_file: bool) -> Any:
        table = pa.table({"c": pa.array([cell], kind), "n": [1]})
        if not in_file:
            return read_frame(pandas_frame(table)[0], OPEN)["c"].tolist()
        pq.write_table(table, tmp_path / "t.parquet")
        return read_source(tmp_path / "t.parquet", OPEN, source=SourceDigest())[0]["c"].tolist()

    for in_file in (False, True):
        if kind == pa.uuid():
            assert read(bytes(16), in_file) == ["00000000-0000-0000-0000-000000000000"]
            continue
        assert read(SECRET.encode(), in_file) == [SECRET]
        with pytest.raises(DataError, match=r"column 'c' holds cells that are not .* not UTF-8") as caught:
            read(SECRET.encode()[:-1] + b"\xff", in_file)
        assert_no_private_word(caught.value)


@pytest.mark.parametrize(("dtype", "cell"), [("Object", {SECRET}), ("Int128", 1)])
def test_a_column_that_polars_keeps_for_itself_is_refused(dtype: str, cell: Any) -> None:
    """Arrow gives the addresses of objects."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": [1], "c": polars.Series([cell], dtype=getattr(polars, dtype))})
    with pytest.raises(DataError, match="without columns of objects or 128 bits: 'c'") as caught:
        pandas_frame(frame)
    assert_no_private_word(caught.value)


# Cells of one family: a library finds one type for two of them, and the type depends on both.
FAMILIES: dict[str, list[Any]] = {
    "decimals": [Decimal(text) for text in ("1.5", "2.250", "-0.00", "100", "0.0000001")],
    "moments": [datetime(2020, 1, 1), datetime(1700, 1, 1, 3), datetime(2020, 1, 1, 3, 4, 5, 6), pd.Timestamp(1)],
    "zoned": [datetime(2020, 7, 1, 3, tzinfo=UTC), pd.Timestamp("2020-07-01 03:04:05.5", tz="Asia/Tokyo")],
    "times": [time(3), time(3, 4, 5, 600_000)],
    "numbers": [1, 2.5, -0.0, 1e300],
    "texts": ["x", "", " y ", "1.0", "nan"],
    "bytes": [b"x", b"", "é".encode()],
    "days": [date(2020, 1, 1), date(1, 1, 1)],
}


def column_of(cells: list[Any], maker: str) -> Any:
    """A column as a library makes it of these cells, with the type that it finds."""
    if maker == "pandas":
        return pd.DataFrame({"c": pd.Series(cells)})
    if maker == "polars":
        return pytest.importorskip("polars").DataFrame({"c": cells}, strict=False)
    array = pa.array(cells)
    return pa.table({"c": array.dictionary_encode() if maker == "dictionary" else array})


@pytest.mark.long
@pytest.mark.parametrize("maker", ["pandas", "polars", "arrow", "dictionary", "parquet", "folder"])
def test_no_cell_changes_the_text_of_another_in_the_column_that_a_library_makes(tmp_path: Path, maker: str) -> None:
    def read(cells: list[Any]) -> "list[Any] | None":
        """Texts, None where missing; None without a list where the library finds no type."""
        try:
            parts = [column_of(some, maker) for some in ([[cell] for cell in cells] if maker == "folder" else [cells])]
        except Exception:  # each library has its own
            return None
        if maker not in ("parquet", "folder"):
            table = read_frame(pandas_frame(parts[0])[0], OPEN)
        else:
            for place in (0, 1):
                pq.write_table(
                    parts[place] if parts[place:] else OTHER, tmp_path / f"{place}.parquet", row_group_size=1
                )
            table = read_source(tmp_path, OPEN)[0].iloc[: len(cells)]
        column = table["c"].astype("object")
        return column.where(column.notna(), None).tolist()

    seen = 0
    for cells in FAMILIES.values():
        alone = [read([cell]) for cell in cells]
        for (a, own), (b, other) in product(zip(cells, alone, strict=True), repeat=2):
            both = read([b, a])
            if both is not None:
                assert own is not None and other is not None and both == [*other, *own], f"{b!r}, then {a!r}"
                seen += 1
    assert seen > 60


OTHER = pa.table({"c": ["z"]})


def test_the_digest_of_a_file_does_not_hang_on_resolution_and_scale(tmp_path: Path) -> None:
    """Else the same people are a new population with a budget of its own."""
    digests = set()
    for unit, scale in (("ms", 2), ("us", 3), ("ns", 9)):
        moments = pa.array([datetime(2020, 1, 1, 3), None], pa.timestamp(unit))
        costs = pa.array([Decimal("1.5"), Decimal("2.25")], pa.decimal128(18, scale))
        spans = pa.array([timedelta(seconds=1), None], pa.duration(unit))
        pq.write_table(pa.table({"c": ["x", "y"], "t": moments, "d": costs, "s": spans}), tmp_path / "t.parquet")
        digests.add(source := SourceDigest())
        read_source(tmp_path / "t.parquet", OPEN, source=source)
    assert len({one.digest(b"k" * 32) for one in digests}) == 1


# Excel

SHEET = [
    None, 1, -0.0, 0.1, 1e300, True, False, "x", "", " 3 ", "3.0", "#N/A", "a\nb", '"x,1', "_x000D_", "'1", "é\u2028",
    datetime(2020, 1, 1), datetime(2020, 1, 1, 17, 30), date(1999, 12, 31), time(3, 4), timedelta(hours=30),
]  # fmt: skip


def sheet(path: Path, rows: list[list[Any]], change: Callable[[bytes], bytes] = bytes) -> Path:
    """A workbook, whose sheet is changed as XML."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'likeness-dp[excel]'")
    book = openpyxl.Workbook()
    for row in [["n", "c"], *rows]:
        book.active.append(row)
    book.save(path)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, part in parts.items():
            packed.writestr(name, change(part) if "sheet1" in name else part)
    return path


def column_c(path: Path) -> list[Any]:
    column = read_source(path, OPEN)[0]["c"].astype("object")
    return column.where(column.notna(), None).tolist()


def test_no_cell_of_a_sheet_changes_another(tmp_path: Path) -> None:
    """One sheet has each cell alone between others; another has all ordered pairs of neighbors."""
    alone = column_c(sheet(tmp_path / "a.xlsx", [row for cell in SHEET for row in ([0, "other"], [1, cell])]))
    texts = alone[1::2]
    assert set(alone[::2]) == {"other"} and len({*texts}) > 15
    pairs = list(product(range(len(SHEET)), repeat=2))
    rows = [[at, SHEET[place]] for pair in pairs for at, place in enumerate(pair)]
    assert column_c(sheet(tmp_path / "b.xlsx", rows)) == [texts[place] for pair in pairs for place in pair]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"<f>1+1</f><v />", b"<f>1+1</f>", "a formula has no stored value"),
        (b"<f>1+1</f><v />", b"<f>1+1</f><v></v>", "a formula has no stored value"),
        (b'<row r="3">', b'<row r="1048576">', "numbers of its rows do not rise"),
        (b'<row r="3">', b'<row r="2">', "numbers of its rows do not rise"),
        (b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="B2:B3"/></mergeCells>', "merged over several rows"),
    ],
)
def test_what_takes_other_rows_in_a_sheet_is_refused(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    """openpyxl drops all rows behind one whose number is too large."""
    rows: list[list[Any]] = [[1, "x"], [2, SECRET], [3, "=1+1"], [4, "y"]]

    def stored(part: bytes) -> bytes:
        part = re.sub(rb"(<f>1.1</f>)<v ?(/>|></v>)", rb"\1<v />", part)
        assert old in part
        part = part.replace(old, new)
        return part if "formula" in message else part.replace(b"<v />", b"<v>2</v>")

    path = sheet(tmp_path / "t.xlsx", rows, stored)
    with pytest.raises(DataError, match=message) as caught:
        read_source(path, OPEN)
    assert_no_private_word(caught.value)
    text = b'<c r="B4" t="str"><f>""</f><v></v></c>'
    full = sheet(tmp_path / "t.xlsx", rows, lambda part: re.sub(rb'<c r="B4".*?</c>', text, part))
    assert column_c(full) == ["x", SECRET, None, "y"]


def test_a_workbook_with_a_chart_sheet_is_read_or_refused_in_words(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'likeness-dp[excel]'")
    book = openpyxl.Workbook()
    book.active.append(["c"])
    book.create_chartsheet(SECRET)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="Remove chart sheets") as caught:
        read_source(tmp_path / "t.xlsx", OPEN)
    assert_no_private_word(caught.value)


# Databases, other places, histories

STORED: list[Any] = [
    None, 2**63 - 1, 1.0, 1e300, float("inf"), "x", "", " 3 ", "3.0", "a\0b", "a\nb", b"x", b"\xff", "2020-01-01",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("affinity", ["", "NUMERIC"])
def test_no_row_of_a_database_changes_another(tmp_path: Path, affinity: str) -> None:
    """SQLite types each cell by itself, whatever the column says."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as written:
        written.execute(f"CREATE TABLE t (place, c {affinity})")
        written.executemany("INSERT INTO t VALUES (?, ?)", enumerate(STORED))
        written.execute("INSERT INTO t VALUES (?, CAST(? AS TEXT))", (len(STORED), SECRET.encode() + b"\xff"))
        written.commit()

    def read(*places: int) -> "list[str] | None":
        query = f"SELECT c FROM t WHERE place IN {(*places, -1)}"  # noqa: S608
        try:
            column = Database(f"sqlite:///{tmp_path / 't.db'}", query).read(OPEN)[0]["c"]
        except DataError as error:
            assert_no_private_word(error)
            return None
        return sorted(map(repr, column))

    alone = [read(place) for place in range(len(STORED) + 1)]
    assert alone[-1] is None and sum(own is None for own in alone) == 2
    for b, a in combinations(range(len(alone)), 2):
        first, second = alone[b], alone[a]
        assert read(b, a) == (None if first is None or second is None else sorted(first + second)), (b, a)
