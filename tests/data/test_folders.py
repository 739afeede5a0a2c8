"""Folders as a source: a refusal names the source and no file in it, and names that records decide give no order.

Layouts of dates: each text has one meaning, in any locale, and what is written reads back.
"""

import locale
import os
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from small_project import asking
from toys import schema_with

from likeness.config.params import FileFormat
from likeness.core.errors import DataError, LikenessError, ParamsError, SchemaError
from likeness.core.hashing import keyed_digest
from likeness.core.remote import RemotePath
from likeness.data.encoding.dtypes import to_dtypes, typed_again
from likeness.data.schema.kinds import KINDS, Date
from likeness.data.schema.kinds.kind import ColumnFacts
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import type_table
from likeness.data.source.csv_files import csv_chunks
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.header import guesses_of, header_of
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import csv_bytes
from likeness.preflight.faults import examine
from likeness.stages import ingest

ROOT = Path(__file__).parents[2]
JANE = "Jane Doe 1971-02-03"  # the name of a file may be a person's
TABLE = schema_with({"v": {"kind": "integer", "lower": 0, "upper": 99}}, name="t")
LABEL = {"year": {"kind": "categorical", "categories": ["2023", "2024"]}}
IMAGES = schema_with(LABEL, "year", name="t", image={"shape": [2, 2]})
NO_LABEL = schema_with({}, name="t", image={"shape": [2, 2]})


def images(folder: Path, depth: int = 1) -> Path:
    """Images in folders by class, or by part and class, or in none."""
    for place in range(4):
        names = (["train", "test"][place % 2], ["2023", "2024"][place // 2])[2 - depth :]
        inner = folder.joinpath(*names)
        inner.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2), place, np.uint8)).save(inner / f"{JANE} {place}.png")
    return folder


def parquet(folder: Path, cells: Any = ("1", "2"), folders: str = "") -> Path:
    """A good file, and one of Jane."""
    for name, values in (("Adam", ["1"]), (JANE, cells)):
        inner = folder / folders / f"{name}.parquet"
        inner.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"v": list(values)}).to_parquet(inner)
    return folder


def damaged(folder: Path) -> Path:
    (parquet(folder) / f"{JANE}.parquet").write_bytes(b"PAR1")
    return folder


def other_columns(folder: Path) -> Path:
    pd.DataFrame({"w": [1]}).to_parquet(parquet(folder) / f"{JANE}.parquet")
    return folder


def with_pipe(folder: Path) -> Path:
    parquet(folder, folders=f"{JANE}=1")
    os.mkfifo(folder / f"{JANE}=1" / f"{JANE}.parquet.tmp")
    return folder


def pictures(folder: Path) -> Path:
    """A column of bytes that are no image."""
    folder.mkdir()
    pd.DataFrame({"picture": [b"\0"], "year": ["2023"]}).to_parquet(folder / f"{JANE}.parquet")
    return folder


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(DataError) as caught:
        action()
    return str(caught.value)


WITH_IMAGES = "images" in MODELS
READ_AS_IMAGES = [
    (pictures, IMAGES, "column 'picture' has an image"),
    (lambda folder: images(folder, 2), IMAGES, "must lie in folders as"),
] * WITH_IMAGES


@pytest.mark.parametrize(
    ("make", "schema", "words"),
    [
        (lambda folder: parquet(folder, ["HIV"]), TABLE, "column 'v' has a value that is not a number"),
        (lambda folder: parquet(folder, [[1]]), TABLE, "column 'v'"),
        (other_columns, TABLE, "column 'v' is missing"),
        (damaged, TABLE, "cannot be read as a table"),
        (with_pipe, TABLE, "holds an item that is neither a file nor a folder"),
        *READ_AS_IMAGES,
    ],
)
def test_a_refusal_names_the_source_and_no_file_in_it(
    make: Callable[[Path], Path], schema: Schema, words: str, tmp_path: Path
) -> None:
    told = refusal(lambda: read_source(make(tmp_path / "clinic"), schema))
    assert told.startswith("clinic: ") and words in told and "Jane" not in told


