"""Rows that stay in their database: SQL and Python make the same of every cell, hash the same texts, count the same."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from ruled import COLUMNS, DERIVED, RULES, rows, ruled
from sqlalchemy import create_engine, make_url
from toys import schema_with

from likeness.core.errors import DataError, ReleaseError
from likeness.core.hashing import sha256_bytes
from likeness.core.text import _SPACES as SPACES
from likeness.core.text import _UNSEEN as UNSEEN
from likeness.core.text import fold_case
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.constrained_tables import forward_transform, values_of
from likeness.data.source.cells import apply_released, cells_of, type_table
from likeness.data.source.contribution_bounding import bound_contributions, people_of
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import Hashes, row_hashes
from likeness.data.source.row_texts import row_texts
from likeness.data.source.split import SplitByContent, split_by_column, split_by_person
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachCluster, EachPerson, Records
from likeness.release.sums.backends import counted_sum
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_postgres import columns, functions
from likeness_postgres.rows import RemoteRows, Sums
from likeness_postgres.statements import People, Split

ALL, CAST = Split(0.0, 0), "CAST it in ingest.query"
WORDS = ["-9", "NA", "2020-01-02"]
NUMBERS = "0 -0 -0.0 007 1 1.0 1.50 +5 -5 .5 5. 1e5 1E-5 0.1 1e22 9007199254740993 -9 -9.0 -9. 1e308 5e-324 123e-3 3,5"
NUMBERS = [*NUMBERS.split(), "99.99999999999999", "12345678901234567890"]
NO_NUMBERS = ["None", "nan", "inf", "-Infinity", "0x10", "1_0", "١", "--1", "1e", "", "1 "]
TEXTS = [
    *(
        *("", " ", "u", " u ", "u\u00a0", "\ufeffu", "e\u0301", "é", "\u200bu", "o'k", "o''k", '"', "U", "NA", "na"),
        "-9.00",
    ),
    *(
        *("-9.00", "-9.0 ", "-9.x", "None", "\u2028u", "u\x1c", "u\x85", "a\u3000b", "a b", "a\u200db", "2020-01-02"),
        *("1.0", "Å", "${env:HOME}"),
    ),
    *("2020-01-02 00:00:00Z", "\u212b", "2021-05-05", "2021-05-05 00:00:00", "2021-05-05T00:00:00", "%", "_", "\\"),
    *(
        *("a\tb", "a\x7fb", "a\U000e0041b", "a\x85b", "a\u2066b", "x" * 100, "é" * 101, "\u0301" * 101, "x" * 300),
        *("TRUE", "True", "t", "yeſ", "FALſE", "no", "0.0", "1", "0", "İ", "ß", "-0.5"),
    ),
]
MIDNIGHTS = ["2020-01-02 00:00:00", "2020-01-02T00:00", "2020-01-02 00:00:00.000", "2020-01-02Z", "2020-01-02 10:00:00"]
DATES = ["2020-01-02", "0999-06-10", "1969-12-31", "9999-12-31"]
DAYS = [
    "0001-01-01T00:00:00+14:00", "9999-12-31 23:59:59-14:00", *DATES, *MIDNIGHTS, "02.01.2020", "2020-13-01",
    "2020-1-2", "0001-01-01", "", "u", *NUMBERS[:2],
]  # fmt: skip
MOMENTS = ["1969-12-31 23:59:59.5", "2003-11-29 17:45:00", "0999-06-10 01:02:03.999999", "2020-01-02 00:00:00"]
REALS = "0 -0.0 nan inf -inf 0.1 5e-324 5e-323 1e300 -9 1e15 123456789012345680 1e-5 2.5 1.7976931348623157e308"
SINGLES = ["0.1", "1e-5", "16777216", "nan", "-9", "3.4028235e38", "1.2582912e17", "2.9e-44"]
# PostgreSQL prints more digits of some of these than are read back.
REALS = [*REALS.split(), "4.95338931420484e17", "-6.126077814900646e16", "4.58752e27"]
SINGLES += ["343126.125", "-64311768", "186675008", "1508.65625", "46.1484375", "0.000244140625"]
TINY = {"kind": "numeric", "lower": -1e-3, "upper": 1e-3}
DATE = {"lower": "0900-01-01", "upper": "2030-01-01", "nullable": True}
CATEGORIES = ["\\", "u", "é", "o'k", "a b", "2021-05-05", "1", "-0.5", "None", "Å"]
KINDS: dict[str, dict[str, Any]] = {
    "categories": {"kind": "categorical", "categories": CATEGORIES, "nullable": True},
    "other": {"kind": "categorical", "categories": ["u", "rest"], "other": "rest"},
    "open": {"kind": "categorical", "categories": "private", "other": "é", "nullable": True},
    "boolean": {"kind": "boolean", "nullable": True},
    "words": {"kind": "boolean", "categories": ["nein", "jai"]},
    "integer": {"kind": "integer", "lower": -5, "upper": 100, "nullable": True},
    "numeric": {"kind": "numeric", "lower": -1.5, "upper": 1e6, "nullable": True},
    "tiny": TINY,
    "huge": TINY | {"lower": -1e300, "upper": 1e300},
    "date": DATE | {"kind": "date"},
    "datetime": DATE | {"kind": "datetime"},
}
TABLES = [  # type, hostile cells of it, and kinds of columns that it can be
    ("text", [*TEXTS, "random"], ["categories", "boolean", "open"]),
    ("text", [*TEXTS[:12], "JAI", "JAİ\u0307", "random"], ["other", "words"]),
    ("text", [*NUMBERS, *NO_NUMBERS], ["integer", "numeric"]),
    ("text", NUMBERS, ["tiny", "huge"]),
    ("text", DAYS, ["date"]),
    ("bigint", ["0", "-9", "1", "101", str(2**53 + 1), str(-(2**63))], ["categories", "boolean", "integer", "numeric"]),
    (
        "numeric(38,10)",
        ["0", "-9", "-0.50", "1.00", "99999999999999999.0123456789"],
        ["categories", "integer", "huge", "open"],
    ),
    ("numeric(2,2)", ["0.50", "-0.5", "0", "-0.07"], ["categories", "open", "numeric"]),
    ("double precision", REALS, ["integer", "numeric", "tiny", "huge"]),
    ("real", SINGLES, ["numeric", "huge"]),
    ("boolean", ["true", "false"], ["categories", "boolean", "other"]),
    ("date", DATES, ["date", "datetime"]),
    ("timestamp", MOMENTS, ["date", "datetime"]),
]


def total_of(hashes: Hashes) -> int:
    """The hashes as numbers, added up."""
    return sum(int.from_bytes(bytes(one), "big") for one in hashes)


def fill(url: str, tables: "list[tuple[str, list[Any]]]") -> None:
    """Write tables t0, t1, ... of an id and a cell, from the type of each and its cells."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for place, (kind, cells) in enumerate(tables):
            connection.exec_driver_sql(f"CREATE TABLE t{place} (id integer, c {kind})")
            for row in enumerate(cells):
                connection.exec_driver_sql(f"INSERT INTO t{place} VALUES (%s, CAST(%s AS {kind}))", row)
    engine.dispose()


