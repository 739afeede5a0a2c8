"""Spark as a database: its SQL makes the same of every cell as Python, hashes the same texts, counts the same.

``make spark-tests`` installs Spark beside everything else, and fails where Java or pyspark is missing. CI does it too.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_history_warehouse as histories
import test_warehouse as warehouse
import yaml
from toys import schema_with
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.core.errors import DataError
from likeness.core.paths import ProjectPaths
from likeness.data.private_tables import read_manifest
from likeness.data.source.connections import _ADDRESSES, _HERE, _QUIET
from likeness.data.source.databases import Database
from likeness.data.source.row_digests import _sum, row_hashes
from likeness.data.warehouse.rows import RowsThere
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.release.released import load_released

pytestmark = pytest.mark.slow
if "LIKENESS_SPARK" not in os.environ:
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make spark-tests")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed", allow_module_level=True)
assert shutil.which("java"), "Java is not installed: install Java 17 or newer"
import pyspark  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

MOMENTS = ["2023-11-05 05:30:00Z", "2023-11-05 06:30:00Z", "0001-01-01 00:00:00Z", "9999-12-31 23:59:59Z"]
SPARK, ROOT = "spark://", Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of Spark in which workers keep their logs."""
    folder = tmp_path_factory.mktemp("home")
    for path in Path(str(pyspark.__file__)).parent.iterdir():
        (folder / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(folder))
        patch.setenv("SPARK_SCALA_VERSION", "2.13")
        yield folder


