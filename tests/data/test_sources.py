"""One table, written in many ways, in many places: always the same rows."""

import bz2
import gzip
import lzma
import warnings
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pytest import MonkeyPatch
from toys import schema_with

from likeness.config.params import FileFormat, Ingest
from likeness.core.errors import DataError, ParamsError
from likeness.core.hashing import keyed_digest
from likeness.core.remote import RemotePath, source_path
from likeness.data.source.csv_files import csv_chunks
from likeness.data.source.files import parquet_rows, read_source
from likeness.data.source.header import guesses_of, header_of
from likeness.data.source.row_digests import SourceDigest
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.ingest import IngestedRows, source_rows, typed_rows
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine

ROOT = Path(__file__).parents[2]
PLAIN = FileFormat()
SECRET = "Xq7Secret"  # stands for a private value: it must never be in a message
KEY = b"k" * 32
COLUMNS = {
    "age": {"kind": "integer", "lower": 0, "upper": 110, "nullable": True},
    "cost": {"kind": "numeric", "lower": -10, "upper": 1000, "missing_values": ["."], "nullable": True},
    "ward": {"kind": "categorical", "categories": ["Köln", "a, b", "1,5"]},
    "seen": {"kind": "date", "lower": "2000-01-01", "upper": "2030-01-01"},
    "smokes": {"kind": "boolean"},
}
SCHEMA = schema_with(COLUMNS, name="visits")
ROWS = [
    ["42", "1.5", "Köln", "2020-02-29", "1.0", "train"],
    ["", "-0.25", "a, b", "2021-03-01", "0.0", "test"],
    ["7", "", "1,5", "2022-12-31", "1.0", "train"],
]
HEADER = [*COLUMNS, "part"]


def text(separator: str = ",", decimal: str = ".", quote: str = '"') -> str:
    """The table as a CSV. Only numbers have a decimal mark."""
    rows = [[row[0], row[1].replace(".", decimal), *row[2:]] for row in ROWS]
    lines = [[f"{quote}{cell}{quote}" if separator in cell else cell for cell in row] for row in [HEADER, *rows]]
    return "\n".join(separator.join(line) for line in lines) + "\n"


def plain(folder: Path) -> Any:
    (folder / "plain.csv").write_text(text(), encoding="utf-8")
    return read_source(folder / "plain.csv", SCHEMA, "part")


def assert_same(folder: Path, path: Any, layout: FileFormat = PLAIN) -> None:
    table, split, _ = plain(folder)
    read, parts, _ = read_source(path, SCHEMA, "part", layout=layout)
    pd.testing.assert_frame_equal(read, table)
    assert list(parts) == list(split) == ["train", "test", "train"] and header_of(path, layout) == HEADER


@pytest.mark.parametrize(
    ("written", "encoding", "layout"),
    [
        *((text(";"), "utf-8", {}), (text("\t", ","), "utf-8", {"decimal": ","}), (text("|"), "utf-8", {})),
        (text(";", ","), "latin-1", {"decimal": ",", "encoding": "latin-1"}),
        (text("^"), "utf-8", {"separator": "^"}),
        (text(",", ",", "'"), "cp1252", {"decimal": ",", "encoding": "cp1252", "quote": "'"}),
        *((text(";"), "utf-8", {"quote": ""}), (text(), "utf-8-sig", {"encoding": "utf-8"})),
        *((text(";"), "utf-16", {}), (text(), "utf-32", {}), ("\n" + text(";").replace("\n", "\r\n"), "utf-8", {})),
    ],
)
def test_a_csv_of_any_writing_gives_the_same_rows(
    tmp_path: Path, written: str, encoding: str, layout: dict[str, str]
) -> None:
    (tmp_path / "t.csv").write_bytes(written.encode(encoding))
    assert_same(tmp_path, tmp_path / "t.csv", FileFormat(**layout))


def test_only_the_first_line_says_the_separator(tmp_path: Path) -> None:
    for rows in ("a;b;c;d\n", "1,2\n;;;;,\n"):
        (tmp_path / "t.csv").write_text(f'"x;y;z",u\n{rows}')
        assert header_of(tmp_path / "t.csv") == ["x;y;z", "u"]
    (tmp_path / "t.csv").write_text('"x;y;z",u\n')
    assert header_of(tmp_path / "t.csv", FileFormat(quote="")) == ['"x', "y", 'z",u']
    (tmp_path / "t.csv").write_bytes(b"x;u\n\xff\xfe broken\n")  # no byte behind the line is decoded
    assert header_of(tmp_path / "t.csv") == ["x", "u"]


