"""How far: seconds, memory and the same sums for millions of rows, on one core and on two. Fills docs/scale.md.

Run: ``python -m evidence.scale [--rows 1000000] [--cores 1 2] [--csv | --postgres]``. Rows of 15 columns are made up
from a public seed and written as a folder of Parquet files, or as one CSV file. All rows train, as by default.
``ingest``, ``preprocess``, ``plan``, ``auxiliary`` and ``privatize`` of ``marginals`` run in one process, on so many
cores. There is no noise (``epsilon: inf``), so that the released integers are the sums and must be the same to the last
bit. Beside them, on one core, DuckDB and polars read the same files by hand, encode 14 columns, and count all pairs of
them by class. numpy counts such pairs from codes in memory. Seconds are those after imports. Peak memory is that of all
processes together, sampled. With ``--postgres`` the rows stay in a PostgreSQL that it starts. It prints the statements
of a run, their seconds, and those of one statement with GROUPING SETS for all pairs. Appends to
evidence/results/scale.csv.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from sqlalchemy import create_engine

from evidence.pages import Results, processor
from likeness.release.released import load_released
from tests.postgres_server import server

ROOT = Path(__file__).parents[1]
RESULTS = Results(ROOT / "evidence/results/scale.csv", ["rows", "source", "cores", "stage"])
STAGES = ("ingest", "preprocess", "plan", "auxiliary", "privatize")
FILE_ROWS = 1_000_000
CATEGORIES = {
    "job": 12, "region": 30, "school": 16, "family": 7, "home": 6, "origin": 5, "sector": 9, "contract": 4,
}  # fmt: skip
"""Columns of categories, each with the number of its categories."""
ENDS = {
    "age": (17, 90), "income": (0, 1_000_000), "hours": (0, 99), "gain": (0, 99_999), "weight": (0, 200),
    "moved": (7305, 20_088),
}  # fmt: skip
"""Columns of numbers and their bounds; a day is one since 1970."""
SOURCE_CSV = Path("source/part.csv")
SCHEMA: dict[str, Any] = {
    "name": "scale",
    "source": "made up by evidence/scale.py",
    "task": "classification",
    "label": "owns",
    "columns": {
        "age": {"kind": "integer", "lower": 17, "upper": 90},
        "income": {"kind": "numeric", "lower": 0, "upper": 1_000_000, "transform": "log1p", "decimals": 2},
        "hours": {"kind": "integer", "lower": 0, "upper": 99, "nullable": True},
        "gain": {"kind": "integer", "lower": 0, "upper": 99_999, "transform": "log1p"},
        "weight": {"kind": "numeric", "lower": 0, "upper": 200},
        "moved": {"kind": "date", "lower": "1990-01-01", "upper": "2024-12-31"},
        **{
            name: {"kind": "categorical", "categories": [f"{name} {place}" for place in range(count)], "nullable": True}
            for name, count in CATEGORIES.items()
        },
        "owns": {"kind": "categorical", "categories": ["no", "yes"]},
    },
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cores", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--csv", action="store_true", help="from a CSV file")
    parser.add_argument("--postgres", action="store_true", help="rows stay in PostgreSQL, on one core")
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder")
    parser.add_argument("--only", choices=BY_HAND, help="in this folder, which has a source: print seconds")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(BY_HAND[arguments.only]()))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        if arguments.postgres:
            with server() as socket:
                url = f"postgresql+psycopg://owner@/postgres?host={socket}"
                fill_database(url, arguments.rows)
                *of_stages, asked, by_hand = Project(folder, arguments.rows, url, "rows").used("postgres", 1).items()
            ratio, cpu_seconds = asked[1][1] / by_hand[1][1], sum(used[1] for _, used in of_stages)
            print(f"{asked[0]}: {asked[1][1]:.1f} CPU s in PostgreSQL, {ratio:.2f} of {by_hand[0]}")
            print(f"the stages beside them: {cpu_seconds:.1f} CPU s")
            return
        size = write_source(folder / "source", arguments.rows, arguments.csv)
        print(f"made {arguments.rows} rows, {size / 1e6:.0f} MB", flush=True)
        project = Project(folder, arguments.rows, "source/part.csv" if arguments.csv else "source")
        beside = {name: project.measure(name, 1) for name in ("duckdb", "polars", "numpy")}
        sums = {}
        for cores in arguments.cores:
            project.settle(f"{cores} cores")
            used = project.measure("stages", cores)
            sums[cores] = project.sums()
            print(f"{cores} cores: " + ", ".join(f"{used / other:.2f} of {name}" for name, other in beside.items()))
    if len(set(sums.values())) != 1:
        raise SystemExit(f"the sums are not the same: {sums}")
    print("the same sums on each number of cores")


def one_pass(rows: int) -> float:
    """CPU seconds of numpy for the counts of all pairs of 14 columns of 20 cells, by class."""
    generator, used = np.random.default_rng(0), 0.0
    for start in range(0, rows, FILE_ROWS):
        cells = generator.integers(0, 20, (14, min(FILE_ROWS, rows - start)))
        labels = generator.integers(0, 2, cells.shape[1])
        started = time.process_time()
        for one, other in combinations(cells, 2):
            np.bincount((labels * 20 + one) * 20 + other, minlength=800)
        used += time.process_time() - started
    return used


Used = dict[str, tuple[float, float]]
"""Seconds and CPU seconds of each stage."""


def timed(stage: str, work: Callable[[], object]) -> Used:
    """Run and measure."""
    started, cpu = time.perf_counter(), time.process_time()
    if work() is not None:
        raise SystemExit(f"{stage} failed")
    return {stage: (time.perf_counter() - started, time.process_time() - cpu)}


def stages(names: Sequence[str] = STAGES) -> Used:
    """The stages of the project in this folder."""
    from likeness.pipeline.run_stage import perform_stage

    mains = {stage: import_module(f"likeness.stages.{stage}").main for stage in names}
    used: Used = {}
    for stage, main in mains.items():
        used |= timed(stage, lambda stage=stage, main=main: perform_stage(stage, main, Path()))  # type: ignore[misc]
    return used


def duckdb_by_hand() -> Used:
    """Read, encode and count by DuckDB, on one core."""
    import duckdb

    def count() -> None:
        connection = duckdb.connect(config={"threads": 1})
        for name, size in {**CATEGORIES, "owns": 0}.items():
            texts = [f"{name} {place}" for place in range(size)] or ["no", "yes"]
            connection.execute(f"CREATE TYPE e_{name} AS ENUM ({', '.join(map(repr, texts))})")
        codes = [f"CAST({name} AS e_{name}) AS {name}" for name in (*CATEGORIES, "owns")]
        for name, (lower, upper) in ENDS.items():
            value = f"date_diff('day', DATE '1970-01-01', {name})" if name == "moved" else name
            place = f"least(15, greatest(0, floor(({value} - {lower}) * 16.0 / {upper - lower})))"
            codes.append(f"CAST(coalesce({place}, 16) AS UTINYINT) AS {name}")
        source = "read_csv('source/part.csv')" if SOURCE_CSV.exists() else "read_parquet('source/*.parquet')"
        connection.execute(f"CREATE TEMP TABLE codes AS SELECT {', '.join(codes)} FROM {source}")  # noqa: S608
        for one, other in combinations([*ENDS, *CATEGORIES], 2):
            connection.execute(f"SELECT owns, {one}, {other}, count(*) FROM codes GROUP BY ALL").fetchnumpy()  # noqa: S608

    return timed("duckdb", count)


def polars_by_hand() -> Used:
    """Read, encode and count by polars, on one core."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    def count() -> None:
        codes = [
            pl.col(name).cast(pl.String).cast(pl.Enum([f"{name} {place}" for place in range(size)] or ["no", "yes"]))
            for name, size in {**CATEGORIES, "owns": 0}.items()
        ]
        for name, (lower, upper) in ENDS.items():
            value = pl.col(name).cast(pl.Int32) if name == "moved" else pl.col(name)
            place = ((value - lower) * (16.0 / (upper - lower))).floor().clip(0, 15)
            codes.append(place.fill_null(16).cast(pl.UInt8).alias(name))
        rows = (
            pl.scan_csv("source/part.csv", try_parse_dates=True) if SOURCE_CSV.exists() else pl.scan_parquet("source")
        )
        table = rows.select(codes).collect()
        for one, other in combinations([*ENDS, *CATEGORIES], 2):
            table.group_by("owns", one, other).len()

    return timed("polars", count)