@pytest.fixture(scope="module")
def spark(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 2)
    for key, value in {**_QUIET, **dict.fromkeys(_ADDRESSES, _HERE)}.items():
        builder = builder.config(key, value)
    for who in ("driver", "executor"):  # half of the seconds
        builder = builder.config(f"spark.{who}.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    builder = builder.config("spark.sql.timestampType", "TIMESTAMP_NTZ")  # which would refuse all moments
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()

    def put(name: str, table: pa.Table) -> None:
        pq.write_table(table, folder / f"{name}.parquet")
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.sql(f"CREATE TABLE {name} USING PARQUET LOCATION '{folder}/{name}.parquet'")

    warehouse.WRITERS[SPARK] = put
    yield session
    (SparkSession.getActiveSession() or session).stop()


def test_spark_makes_the_same_of_each_hostile_cell(spark: SparkSession, tmp_path: Path) -> None:
    warehouse.check_cells(tmp_path, SPARK)


def test_spark_gives_the_sums_of_the_rows(spark: SparkSession) -> None:
    warehouse.check_people(SPARK, warehouse.NOBODY[:2])  # a question takes it a second
    warehouse.check_counts(SPARK)


def test_spark_maps_rows_by_the_rules_of_their_schema(spark: SparkSession) -> None:
    warehouse.check_rules(SPARK, counted=False)  # to plan these counts takes 20 seconds


def test_spark_counts_private_categories_by_their_hashes(spark: SparkSession) -> None:
    warehouse.check_texts(SPARK)


def test_spark_makes_the_row_sets_of_histories(spark: SparkSession) -> None:
    histories.check(SPARK, histories.case(22), 22, 1)  # a question takes it ten seconds


def project(root: Path, schema: dict[str, Any], method: str) -> Path:
    """A project without noise, whose ledger is empty."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content |= (
        {"method": method, method: {"privatize": {"num_frequencies": 60}}} if method == "merf" else {"method": method}
    )
    content["privacy"] |= {"population": "visitors", "epsilon": "inf"}
    content["ledger"] = {"home": "ledger", "cap": {"epsilon": "inf", "delta": 1e-5}}
    content["ingest"] = {"source": "rows.parquet", "schema": "schema.yaml", "split": {"test_fraction": 0.2}}
    root.mkdir()
    (root / "params.yaml").write_text(yaml.safe_dump(content))
    (root / "schema.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    return root


def released(root: Path, backend: str) -> dict[str, Any]:
    """Digest of the typed rows, and of each release its integers and its receipt without what counted."""
    for name in ("settings", "ingest", "plan", "categories", "preprocess", "auxiliary", "privatize"):
        run_stage(name, import_module(f"stages.{name}").main, root)
    paths = ProjectPaths(root)
    found: dict[str, Any] = {"typed": read_manifest(paths.table)["digest"]}
    for path in paths.released_files:
        one = load_released(path)
        assert re.fullmatch(backend, one.receipt.backend)
        found[one.receipt.query] = one.values.tolist(), replace(one.receipt, backend="")
    return found


def test_spark_sends_moments_of_utc_and_refuses_bytes_of_no_letter(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would show a moment in its own zone, in which an hour comes twice."""
    cells = ", ".join(f"(CAST('{text}' AS TIMESTAMP))" for text in MOMENTS)
    database = Database(SPARK, f"SELECT c FROM VALUES {cells} AS t(c)")
    schema = schema_with({"c": {"kind": "datetime", "lower": "0001-01-01", "upper": "9999-12-31"}})
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        table = database.read(schema)[0]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert sorted(table["c"].astype("str")) == sorted(text.removesuffix("Z") for text in MOMENTS)
    assert RowsThere(database, schema, warehouse.ALL).survey()[0].total == _sum(row_hashes(table, schema))
    with pytest.raises(DataError, match=r"refuses ingest\.query, or a row"):
        Database(SPARK, "SELECT CAST(X'61ff62' AS STRING) AS c").first(1)


def test_spark_shows_no_cell_where_it_stops_at_one(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT CAST(c AS INT) AS c FROM VALUES ('8675309!') AS t(c)"
    with pytest.raises(DataError, match=r"Spark: the database refuses ingest\.query, or a row") as caught:
        Database(SPARK, query).first(1)
    assert "8675309" not in str(caught.value) + "".join(capfd.readouterr()) and caught.value.__context__ is None


def test_a_project_on_two_workers_releases_what_it_releases_of_a_file(
    spark: SparkSession, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last test: Likeness starts another Spark in the same Java. What the workers log holds no cell."""
    monkeypatch.delenv("LIKENESS_HOME")
    columns = warehouse.COLUMNS_OF_VISITS | {"c": {"kind": "categorical", "categories": "private", "other": "w"}}
    schema = {"name": "v", "source": "made up", "task": "classification", "label": "l", "columns": columns}
    schema["rules"] = [{"if": {"x": "< 0.2"}, "then": {"log": "< 5000"}}]
    root = project(tmp_path / "project", schema, "merf")
    table = pa.Table.from_pandas(warehouse.visits_table())
    pq.write_table(table, root / "rows.parquet")
    for place in range(3):
        (tmp_path / "parts").mkdir(exist_ok=True)
        pq.write_table(table[place * 400 : place * 400 + 400], tmp_path / f"parts/{place}.parquet")
    monkeypatch.setenv("LIKENESS_ANCHOR", str(root / "anchor"))
    Ledger.create(Project.load(root).ledger_session.home)
    shutil.copytree(root, tmp_path / "new")
    expected = released(root, "local")
    shutil.rmtree(root)
    (tmp_path / "new").rename(root)  # a ledger knows its place, so a copy of it is used there
    content = yaml.safe_load((root / "params.yaml").read_text())
    query = f"SELECT * FROM parquet.`{tmp_path}/parts`"
    content["ingest"] |= {"source": SPARK, "query": query, "rows": "stay"}
    (root / "params.yaml").write_text(yaml.safe_dump(content))
    java = spark.sparkContext._jvm.java.lang.System
    java.setProperty("spark.master", "local-cluster[2,1,700]")
    java.setProperty("spark.executor.memory", "700m")
    spark.stop()
    assert released(root, "spark [0-9a-f]{64}") == expected
    monkeypatch.chdir(root)
    printed = CliRunner().invoke(app, ["sql"], catch_exceptions=False).output
    receipts = [load_released(path).receipt for path in ProjectPaths(root).released_files]
    assert all(f"-- {one.query}: {one.backend.removeprefix('spark ')}" in printed for one in receipts)
    assert "-- Python beside the executors sums these rows" in printed
    for cell in ("'8675309!'", "CAST(NULL AS STRING)"):
        query = f"SELECT {cell} AS c FROM parquet.`{tmp_path}/parts` WHERE a > 5"
        with pytest.raises(DataError, match="Spark: column 'c' has a"):
            RowsThere(Database(SPARK, query), schema_with({"c": warehouse.KINDS["words"]}), warehouse.ALL).survey()
    logs = [path.read_text() for path in (home / "work").rglob("stderr")]
    assert len(logs) == 2 and all(
        "CoarseGrainedExecutorBackend" in log and "8675309" not in log and "Traceback" not in log for log in logs
    )
