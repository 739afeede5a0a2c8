"""Rows that stay in Spark: two workers, or partitions passed by hand, give the integers of a local run, to the bit."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from small_project import assign, write_project_files
from typer.testing import CliRunner
from verdicts import verify

from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.core.errors import DataError, LikenessError
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.private_tables import read_private
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.ledger.ledger import Ledger
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness.pipeline.account import account
from likeness.pipeline.counts import ANSWERS
from likeness.pipeline.doors import rows_of
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.preflight.downstream_checks import check_ahead
from likeness.preflight.faults import examine
from likeness.release.door import _check_rows_per_person
from likeness.release.query import Query
from likeness.release.records import AllRecords
from likeness.release.released import load_released
from likeness.release.sums.backends import CountReader
from likeness.release.sums.over_parts import exact_sum
from likeness_spark import executor
from likeness_spark.backend import SparkCounts
from likeness_spark.executor import OWNER, count, no_tables, spread, versions
from likeness_spark.reader import SparkReader, SparkRows, check_encrypted
from likeness_spark.tables import count_tables

Put = Callable[[pd.DataFrame], None]
ASKED = ["settings", "fingerprint", "ingest", "plan", "preprocess", "auxiliary", "privatize"]
LATER = ["train", "sample", "evaluate", "account", "report"]
STAYS = {"source": "spark://", "query": "staff", "rows": "stay"}
X, JOB = Cells(0, 8, tuple(np.arange(1, 8) / 8)), Cells(1, 2)
OF_X = Query("x", "privatize", ColumnMarginals((Cells(0, 1, ()),)))
FEATURES = ((0, 1, 0, 1, 2, 2, 0, 1), (0, 0)), ((0.5, -0.5, 1.0, 0.3, -1.0, 0.1, 0.9, 0.7), (-1.0, 0.4))
ENCRYPTED = ("spark.io.encryption.enabled", "spark.authenticate", "spark.network.crypto.enabled")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A master and two workers, each a process of its own, which encrypt their files and what they send."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'likeness-dp[spark]'")
    if not ("JAVA_HOME" in os.environ or shutil.which("java")):
        pytest.skip("Java is not installed")
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        home = str(Path(pyspark.__file__).parent)
        for name, text in (("PYSPARK_PYTHON", sys.executable), ("SPARK_HOME", home), ("SPARK_SCALA_VERSION", "2.13")):
            patch.setenv(name, text)
        patch.chdir(tmp_path_factory.mktemp("spark"))
        settings = {
            **dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1"),
            **dict.fromkeys(ENCRYPTED, "true"),
            **{"spark.ui.enabled": "false", "spark.log.level": "OFF"},
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "spark.authenticate.secret": "of these tests",
            "spark.sql.shuffle.partitions": "3",
            "spark.local.dir": str(Path.cwd()),
        }
        builder = SparkSession.builder.master("local-cluster[2,1,1024]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        running = builder.getOrCreate()
        yield running
        running.stop()


class Frame:
    """A frame of Spark by hand: partitions of Arrow batches, which functions pass one by one."""

    sparkSession = SimpleNamespace(conf={"spark.sql.shuffle.partitions": "3"})

    def __init__(self, tables: list[pa.Table]) -> None:
        self.tables, self.schema, self.columns = tables, self, tables[0].column_names
        self.dtypes = [(kind.name, "timestamp" if "tz=" in str(kind.type) else "") for kind in tables[0].schema]

    def add(self, name: str, kind: str) -> "Frame":
        return self

    def toDF(self, *names: str) -> "Frame":
        return Frame([table.rename_columns(names) for table in self.tables])

    def select(self, *names: str) -> "Frame":
        return Frame([table.select([name.strip("`") for name in names]) for table in self.tables])

    def mapInArrow(self, function: Any, schema: Any) -> "Frame":
        passed = [function(iter(table.to_batches(max_chunksize=90))) for table in self.tables]
        return Frame([pa.Table.from_batches(list(batches)) for batches in passed])

    def repartition(self, partitions: int, name: str) -> "Frame":
        whole = pa.concat_tables(self.tables[::-1])
        places = np.array([hash(owner) % partitions for owner in whole[name].to_pylist()])
        return Frame([whole.filter(pa.array(places == place)) for place in range(partitions)])

    def collect(self) -> list[Any]:
        return [SimpleNamespace(**row) for table in self.tables for row in table.to_pylist()]


@pytest.fixture(params=["by hand", pytest.param("two workers", marks=[pytest.mark.process, pytest.mark.long])])
def put(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Put:
    """What makes a table a view of Spark."""
    if request.param == "two workers":
        session = request.getfixturevalue("workers")
        return lambda table: session.createDataFrame(table).repartition(4).createOrReplaceTempView("staff")
    held: list[pa.Table] = []
    monkeypatch.setattr("likeness_spark.reader.session_of", lambda url: SimpleNamespace(sql=lambda text: Frame(held)))
    monkeypatch.setattr("likeness_spark.backend.need", lambda *words: None)

    def by_hand(table: pd.DataFrame) -> None:
        whole = pa.Table.from_pandas(table, preserve_index=False)
        held[:] = [whole.slice(first, 250) for first in range(0, len(table), 250)]

    return by_hand


@pytest.fixture
def table(tmp_path: Path, put: Put, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A project of a CSV file, whose rows are a view of Spark too; some rows are equal."""
    for name in ("LIKENESS_HOME", "LIKENESS_MLFLOW_URI"):
        monkeypatch.delenv(name)
    table = write_project_files(tmp_path / "people", {"categories": ["clerk", "nurse"]}, source="rows.csv")
    table["x"] = table["x"].round(2)
    table["pid"] = [f"p{place % 420}" for place in range(len(table))]
    table.to_csv(tmp_path / "people" / "rows.csv", index=False)
    put(table)
    monkeypatch.chdir(tmp_path / "people")
    Ledger.create(Project.load(Path()).ledger_session.home)
    ANSWERS.clear()
    return table


