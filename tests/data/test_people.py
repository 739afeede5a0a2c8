"""People with several rows: what is used of a person depends on that person alone."""

import contextlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source import contribution_bounding, split
from likeness.data.source.contribution_bounding import bound_contributions, people_of, person_numbers
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame_people, read_source
from likeness.data.source.row_digests import hashes_of, row_hashes
from likeness.data.source.split import split_by_person

SECRET = "8675309"  # stands for a private value: it must never be in a message
COLUMNS = Column("a", "integer", 0.0, 9.0), Column("c", "categorical", categories=("u", "v"))
SCHEMA = Schema("visits", "made up", "none", None, COLUMNS)
Row = tuple[str, int, str, str]  # person, a, c, part

rows = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3", "p4"]),
        st.integers(0, 3),
        st.sampled_from(["u", "v"]),
        st.sampled_from(["train", "test"]),
    ),
    max_size=40,
)


@pytest.mark.parametrize(
    "cells", [["a", 7, None], [7, 8.5], ["a", True], ["a", b"b"]], ids=["both", "fraction", "bool", "bytes"]
)
def test_whether_a_cell_may_name_a_person_depends_on_that_cell_alone(cells: list[Any]) -> None:
    for some in (cells[:1], cells[1:], cells):
        column = pd.Series(some, dtype="object", name="p").dropna()
        if all(cell in ("a", 7, None) and cell is not True for cell in some):
            assert people_of(column, "t").tolist() == [str(cell) for cell in column]
        else:
            with pytest.raises(DataError, match="must hold texts or whole numbers"):
                people_of(column, "t")


SPELLINGS = {
    "7": [
        *(7, 7.0, np.float32(7), np.int8(7), Decimal(7), Decimal("7.00"), "7", " 7 ", "7.0", "7.00", "\u00a07\u200b"),
        *("7,0", "7,00"),
    ],
    "0": [0, 0.0, -0.0, "0", "0.0"],
    "-3": [-3, -3.0, "-3.0"],
    "00007": ["00007", "00007.0"],
    "Jos\u00e9 a": ["Jos\u00e9 a", "Jose\u0301 a", " Jose\u0301\u00a0a", "Jos\u00e9\ufeff a"],
    "9007199254740993": [2**53 + 1, "9007199254740993"],
    "7e2": ["7e2"],
}
NOBODY = [
    *(7.5, "7.5", "12.10", "7,5", "1,234", ",5", "1,5e+20", "1.000", "-0.5", ".5", 1e300, 2.0**53, "1e+16"),
    *("1.5E+20", np.inf, Decimal("7.5"), True, np.True_),
]


def test_a_person_has_one_name_in_all_spellings() -> None:
    """Else one person would have two shares, and no event would find its person."""
    for name, cells in SPELLINGS.items():
        for cell in cells:
            assert people_of(pd.Series([cell, "x"], dtype="object", name="p"), "t").tolist() == [name, "x"], cell
    mixed = pd.Series([cell for cells in SPELLINGS.values() for cell in cells], dtype="object", name="p")
    assert people_of(mixed, "t").tolist() == [name for name, cells in SPELLINGS.items() for _ in cells]
    for other, cell in (*(("x", cell) for cell in NOBODY), (1, True)):  # which pandas takes for one
        with pytest.raises(DataError, match="A number with decimals names nobody"):
            people_of(pd.Series([other, cell], dtype="object", name="p"), "t")