def change(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@cache
def python_makes(kind: str, missing: tuple[str, ...], _: type, shown: str, cell: Any) -> str:
    """The text of a row with this cell; empty where it breaks a rule. The text of a cell tells 1.0 from 1."""
    schema = schema_with({"c": {**KINDS[kind], "missing_values": list(missing)}})
    try:
        table = type_table(cells_of(["c"], [[cell]], ["c"], "db"), schema, "db")
    except DataError:
        return ""
    return str(next(row_texts(table, schema))[0].as_py().decode())


def columns_of(kinds: list[str]) -> dict[str, dict[str, Any]]:
    """A column of each kind."""
    missing = {kind: WORDS[:2] if "lower" in KINDS[kind] else WORDS for kind in kinds}
    missing |= {"date": WORDS[2:], "datetime": []}
    return {f"c_{kind}": {**KINDS[kind], "missing_values": missing[kind]} for kind in kinds}


def database_makes(database: Database, places: list[int], kinds: list[str]) -> dict[tuple[int, str], str]:
    """The same of the cells at some places in columns of some kinds. Where a database stops, each is asked alone."""
    cells = ", ".join(f"c AS c_{kind}" for kind in kinds)
    query = f"SELECT {cells}, id AS k FROM ({database.statement}) AS t WHERE id IN ({', '.join(map(str, places))})"
    schema = schema_with(columns_of(kinds) | {"k": {"kind": "integer", "lower": 0, "upper": 1_000}})
    rows = RemoteRows(Database(database.url, query), schema, ALL)
    assert rows.reasons == [], (database, schema)
    texts = [f"f_{at}, {columns.row_text(schema.columns[at], f'v_{at}')}" for at in range(len(kinds))]
    statement = rows.statements._statement([], f"SELECT v_{len(kinds)}, {', '.join(texts)} FROM likeness_rows")
    try:
        (answers,) = rows.database.answers([statement])
    except DataError:
        if len(places) > 1:
            halves = [(places[: len(places) // 2], kinds), (places[len(places) // 2 :], kinds)]
        elif len(kinds) > 1:
            halves = [(places, [kind]) for kind in kinds]
        else:
            return {(places[0], kinds[0]): ""}
        return {key: text for half in halves for key, text in database_makes(database, *half).items()}
    pairs = [(at, zip(kinds, rest[::2], rest[1::2], strict=True)) for at, *rest in answers]
    return {(at, kind): "" if fault else text for at, made in pairs for kind, fault, text in made}


def compare(url: str, table: str, kinds: list[str]) -> int:
    """Compare what SQL and Python make of each cell of a table in a column of each kind; the number of comparisons."""
    database = Database(url, f"SELECT id, c FROM {table}")
    raw = database.read_first_rows(1_000)
    missing = {kind: tuple(columns_of([kind])[f"c_{kind}"]["missing_values"]) for kind in kinds}
    python = {
        (at, kind): python_makes(kind, missing[kind], type(cell), repr(cell), cell)
        for at, cell in raw
        for kind in kinds
    }
    refused = {at for (at, _), text in python.items() if text == ""}
    found: dict[tuple[int, str], str] = {}
    for places in (sorted(refused), [at for at, _ in raw if at not in refused]):
        found |= database_makes(database, places, kinds) if places else {}
    wrong = [
        (raw[at], kind, text, found.get((at, kind)))
        for (at, kind), text in python.items()
        if text != found.get((at, kind))
    ]
    assert not wrong, (url, table, wrong)
    return len(python)


def test_sql_and_python_make_the_same_of_each_hostile_cell(url: str) -> None:
    alphabet = [*"ue1-. '", "\u00a0", "\u0301", "\u200b", "\u2028", "\ufeff", "É", "😀"]
    draw = np.random.default_rng(5)
    random = ["".join(draw.choice(alphabet, size)) for size in draw.integers(1, 5, 40)]
    tables = [(kind, [None, *(cells if cells[-1] != "random" else cells[:-1] + random)]) for kind, cells, _ in TABLES]
    change(  # what would alter the meaning of texts and numbers, and functions of other people
        url,
        f"ALTER DATABASE {make_url(url).database} SET standard_conforming_strings = off",
        f"ALTER DATABASE {make_url(url).database} SET extra_float_digits = 0",
        *(
            f"CREATE FUNCTION {name} RETURNS text LANGUAGE sql AS $$ SELECT 'u' $$"
            for name in ("to_char(date, text)", "to_timestamp(bigint)", "div(numeric, integer)")
        ),
    )
    fill(url, tables)
    assert sum(compare(url, f"t{place}", kinds) for place, (_, _, kinds) in enumerate(TABLES)) > 450


def test_texts_and_lists_are_read_whatever_the_client_says(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change(url, "CREATE TABLE lists AS SELECT ARRAY['u'] AS c, 1 AS k")
    schema = schema_with({"k": {"kind": "integer", "lower": 0, "upper": 1}, "c": KINDS["other"]})
    lists = RemoteRows(Database(url, "lists"), schema, ALL)
    assert lists.reasons == [f"column 'c': its type has no text that is the same in each database. {CAST}"]
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    booleans = schema_with({"k": {"kind": "integer", "lower": 0, "upper": 1}, "c": KINDS["words"]})
    assert RemoteRows(Database(url, "SELECT 'JAI' AS c, 1 AS k"), booleans, ALL).count_rows()[0].count == 1


@pytest.mark.parametrize(("kind", "word"), [("date", "date"), ("date", "timestamp"), ("datetime", "timestamp")])
@pytest.mark.parametrize("cell", ["infinity", "-infinity"])
def test_a_date_without_end_is_refused(kind: str, word: str, cell: str, url: str) -> None:
    """As Python, whose dates have none."""
    database = Database(url, f"SELECT CAST('{cell}' AS {word}) AS c")
    for ask in (
        RemoteRows(database, schema_with({"c": KINDS[kind]}), ALL).count_rows,
        lambda: database.read_first_rows(1),
    ):
        with pytest.raises(DataError):
            ask()


def test_the_letters_that_sql_folds_are_those_of_unicode() -> None:
    folded = ((letter, fold_case(letter)) for letter in map(chr, range(0x80, 0x110000)))
    normal = {one: fold for one, fold in folded if fold.isascii() and unicodedata.is_normalized("NFC", one)}
    assert {letter: fold for letter, fold in normal.items() if len(fold) > 1} == functions._FOLDS
    assert {letter: fold for letter, fold in normal.items() if len(fold) == 1} == dict(zip("İıſ", "iis", strict=True))
    matched = "".join(letter for letter in map(chr, range(0x3100)) if re.fullmatch(functions._SPACES, letter))
    unseen = "".join(letter for letter in map(chr, range(0x10000)) if re.fullmatch(functions._UNSEEN, letter))
    assert (matched, unseen) == ("".join(sorted(SPACES)), "".join(sorted(UNSEEN)))
    blank = [letter for letter in map(chr, range(0x110000)) if letter.isspace() and letter not in SPACES]
    assert all(re.fullmatch(functions._BLANKS, letter) for letter in blank)


@dataclass
class Rows:
    """A table in a database, and its typed training rows in memory."""

    there: RemoteRows
    train: pd.DataFrame
    hashes: NDArray[np.uint8]

    def __call__(self) -> Iterator[Records]:
        encoder = Encoder(self.there.schema)
        codes = encoder.encode(self.train)
        yield Records(encoder.expand(codes), encoder.labels(codes))

    def counts(self, tables: Any, num_groups: int, by_class: bool) -> Any:
        counts, sums = self.there.counts(tables, num_groups, by_class)
        return counts, sums.count

    backend, is_per_person = None, False


COLUMNS_OF_VISITS: dict[str, dict[str, Any]] = {
    **{"a": KINDS["integer"], "x": {"kind": "numeric", "lower": 0, "upper": 1}, "c": KINDS["other"]},
    "seen": DATE | {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
    "log": {"kind": "integer", "lower": 0, "upper": 99_999, "transform": "log1p"},
    "l": {"kind": "categorical", "categories": ["n", "y"]},
}
VISITS = schema_with(COLUMNS_OF_VISITS, label="l")


def write(url: str, name: str, table: pd.DataFrame) -> None:
    """Write a table into a database that has none of that name."""
    engine = create_engine(url)
    table.to_sql(name, engine, index=False)
    engine.dispose()


def visits_table() -> pd.DataFrame:
    """Rows: some are equal, and of some cells are missing or beyond the bounds."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": pd.array(draw.integers(-7, 9, 900), "Int64"),
            "x": draw.integers(0, 200, 900) / 200,
            "c": draw.choice(["u", "w"], 900),
            "seen": draw.choice(["2020-02-03", "2020-11-05", None], 900),
            "log": np.exp(draw.uniform(0, 12, 900)).astype(int),
            "l": draw.choice(["n", "y"], 900),
        }
    )
    table.loc[draw.random(900) < 0.1, "a"] = pd.NA
    return pd.concat([table, table.iloc[:40]], ignore_index=True)


def visits(url: str) -> Rows:
    """These rows in a database that has none yet."""
    table = visits_table()
    write(url, "visits", table)
    there = RemoteRows(Database(url, "visits"), VISITS, Split(0.25, 7))
    typed_rows = read_frame(table, VISITS)
    hashes = row_hashes(typed_rows, VISITS)
    is_train = SplitByContent(0.25, 7).assign_parts(hashes) == "train"
    return Rows(there, typed_rows[is_train].reset_index(drop=True), hashes[is_train])


def test_private_categories_are_counted_by_their_hashes(url: str) -> None:
    """Texts of private categories are counted by their hashes, and released ones have cells."""
    draw = np.random.default_rng(9)
    table = pd.DataFrame({"c": draw.choice([*TEXTS, None, "-9"], 900), "n": draw.integers(0, 9, 900)})
    write(url, "texts", table)
    schema = schema_with({"c": KINDS["open"] | {"missing_values": ["-9"]}, "n": {**KINDS["integer"], "lower": 0}})
    complete = schema.with_categories({"c": ("u", "\\", "o''k", "1", "${env:HOME}")})
    there = RemoteRows(Database(url, "texts"), schema, Split(0.25, 7), complete=complete)
    typed_rows = read_frame(table, schema)
    hashes = row_hashes(typed_rows, schema)
    train = typed_rows[SplitByContent(0.25, 7).assign_parts(hashes) == "train"]
    expected = {sha256_bytes(text.encode()): (text, count) for text, count in train["c"].value_counts().items()}
    counts, sums = there.texts("c")
    assert counts == {key: count for key, (_, count) in expected.items()} and sums.count == len(train)
    some = [key for key, (text, _) in expected.items() if text in ("u", "o''k", "\\", "Å")]
    assert len(some) == 4 and there.texts_of("c", some) == {key: expected[key][0] for key in some}
    with pytest.raises(DataError, match="rows changed while they were counted"):
        there.texts_of("c", ["0" * 64])
    ((places, both), _) = there.counts([[Cells(0, 7)], [Cells(0, 7), Cells(7, 3, (0.3, 0.6))]], 1, False)
    codes = Encoder(complete).encode(apply_released(train, schema, complete))
    assert places[0].tolist() == np.bincount(codes["c"], minlength=7).tolist()
    assert both.reshape(7, 3).sum(axis=1).tolist() == places[0].tolist()


PEOPLE = ["1", "1.0", "01", "é", "e\u0301", "2,0", "+3", "x y", "-4.", "12345678901234567"]
"""Names in each of which a database could see others: some are one person."""


NOBODY = ("NULL", "''", "'1.5'", "'1E+5'", "' '")


def test_rows_of_people_are_bounded_and_split_as_here(url: str) -> None:
    """The rows that are used of people with many, equal ones among them, and the parts by people and by a column."""
    draw = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "who": draw.choice([*PEOPLE, *map(str, range(30, 90))], 600),
            "number": draw.integers(-5, 60, 600),
            "c": draw.choice(["u", "w"], 600),
            "a": draw.integers(0, 4, 600),
            "side": draw.choice(["in", "out"], 600),
        }
    )
    write(url, "stays", table)
    schema = schema_with({"c": KINDS["other"], "a": {"kind": "integer", "lower": 0, "upper": 3}})
    typed_rows = read_frame(table[["c", "a"]], schema)
    hashes = row_hashes(typed_rows, schema)
    for column, split in (("who", Split(0.25, 7)), ("number", Split(0, 7, "", "side", "in", "out"))):
        persons = people_of(table[column], "table")
        by_column = split_by_column(table["side"], "in", "out")
        parts = split_by_person(persons, 0.25, 7) if column == "who" else by_column
        keep = bound_contributions(hashes, persons, parts, 3)
        assert 0.2 < keep.mean() < 0.7
        there = RemoteRows(Database(url, "stays"), schema, split, People(column, 3))
        expected = [hashes[keep & (parts == part)] for part in ("train", "test")]
        assert there.count_rows() == tuple(Sums(len(some), total_of(some)) for some in expected)
        counts, sums = there.counts([[Cells(Encoder(schema).layout.starts["c"], 2)]], 1, False)
        train = typed_rows[keep & (parts == "train")]
        assert sums.count == len(train) and counts[0].ravel().tolist() == train["c"].value_counts(sort=False).tolist()
    for name in NOBODY:
        query = f"SELECT a, c, CASE WHEN number > 0 THEN who ELSE {name} END AS who FROM stays"
        with pytest.raises(DataError, match=r"'who' of ingest\.unit must hold a text or a whole number in each row"):
            RemoteRows(Database(url, query), schema, ALL, People("who", 3)).count_rows()
    real = RemoteRows(Database(url, "SELECT a, c, 0.5 * number AS who FROM stays"), schema, ALL, People("who", 3))
    words = "column 'who': it names people and holds neither texts nor whole numbers"
    assert real.reasons == [words]


FROM_2000 = {"lower": "2000-01-01", "upper": "2031-12-31"}
RULED = ruled(
    columns={
        **COLUMNS,
        "early": {"kind": "integer", "lower": -3, "upper": 9, "nullable": True},
        "middle": {"kind": "numeric", "lower": -5, "upper": 4, "nullable": True},
        "late": {"kind": "integer", "lower": -5, "upper": 1},
        "level": {"kind": "numeric", "lower": -1, "upper": 3, "nullable": True},
        "price": {"kind": "numeric", "lower": 0, "upper": 9, "decimals": 1},
        "born": {"kind": "date", "lower": "1896-02-27", "upper": "2104-03-01", "nullable": True},
        "begun": {"kind": "datetime", **FROM_2000, "nullable": True},
        "ended": {"kind": "datetime", **FROM_2000, "nullable": True},
        "flag_1": {"kind": "integer", "lower": 0, "upper": 1},
        "flag_2": {"kind": "integer", "lower": 0, "upper": 1},
        "over": {"kind": "numeric", "lower": -1, "upper": 9, "nullable": True},
        "row": {"kind": "integer", "lower": 0, "upper": 1e6},
    },
    rules=[
        *RULES,
        {"if": {"age": "< 40", "b": None}, "then": {"level": [-1, "-.5..0", 0.25, "1..1.5", 3], "early": None}},
        {"if": {"level": "1..", "sex": "F"}, "then": {"price": [0.5, "2..3.3", 8], "place": ["wife", "child"]}},
        {"never": {"state": ["never", "widowed"], "level": [0.5, "2..2.5"]}},
        {"never": {"price": "< 1.1", "early": ["1..2", None, 5]}},
        {"order": ["early", "middle", "late"]},
        {"one_of": ["flag_1", "flag_2"]},
        {"calendar": "born"},
        {"determines": ["school", "state"]},
    ],
    derived={**DERIVED, "hours": "ended - begun", "spread": {"is": "over - a", "lower": -2, "upper": 5}},
)
"""With a rule of each kind, and rules that break each other."""


def test_rows_that_break_all_rules_are_mapped_as_python_maps_them(url: str) -> None:
    table = rows(400, 1, RULED).assign(row=range(400))
    some = np.arange(400) % 3 == 0
    table.loc[some, "level"] = np.resize(
        [-1.0, -0.75, 0.125, 0.6, 1.0, 2.25, 2.0, 3.0, np.nan, 0.5, 0.6250000000000001], some.sum()
    )
    table.loc[some, "middle"] = np.resize([0.6, -2.6, -0.5, 3.7, np.nan], some.sum())  # `late` is whole
    edges = ["1900-02-28", "1900-03-01", "2000-02-01", "2000-12-31", "1969-12-31", "2100-02-28", "2096-02-29", None]
    table.loc[some, "born"] = np.resize(np.array(edges, object), some.sum())
    write(url, "ruled", table)
    there = RemoteRows(Database(url, "ruled"), RULED, ALL)
    expected = forward_transform(table, RULED)
    assert all((expected[name] != table[name]).any() for name in ("state", "price", "early", "middle", "late", "level"))
    steps, names = there.statements.transform_steps()
    statement = there.statements._statement(steps, f"SELECT {', '.join(names.values())} FROM likeness_units")
    found = pd.DataFrame(there.database.answers([statement])[0])
    found = found.astype("float64").set_axis([*names], axis=1).sort_values("row", ignore_index=True)
    assert [*found] == [*RULED.model_schema.names] and len(found) == 400
    for name, numbers in values_of(expected, RULED.model_schema.columns).items():
        same = (found[name] == numbers) | (found[name].isna() & np.isnan(numbers))
        assert same.all(), (url, name, found[name][~same].tolist()[:3], numbers[~same][:3])
    encoder = Encoder(RULED.model_schema)
    codes = encoder.encode(expected)
    starts = encoder.layout.starts
    axes = [
        Cells(starts["level"], 5, (0.1, 0.3125, 0.9), True),
        Cells(starts["month of born"], 13),
        Cells(starts["state"], 3),
    ]
    steps_of = Steps(starts["spread"], -2, 5, (1.0, 0.5), True)
    counts, _ = there.counts([[one] for one in (*axes, steps_of)], 2, True)
    for axis, count in zip((*axes, steps_of), counts, strict=True):
        number = encoder.labels(codes) * axis.size + axis.cell_indices(encoder.expand(codes))
        assert (count.ravel() == np.bincount(number, minlength=2 * axis.size)).all(), (url, axis)


def test_counts_give_the_sums_of_the_rows(url: str) -> None:
    """The sums of all maps that are counted are those of the rows, and so is the sum of their hashes."""
    rows, starts = visits(url), Encoder(VISITS).layout.starts
    train, test = rows.there.count_rows()
    assert train == Sums(len(rows.train), total_of(rows.hashes)) and train.count + test.count == 940
    cells = (
        *(Cells(starts["a"], 5, (0.2, 0.5, 0.75), True), Cells(starts["x"], 4, (0.1, 0.3, 0.77))),
        *(Cells(starts["c"], 2), Cells(starts["seen"], 3, (0.5,), True), Cells(starts["log"], 4, (0.2, 0.5, 0.9))),
    )
    steps = ColumnSteps((Steps(starts["x"], 0.0, 1.0, (0.1, 0.05, 0.01)), Steps(starts["a"], -5, 100, (10, 5), True)))
    slots = tuple(tuple(min(place, 1) for place in range(column.size)) for column in cells)
    scores = tuple(tuple((-0.9) ** place for place in range(column.size)) for column in cells)
    pairs = PairMarginals(cells, tables=((0,), (1, 2, 4)), squared_weights=tuple(range(1, 11)))
    together = AllRecords()
    for query in (
        Query("class_counts", "auxiliary", Constant(), 2),
        Query("steps", "auxiliary", steps, contributions=together),
        Query("columns", "auxiliary", ColumnMarginals(cells), contributions=together),
        Query("products", "auxiliary", PairProducts(cells, slots, scores), contributions=together),
        Query("pairs", "privatize", PairMarginals(cells), 2),
        Query("embedding", "privatize", pairs, 2),
    ):
        sums, records = counted_sum(query, rows)
        assert (sums == lattice_sum(query, rows())).all() and records == len(rows.train), (url, query.name)
    with pytest.raises(ReleaseError, match="rows of people do not share a contribution there"):
        counted_sum(Query("people", "auxiliary", Constant(), contributions=EachPerson()), rows)
    with pytest.raises(ReleaseError, match="counts of cells do not give this sum"):
        counted_sum(Query("halves", "auxiliary", Constant(), 2, EachCluster(Constant())), rows)


def test_a_column_that_sql_cannot_type_exactly_is_named(url: str) -> None:
    rows = visits(url).there
    known = [replace(column, format="%d.%m.%Y") if column.name == "seen" else column for column in VISITS.columns]
    other = replace(rows, schema=replace(VISITS, columns=tuple(known)))
    assert other.reasons == ["column 'seen': it has a format, which SQL does not read as Python does"]
    with pytest.raises(DataError, match="rows cannot be counted there: column 'seen'"):
        other.count_rows()
    words = [replace(column, other=None, categories=("u", "rest")) for column in VISITS.columns if column.name == "c"]
    strict = replace(rows, schema=replace(VISITS, columns=(*words, VISITS.columns[-1])))
    with pytest.raises(DataError, match="column 'c' has a value that is not among its public categories"):
        strict.count_rows()


def test_columns_that_differ_in_case_only_are_two(url: str) -> None:
    rows = visits(url).there
    turned = replace(rows, database=Database(url, 'SELECT *, 10 * x AS "X" FROM visits'))
    assert turned.count_rows() == rows.count_rows()


@pytest.mark.parametrize("name", ["likeness_raw", '"Likeness_events_source"'])
def test_a_table_that_is_called_as_a_step_has_to_come(name: str, url: str) -> None:
    """A step before it could be read in its place."""
    rows = visits(url).there
    named = Database(rows.database.url, f"SELECT v.* FROM visits AS v, (SELECT 1) AS {name}")
    (reason,) = replace(rows, database=named).reasons
    assert reason == "ingest.query has a name that begins with likeness_, as steps here. Name a view otherwise"


def test_a_collation_changes_no_category_and_no_part(url: str) -> None:
    change(
        url,
        "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE t (c text COLLATE nocase, part text COLLATE nocase)",
        "INSERT INTO t VALUES ('U', 'train'), ('u', 'train'), ('u', 'test')",
    )
    schema = schema_with({"c": KINDS["other"]})
    rows = RemoteRows(Database(url, "t"), schema, Split(0.0, 0, name="part", train="train", test="test"))
    (counts,), sums = rows.counts([(Cells(0, 2),)], 1, False)
    assert counts.tolist() == [[1, 1]] and sums.count == 2
    other = replace(rows, split=replace(rows.split, train="TRAIN"))
    with pytest.raises(DataError, match="split column 'part' has a value other than 'TRAIN' and 'test'"):
        other.count_rows()