def change(*keys: str, value: object) -> None:
    content = yaml.safe_load(Path("params.yaml").read_text())
    assign(content, keys, value)
    Path("params.yaml").write_text(yaml.safe_dump(content))


def run(*stages: str, **ingest: object) -> Project:
    for key, value in ingest.items():
        change("ingest", key, value=value)
    for name in stages:
        run_stage(name, import_module(f"stages.{name}").main, Path())
    return Project.load(Path())


def rows_in_spark(query: str = "staff") -> SparkRows:
    backend = run(**{**STAYS, "query": query}).backend
    assert isinstance(backend, SparkCounts)
    return backend._rows


@pytest.mark.parametrize("put", ["by hand"], indirect=True)
def test_a_run_leaves_the_rows_in_spark(table: pd.DataFrame) -> None:
    """The ledger knows the rows from a file: nothing more is spent."""
    project, paths = run(*ASKED, *LATER, **STAYS), ProjectPaths(Path())
    assert len(read_private(paths.table)) == len(read_private(paths.encoded)) == 0
    receipts = [load_released(path).receipt for path in paths.released_files]
    assert all(receipt.backend.startswith("spark ") for receipt in receipts)
    printed = CliRunner().invoke(app, ["sql"], catch_exceptions=False).output
    assert all(f"-- {receipt.query}: {receipt.backend.split()[1]}" in printed for receipt in receipts)
    assert any("stay in their database (spark)" in note for note in read_json(paths.privacy)["notes"])
    write_bundle(project, account(project), Path("bundle.zip"))
    assert not [check for check in verify(Path("bundle.zip")) if check.passed is False]
    released, spent = [path.read_bytes() for path in paths.released_files], len(project.ledger.records())
    for ingest in ({"source": "rows.csv", "query": None, "rows": "come"}, STAYS):
        again = run(*ASKED, **ingest)
        assert [path.read_bytes() for path in paths.released_files] == released
        assert len(again.ledger.records()) == spent


@pytest.mark.parametrize("kind", ["rows", "people", "split column"])
def test_partitions_give_the_integers_of_a_local_run(table: pd.DataFrame, put: Put, kind: str) -> None:
    if kind == "people":
        change("privacy", "unit", value="one person")
        change("ingest", "unit", value={"column": "pid", "max_rows": 2})
    if kind == "split column":
        table["pid"] = np.where(np.arange(len(table)) % 3, "p1", "p2")
        table.to_csv("rows.csv", index=False)
        put(table)
        change("ingest", "split", value={"column": "pid", "train": "p1", "test": "p2"})
    project = run("settings", "ingest", "preprocess")
    dataset, local = rows_of(project)
    reader = SparkReader(rows_in_spark(), dataset.digest, project.ledger.key)
    assert not isinstance(local, CountReader)
    unit, opened = project.complete_params.ingest.unit, local
    if unit is not None:
        opened = lambda: _check_rows_per_person(local(), unit)  # noqa: E731
    classes = Query("columns", "privatize", ColumnMarginals((X, JOB)), 2)
    pairs = Query("pairs", "privatize", PairMarginals((X, JOB)), 1, AllRecords())
    products = Query("products", "privatize", PairProducts((X, JOB), *FEATURES), 1, AllRecords())
    steps = Query("steps", "privatize", ColumnSteps((Steps(0, 0.0, 1.0, (0.1, 0.01)),)), 2)
    for query in (classes, pairs, products, steps):
        here, there = exact_sum(query, opened), exact_sum(query, reader)
        assert here.records == there.records > 500 and np.array_equal(here.total, there.total) and here.total.any()


def test_changed_rows_and_other_versions_are_refused(table: pd.DataFrame, put: Put) -> None:
    rows = rows_in_spark()
    train, test, _ = rows.sums()
    assert train.count + test.count == len(table)
    reader = SparkReader(rows, rows.digest(b"k" * 32, train), b"k" * 32)
    reader.check(OF_X)
    table.loc[0, "x"] += 0.001
    put(table)
    reader.check(OF_X)  # which is not asked again
    ANSWERS.clear()
    for _ in range(2):  # what was refused is not remembered
        with pytest.raises(DataError, match=r"rows changed since they were ingested\. Nothing more was spent"):
            reader.check(OF_X)
    with pytest.raises(DataError, match="the cost of this query stays on record"):
        reader.counts([[X]], 1, False)
    other = replace(rows, work=replace(rows.work, versions=("9.9", *versions()[1:])))
    with pytest.raises(DataError, match=r"an executor has likeness-dp .* in place of 9\.9"):
        other.sums()