def test_a_key_is_read_alike_from_every_source(tmp_path: Path) -> None:
    numbers = [3, 2**40, 3, None, 8]
    table = pd.DataFrame({"pid": numbers, "a": 1, "c": "u"})
    whole = table.dropna().astype({"pid": "int64"})
    whole.assign(pid=whole["pid"].astype("float")).to_csv(tmp_path / "floats.csv", index=False)
    whole.to_csv(tmp_path / "whole.csv", index=False)
    one = pa.Table.from_pandas(whole, preserve_index=False)
    for name, kind in enumerate((pa.int64(), pa.float64(), pa.string(), pa.decimal128(30, 2))):
        pq.write_table(one.set_column(0, "pid", one["pid"].cast(kind)), tmp_path / f"{name}.parquet")
    whole.to_excel(tmp_path / "whole.xlsx", index=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        whole.to_sql("whole", connection, index=False)
        whole.assign(pid=whole["pid"].astype("float")).to_sql("floats", connection, index=False)
    found = [read_source(path, SCHEMA, None, "pid")[2] for path in sorted(tmp_path.glob("*.[cpx]*"))]
    found += [Database(f"sqlite:///{tmp_path}/t.db", name).read(SCHEMA, None, "pid")[2] for name in ("whole", "floats")]
    frames = [whole, whole.astype({"pid": "float"}), whole.astype({"pid": "str"}), whole.astype({"pid": "Int64"})]
    found += [read_frame_people(frame, SCHEMA, "pid")[1] for frame in frames]
    names = sorted(["3", str(2**40), "3", "8"])
    assert len(found) == 13 and [sorted(people) for people in found if people is not None] == [names] * 13


def test_a_person_of_two_spellings_has_one_share() -> None:
    people = people_of(pd.Series([1, 1.0, "1", "1.0", 2], dtype="object", name="p"), "t")
    used = bound_contributions(row_hashes(typed_rows(5), SCHEMA), people, np.full(5, "train"), 2)
    assert used.sum() == 3 and person_numbers(people).tolist() == [0, 0, 0, 0, 1]
    assert len(set(split_by_person(people[:4], 0.5, 0))) == 1


def typed_rows(count: int) -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(count), "c": pd.Categorical(["u"] * count, ["u", "v"])})


def kept(table: list[Row], most: int) -> list[Row]:
    """The rows that are used, in order."""
    frame = pd.DataFrame(table, columns=["p", "a", "c", "part"])
    typed = pd.DataFrame({"a": frame["a"].astype("int64"), "c": frame["c"].astype(pd.CategoricalDtype(["u", "v"]))})
    hashes = row_hashes(typed, SCHEMA)
    mask = bound_contributions(hashes, frame["p"].astype("str"), frame["part"].to_numpy(dtype=str), most)
    return [row for row, used in zip(table, mask, strict=True) if used]


@pytest.mark.long
@settings(max_examples=40)
@example([("p1", 0, "u", "train"), ("p1", 1, "u", "test")] * 3, 2, "p1", Random(0))  # more than that in both parts
@given(rows, st.integers(1, 4), st.sampled_from(["p1", "p2"]), st.randoms(use_true_random=False))
def test_a_whole_person_more_or_less_moves_no_other_row_and_so_many_at_most(table, most, person, random) -> None:
    others = [row for row in table if row[0] != person]
    used = kept(table, most)
    assert [row for row in used if row[0] != person] == kept(others, most)
    for part in ("train", "test"):
        own = Counter(row for row in table if row[0] == person and row[3] == part)
        assert sum(row[0] == person and row[3] == part for row in used) == min(most, own.total())
    shuffled = list(table)
    random.shuffle(shuffled)
    assert Counter(kept(shuffled, most)) == Counter(used)  # nor does the order of rows matter


class Name:
    """A name that counts how often it is compared. No text, which pandas would compare where nobody can count."""

    compared = 0

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return isinstance(other, Name) and self.text == other.text

    def __hash__(self) -> int:
        return zlib.crc32(self.encode())

    def __str__(self) -> str:
        return self.text

    def encode(self) -> bytes:
        return self.text.encode()