@pytest.mark.parametrize(("make", "schema"), [*[(images, IMAGES)] * WITH_IMAGES, (parquet, TABLE)])
@pytest.mark.parametrize("what", ["open", "iterdir", "is_dir", "is_file"])
def test_what_the_system_refuses_in_a_folder_has_the_name_of_the_source(
    make: Callable[[Path], Path], schema: Schema, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the folder is hashed, and while its header is read."""
    folder = make(tmp_path / "clinic")
    usual = getattr(Path, what)

    def refused(path: Path, *words: Any) -> Any:
        if folder in path.parents or (what == "iterdir" and path == folder):
            raise PermissionError(13, "Permission denied", str(path / JANE))
        return usual(path, *words)

    monkeypatch.setattr(Path, what, refused)
    actions = [lambda: keyed_digest(folder, b"k")]
    if what != "open" or make is images:  # Arrow opens files itself
        actions.append(lambda: read_source(folder, schema))
    if what != "open":
        actions += [
            lambda: header_of(folder),
            lambda: guesses_of(folder),
            lambda: read_source(folder, TABLE, None, "p"),
        ]
    for action in actions:
        told = refusal(action)
        assert told.startswith("clinic: ") and "cannot be read (PermissionError)" in told and "Jane" not in told


@pytest.mark.skipif(not WITH_IMAGES, reason="nothing that is here reads folders of images")
@pytest.mark.parametrize("what", ["open", "ls"])
def test_what_a_server_refuses_in_a_folder_has_the_name_of_the_source(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'likeness-dp[remote]'")
    files = fsspec.filesystem("memory")
    files.store.clear()
    for path in images(tmp_path / "clinic").rglob("*.png"):
        files.pipe_file(f"/box/clinic/{path.parent.name}/{path.name}", path.read_bytes())
    folder, usual = RemotePath("memory://box/clinic"), getattr(type(files), what)

    def refused(system: Any, path: str, *words: Any, **more: Any) -> Any:
        if "20" in path:
            raise PermissionError(13, "Permission denied", path)
        return usual(system, path, *words, **more)

    assert len(read_source(folder, IMAGES)[0]) == 4
    monkeypatch.setattr(type(files), what, refused)
    for action in (lambda: keyed_digest(folder, b"k"), lambda: read_source(folder, IMAGES)):
        told = refusal(action)
        assert told.startswith("clinic: cannot be reached (PermissionError)") and "Jane" not in told


def project(folder: Path, source: Path, schema: Schema, **privacy: Any) -> Project:
    return asking(folder, schema, {"source": source.name, "split": {"test_fraction": 0.5}}, **privacy)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "schema", "refused"),
    [
        *[(images, IMAGES, True), (lambda folder: images(folder, 0), NO_LABEL, True)] * WITH_IMAGES,
        (lambda folder: parquet(folder, folders="year=2024"), TABLE, True),
        (lambda folder: parquet(folder, folders="other=1/year=2024"), schema_with(LABEL, name="t"), True),
        (parquet, TABLE, False),
        (lambda folder: parquet(folder) / "Adam.parquet", TABLE, False),
    ],
)
def test_replace_one_refuses_names_that_a_record_decides(
    make: Callable[[Path], Path], schema: Schema, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that changes its class, or a row that changes its partition, would move the places of all others."""
    monkeypatch.chdir(tmp_path)
    ledger, source = Ledger.create(locate()), make(tmp_path / "clinic")
    source = source if source.is_dir() else source.rename(tmp_path / source.name)
    asked = project(tmp_path, source, schema, adjacency="replace_one", num_records=1 + (schema is not TABLE))
    words = "privacy.adjacency is replace_one, but ingest.source is a folder of images or of partitions"
    found = [fault for fault in examine(tmp_path).faults if words in fault.text]
    assert [fault.file for fault in found] == ["params.yaml"] * refused
    for action in (
        lambda: asked.ledger_session.check_ready(asked.sources),
        asked.source_digest,
        lambda: ingest.main(asked),
    ):
        told = ""
        try:
            action()
        except LikenessError as error:
            told = str(error)
            assert not refused or isinstance(error, ParamsError)
        assert (words in told) is refused and "Jane" not in told
    assert Ledger.open(locate()).head() == ledger.head()
    usual = project(tmp_path, source, schema)
    assert not any(words in fault.text for fault in examine(tmp_path).faults)
    usual.ledger_session.check_ready(usual.sources)


DATES = ["%d.%m.%Y", "%Y%m%d", "%d%m%Y", "%j/%Y", "%A, %d %B %Y", "%b %d, %Y", "%a %d-%b-%Y", "%m/%d/%Y %%", "%Y %d%b"]
TIMES = ["%d.%m.%Y %H:%M:%S", "%I:%M:%S %p %Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z", "%d%m%Y%H%M%S", "%B %d %Y, %H h %M %S.%f"]
SHORT = ["%d.%m.%y", "%y%m%d", "%d%m%y", "%j %y", "%d %b %y", "%m/%d/%y"]
LAYOUTS = [("date", one) for one in (*DATES, *SHORT)] + [("datetime", one) for one in TIMES]


def column_of(kind: str, layout: str, lower: str = "1930-01-01", upper: str = "2020-12-31", **more: Any) -> Schema:
    spec = {"kind": kind, "format": layout, "lower": lower, "upper": upper, "nullable": True, **more}
    return schema_with({"d": spec}, name="t")


def read(cells: Any, schema: Schema) -> list[str | None]:
    """What cells become, as ISO texts."""
    typed = read_frame(pd.DataFrame({"d": cells}), schema)["d"].astype("object")
    return [None if cell is None or pd.isna(cell) else str(cell) for cell in typed]


@pytest.mark.long
@given(st.sampled_from(LAYOUTS), st.data())
@settings(max_examples=300, deadline=None)
def test_what_is_written_reads_back(of: tuple[str, str], data: st.DataObject) -> None:
    kind, layout = of
    own = KINDS[kind]
    assert isinstance(own, Date)
    low, high = (int(own.number(end, last=end > "5") or 0) for end in ("0001-01-01", "9999-12-31"))
    if "%y" in layout:
        start = data.draw(st.integers(low, high - 36_524))
        low, high = start, data.draw(st.integers(start, start + 36_523))
    number = float(data.draw(st.integers(low, high)))
    text, column = own.text(number, layout), ColumnFacts("d", kind, float(low), float(high), format=layout)
    assert own.number(text, column) == own.number(text.upper(), column) == number
    moment = own.moment(number)
    if moment.year >= 1000 and "%z" not in layout:
        assert text == moment.strftime(layout)  # the same where the library's way is right


@pytest.mark.long
@pytest.mark.parametrize(("kind", "layout"), LAYOUTS)
@pytest.mark.parametrize("dtype", ["str", "object", "int64", "Int32", "date32[day][pyarrow]", "datetime64[s]"])
def test_tables_in_any_dtype_read_back(kind: str, layout: str, dtype: str) -> None:
    lower, upper = ("0950-01-01", "1049-12-31") if "%y" in layout else ("0001-01-01", "2020-12-31")
    try:
        schema = column_of(kind, layout, lower, upper, dtype=dtype)
    except SchemaError:
        assert dtype in ("int64", "Int32")  # dates that are no numbers
        return
    column = schema.column("d")
    numbers = np.linspace(*column.bounds, 40).round()
    if kind == "datetime" and dtype.startswith("date32"):
        numbers -= numbers % 86_400
    table = pd.DataFrame({"d": column.to_typed(np.append(numbers, np.nan))})
    shown = to_dtypes(table, schema)
    assert shown["d"].isna().sum() == 1
    pd.testing.assert_frame_equal(typed_again(shown, schema), table)


def test_a_year_of_two_digits_lies_in_the_bounds() -> None:
    schema = column_of("date", "%d.%m.%y")
    cells = ["01.02.30", "31.12.68", "01.01.69", "05.06.99", "05.06.00", "31.12.20", "29.02.00"]
    expected = ["1930-02-01", "1968-12-31", "1969-01-01", "1999-06-05", "2000-06-05", "2020-12-31", "2000-02-29"]
    assert read(cells, schema) == expected
    assert read(["01.01.24", "01.01.27"], schema) == ["2020-12-31", "1930-01-01"]  # outside: the nearer century
    assert to_dtypes(read_frame(pd.DataFrame({"d": cells}), schema), schema, {"d": "str"})["d"].tolist() == cells


@pytest.mark.parametrize(("lower", "upper"), [("1920-12-31", "2020-12-31"), ("1800-01-01", "2020-01-01")])
def test_two_digits_for_a_hundred_years_are_refused(lower: str, upper: str) -> None:
    with pytest.raises(SchemaError, match="its bounds span 100 years or more"):
        column_of("date", "%d.%m.%y", lower, upper)
    assert column_of("date", "%d.%m.%y", "1921-01-01", "2020-12-31")
    assert column_of("date", "%y %d.%m.%Y", lower, upper)


@pytest.mark.parametrize(
    "layout",
    ["%x", "%d.%m.%Y %Z", "%G-W%V-%u", "%W %w %Y", "%m.%Y", "%d.%Y", "%Y-%m-%d %Y", "%d.%m.%Y %", "%", "", "%e.%m.%Y"],
)
def test_a_layout_without_one_meaning_is_refused(layout: str) -> None:
    with pytest.raises(SchemaError, match=r"does not read a whole date. Write e.g. %d.%m.%Y. Parts: %A, %B,"):
        column_of("date", layout)
    for times in ("%Y-%m-%d %I:%M", "%c", "%Y-%m-%d %M", "%Y-%m-%d %I %p"):
        with pytest.raises(SchemaError, match="does not read a whole datetime"):
            column_of("datetime", times)


@pytest.mark.parametrize("layout", ["%Y-%d-%m", "%Y-%d-%m %H:%M:%S"])
def test_a_layout_that_reads_iso_dates_otherwise_is_refused(layout: str) -> None:
    """Cells with a type are ISO texts."""
    with pytest.raises(SchemaError, match="as another day than ISO 8601"):
        column_of("date" if len(layout) == 8 else "datetime", layout)


def test_names_are_english_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    import _strptime

    class German(_strptime.LocaleTime):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a_month = self.f_month = [name.replace("may", "mai") for name in self.a_month]
            self.lang = ("de_DE", "UTF-8")

    monkeypatch.setattr(_strptime, "LocaleTime", German)
    monkeypatch.setattr(_strptime, "_getlang", lambda: ("de_DE", "UTF-8"))
    monkeypatch.setattr(_strptime, "_TimeRE_cache", _strptime.TimeRE())
    monkeypatch.setattr(_strptime, "_regex_cache", {})
    schema = column_of("date", "%d. %b %Y")
    assert read(["03. May 2001", "3. OCT 1999"], schema) == ["2001-05-03", "1999-10-03"]
    with pytest.raises(DataError, match=r"a date like %d. %b %Y, with names in English"):
        read(["03. Mai 2001"], schema)
    assert locale.setlocale(locale.LC_TIME) in ("C", "C.UTF-8", "en_US.UTF-8")


@pytest.mark.parametrize(
    ("kind", "layout", "cell"),
    [
        ("date", "%Y%m%d", 20010203), ("date", "%Y%m%d", 20010203.0), ("date", "%d%m%Y", 3022001),
        ("date", "%y%m%d", 10203), ("date", "%d.%m.%Y", "3.2.2001"),
        ("date", "%d.\u00a0%B %Y", "3.\u202ffebruary 2001"),
        ("date", "%d.%m.%y", "2001-02-03"), ("date", "%d.%m.%Y", datetime(2001, 2, 3)),
        ("date", "%d.%m.%Y", date(2001, 2, 3)),
        ("date", "%Y-%m-%d %H:%M", "2001-02-03 17:05"), ("date", "%d/%b/%Y", np.str_("3/Feb/2001")),
    ],
)  # fmt: skip
def test_cells_in_a_layout(kind: str, layout: str, cell: Any) -> None:
    assert read([cell, None], column_of(kind, layout)) == ["2001-02-03", None]


@pytest.mark.parametrize(
    ("kind", "layout", "cell"),
    [
        ("date", "%d%m%Y", "3.02.2001"), ("date", "%d.%m.%Y", "31.02.2001"), ("date", "%d.%m.%Y", "03.02.01"),
        ("date", "%d.%m.%Y", "٠٣.02.2001"), ("date", "%j %Y", "366 2001"), ("date", "%j %Y", "0 2001"),
        ("datetime", "%d.%m.%Y %H:%M", "03.02.2001 24:00"), ("datetime", "%d.%m.%Y %H:%M:%S", "03.02.2001 23:59:60"),
        ("datetime", "%d.%m.%Y %I:%M %p", "03.02.2001 13:00 PM"),
        ("datetime", "%Y-%m-%d %H:%M %z", "2001-02-03 1:00 +2460"), ("date", "%d.%m.%Y", "2001-02-03 17:00"),
    ],
)  # fmt: skip
def test_cells_without_one_meaning_are_refused(kind: str, layout: str, cell: str) -> None:
    with pytest.raises(DataError, match=f"not a {kind} like"):
        read([cell], column_of(kind, layout))


@pytest.mark.parametrize("cell", ["2001-02-03 24:00", "2001-02-03 24:00:00", "2001-02-03 23:59:60", "2001-02-03 25:00"])
def test_hours_and_seconds_beyond_the_day_are_refused_by_every_python(cell: str) -> None:
    schema = schema_with({"d": {"kind": "datetime", "lower": "2000-01-01", "upper": "2020-01-01"}}, name="t")
    with pytest.raises(DataError, match="not a datetime in ISO 8601"):
        read([cell], schema)


def test_offsets_and_years_before_1000() -> None:
    schema = column_of("datetime", "%Y-%m-%d %H:%M%z", "0900-01-01", "2020-12-31")
    cells = ["0999-06-10 01:30+02:00", "0999-06-10 01:30-0130", "0999-06-09 23:30Z"]
    assert read(cells, schema) == ["0999-06-09 23:30:00", "0999-06-10 03:00:00", "0999-06-09 23:30:00"]
    schema = column_of("date", "%d.%m.%Y", "0900-01-01", "2020-12-31")
    typed = read_frame(pd.DataFrame({"d": ["10.06.0999"]}), schema)
    assert to_dtypes(typed, schema, {"d": "str"})["d"].tolist() == ["10.06.0999"]


@pytest.mark.parametrize(
    ("layout", "lines"),
    [
        (FileFormat(), ["d,t,cost,rate,ward,run", '30.12.2019,17:05,7.50,0.25,"a,b",\'=1+1', ",,,,c;d,-1"]),
        (FileFormat(decimal=","), ["d;t;cost;rate;ward;run", "30.12.2019;17:05;7,50;0,25;a,b;'@x", ';;;;"c;d";\'-a']),
        (FileFormat("|", quote="'"), ["d|t|cost|rate|ward|run", "30.12.2019|17:05|7.50|0.25|a,b|-1", "||||c;d|+2,5"]),
    ],
    ids=["plain", "german", "bars"],
)
def test_a_synthetic_csv_is_written_as_its_source_is(layout: FileFormat, lines: list[str], tmp_path: Path) -> None:
    columns: dict[str, dict[str, Any]] = {
        "d": {"kind": "date", "format": "%d.%m.%Y", "lower": "1930-01-01", "upper": "2020-12-31"},
        "t": {"kind": "time", "format": "%H:%M", "lower": "00:00", "upper": "23:59"},
        "cost": {"kind": "numeric", "lower": 0, "upper": 9, "decimals": 2},
        "rate": {"kind": "numeric", "lower": 0, "upper": 9},
        "ward": {"kind": "categorical", "categories": ["a,b", "c;d"]},
        "run": {"kind": "categorical", "categories": ["=1+1", "-1", "@x", "-a", "+2,5"]},
    }
    schema = schema_with({name: {**spec, "nullable": name not in ("ward", "run")} for name, spec in columns.items()})
    (tmp_path / "source.csv").write_text("\n".join([*lines, ""]))
    (cells,) = csv_chunks(tmp_path / "source.csv", layout, 9)
    assert csv_bytes(type_table(cells, schema, "t", layout.decimal), schema, layout).decode().splitlines() == lines
