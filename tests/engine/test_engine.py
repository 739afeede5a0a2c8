"""The sum of partial sums is the sum, wherever the parts are worked on and whoever dies; and nothing private leaks."""

import os
import signal
import ssl
import stat
import sys
import urllib.request
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_streaming import OPEN, SCHEMA, joined, settings_of, source

from likeness.config.params import EngineSettings
from likeness.config.typed import build
from likeness.core.errors import ArtifactError, DataError, EngineError, ParamsError
from likeness.data.encoding.encoder import Encoder
from likeness.data.private_tables import iter_private, read_private, write_private_chunks
from likeness.data.source.files import read_source
from likeness.engine import LOCAL, open_engine
from likeness.engine.cluster import DaskEngine, WorkerError
from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.constant import Constant
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.ntk.tangent_map import NetworkTangent
from likeness.methods.pearl.characteristic_map import CharacteristicFunction
from likeness.methods.pearl.pair_distance_map import PairDistance
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.private_rows import SPLIT, EncodedRows
from likeness.pipeline.provenance import public_settings
from likeness.pipeline.sources import Sources
from likeness.release.query import Query
from likeness.release.records import BucketPairs, EachPerson, EachRecord, PositionPairs, Records
from likeness.release.sums import over_parts as exact
from likeness.release.sums.over_parts import exact_sum

ROWS, SECRET = 400, "Xq7Secret"
WIDTH = Encoder(SCHEMA).layout.width
FEATURES: dict[str, FeatureMap] = {
    "each row's own": CharacteristicFunction(WIDTH, 16, 1.5, seed=0),
    "counts": Constant(),
    "cells": PairMarginals((Cells(0, 4, (0.2, 0.5, 0.7)), Cells(1, 3, (0.3, 0.6)), Cells(2, 2, (0.5,)))),
    "outer products": NetworkTangent("fc_1l", (8,), (WIDTH,), seed=0),
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
    """An encoded table of 25 row groups."""
    folder = tmp_path_factory.mktemp("rows")
    table = read_source(source(folder, ROWS), SCHEMA)[0]
    codes = Encoder(SCHEMA).encode(table).assign(**{SPLIT: np.where(np.arange(ROWS) % 5 == 0, "test", "train")})
    path, before = folder / "private/encoded.parquet", tables_row_group(16)
    write_private_chunks([codes], path, lambda: {"digest": "d"})
    tables_row_group(before)
    return EncodedRows(path, {"digest": "d"}, SCHEMA)


def tables_row_group(size: int) -> int:
    from likeness.data import private_tables as tables

    before, tables._ROW_GROUP = tables._ROW_GROUP, size
    return before


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskEngine]:
    pytest.importorskip("distributed")
    with open_engine("dask", 2, None, tmp_path_factory.mktemp("private") / "workers") as engine:
        assert isinstance(engine, DaskEngine)
        yield engine


@pytest.mark.long
@pytest.mark.parametrize("name", FEATURES)
def test_any_parts_add_up_to_the_sum(rows: EncodedRows, name: str) -> None:
    query = Query("q", "privatize", FEATURES[name], num_groups=1)
    whole = exact_sum(query, rows)
    assert whole.records == ROWS * 4 // 5 and whole.total.any()
    for most in (1, 2, 7, 25, 1000):
        parts = rows.parts(most)
        assert len(parts) == min(most, 25)
        assert sum(len(chunk.x) for part in parts for chunk in part()) == whole.records
    divided = exact_sum(query, rows, Threefold())
    assert divided.records == whole.records and np.array_equal(divided.total, whole.total)


