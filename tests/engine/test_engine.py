"""The sum of partial sums is the sum, wherever the parts are worked on."""

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_streaming import OPEN, SCHEMA, joined, settings_of, source
from toy_maps import Outer, Trigonometric

from likeness.core.engine import LOCAL, Threads, threads
from likeness.core.errors import ArtifactError, DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.private_tables import iter_stored, read_private, write_private_chunks
from likeness.data.source.files import read_source
from likeness.features.base import FeatureMap
from likeness.features.cells import Cells, CodedRows
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.private_rows import EncodedRows
from likeness.pipeline.sources import Sources
from likeness.release.query import Query
from likeness.release.records import AllRecords, BucketPairs, EachPerson, EachRecord, PositionPairs, Records
from likeness.release.sums import kept_counts
from likeness.release.sums import over_parts as exact
from likeness.release.sums.over_parts import exact_sum

ROWS = 400
WIDTH = Encoder(SCHEMA).layout.width
FEATURES: dict[str, FeatureMap] = {
    "each row's own": Trigonometric(WIDTH, 16, 1.5, seed=0),
    "counts": Constant(),
    "cells": PairMarginals((Cells(0, 4, (0.2, 0.5, 0.7)), Cells(1, 3, (0.3, 0.6)), Cells(2, 2, (0.5,)))),
    "outer products": Outer(((8, 6), (1, 8)), WIDTH, seed=0),
}


@dataclass(frozen=True)
class Threefold:
    """Three workers' worth of parts, worked on here from the last to the first."""

    workers: int = 3

    def stream(self, work: Any, items: Iterable[Any]) -> Iterator[Any]:
        results = [list(work(item)) for item in reversed(list(items))]
        yield from (result for results in reversed(results) for result in results)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> EncodedRows:
    """An encoded table of 25 batches."""
    folder = tmp_path_factory.mktemp("rows")
    table = read_source(source(folder, ROWS), SCHEMA)[0]
    codes = Encoder(SCHEMA).encode(table)
    path, before = folder / "private/encoded.arrow", tables_row_group(16)
    write_private_chunks([codes], path, lambda: {"digest": "d"})
    tables_row_group(before)
    return EncodedRows(path, {"digest": "d"}, SCHEMA)


def tables_row_group(size: int) -> int:
    from likeness.data import private_tables as tables

    before, tables._ROW_GROUP = tables._ROW_GROUP, size
    return before


@pytest.mark.long
@pytest.mark.parametrize("name", FEATURES)
def test_any_parts_add_up_to_the_sum(rows: EncodedRows, name: str) -> None:
    query = Query("q", "privatize", FEATURES[name], num_groups=1)
    whole = exact_sum(query, rows)
    assert whole.records == ROWS and whole.total.any()
    for most in (1, 2, 7, 25, 1000):
        parts = rows.split(most)
        assert len(parts) == min(most, 25)
        assert sum(len(chunk.x) for part in parts for chunk in part()) == whole.records
    divided = exact_sum(query, rows, Threefold())
    assert divided.records == whole.records and np.array_equal(divided.total, whole.total)