@pytest.mark.parametrize(
    ("written", "layout"),
    [
        ('x,u\n"1,2\n3,4\n5,"6"\n', {}),  # pandas reads one row here: its first cell is '1,2 3,4 5,6"'
        ('x,u\n1,"2\n3,4\n', {}),
        ("x,u\n'1,2\n3,4\n5,'6'\n", {"quote": "'"}),
        ('x,"u\nv"\n1,2\n', {}),
    ],
)
def test_a_quote_without_its_partner_is_refused_and_may_be_plain_text(
    tmp_path: Path, written: str, layout: dict[str, str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(written)
    for read in (header_of, guesses_of) if "v" in written else (guesses_of,):
        with pytest.raises(DataError, match=r"on its own line.*ingest\.format\.quote: ''"):
            read(path, FileFormat(**layout))
    path.write_text(written.replace("v", ",v"))
    assert sum(map(len, csv_chunks(path, FileFormat(quote=""), 100))) >= 2


def test_quotes_that_are_whole_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,u\n1,"2, 3"\n"4 ""5""",6" pipe\n"",\n')
    (cells,) = csv_chunks(tmp_path / "t.csv", PLAIN, 100)
    assert cells.to_numpy().tolist() == [["1", "2, 3"], ['4 "5"', '6" pipe'], ["", ""]]


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip", "zst"])
def test_a_packed_csv_gives_the_same_rows(tmp_path: Path, ending: str) -> None:
    path, data = tmp_path / f"t.csv.{ending}", text().encode()
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("t.csv", data)
    elif ending == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(data)
    else:
        path.write_bytes(PACKED[ending](data))
    assert_same(tmp_path, path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cannot be read as a table") as caught:
        read_source(path, SCHEMA)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize("ending", PACKED)
def test_a_table_packed_in_parts_is_whole_or_refused(tmp_path: Path, ending: str) -> None:
    """Tools for many cores write such files. A reader may end at the first part that is damaged."""
    data = text().encode()
    path, pack = tmp_path / f"t.csv.{ending}", PACKED[ending]
    first, second = pack(data[:99]), pack(data[99:])
    path.write_bytes(first + b"\0" * (8 if ending == "xz" else 0) + second)
    assert_same(tmp_path, path)
    path.write_bytes(first + b"\0" + second[1:])
    with pytest.raises(DataError, match="Check that it is complete"):
        read_source(path, SCHEMA)


def test_a_zip_of_two_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as file:
        file.writestr("a.csv", text())
        file.writestr("b.csv", text())
    with pytest.raises(DataError, match="must hold one file"):
        read_source(tmp_path / "t.csv.zip", SCHEMA)


@pytest.mark.parametrize(
    ("data", "layout"),
    [
        (text().replace("Köln", f"{SECRET}ö").encode("latin-1"), {}),
        (text().replace("1.5", f"{SECRET}").encode(), {}),
        (text(";", ",").replace("1,5;K", "1.234,5;K").encode(), {"decimal": ","}),  # a mark of thousands
        (text(";").encode(), {"decimal": ","}),  # 1.5 may be 15
        (text().encode(), {"separator": ";"}),
    ],
    ids=["encoding", "number", "thousands", "point", "separator"],
)
def test_what_is_not_written_so_is_refused_without_its_value(
    tmp_path: Path, data: bytes, layout: dict[str, str]
) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(DataError, match=r"t\.csv: ") as caught:
        read_source(tmp_path / "t.csv", SCHEMA, layout=FileFormat(**layout))
    assert SECRET not in str(caught.value) and "1.234" not in str(caught.value)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("separator", "ab"), ("separator", '"'), ("decimal", "x"), ("quote", "''")]
    + [("encoding", name) for name in ("x-9", "utf-7", "hz", "undefined", "idna", "punycode", "iso2022_jp")]
    + [("encoding", name) for name in ("unicode_escape", "raw_unicode_escape")],
)
def test_a_wrong_format_names_its_key(key: str, value: str) -> None:
    r"""In unicode_escape, a backslash at the end of a line joins the next one, and '\n' is two records."""
    with pytest.raises(ParamsError, match=key):
        FileFormat(**{key: value})


def excel(path: Path, sheets: tuple[str, ...] = ("visits",), rows: "list[list[Any]] | None" = None) -> Path:
    """The table with typed cells, as Excel stores them."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install 'likeness-dp[excel]'")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        typed = [[_cell(name, cell) for name, cell in zip(HEADER, row, strict=True)] for row in ROWS]
        for row in [HEADER, *typed, [None] * 6] if rows is None else rows:
            sheet.append(row)
    book.save(path)
    return path


def _cell(name: str, cell: str) -> Any:
    if not cell:
        return None
    kinds = {"age": int, "cost": float, "seen": pd.Timestamp, "smokes": lambda text: text == "1.0"}
    return kinds.get(name, str)(cell)


def test_a_sheet_gives_the_rows_of_the_csv(tmp_path: Path) -> None:
    path = excel(tmp_path / "t.xlsx")
    assert_same(tmp_path, path, FileFormat(decimal=","))  # whose mark is that of texts alone
    assert list(guesses_of(path)[0].values()) == ["integer", "numeric", "categorical", "date", "boolean", "categorical"]


def test_the_names_of_a_sheet_are_read_without_its_rows(tmp_path: Path) -> None:
    path = excel(tmp_path / "t.xlsx", rows=[["n", "x"], [1, 987654321], [2, 3]])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part.replace(b"987654321", b"no number"))
    assert header_of(path) == ["n", "x"]
    with pytest.raises(DataError, match="cannot be read"):
        guesses_of(path)


def test_a_warning_of_the_reader_quotes_no_cell(tmp_path: Path) -> None:
    """openpyxl warns of a date beyond its limits, with the cell's place and number."""
    path = excel(tmp_path / "t.xlsx", rows=[["n", "x"], [1, 987654321], [2, 3]])
    import openpyxl

    book = openpyxl.load_workbook(path)
    book.active["B2"].number_format = "yyyy-mm-dd"
    book.save(path)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        header_of(path), guesses_of(path)
    assert [str(warning.message) for warning in heard] == []


def test_equal_cells_have_one_digest_in_a_sheet_and_in_a_csv(tmp_path: Path) -> None:
    schema = schema_with({"n": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True}}, name="numbers")
    (tmp_path / "t.csv").write_text("n,day,x\n3,2020-02-29,0.1\n,2021-01-01,True\n")
    rows = [["n", "day", "x", " "], [3.0, pd.Timestamp("2020-02-29"), 0.1], [None, pd.Timestamp("2021-01-01"), True]]
    digests = [SourceDigest(), SourceDigest()]
    for path, digest in zip((tmp_path / "t.csv", excel(tmp_path / "t.xlsx", rows=rows)), digests, strict=True):
        read_source(path, schema, source=digest)
    assert digests[0].digest(KEY) == digests[1].digest(KEY) != ""