def test_the_work_for_a_person_does_not_grow_with_the_number_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names compared and hashed, without a clock. Nobody is compared with everybody.

    A third of the people have four rows, of which two are used: their names are hashed once each, of the others none.
    """
    hashed = [0]

    def counted(texts: Iterable[bytes]) -> Any:
        names = list(texts)
        hashed[0] += len(names)
        return hashes_of(names)

    for module in (contribution_bounding, split):
        monkeypatch.setattr(module, "hashes_of", counted)
    for count in (300, 3_000):
        names = [f"p{number}" for number in range(count) for _ in range(4 if number % 3 == 0 else 2)]
        hashes = hashes_of(str(place % 10).encode() for place in range(len(names)))
        people = pd.Series([Name(name) for name in names], dtype="object")
        Name.compared, hashed[0] = 0, 0
        used = bound_contributions(hashes, people, np.full(len(names), "train"), 2)
        assert used.sum() == 2 * count and hashed[0] == count // 3
        assert len(names) / 2 <= Name.compared <= 20 * len(names)
        Name.compared, hashed[0] = 0, 0
        split_by_person(people, 0.5, 0)
        assert hashed[0] == count and Name.compared <= 20 * len(names)


def test_every_row_of_a_person_has_the_same_chance() -> None:
    """A person has eight equal rows and two others; of 4,000 such people two of ten rows are used.

    The number of people who keep the rare value is binomial (1 - 8·7 / (10·9) = 17/45); two-sided false alarm 1e-9.
    """
    count = 4_000
    table = [(f"person {n}", value, "u", "train") for n in range(count) for value in [1] * 8 + [7] * 2]
    used = kept(table, 2)
    assert len(used) == 2 * count
    rare = len({row[0] for row in used if row[1] == 7})
    low, high = binom.ppf([5e-10, 1 - 5e-10], count, 17 / 45)
    assert low <= rare <= high


def test_all_rows_of_a_person_are_on_one_side_whoever_else_is_there() -> None:
    """Of 5,000 people a fifth is held out: binomial, two-sided false alarm 1e-9."""
    people = pd.Series([f"person {n % 5_000}" for n in np.random.default_rng(0).permutation(15_000)])
    parts = split_by_person(people, 0.2, seed=3)
    sides = pd.Series(parts).groupby(people.to_numpy()).nunique()
    assert (sides == 1).all()
    low, high = binom.ppf([5e-10, 1 - 5e-10], 5_000, 0.2)
    assert low <= people[parts == "test"].nunique() <= high
    some = people[people != "person 17"]
    assert (split_by_person(some, 0.2, seed=3) == parts[(people != "person 17").to_numpy()]).all()
    assert (split_by_person(people, 0.2, seed=4) != parts).any()


CSV = "pid,a,c,part\n007,1,u,train\n 7,2,v,train\n007 ,3,u,test\n"


def test_people_are_read_as_text_beside_the_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    table, split, people = read_source(tmp_path / "t.csv", SCHEMA, "part", "pid")
    assert list(table.columns) == ["a", "c"] and split is not None and people is not None
    assert (people.tolist(), split.tolist()) == (["007", "7", "007"], ["train", "train", "test"])
    assert read_source(tmp_path / "t.csv", SCHEMA, "part")[2] is None


@pytest.mark.parametrize(
    "names",
    [
        pa.array([2**60 + 1, 2**60 + 3]),
        pa.array(["x", "y"]),
        pa.array(["x", "y"]).dictionary_encode(),
        pa.array([1, 2], pa.uint8()),
    ],
    ids=["large", "text", "dictionary", "small"],
)
def test_every_type_of_name_keeps_people_apart(tmp_path: Path, names: pa.Array) -> None:
    pq.write_table(pa.table({"pid": names, "a": [1, 2], "c": ["u", "v"]}), tmp_path / "t.parquet")
    people = read_source(tmp_path / "t.parquet", SCHEMA, None, "pid")[2]
    assert people is not None and people.tolist() == [str(name) for name in names.to_pylist()]
    _, again = read_frame_people(pd.read_parquet(tmp_path / "t.parquet"), SCHEMA, "pid")
    assert again.tolist() == people.tolist()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["", SECRET], "'pid' of ingest.unit has an empty cell. Give each row an id"),
        ([None, 8675309], "'pid' of ingest.unit has an empty cell"),
    ],
    ids=["empty", "null"],
)
def test_rows_without_an_owner_are_refused_without_a_value(names: list[object], message: str) -> None:
    values = pd.Series(pd.array(names, dtype="Int64" if names[0] is None else None), name="pid")
    with pytest.raises(DataError) as caught:
        people_of(values, "t")
    assert message in str(caught.value) and SECRET not in str(caught.value)