def numpy_by_hand() -> Used:
    """Count by numpy from codes in memory."""
    used = one_pass(yaml.safe_load(Path("rows.yaml").read_text()))
    return {"numpy": (used, used)}


def postgres() -> Used:
    """Seconds in PostgreSQL of the statements of a run, and of one by hand."""
    from likeness.data.source.databases import Database

    url = yaml.safe_load(Path("params.yaml").read_text())["ingest"]["source"]
    service = psutil.Process(int(Path(url.partition("host=")[2], "data/postmaster.pid").read_text().split()[0]))
    answers, statements, used = Database.answers, list[str](), list[tuple[float, float]]()

    def cpu_seconds() -> float:
        time.sleep(0.2)  # until the process of the last connection has ended
        times = service.cpu_times()
        return float(times.children_user + times.children_system)

    def timed_answers(database: Database, asked: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        cpu, started = cpu_seconds(), time.perf_counter()
        rows = answers(database, asked)
        seconds = time.perf_counter() - started
        used.append((seconds, cpu_seconds() - cpu))
        statements.extend(asked)
        return rows

    Database.answers = timed_answers  # type: ignore[method-assign]
    of_stages = stages(("fingerprint", *STAGES))
    days = {"moved": "(moved - DATE '1970-01-01')"}
    codes = [
        f"COALESCE(LEAST(15, GREATEST(0, FLOOR(({days.get(name, name)} - {lower}) * 16.0 / {upper - lower}))), 16)"
        f"::INT AS {name}"
        for name, (lower, upper) in ENDS.items()
    ]
    columns, count = [*ENDS, *CATEGORIES], len(statements)
    sets = ", ".join(f"(owns, {one}, {other})" for one, other in combinations(columns, 2))
    encoded = f"WITH codes AS MATERIALIZED (SELECT {', '.join(['owns', *codes, *CATEGORIES])} FROM rows)"  # noqa: S608
    counted = f"SELECT owns, {', '.join(columns)}, COUNT(*) FROM codes GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    Database(url, "rows").answers([encoded + counted])
    *of_run, by_hand = used
    return {**of_stages, f"{count} statements": tuple(map(sum, zip(*of_run, strict=True))), "grouping sets": by_hand}


def fill_database(url: str, rows: int) -> None:
    """Make a table of made-up rows in a database."""
    kinds = {"integer": "BIGINT", "numeric": "DOUBLE PRECISION", "date": "DATE"}
    columns = ", ".join(f"{name} {kinds.get(column['kind'], 'TEXT')}" for name, column in SCHEMA["columns"].items())
    with create_engine(url).begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE rows ({columns})")
        cursor: Any = connection.connection.cursor()
        for part, start in enumerate(range(0, rows, FILE_ROWS)):
            table = made_rows(part, min(FILE_ROWS, rows - start)).to_pandas(integer_object_nulls=True)
            with cursor.copy("COPY rows FROM STDIN WITH (FORMAT csv)") as copy:
                copy.write(table.to_csv(index=False, header=False))


BY_HAND = {
    "stages": stages, "duckdb": duckdb_by_hand, "polars": polars_by_hand, "numpy": numpy_by_hand, "postgres": postgres,
}  # fmt: skip


def write_source(folder: Path, rows: int, as_text: bool) -> int:
    """Made-up rows as Parquet files, or as one CSV file; how many bytes."""
    folder.mkdir()
    for part, start in enumerate(range(0, rows, FILE_ROWS)):
        table = made_rows(part, min(FILE_ROWS, rows - start))
        if as_text:
            table.to_pandas().to_csv(folder / "part.csv", mode="a", header=not part, index=False)
        else:
            pq.write_table(table, folder / f"part-{part:04d}.parquet", row_group_size=1 << 18)
    return sum(path.stat().st_size for path in folder.iterdir())


def made_rows(part: int, count: int) -> pa.Table:
    """Rows from a public seed."""
    generator = np.random.default_rng([0, part])
    age = generator.integers(17, 91, count, dtype=np.int8)
    wealth = generator.standard_normal(count)
    income = np.exp(8 + age / 40 + wealth).round(2)
    gain = np.where(generator.random(count) < 0.9, 0, np.minimum(income, 99_999)).astype(np.int32)
    days = 7305 + generator.integers(0, 12_784, count, dtype=np.int32)
    table = {
        "age": pa.array(age),
        "income": pa.array(income),
        "hours": pa.array(generator.integers(0, 100, count, dtype=np.int8), mask=generator.random(count) < 0.05),
        "gain": pa.array(gain),
        "weight": pa.array((75 + 12 * generator.standard_normal(count)).round(1)),
        "moved": pa.array(days).cast(pa.date32()),
    }
    for name, size in CATEGORIES.items():
        place = ((generator.random(count) ** 2 + 0.1 * (wealth > 1)) / 1.1 * size).astype(np.int8)
        cells = pa.array(place, mask=generator.random(count) < 0.01)
        table[name] = pa.DictionaryArray.from_arrays(cells, [f"{name} {place}" for place in range(size)])
    owns = (generator.random(count) < income / (income + 30_000)).astype(np.int8)
    table["owns"] = pa.DictionaryArray.from_arrays(owns, ["no", "yes"])
    return pa.table(table)


class Project:
    """A project's folder with nothing but settings, a schema and a ledger of its own."""

    def __init__(self, folder: Path, rows: int, source: str, query: str | None = None) -> None:
        self.folder, self.rows, self.source, self.query = folder, rows, source, query
        self.kind = "postgresql" if query else Path(source).suffix or ".parquet"
        (folder / "rows.yaml").write_text(str(rows))
        (folder / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "LIKENESS_HOME": str(folder / "ledger"),
            "LIKENESS_ANCHOR": str(folder / "anchor"),
        }
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
        self.run("compileall", "-q", str(ROOT / "src"))
        self.settle("init")
        self.run("likeness", "ledger", "init")

    def settle(self, attempt: str) -> None:
        """Write params.yaml."""
        params = yaml.safe_load((ROOT / "params.yaml").read_text())
        params["method"] = "marginals"
        params["privacy"].update(epsilon=float("inf"), population="nobody")
        params["ledger"].update(attempt=attempt, cap={"epsilon": float("inf"), "delta": 1e-5})
        params["ingest"] = {"source": self.source, "schema": "schema.yaml"}
        if self.query:
            params["ingest"].update(query=self.query, rows="stay")
        (self.folder / "params.yaml").write_text(yaml.safe_dump(params))

    def measure(self, name: str, cores: int) -> float:
        """All stages, or what is done by hand, on so many cores: CPU seconds."""
        used = self.used(name, cores)
        seconds, cpu_seconds = (sum(column) for column in zip(*used.values(), strict=True))
        print(f"{name} on {cores} cores: {seconds:.1f} s, {cpu_seconds:.1f} CPU s", flush=True)
        return float(cpu_seconds)

    def used(self, name: str, cores: int) -> Used:
        """The same, of each stage."""
        load, before = os.getloadavg()[0], os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(before)[:cores])
        output, peak = self.run("evidence.scale", "--only", name)
        os.sched_setaffinity(0, before)
        used: Used = json.loads(output.splitlines()[-1])
        for stage, (seconds, cpu_seconds) in used.items():
            found = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak / 2**20, "load": load}
            RESULTS.add([self.rows, self.kind, cores, stage], {**found, "cpu": processor()})
        return used

    def sums(self) -> str:
        """A digest of every released integer."""
        digest = sha256()
        for path in [*sorted((self.folder / "data/released/auxiliary").iterdir()), self.folder / EMBEDDING]:
            digest.update(load_released(path).lattice.tobytes())
        return digest.hexdigest()[:16]

    def run(self, *words: str) -> tuple[str, float]:
        """Run ``python -m words``: what it prints, and the peak of all its processes' memory."""
        command = [sys.executable, "-m", *words]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _memory(process.pid))
            time.sleep(0.1)
        output = process.communicate()[0]
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(words)} failed")
        return output, peak


EMBEDDING = "data/released/embedding/embedding.safetensors"


def _memory(pid: int) -> float:
    """Bytes of a process and its children; 0 where one ends."""
    try:
        own = psutil.Process(pid)
        return float(sum(each.memory_info().rss for each in [own, *own.children(recursive=True)]))
    except psutil.NoSuchProcess:
        return 0.0


if __name__ == "__main__":
    main()
