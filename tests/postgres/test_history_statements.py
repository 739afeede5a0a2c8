"""Histories who stay in a database: SQL makes and counts Python's row sets. Hashes of hostile cells are Python's."""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from test_statements import KINDS, PEOPLE, write
from toys import schema_with

from likeness.core.errors import DataError, SchemaError
from likeness.data.encoding.encoder import Encoder
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame, read_frame_people
from likeness.data.source.row_digests import Hashes, row_hashes
from likeness.data.source.split import SplitByContent, split_by_person
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.release.query import Query
from likeness.release.records import EachPerson, Records
from likeness.release.sums.backends import counted_sum
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_histories.private_rows import digest_of_histories, strangers
from likeness_histories.row_sets import HistoryRows, history_rows
from likeness_histories.schema import MEMORY, HistorySchema
from likeness_postgres.history_rows import RemoteHistories
from likeness_postgres.reader import PostgresReader
from likeness_postgres.rows import RemoteRows, Sums
from likeness_postgres.statements import Split

KEY, SPLIT = b"k" * 32, Split(0.3, 7)
CASES = (4, 35, 37, 38)
"""Together they have each order and none, both choices of events, both kinds of people, all memory and all rules."""
SCORE = {"kind": "integer", "lower": -3, "upper": 9, "nullable": True}
COLUMNS: dict[str, dict[str, Any]] = {
    "day": {"kind": "date", "lower": "2020-01-01", "upper": "2020-03-01"},
    "at": {"kind": "numeric", "lower": -0.7, "upper": 7.1},
    "number": {"kind": "integer", "lower": 0, "upper": 20},
    "state": {"kind": "categorical", "categories": ["a", "b", "c'"], "nullable": True},
    "ward": {"kind": "categorical", "categories": [*map(str, range(12))], "nullable": True},
    "score": SCORE,
    "amount": {"kind": "numeric", "lower": -2, "upper": 5, "decimals": 1, "nullable": True},
    "level": {"kind": "numeric", "lower": 0.1, "upper": 3},
    "count": {"kind": "integer", "lower": 0, "upper": 6},
    "sex": {"kind": "categorical", "categories": ["f", "m"], "nullable": True},
}
RULES: list[dict[str, Any]] = [
    {"equal": ["next score", ["last score", 2.5]]},
    {"equal": ["next score", ["last score", 1.5]], "kind": "product"},
    {"equal": ["next amount", ["last score", "next score", -3.5]], "kind": "ratio"},
    {"equal": ["next amount", ["last amount", "last score", 0.25]], "kind": "difference"},
    {"equal": ["next count", ["last count", "last count", 0.4]], "kind": "ratio"},
    {"never": {"last state": "a", "next state": ["b", None]}},
    {"if": {"last ward": ["1", "2", None]}, "then": {"next ward": ["1", "7"]}},
    {"order": ["last level", "next level"]},
    {"order": ["first score", "first amount"]},
    {"if": {"number of events": "2"}, "then": {"first level": "0.5..1.5"}},
    {"if": {"gap": "< 2"}, "then": {"next state": "b"}},
]


def total_of(hashes: Hashes) -> int:
    """The hashes as numbers, added up."""
    return sum(int.from_bytes(bytes(one), "big") for one in hashes)


@dataclass
class Case:
    """A schema, and raw tables of events and of people."""

    schema: HistorySchema
    events: pd.DataFrame
    people: pd.DataFrame | None