def test_encoded_rows_are_in_memory_two_chunks_at_a_time(
    rows: EncodedRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames and vectors that are alive when one is made, and Arrow's memory: four times the table takes no more."""
    alive: list[weakref.ref[Any]] = []
    most: list[int] = []

    def passed_on(*words: Any) -> Iterator[pd.DataFrame]:
        for chunk in iter_private(*words):
            alive.append(weakref.ref(chunk))
            most.append(sum(ref() is not None for ref in alive))
            yield chunk
            del chunk

    monkeypatch.setattr("likeness.pipeline.private_rows.iter_private", passed_on)
    monkeypatch.setattr("likeness.pipeline.private_rows._MOST_ROWS", 1_024)

    def peak(count: int) -> int:
        """Bytes that Arrow holds at most, while so many row groups are summed."""
        codes = pd.concat([read_private(rows.path)] * 3, ignore_index=True).iloc[:1_024]
        codes = codes.assign(height=np.random.default_rng(0).random(1_024))  # which no file makes smaller
        path, before = tmp_path / f"private/{count}.parquet", tables_row_group(1_024)
        write_private_chunks([codes] * count, path, lambda: {"digest": "d"})
        tables_row_group(before)
        alive.clear()
        most.clear()
        held = [0]
        start = pa.total_allocated_bytes()

        def read() -> Iterator[Records]:
            for chunk in EncodedRows(path, {"digest": "d"}, SCHEMA)():
                held[0] = max(held[0], pa.total_allocated_bytes() - start)
                yield chunk

        assert exact_sum(Query("q", "privatize", Constant()), read).records > 800 * count
        assert len(most) >= count and max(most) <= 2
        return held[0]

    assert peak(16) < 1.25 * peak(4)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_dask_gives_the_same_bytes(rows: EncodedRows, cluster: DaskEngine, workers: int) -> None:
    """However many workers there are meant for: the parts, and so the partial sums, are others for each."""
    for feature in FEATURES.values():
        query = Query("q", "privatize", feature)
        found = exact_sum(query, rows, DaskEngine(cluster._client, workers))
        assert found.records == ROWS * 4 // 5
        assert found.total.tobytes() == exact_sum(query, rows).total.tobytes()


@dataclass(frozen=True)
class OfPeople:
    """The rows as those of people with three rows each, numbered from the first row that is read."""

    rows: EncodedRows

    def __call__(self) -> Iterator[Records]:
        start = 0
        for one in self.rows():
            yield replace(one, persons=np.arange(start, start + len(one.x)) // 3)
            start += len(one.x)

    def parts(self, most: int) -> list["OfPeople"]:
        return [OfPeople(part) for part in self.rows.parts(most)]


def test_dask_gives_the_same_bytes_of_people_with_histories(rows: EncodedRows, cluster: DaskEngine) -> None:
    """A part that began within a person would give that person more than one contribution."""
    query = Query("q", "privatize", FEATURES["cells"], contributions=EachPerson())
    people = OfPeople(rows)
    found = exact_sum(query, people, DaskEngine(cluster._client, 4))
    assert found.records == ROWS * 4 // 5
    assert found.total.tobytes() == exact_sum(query, people).total.tobytes()


@dataclass(frozen=True)
class Deadly:
    """Rows in parts; whoever works on the given part first is killed in the middle of it."""

    rows: EncodedRows
    mark: Path
    place: int = 7

    def __call__(self) -> Iterable[Records]:
        return self.rows()

    def parts(self, most: int) -> list[Any]:
        parts: list[Any] = list(self.rows.parts(most))
        parts[self.place] = KillsOnce(parts[self.place], self.mark)
        return parts


@dataclass(frozen=True)
class KillsOnce:
    part: EncodedRows
    mark: Path

    def __call__(self) -> Iterator[Records]:
        for chunk in self.part():
            yield chunk
            if not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_half_way_changes_nothing(
    rows: EncodedRows, cluster: DaskEngine, tmp_path: Path
) -> None:
    query = Query("q", "privatize", FEATURES["each row's own"])
    found = exact_sum(query, Deadly(rows, tmp_path / "killed"), cluster)
    assert (tmp_path / "killed").exists()
    assert found.total.tobytes() == exact_sum(query, rows).total.tobytes()


def test_ingest_in_workers_gives_the_same_rows(
    cluster: DaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path)
    monkeypatch.setattr("likeness.pipeline.ingest._PART_ROWS", 18)  # six parts
    for adjacency in ("add_remove_one", "replace_one"):
        params = settings_of(path, adjacency)
        for schema in (SCHEMA, OPEN):
            of, rows = (Sources(tmp_path, params), schema), [IngestedRows(params, schema) for _ in "ab"]
            found, alone = (joined(typed_rows(*of, *given)) for given in ((rows[0], cluster), (rows[1],)))
            pd.testing.assert_frame_equal(found, alone)
            sums = [(one.training.digest(b"k"), one.source.digest(b"k"), one.held_out) for one in rows]
            assert sums[0] == sums[1] and 0 < rows[0].held_out < 60
    assert set(found["city"].dropna()) == {"Rome", "Oslo"}  # as they stand there, to be released or not


def refuses(item: int) -> Iterator[int]:
    raise DataError("a message for people")
    yield item


def fails(item: int) -> Iterator[int]:
    raise ValueError(SECRET)
    yield item


def doubles(item: int) -> Iterator[int]:
    yield from [item, item]


def test_results_come_in_order_and_errors_come_as_they_are(
    cluster: DaskEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    assert list(cluster.stream(doubles, range(9))) == list(LOCAL.stream(doubles, range(9)))
    with pytest.raises(DataError, match="a message for people"):
        list(cluster.stream(refuses, range(9)))
    with pytest.raises(WorkerError, match=SECRET) as caught:  # whoever shows it must keep it private: a stage does
        list(cluster.stream(fails, range(9)))
    assert "in fails" in str(caught.value)
    list(cluster.stream(doubles, range(2)))
    shown = capfd.readouterr()
    assert SECRET not in shown.out + shown.err and "Traceback" not in shown.err


def look(item: int) -> Iterator[Any]:
    import dask
    from distributed import get_worker

    worker: Any = get_worker()
    spills = dask.config.get("distributed.worker.memory.spill"), dask.config.get("distributed.worker.memory.target")
    yield (*spills, worker.memory_manager.memory_limit, type(worker.data), worker.local_directory)


def test_nothing_private_is_kept_shown_or_open_to_others(cluster: DaskEngine) -> None:
    from distributed import Client

    ((spill, target, limit, store, folder),) = cluster.stream(look, [0])
    assert (spill, target, limit, store) == (False, False, None, dict)  # not a buffer that writes to disk
    private = Path(folder).parents[2]
    assert private.name.startswith("private") and stat.S_IMODE(private.stat().st_mode) == 0o700
    about = cluster._client.scheduler_info()
    addresses = [cluster._client.scheduler.address, *about["workers"]]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    ports = [about["services"]["dashboard"]] + [own["services"]["dashboard"] for own in about["workers"].values()]
    for port in ports:
        for page in ("status", "metrics", "info/main/workers.html", "json/counts.json", ""):
            with pytest.raises(HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)
    with pytest.raises((OSError, ssl.SSLError, TypeError)):
        Client(addresses[0].replace("tls", "tcp"), timeout="1s", set_as_default=False)


def test_the_folder_of_the_workers_goes_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "LocalCluster", lambda **_: (_ for _ in ()).throw(RuntimeError("no cluster")))
    folder = tmp_path / "private/workers"
    with pytest.raises(RuntimeError, match="no cluster"), open_engine("dask", 1, None, folder):
        pass
    assert folder.parent.exists() and not folder.exists()
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    with (
        pytest.raises(EngineError, match=r"engine\.scheduler must be a tls:// address, got 'tcp://a:1'"),
        open_engine("dask", 1, "tcp://a:1", tmp_path / "w"),
    ):
        pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(EngineError, match=r"not installed\. Run: pip install 'likeness-dp\[dask\]'"),
        open_engine("dask", 1, None, tmp_path / "w"),
    ):
        pass
    with pytest.raises(ParamsError, match=r"engine\.kind must be one of local, dask"):
        build(EngineSettings, {"kind": "spark"}, "engine")
    with pytest.raises(ParamsError, match=r"engine\.workers must be at least 1"):
        build(EngineSettings, {"workers": 0}, "engine")


def test_workers_that_die_again_and_again_are_told_in_plain_words() -> None:
    pytest.importorskip("distributed")
    from distributed.scheduler import KilledWorker

    class Future:
        def result(self) -> None:
            raise KilledWorker("part", None, 3)

    class Client:
        def submit(self, *arguments: Any, **keywords: Any) -> Future:
            return Future()

    with pytest.raises(EngineError, match="died repeatedly") as caught:
        list(DaskEngine(Client(), 1).stream(doubles, [1]))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("terms", [BucketPairs(4), PositionPairs(2, 0)], ids=["buckets", "positions"])
def test_pairs_are_made_over_the_whole_table(rows: EncodedRows, terms: Any) -> None:
    """A pair may join rows of two parts, so parts have no sums that add up: nothing is divided."""

    class Forbidden(Threefold):
        def stream(self, work: Any, items: Iterable[Any]) -> Iterator[Any]:
            raise AssertionError("divided")

    assert EachRecord.splits and not terms.splits
    query = Query("q", "auxiliary", PairDistance(2 * WIDTH), contributions=terms)
    assert exact_sum(query, rows, Forbidden()).records == ROWS * 4 // 5
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


def test_the_engine_is_no_part_of_what_was_asked() -> None:
    params = settings_of(Path("t.csv"))
    divided = replace(params, engine=EngineSettings("dask", 4, "tls://a:1"))
    assert public_settings(params) == public_settings(divided)