@pytest.mark.long
def test_encoded_rows_are_in_memory_two_chunks_at_a_time(
    rows: EncodedRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that are alive when one is made, and Arrow's memory: four times the table takes no more."""
    alive: list[weakref.ref[Any]] = []
    most: list[int] = []

    def passed_on(*words: Any) -> Iterator[pa.RecordBatch]:
        for chunk in iter_stored(*words):
            alive.append(weakref.ref(chunk))
            most.append(sum(ref() is not None for ref in alive))
            yield chunk
            del chunk

    monkeypatch.setattr("likeness.pipeline.private_rows.iter_stored", passed_on)
    monkeypatch.setattr("likeness.pipeline.private_rows._MOST_ROWS", 1_024)

    def peak(count: int) -> int:
        """Bytes that Arrow holds at most, while so many batches are summed."""
        codes = pd.concat([read_private(rows.path)] * 3, ignore_index=True).iloc[:1_024]
        codes = codes.assign(height=np.random.default_rng(0).random(1_024))  # which no file makes smaller
        path, before = tmp_path / f"private/{count}.arrow", tables_row_group(1_024)
        write_private_chunks([codes] * count, path, lambda: {"digest": "d"})
        tables_row_group(before)
        alive.clear()
        most.clear()
        held = [0]
        start = pa.total_allocated_bytes()

        def read() -> Iterator[Records]:
            for chunk in EncodedRows(path, {"digest": "d"}, SCHEMA)():
                assert chunk.x.dense.any()
                held[0] = max(held[0], pa.total_allocated_bytes() - start)
                yield chunk

        assert exact_sum(Query("q", "privatize", Constant()), read).records > 1_000 * count
        assert len(most) >= count and max(most) <= 2
        return held[0]

    assert peak(16) < 1.25 * peak(4)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_threads_give_the_same_bytes(rows: EncodedRows, workers: int) -> None:
    """However many there are: the parts, and so the partial sums, are others for each."""
    for feature in FEATURES.values():
        query = Query("q", "privatize", feature)
        found = exact_sum(query, rows, Threads(workers))
        assert found.records == ROWS and found.total.tobytes() == exact_sum(query, rows).total.tobytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_that_are_kept_give_the_same_bytes(
    rows: EncodedRows, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of single columns, of pairs and of classes; and what follows from kept counts reads no row."""
    passes: list[int] = []
    counted = kept_counts.count_tables
    monkeypatch.setattr(kept_counts, "count_tables", lambda *words: passes.append(1) or counted(*words))
    schema = replace(SCHEMA, task="classification", label="grade")
    plain = replace(rows, schema=schema)
    first = next(iter(plain())).x
    assert isinstance(first, CodedRows)
    edges = np.linspace(0, 1, 9).tolist()[1:-1]
    columns = tuple(
        Cells(start, size, None, missing) if size else Cells(start, 8 + missing, edges, missing)
        for start, size, missing in first.columns
    )
    pairs = PairMarginals(columns)
    questions = [
        (Query("q", "privatize", feature, groups, terms), is_new)
        for feature, groups, terms, is_new in (
            (Constant(), 2, EachRecord(), True),
            (ColumnMarginals(columns), 1, AllRecords(), True),
            (ColumnMarginals(columns), 2, EachRecord(), False),
            (pairs, 1, AllRecords(), True),
            (pairs, 2, EachRecord(), False),
            (ColumnMarginals(columns[::-1]), 2, EachRecord(), False),
            (pairs, 1, EachRecord(), False),  # of the first class alone: nothing is kept of such a query
        )
    ]
    held = replace(plain, kept={})
    for query, is_new in questions:
        passes.clear()
        found, expected = exact_sum(query, held, Threads(workers)), exact_sum(query, plain)
        assert found.records == ROWS and found.total.tobytes() == expected.total.tobytes(), query
        assert (query.num_groups == 1 and isinstance(query.contributions, EachRecord)) or bool(passes) is is_new
    with pytest.raises(ArtifactError, match="was replaced"):
        exact_sum(questions[0][0], replace(held, manifest={"digest": "e"}))


@dataclass(frozen=True)
class OfPeople:
    """The rows as those of people with three rows each, numbered from the first row that is read."""

    rows: EncodedRows

    def __call__(self) -> Iterator[Records]:
        start = 0
        for one in self.rows():
            yield replace(one, persons=np.arange(start, start + len(one.x)) // 3)
            start += len(one.x)

    def split(self, most: int) -> list["OfPeople"]:
        return [OfPeople(part) for part in self.rows.split(most)]


def test_threads_give_the_same_bytes_of_people_with_histories(rows: EncodedRows) -> None:
    """A part that began within a person would give that person more than one contribution."""
    query = Query("q", "privatize", FEATURES["cells"], contributions=EachPerson())
    people = OfPeople(rows)
    found = exact_sum(query, people, Threads(4))
    assert found.records == ROWS and found.total.tobytes() == exact_sum(query, people).total.tobytes()


@pytest.mark.long
def test_ingest_in_threads_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.data.source.files._MOST_ROWS", 9)
    folder, text = source(tmp_path), tmp_path / "t.csv"
    pq.read_table(folder).to_pandas().to_csv(text, index=False)
    for path, adjacency in product((folder, text), ("add_remove_one", "replace_one")):
        params = settings_of(path, adjacency)
        for schema in (SCHEMA, OPEN):
            of, rows = (Sources(tmp_path, params), schema), [IngestedRows(params, schema) for _ in "ab"]
            found, alone = (joined(typed_rows(*of, *given)) for given in ((rows[0], Threads(3)), (rows[1],)))
            pd.testing.assert_frame_equal(found, alone)
            sums = [(one.training.digest(b"k"), one.source.digest(b"k"), one.held_out) for one in rows]
            assert sums[0] == sums[1] and 0 < rows[0].held_out < 60
    assert set(found["city"].dropna()) == {"Rome", "Oslo"}  # as they stand there, to be released or not


def refuses_four(item: int) -> Iterator[int]:
    if item == 4:
        raise DataError("a message for people")
    yield item


def doubles(item: int) -> Iterator[int]:
    yield from [item, item]


def test_results_come_in_order_and_few_items_are_on_their_way() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(9):
            taken.append(item)
            yield item

    results = Threads(2).stream(doubles, items())
    assert next(results) == 0 and taken == [0, 1, 2] and [0, *results] == list(LOCAL.stream(doubles, range(9)))


def test_an_error_comes_as_it_is_and_ends_the_pass() -> None:
    results = Threads(2).stream(refuses_four, range(9))
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(DataError, match="a message for people"):
        next(results)
    assert list(results) == []

    def broken() -> Iterator[int]:  # as a file whose third piece cannot be read
        yield from range(2)
        raise DataError("a later message")

    for engine in (LOCAL, Threads(2)):
        results = engine.stream(doubles, broken())
        assert [next(results) for _ in range(4)] == [0, 0, 1, 1]
        with pytest.raises(DataError, match="a later message"):
            next(results)


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (64, 2)])
def test_threads_are_no_more_than_cores(monkeypatch: pytest.MonkeyPatch, cores: int, workers: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores), raising=False)
    assert threads().workers == workers


@pytest.mark.parametrize("terms", [BucketPairs(4), PositionPairs(2, 0)], ids=["buckets", "positions"])
def test_pairs_are_made_over_the_whole_table(rows: EncodedRows, terms: Any) -> None:
    """A pair may join rows of two parts, so parts have no sums that add up: nothing is divided."""

    class Forbidden(Threefold):
        def stream(self, work: Any, items: Iterable[Any]) -> Iterator[Any]:
            raise AssertionError("divided")

    assert EachRecord.splits and not terms.splits
    query = Query("q", "auxiliary", Trigonometric(4, 2 * WIDTH, 1.5, seed=0), contributions=terms)
    assert exact_sum(query, rows, Forbidden()).records == ROWS
    with pytest.raises(AssertionError, match="divided"):
        exact_sum(Query("q", "privatize", Constant()), rows, Forbidden())


def test_too_many_records_are_refused_before_they_are_added(rows: EncodedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part may hold fewer than fit; together they do not."""
    monkeypatch.setattr(exact, "MAX_SUMMED", 100)
    with pytest.raises(DataError, match="over 100 contributions"):
        exact_sum(Query("q", "privatize", Constant()), rows, Threefold())


def test_another_table_in_its_place_is_refused_in_every_part(rows: EncodedRows) -> None:
    other = replace(rows, manifest={"digest": "other"})
    with pytest.raises(ArtifactError, match="was replaced while it was in use"):
        exact_sum(Query("q", "privatize", Constant()), other, Threefold())