def case(seed: int) -> Case:
    """Ties, ends, missing and equal events, spellings of one person, strangers, people without events or twice."""
    draw = np.random.default_rng(seed)
    names = [*PEOPLE, *map(str, range(100, 118))]
    order = [None, "day", "at", "number"][seed % 4]
    linked, size = bool(seed // 2 % 2), int(draw.integers(60, 140))
    whole = draw.integers(-5, 12, size)
    events = pd.DataFrame(
        {
            "who": draw.choice(names[:-4], size),
            "day": pd.Series(pd.Timestamp("2019-12-28") + pd.to_timedelta(draw.integers(0, 70, size) // 9 * 9, "D"))
            .dt.strftime("%Y-%m-%d"),
            "at": draw.choice([-0.7, 0.1, 0.2, 0.30000000000000004, 1 / 3, 6.9, 7.3, -4.0], size),
            "number": draw.integers(0, 25, size) // 4,
            "state": draw.choice(np.array(["a", "b", "c'", None], object), size),
            "ward": draw.choice(np.array([*map(str, range(12)), *[None] * 6], object), size),
            "score": pd.array(np.where(draw.random(size) < 0.2, 99, whole), "Int64"),
            "amount": np.where(draw.random(size) < 0.1, np.nan, draw.integers(-50, 70, size) / 10),
            "level": draw.choice([0.1, 0.15, 0.5, 2.5, 1e-9], size),
            "count": draw.integers(0, 9, size),
            "sex": draw.choice(np.array(["f", "m", None], object), size),
        }
    )  # fmt: skip
    events.loc[events["score"] == 99, "score"] = pd.NA
    events = pd.concat([events, events.iloc[:20]], ignore_index=True)
    if linked:
        given = draw.choice(names[2:], 40)
        people = pd.DataFrame({"age": draw.integers(0, 4, 40), "who": given})
    columns = {name: one for name, one in COLUMNS.items() if name not in ("day", "at", "number") or name == order}
    if linked:
        del columns["sex"]
    fixed = [] if linked or seed % 3 == 0 else ["sex"]
    spec = {
        "name": "visits",
        "source": "made up",
        "person": "who",
        "order": order,
        "most": int(draw.integers(2, 6)),
        "which": ["first", "hash"][seed % 2],
        "fixed": fixed,
        "ends": {"state": ["c'"]} if seed % 3 else {},
        "memory": [word for word in MEMORY if draw.random() < 0.6 and (order or word != "gap")],
        "events": columns,
        **({"people": {"age": {"kind": "integer", "lower": 0, "upper": 2}}} if linked else {}),
    }
    rules: list[Any] = []
    for at in draw.permutation(len(RULES)):
        rule = RULES[at]
        if draw.random() < 0.7:
            with suppress(SchemaError):  # no gap without an order, or none may be missing
                HistorySchema.from_dict({**spec, "rules": [*rules, rule]})
                rules.append(rule)
    return Case(HistorySchema.from_dict({**spec, "rules": rules}), events, people if linked else None)


def written(url: str, one: Case, place: int) -> list[RemoteHistories]:
    """The tables of a case in a database, once for each row set."""
    databases = []
    for name, table in (("events", one.events), ("people", one.people)):
        if table is not None:
            write(url, f"{name}_{place}", table)
            databases.append(Database(url, f"SELECT * FROM {name}_{place}", f"ingest.{name}"))
    return [RemoteHistories.from_databases(one.schema, databases, SPLIT, at) for at in (0, 1)]


def check(url: str, one: Case, place: int) -> None:
    """Digests, numbers and sums of both row sets of one case."""
    schema = one.schema
    tables = [read_frame_people(one.events, schema.events, "who")]
    if one.people is not None and schema.people is not None:
        tables.append(read_frame_people(one.people, schema.people, "who"))
    rows = {}
    for part in ("train", "test"):
        sides = [split_by_person(names, SPLIT.fraction, SPLIT.seed) == part for _, names in tables]
        given: list[Any] = [cells[side] for pair, side in zip(tables, sides, strict=True) for cells in pair]
        rows[part] = history_rows(schema, *given)
    first, following = written(url, one, place)
    assert first.reasons == []
    look, digest = first.summarize(KEY), digest_of_histories(schema, rows["train"], KEY)
    try:
        unknown = strangers(tables, "who")
    except DataError:
        unknown = -1
    assert (look.digest, look.count, look.held_out) == (digest, len(rows["train"].people), len(rows["test"].people))
    assert look.events == len(one.events) and (unknown == -1 or look.strangers == unknown)
    assert first.digest(KEY, first.count_training_rows()) == digest
    for there, query, records in asked(rows["train"], schema, [first, following], place):
        counted = PostgresReader(there, digest, KEY)
        sums, count = counted_sum(query, counted)
        assert (sums == lattice_sum(query, [records])).all() and count == len(records.labels), (place, there.index)


def asked(
    rows: HistoryRows, schema: HistorySchema, theres: list[RemoteHistories], seed: int
) -> Iterator[tuple[RemoteHistories, Query, Records]]:
    """A query about pairs of all columns, of each row set."""
    draw, numbers = np.random.default_rng(seed), (np.arange(len(rows.people)), rows.numbers)
    for there, one, table, persons in zip(theres, schema.row_sets.values(), rows[:2], numbers, strict=True):
        encoder, cells = Encoder(one.model_schema), []
        for name, start in encoder.layout.starts.items():
            column = one.model_schema.column(name)
            if column.is_categorical:
                cells.append(Cells(start, column.width))
            else:
                edges = tuple(np.unique(draw.random(3)).tolist())
                cells.append(Cells(start, len(edges) + 1 + column.nullable, edges, column.nullable))
        x = encoder.expand(encoder.encode(table))
        records = Records(x, np.zeros(len(x), np.int64), persons.astype(np.int64))
        chosen = [cells[at] for at in sorted(draw.choice(len(cells), min(4, len(cells)), replace=False))]
        for feature in (ColumnMarginals(tuple(cells)), PairMarginals(tuple(chosen))):
            yield there, Query("pairs", "auxiliary", feature, contributions=EachPerson()), records


@pytest.mark.long
def test_sql_and_python_make_the_same_row_sets(url: str) -> None:
    for place in CASES:
        check(url, case(place), place)


@pytest.mark.parametrize(
    "wrong",
    [{0: "5 7,6 7"}, {0: "4,5 6,9000"}, {0: "4,5 2", -2: "0 3,2 3"}, {-2: "0 3,9 9"}, {-4: "0 1"}],
    ids=["two more", "beyond the table", "half a person", "too many of a person", "another question"],
)
def test_counts_that_contradict_each_other_are_refused(wrong: dict[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    database, answer = Database("postgresql+psycopg:///none", "events"), {0: "4,5 7", -2: "0 3,2 8"}
    there = RemoteHistories.from_databases(case(35).schema, [database, database], SPLIT, 1)
    monkeypatch.setattr(RemoteHistories, "statements", SimpleNamespace(counts=lambda *_: [""]))
    monkeypatch.setattr(Database, "answers", lambda *_: [[*answer.items()]])
    (counts,), _ = there.counts([(Cells(0, 2),)], 5, True)
    assert counts.tolist() == [[0, 0], [0, 0], [1, 7], [0, 0], [0, 0]]
    answer.update(wrong)
    with pytest.raises(DataError, match=r"counts of cells contradict the number of rows|counts what nobody asked"):
        there.counts([(Cells(0, 2),)], 5, True)
    monkeypatch.setattr(Database, "answers", lambda *_: [[(-2, "0 3")], [(-2, "0 4")]])
    with pytest.raises(DataError, match="rows changed while they were counted"):
        there.counts([(Cells(0, 2),)], 5, True)


def test_counts_are_remembered_for_the_rows_of_one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.pipeline.counts.ANSWERS", [])
    rows: Any = Mock(**{"num_groups.return_value": (1, False), "digest.return_value": "ours", "unit": None})
    rows.counts.return_value, rows.record_count.return_value = ([np.array([[5]])], None), 5
    for digest in ("ours", "ours", "of others", "of others"):
        with pytest.raises(DataError, match="rows changed") if digest != "ours" else nullcontext():
            assert PostgresReader(rows, digest, KEY).counts([()], 1, False)[1] == 5
    assert rows.counts.call_count == 3  # what was refused is not remembered


def test_why_histories_have_to_come_is_said() -> None:
    equal = [
        {"equal": ["next amount", ["last amount", "last score"]], "kind": "product"},
        {"equal": ["next score", ["last score", 2e300]]},
        {"equal": ["next level", ["last score", 1e-300, 1e-9]], "kind": "product"},
    ]
    words = ["product, and a column of it is not whole", "its numbers are too large", "its numbers are too large"]
    database = Database("postgresql+psycopg:///none", "events")
    columns = {**COLUMNS, "level": {**COLUMNS["level"], "nullable": True}}
    for rule, reason in zip(equal, words, strict=True):
        spec = {"name": "v", "source": "made up", "person": "who", "most": 3, "events": columns, "rules": [rule]}
        there = RemoteHistories.from_databases(HistorySchema.from_dict(spec), [database], SPLIT, 0)
        assert len(there.reasons) == 1 and there.reasons[0].endswith(reason)
        with pytest.raises(DataError, match="rows cannot be counted there"):
            there.summarize(KEY)
    many = {f"c{place}": SCORE for place in range(260)}
    spec = {"name": "v", "source": "made up", "person": "who", "most": 3, "events": many}
    there = RemoteHistories.from_databases(HistorySchema.from_dict(spec), [database], SPLIT, 0)
    assert there.reasons == ["a row of events that follow each other has over 500 columns"]


ROWS, PARTS = 2_000, Split(0.1, 0)
ALPHABET = [*"ueAZ01-. '\"\\%_${}\t\x7f\x85ÉÅ😀ßİ", *"\u00a0\u0301\u200b\u2028\ufeff"]
HUGE = {"kind": "numeric", "lower": -1e300, "upper": 1e300}
DAYS = {"lower": "0900-01-01", "upper": "2030-01-01"}


def hostile(rows: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Name, column of the schema and cells of each table."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(0, 7, rows)
    letters, ends = "".join(draw.choice(ALPHABET, lengths.sum())), np.cumsum(lengths)
    texts = [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    yield "texts", KINDS["open"], texts
    yield "categories", KINDS["other"] | {"nullable": True}, texts
    yield "numbers", HUGE, [number_text(*some) for some in draw.integers(-(10**6), 10**6, (rows, 3)).tolist()]
    bits = draw.integers(0, 2**64, rows, np.uint64).view(np.float64)
    yield "float64", HUGE, np.where(np.isfinite(bits), bits, 0.5)
    yield "midway", HUGE, midway(draw, rows)
    yield "float32", HUGE, draw.integers(0, np.float32(np.inf).view(np.uint32), rows, np.uint32).view(np.float32)
    whole = draw.integers(-(2**62), 2**62, rows) >> draw.integers(0, 62, rows)
    yield "integers", {"kind": "integer", "lower": -(10**12), "upper": 10**12}, whole
    days = np.datetime64("0950-01-01") + draw.integers(0, 390_000, rows).astype("timedelta64[D]")
    yield "dates", {"kind": "date", **DAYS}, days.astype(str)
    seconds = np.datetime64("1700-01-01T00:00:00") + draw.integers(0, 10**10, rows).astype("timedelta64[s]")
    yield "moments", {"kind": "datetime", **DAYS}, seconds.astype("datetime64[us]")


def number_text(whole: int, power: int, form: int) -> str:
    """A number in one of six notations."""
    power = power % 25 - 12
    texts = f"{whole}", f"{whole}e{power}", f" {whole / 1000} ", f"+{abs(whole)}.0", repr(whole * 10.0**power)
    return [*texts, f"{whole}.500"][form % 6]


def midway(draw: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Numbers next to c · 5^k · 2^e, which lies midway between two and may have few digits."""
    found: list[float] = []
    while len(found) < rows:
        factor = 5 ** int(draw.integers(1, 23))
        middle = (int(draw.integers(2**53 // factor, 2**54 // factor)) | 1) * factor
        if 2**53 < middle < 2**54:
            found.append(float(middle // 2 + middle // 2 % 2) * 2.0 ** int(draw.integers(2, 41)))
    return np.array(found)


@pytest.mark.long
def test_the_sums_of_random_rows_are_those_of_python(url: str) -> None:
    for name, column, cells in hostile(ROWS):
        frame, schema = pd.DataFrame({"c": cells}), schema_with({"c": column})
        write(url, name, frame)
        hashes = row_hashes(read_frame(frame, schema), schema)
        parts = SplitByContent(PARTS.fraction, PARTS.seed).assign_parts(hashes)
        expected = [hashes[parts == part] for part in ("train", "test")]
        found = RemoteRows(Database(url, name), schema, PARTS).count_rows()
        assert found == tuple(Sums(len(some), total_of(some)) for some in expected), name