@pytest.mark.parametrize("put", ["by hand"], indirect=True)
def test_nothing_is_paid_for_rows_that_changed(table: pd.DataFrame, put: Put) -> None:
    run(*ASKED[:5], **STAYS)
    put(table.assign(x=table["x"] / 2))
    with pytest.raises(SystemExit):
        run("auxiliary")
    assert "reserve" not in {record.kind for record in Project.load(Path()).ledger.records()}


@pytest.mark.parametrize("put", ["two workers"], indirect=True)
def test_an_executor_that_dies_counts_once(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, first = rows_in_spark(), Path("died").absolute()
    expected, pass_over = rows.sums(count_tables, [[X]]), executor.count

    def dies_once(*given: Any) -> Any:
        yield from pass_over(*given)
        if not first.exists():
            first.touch()
            os._exit(1)

    monkeypatch.setattr("likeness_spark.reader.count", dies_once)
    again = rows.sums(count_tables, [[X]])
    assert first.exists() and again[:2] == expected[:2] and np.array_equal(again[2], expected[2])


@pytest.mark.parametrize("put", ["two workers"], indirect=True)
def test_no_error_quotes_a_cell(table: pd.DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    for cell in ("'SECRET'", "CAST('SECRET' AS DOUBLE)"):
        rows = rows_in_spark(f"SELECT {cell} AS x, job, sick FROM staff")  # noqa: S608
        with pytest.raises(DataError) as refused:
            rows.sums()
        assert "SECRET" not in str(refused.value) and refused.value.__cause__ is refused.value.__context__ is None
    heard = capfd.readouterr()
    assert "SECRET" not in heard.out + heard.err


@pytest.mark.parametrize("put", ["by hand"], indirect=True)
def test_an_executor_says_type_and_place_of_an_error(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    work = rows_in_spark().work
    (batch,) = pa.Table.from_pandas(table.astype({"x": str}).assign(x="SECRET")).to_batches()
    (named,) = count(work, no_tables, iter([batch]))
    assert "column 'x'" in named["fault"][0].as_py() and "SECRET" not in str(named.to_pylist())
    assert set(next(spread(work, iter([batch])))[OWNER].to_pylist()) == {b""}  # of a refused row
    (good,) = pa.Table.from_pandas(table).to_batches()
    hashed = list(spread(replace(work, versions=("9.9", *versions()[1:])), iter([good])))
    (lost,) = count(work, no_tables, iter(hashed))  # on an executor of the right version
    assert "an executor cannot hash rows. Install the versions of the driver" in lost["fault"][0].as_py()
    monkeypatch.setattr(executor, "_sums", lambda *given: int("SECRET"))
    (unnamed,) = count(work, no_tables, iter([batch]))
    assert unnamed["part"].to_pylist() == [-1] and unnamed["cells"][0].as_py() == b""
    assert unnamed["fault"][0].as_py().startswith("Spark: an executor failed (ValueError at test_spark.py:")


@pytest.mark.parametrize("put", ["by hand"], indirect=True)
def test_why_rows_cannot_stay_is_said(table: pd.DataFrame, put: Put) -> None:
    run(**STAYS)
    put(table.drop(columns="x"))
    assert "column 'x'" in "".join(fault.text for fault in examine(Path()).faults)
    put(table.assign(x=pd.Timestamp("2024-01-01", tz="UTC")))
    assert "column 'x' has a zone. CAST it AS TIMESTAMP_NTZ" in "".join(fault.text for fault in examine(Path()).faults)
    change("tracking", "internal_metrics", value=True)
    change("method", value="merf")
    with pytest.raises(LikenessError, match=r"but tracking\.internal_metrics asks for .*; method merf asks for more"):
        check_ahead(Project.load(Path()))
    schema = Path("schema.yaml").read_text()
    Path("schema.yaml").write_text(re.sub(r"categories:\n    - clerk\n    - nurse", "categories: private", schema))
    assert "the schema has private categories. List them" in "".join(fault.text for fault in examine(Path()).faults)


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]", "spark://host:7077"])
def test_a_spark_without_encryption_is_refused(master: str) -> None:
    needed = ENCRYPTED[:1] if master == "local[2]" else ENCRYPTED
    settings = dict.fromkeys(needed, "true")
    check_encrypted(SimpleNamespace(master=master, getConf=lambda: settings))
    for key in needed:
        off = {**settings, key: "false"}
        with pytest.raises(DataError, match=rf"Spark: {key} must be true, and is not"):
            check_encrypted(SimpleNamespace(master=master, getConf=lambda off=off: off))