def test_several_sheets_need_a_name_and_other_names_stay_private(tmp_path: Path) -> None:
    path = excel(tmp_path / "t.xlsx", ("visits", SECRET))
    assert_same(tmp_path, path, FileFormat(sheet="visits"))
    for layout, words in (FileFormat(), "has several sheets"), (FileFormat(sheet="x"), "has no sheet 'x'"):
        with pytest.raises(DataError, match=words) as caught:
            read_source(path, SCHEMA, layout=layout)
        assert SECRET not in str(caught.value)


def test_a_damaged_sheet_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = excel(tmp_path / "t.xlsx", rows=[HEADER, [*ROWS[0], SECRET]])
    with pytest.raises(DataError, match="a row has more cells than the header") as wide:
        read_source(path, SCHEMA)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="cannot be read as a table") as cut:
        read_source(path, SCHEMA)
    for caught in (wide, cut):
        assert SECRET not in str(caught.value) and caught.value.__context__ is None


def test_a_sheet_of_times_is_read_to_the_second(tmp_path: Path) -> None:
    schema = schema_with({"t": {"kind": "datetime", "lower": "2000-01-01", "upper": "2030-01-01"}}, name="times")
    moments = ["2020-02-29 17:05:00", "2020-02-29 00:00:00", "2021-01-01 23:59:59"]
    path = excel(tmp_path / "t.xlsx", rows=[["t"], *([pd.Timestamp(moment)] for moment in moments)])
    assert read_source(path, schema)[0]["t"].astype("str").tolist() == moments


