"""Spark as a database: its SQL makes the same of every cell as Python, hashes the same texts, counts the same.

``make spark-tests`` installs Spark beside everything else, and fails where Java or pyspark is missing. CI does it too.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_warehouse as warehouse

from likeness.core.errors import DataError
from likeness.data.source.connections import _QUIET
from likeness.data.source.databases import Database

pytestmark = pytest.mark.slow
if "LIKENESS_SPARK" not in os.environ:
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make spark-tests")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed", allow_module_level=True)
assert shutil.which("java"), "Java is not installed: install Java 17 or newer"
from pyspark.sql import SparkSession  # noqa: E402

SPARK = "spark://"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 2)
    for key, value in _QUIET.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # half of the seconds
    builder = builder.config("spark.sql.timestampType", "TIMESTAMP_NTZ")  # which would refuse all moments
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()

    def put(name: str, table: pa.Table) -> None:
        pq.write_table(table, folder / f"{name}.parquet")
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.sql(f"CREATE TABLE {name} USING PARQUET LOCATION '{folder}/{name}.parquet'")

    warehouse.WRITERS[SPARK] = put
    yield
    session.stop()


def test_spark_makes_the_same_of_each_hostile_cell(spark: None, tmp_path: Path) -> None:
    warehouse.check_cells(tmp_path, SPARK)


def test_spark_gives_the_sums_of_the_rows(spark: None) -> None:
    warehouse.check_people(SPARK, warehouse.NOBODY[:2])  # a question takes it a second
    warehouse.check_counts(SPARK)


def test_spark_maps_rows_by_the_rules_of_their_schema(spark: None) -> None:
    warehouse.check_rules(SPARK, counted=False)  # to plan these counts takes 20 seconds


def test_spark_counts_private_categories_by_their_hashes(spark: None) -> None:
    warehouse.check_texts(SPARK)


def test_spark_shows_no_cell_where_it_stops_at_one(spark: None, capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT CAST(c AS INT) AS c FROM VALUES ('8675309!') AS t(c)"
    with pytest.raises(DataError, match=r"Spark: the database refuses ingest\.query, or a row") as caught:
        Database(SPARK, query).first(1)
    assert "8675309" not in str(caught.value) + "".join(capfd.readouterr()) and caught.value.__context__ is None
