"""A cell is typed by itself: what it becomes depends on that cell and on the public schema, and on no other cell."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from table_strategies import objects
from toys import schema_with

from likeness.core.errors import DataError
from likeness.data.schema.schema import Schema
from likeness.data.source import files as sources
from likeness.data.source.cells import cells_of, typed_column
from likeness.data.source.files import read_frame

EAST = timezone(timedelta(hours=2))
CELLS: list[Any] = [
    None, pd.NA, pd.NaT, float("nan"), np.float64("nan"), Decimal("NaN"), np.datetime64("NaT", "ns"),
    True, False, np.bool_(True), 0, -1, 2**53 + 1, 2**64 - 1, 10**30, 10**400, 3, np.int8(3), np.uint64(2**64 - 1),
    3.0, 0.5, -0.0, 1e300, float("inf"), np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble(0.1),
    Decimal("1.50"), Decimal("3"), Decimal("1E+5"), "\ud800", "x", " 3 ", "3.0", "yes", "1_000", "0x10", "1e400", "nan",
    "٣", str(2**53 + 1), str(2**64 - 1), "9" * 400, "-1", "", "2020-01-01", "2020-01-01 10:00", np.str_("3"),
    b"\xff", b"3", bytearray(b"x"), memoryview(b"x"), np.bytes_(b"3"),
    date(2020, 1, 1), datetime(1, 1, 1, tzinfo=EAST), datetime(2020, 1, 1), datetime(2020, 1, 1, 17, 30),
    datetime(2020, 1, 1, 17, 30, tzinfo=UTC), datetime(2020, 7, 1, 17, 30, tzinfo=EAST),
    datetime(2020, 7, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
    pd.Timestamp("2020-01-01 17:30:00.000000001"), pd.Timestamp("2020-01-01"),
    pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), np.datetime64("2020-01-01"), np.datetime64("2020-01-01T17:30"),
    np.datetime64("2020-01-01T17:30:00", "s"), np.datetime64("2020-01-01T17:30:00", "ns"),
    time(17, 30), time(17, 30, tzinfo=EAST), timedelta(days=1), pd.Timedelta("1s"), np.timedelta64(3, "s"),
    np.timedelta64(3, "ns"), UUID(int=3), [3], {}, (3,), object(), 1j, pd.Period("2020-01"),
]  # fmt: skip
# One cell of each type, and times of both sorts, for all ordered pairs.
PAIRED = [*{(type(cell), getattr(cell, "tzinfo", None) is None): cell for cell in CELLS}.values()]
KINDS: dict[str, dict[str, Any]] = {
    "numeric": {"kind": "numeric", "lower": -1e300, "upper": 1e300},
    "integer": {"kind": "integer", "lower": -(10**12), "upper": 10**12},
    "date": {"kind": "date", "lower": "0001-01-01", "upper": "9999-12-31"},
    "datetime": {"kind": "datetime", "lower": "0001-01-01", "upper": "9999-12-31"},
    "boolean": {"kind": "boolean"},
    "categorical": {"kind": "categorical", "categories": ["3", "True", "2020-01-01", "else"], "other": "else"},
    "open": {"kind": "categorical", "categories": "private"},  # holds the text of every cell
}
Typed = list[Any] | None


def schema_of(spec: dict[str, Any]) -> Schema:
    column = {"nullable": True, **spec}
    return schema_with({"c": column}, name="t")


def test_a_category_called_none_takes_no_unknown_text() -> None:
    schema = schema_with({"a": {"kind": "categorical", "categories": ["None", "u"]}})
    with pytest.raises(DataError, match="'a' has a value that is not among its public categories"):
        read_frame(pd.DataFrame({"a": ["None", "v"]}), schema)


def test_equal_objects_of_other_types_keep_their_texts() -> None:
    column = schema_of({"kind": "categorical", "categories": ["True", "1", "1.0"]}).column("c")
    for cells in ([True, 1, Decimal("1.0")], [Decimal("1.0"), 1, True]):
        assert [*typed_column(objects(cells), column, "t")] == [str(cell) for cell in cells]


def in_frame(cells: list[Any]) -> "pd.Series[Any]":
    return sources._frame_cells(pd.DataFrame({"c": objects(cells)}), ["c"], "t")["c"]


def in_database(cells: list[Any]) -> "pd.Series[Any]":
    return cells_of(["c"], [cells], ["c"], "t")["c"]


def values(read: "Callable[[list[Any]], pd.Series[Any]]", cells: list[Any]) -> Typed:
    """What cells become, missing as None; None instead of a list where they are refused."""
    try:
        column = read(cells).astype("object")
    except DataError:
        return None
    return column.where(column.notna(), None).tolist()


@pytest.mark.long
@pytest.mark.parametrize("read", [in_frame, in_database])
def test_no_cell_changes_the_text_of_the_one_behind_it(read: "Callable[[list[Any]], pd.Series[Any]]") -> None:
    """All ordered pairs; a cell that has no text has none among others either."""
    alone = [values(read, [cell]) for cell in PAIRED]
    assert len(PAIRED) >= 38
    for first, other in zip(alone, PAIRED, strict=True):
        for second, cell in zip(alone, PAIRED, strict=True):
            expected = None if first is None or second is None else [*first, *second]
            assert values(read, [other, cell]) == expected, f"{other!r} in front of {cell!r}"


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_changes_the_value_of_another(kind: str) -> None:
    """Each cell is typed among all others, in both orders and behind some that libraries like to follow, as alone."""
    schema = schema_of(KINDS[kind])

    def read(cells: list[Any]) -> "pd.Series[Any]":
        return read_frame(pd.DataFrame({"c": objects(cells)}), schema)["c"]

    alone = [values(read, [cell]) for cell in CELLS]
    taken = [(cell, own[0]) for cell, own in zip(CELLS, alone, strict=True) if own is not None]
    for order in (taken, taken[::-1]):
        assert values(read, [cell for cell, _ in order]) == [own for _, own in order]
    for first, other in zip(alone, CELLS, strict=True):
        if first is not None and type(other) in (int, float, date, datetime, str, type(None)):
            for cell, own in taken[:: 1 if kind == "datetime" else 7]:
                assert values(read, [other, cell]) == [*first, own], f"{other!r} in front of {cell!r}"
    assert len(taken) > 7  # not only missing cells


def test_a_number_is_the_nearest_to_its_text() -> None:
    texts = ["+6e72", "123456789012345678", "0.1", " 7 ", None]
    typed = read_frame(pd.DataFrame({"c": objects(texts)}), schema_of(KINDS["numeric"]))["c"]
    assert typed.dropna().tolist() == [float(text) for text in texts if text] and typed.isna().sum() == 1


def test_texts_are_those_of_a_column_of_one_type() -> None:
    """Digests of ordinary tables hang on them."""
    expected = {
        True: "True", 3: "3", 2**53 + 1: "9007199254740993", 0.5: "0.5", 1e300: "1e+300", -0.0: "0",
        Decimal("1.50"): "1.5", " x": "x", b"ab": "ab", date(2020, 1, 2): "2020-01-02",
        datetime(2020, 1, 2, 3, 4, 5, 6): "2020-01-02 03:04:05.000006",
        datetime(2020, 1, 2, 3, 4, tzinfo=EAST): "2020-01-02 01:04:00Z",
        pd.Timestamp("2020-01-02 03:04:05.123456789"): "2020-01-02 03:04:05.123456789",
        np.datetime64("2020-01-02T03:04:05.123", "ms"): "2020-01-02 03:04:05.123",
        time(1, 2, tzinfo=EAST): "01:02:00", timedelta(days=1, microseconds=5): "86400.000005",
        np.timedelta64(5, "ns"): "0.000000005", UUID(int=5): "00000000-0000-0000-0000-000000000005",
    }  # fmt: skip
    cells = objects(list(expected))
    table = read_frame(pd.DataFrame({"c": cells}), schema_of(KINDS["open"]))
    assert table["c"].tolist() == list(expected.values())
    nothing = [None, pd.NA, pd.NaT, float("nan"), np.float32("nan"), Decimal("NaN"), np.datetime64("NaT", "s")]
    assert values(in_frame, [*nothing, np.timedelta64("NaT", "s"), "nan"]) == [None] * 8 + ["nan"]
    assert values(in_frame, [Decimal("-0.0"), Decimal("0E-500")]) == ["0", "0"]


DAY, MOMENT = pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01 17:30")
COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "categories of objects": lambda cells: pd.Series(
        pd.Categorical.from_codes(range(len(cells)), pd.Index(cells, dtype="object"))
    ),
    "categories": lambda cells: pd.Series(cells).astype("category"),
    "arrow": lambda cells: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(cells, pa.timestamp("us")).dictionary_encode())
    ),
    "moments": lambda cells: pd.Series(cells, dtype="datetime64[us]"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_categories_and_declared_columns_are_cells_too(name: str) -> None:
    """Pandas writes a whole column of times without the time if all are midnight."""
    schema = schema_of(KINDS["open"])
    both, alone = (read_frame(pd.DataFrame({"c": COLUMNS[name](own)}), schema) for own in ([MOMENT, DAY], [DAY]))
    assert both["c"].tolist()[1:] == alone["c"].tolist()
    if name == "categories of objects":
        mixed = read_frame(pd.DataFrame({"c": COLUMNS[name]([date(2020, 1, 1), datetime(2020, 1, 1, 17)])}), schema)
        assert mixed["c"].tolist() == ["2020-01-01", "2020-01-01 17:00:00"]
    if name == "categories":
        short = read_frame(pd.DataFrame({"c": COLUMNS[name](list(np.float32([0.1, 0.3])))}), schema)
        assert short["c"].tolist() == ["0.1", "0.3"]