def partitions(folder: Path) -> Path:
    """The table in folders by part, as Spark writes them."""
    frame = plain(folder)[0].astype("str").replace({"<NA>": None, "nan": None}).assign(smokes=[True, False, True])
    for part, places in (("test", [1]), ("train", [0, 2])):
        target = folder / "t.parquet" / f"part={part}"
        target.mkdir(parents=True)
        frame.iloc[places].to_parquet(target / "a.parquet", index=False)
    (folder / "t.parquet" / "_SUCCESS").touch()
    return folder / "t.parquet"


def test_folders_of_partitions_are_columns(tmp_path: Path) -> None:
    path = partitions(tmp_path)
    table = plain(tmp_path)[0]
    read, parts, _ = read_source(path, SCHEMA, "part")
    pd.testing.assert_frame_equal(read, table.iloc[[1, 0, 2]].reset_index(drop=True))
    assert list(parts) == ["test", "train", "train"] and set(header_of(path)) == set(HEADER)
    assert parquet_rows(path) == 3 and guesses_of(path)[0]["part"] == "categorical"
    whole, folders = SourceDigest(), SourceDigest()
    read_source(path, SCHEMA, "part", source=folders)
    one = pa.concat_tables(
        [pq.read_table(file).append_column("part", [[name] * count]) for file, name, count in _files(path)]
    )
    pq.write_table(one, tmp_path / "one.parquet")
    read_source(tmp_path / "one.parquet", SCHEMA, "part", source=whole)
    assert whole.digest(KEY) == folders.digest(KEY) != ""
    before = keyed_digest(path, KEY)
    (path / "part=test").rename(path / "part=other")
    assert keyed_digest(path, KEY) != before


def test_a_folder_of_the_missing_partition_is_an_empty_cell(tmp_path: Path) -> None:
    """Spark and Hive give a missing value this folder. All other names are texts in percent-encoding."""
    for name, age in (("__HIVE_DEFAULT_PARTITION__", 1), ("a%2C b", 2)):
        (tmp_path / f"t.parquet/ward={name}").mkdir(parents=True)
        pq.write_table(pa.table({"age": [age]}), tmp_path / f"t.parquet/ward={name}/a.parquet")
    ward = {"kind": "categorical", "categories": ["a, b", "__HIVE_DEFAULT_PARTITION__"], "nullable": True}
    schema = schema_with({"age": COLUMNS["age"], "ward": ward}, name="t")
    read = read_source(tmp_path / "t.parquet", schema)[0].set_index("age")["ward"]
    assert pd.isna(read[1]) and read[2] == "a, b"


def _files(path: Path) -> list[tuple[Path, str, int]]:
    return [(path / "part=test/a.parquet", "test", 1), (path / "part=train/a.parquet", "train", 2)]


# Elsewhere


@pytest.fixture
def memory() -> str:
    """A URL that fsspec reads without a network."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'likeness-dp[remote]'")
    files = fsspec.filesystem("memory")
    files.store.clear()
    return "memory://box"


def put(url: str, data: bytes) -> RemotePath:
    import fsspec

    with fsspec.open(url, "wb") as file:
        file.write(data)
    return RemotePath(url)


def test_a_url_gives_the_rows_of_the_file(tmp_path: Path, memory: str) -> None:
    assert_same(tmp_path, put(f"{memory}/t.csv", text().encode()))
    assert_same(tmp_path, put(f"{memory}/t.csv.gz", gzip.compress(text(";").encode())))
    local = partitions(tmp_path)
    for file, name, _ in _files(local):
        put(f"{memory}/t.parquet/part={name}/a.parquet", file.read_bytes())
    remote = RemotePath(f"{memory}/t.parquet")
    pd.testing.assert_frame_equal(read_source(remote, SCHEMA, "part")[0], read_source(local, SCHEMA, "part")[0])
    before = keyed_digest(remote, KEY)
    put(f"{memory}/t.parquet/part=test/b.parquet", _files(local)[0][0].read_bytes())
    assert keyed_digest(remote, KEY) != before
    people = read_source(RemotePath(f"{memory}/t.csv"), SCHEMA, "part", "seen")[2]
    assert people is not None and list(people) == [row[3] for row in ROWS]


def test_what_a_url_does_not_give_is_said(memory: str) -> None:
    with pytest.raises(DataError, match=r"absent\.csv: no such file"):
        read_source(RemotePath(f"{memory}/absent.csv"), SCHEMA)
    with pytest.raises(DataError, match=r"t\.csv: cannot be reached \(ValueError\)"):
        read_source(RemotePath("nosuch://host/t.csv"), SCHEMA)


@pytest.mark.parametrize(
    "url",
    [
        f"s3://key:{SECRET}@bucket/t.csv",
        f"s3://key:{SECRET}/+x@bucket/t.csv",  # keys of AWS have slashes
        f"https://host/t.csv?X-Amz-Signature={SECRET}",
        f"simplecache::s3://key:{SECRET}@bucket/t.csv",
        f"zip://t.csv::s3://key:{SECRET}@bucket/t.zip",
        f"sftp://me:{SECRET}@host/t.csv",
        f"https://{SECRET}@host/t.csv",
        f"https://user%3A{SECRET}@host/t.csv",
        f"https://host/t.csv#token={SECRET}",
        f"https://host/t.csv;token={SECRET}",
        f"https:/me:{SECRET}@host/t.csv",  # a slash too few
        "simplecache::s3://bucket/t.csv",  # leaves a copy of the rows
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ParamsError, match="plain URL") as caught:
        Ingest(url, "schema.yaml")
    assert SECRET not in str(caught.value)


def test_urls_of_databases_stay_databases() -> None:
    for url in ("s3://bucket/t.csv", "https://host:8080/t.csv", "sftp://me@host/t.csv", "memory://t.parquet"):
        assert not Ingest(url, "schema.yaml").from_database and source_path(Path(), url) == RemotePath(url)
    for url in ("sqlite:///people.db", "postgresql+psycopg://me@host/hospital"):
        assert Ingest(url, "schema.yaml", query="visits").from_database
    with pytest.raises(ParamsError, match=r"sqlite:///people\.db"):
        Ingest("mysql://host/people", "schema.yaml", query="visits")


@pytest.mark.long
def test_a_web_server_gives_the_rows_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'likeness-dp[remote]'")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *words: Any) -> None:
            pass

    (tmp_path / "t.csv").write_text(text(";"), encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert_same(tmp_path, RemotePath(f"{url}/t.csv"))
        with pytest.raises(DataError, match=r"absent\.csv: no such file"):
            read_source(RemotePath(f"{url}/absent.csv"), SCHEMA)
        server.shutdown()


def test_a_project_reads_a_url_and_notices_a_change(tmp_path: Path, monkeypatch: MonkeyPatch, memory: str) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create(locate())
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["privacy"] |= {"population": "visitors"}
    content["ingest"] |= {
        "source": f"{memory}/t.csv",
        "schema": "schema.yaml",
        "format": {"separator": "^", "decimal": ","},
    }
    content["ingest"] |= {"split": {"column": "part"}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA.to_dict(), sort_keys=False))
    put(f"{memory}/t.csv", text("^", ",").encode())
    project = Project.load(tmp_path)
    pd.testing.assert_frame_equal(source_rows(project.sources, SCHEMA)[0], plain(tmp_path)[0])
    rows = IngestedRows(project.params, SCHEMA)
    assert [list(table["__split__"]) for table in typed_rows(project.sources, SCHEMA, rows)] == [
        ["train", "test", "train"]
    ]
    assert examine().faults == () and project.source_digest() == keyed_digest(project.sources.file, ledger.key)
    before = project.source_digest()
    put(f"{memory}/t.csv", text("^", ",").replace("42", "43").encode())
    assert project.source_digest() != before
    put(f"{memory}/t.csv", text("^", ",").replace("age", "years").encode())
    assert [fault.text for fault in examine().faults] == [
        "column 'age' of the schema is not in the header. Correct the schema."
    ]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content).replace("t.csv", "absent.csv"))
    assert "absent.csv: no such file" in examine().faults[0].text
    with pytest.raises(DataError, match=r"memory://box/absent\.csv does not exist"):
        source_rows(Project.load(tmp_path).sources, SCHEMA)
