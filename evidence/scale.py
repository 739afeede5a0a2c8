"""How far: seconds, memory and the same sums for millions of rows, here and in Dask's processes. Fills docs/scale.md.

Run: ``python -m evidence.scale [--rows 1000000] [--engines local 1 2 4] [--method marginals] [--kill]``. Rows are
made up from a public seed and written as a folder of Parquet files. ``ingest``, ``preprocess``, ``auxiliary`` and
``privatize`` run as the scripts that they are, on each engine: ``local``, or a number of Dask workers. There is no
noise (``epsilon: inf``), so that the released integers are the sums and must be the same to the last bit; ``--kill``
also kills a worker in the middle of ``privatize``. Peak memory is that of all processes together, sampled. Appends to
evidence/results/scale.csv.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from evidence.common import Results, processor
from likeness.release.released import load_released

ROOT = Path(__file__).parents[1]
RESULTS = Results(ROOT / "evidence/results/scale.csv", ["rows", "method", "engine", "stage"])
STAGES = ("ingest", "preprocess", "plan", "auxiliary", "privatize")
FILE_ROWS = 1_000_000
CATEGORIES = {
    "job": 12, "region": 30, "school": 16, "family": 7, "home": 6, "origin": 5, "sector": 9, "contract": 4,
}  # fmt: skip
"""Columns of categories, each with the number of its categories."""
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
    parser.add_argument("--engines", nargs="+", default=["local", "1", "2", "4"])
    parser.add_argument("--method", default="marginals")
    parser.add_argument("--kill", action="store_true", help="once more with 2 workers, of which one is killed")
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        started = time.perf_counter()
        size = write_source(folder / "source", arguments.rows)
        print(f"made {arguments.rows} rows, {size / 1e6:.0f} MB, in {time.perf_counter() - started:.0f} s", flush=True)
        project = Project(folder, arguments.method, arguments.rows)
        engines = [(engine, False) for engine in arguments.engines] + [("2", True)] * arguments.kill
        sums = {(engine, killed): project.measure(engine, killed) for engine, killed in engines}
    if len(set(sums.values())) != 1:
        raise SystemExit(f"the sums are not the same: {sums}")
    print("the same sums from every engine")


def write_source(folder: Path, rows: int) -> int:
    """Made-up rows as Parquet files; how many bytes."""
    folder.mkdir()
    for part, start in enumerate(range(0, rows, FILE_ROWS)):
        table = made_rows(part, min(FILE_ROWS, rows - start))
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

    def __init__(self, folder: Path, method: str, rows: int) -> None:
        self.folder, self.method, self.rows = folder, method, rows
        (folder / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "LIKENESS_HOME": str(folder / "ledger"),
            "LIKENESS_ANCHOR": str(folder / "anchor"),
        }
        self.settle("local", "init")
        self.run("likeness", "ledger", "init")
        self.last = 0.0

    def settle(self, engine: str, slot: str) -> None:
        """Write params.yaml."""
        params = yaml.safe_load((ROOT / "params.yaml").read_text())
        params["method"] = self.method
        params["privacy"].update(epsilon=float("inf"), population="nobody")
        params["ledger"].update(attempt=slot, cap={"epsilon": float("inf"), "delta": 1e-5})
        params["ingest"] = {"source": "source", "schema": "schema.yaml", "split": {"test_fraction": 0.1, "seed": 0}}
        params["engine"] = {"kind": "local"} if engine == "local" else {"kind": "dask", "workers": int(engine)}
        (self.folder / "params.yaml").write_text(yaml.safe_dump(params))

    def measure(self, engine: str, kill: bool) -> str:
        """All stages on one engine; a digest of the sums."""
        self.settle(engine, f"{engine} {'killed' if kill else 'whole'}")
        for stage in STAGES:
            if kill and stage in ("ingest", "preprocess"):
                continue
            load = os.getloadavg()[0]
            after = self.last / 2 if kill and stage == "privatize" else None
            before = _cpu_of_children()
            seconds, peak, killed = self.run(f"stages.{stage}", kill_after=after)
            cpu_seconds = _cpu_of_children() - before
            sums = self.sums() if stage == "privatize" else ""
            if stage == "privatize":
                self.last = seconds
            found = {"seconds": seconds, "cpu_seconds": cpu_seconds, "rows_per_second": self.rows / seconds}
            found |= {"peak_mb": peak / 2**20, "sums": sums, "killed": killed, "load": load, "cpu": processor()}
            if stage != "plan":
                RESULTS.add([self.rows, self.method, engine, stage], found)
        return sums

    def sums(self) -> str:
        """A digest of every released integer."""
        digest = sha256()
        for path in [*sorted((self.folder / "data/released/auxiliary").iterdir()), self.folder / EMBEDDING]:
            digest.update(load_released(path).lattice.tobytes())
        return digest.hexdigest()[:16]

    def run(self, *words: str, kill_after: float | None = None) -> tuple[float, float, int]:
        """Run ``python -m words``: seconds, the peak of all its processes' memory, and how many workers were killed."""
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", *words], cwd=self.folder, env=self.environment)
        watch = _Watch(process.pid, kill_after)
        watch.start()
        code = process.wait()
        seconds = time.perf_counter() - started
        watch.join()
        if code != 0:
            raise SystemExit(f"{' '.join(words)} failed")
        if kill_after is not None and not watch.killed:
            raise SystemExit("no worker was killed: take more rows")
        return seconds, watch.peak, watch.killed


EMBEDDING = "data/released/embedding/embedding.safetensors"


class _Watch(threading.Thread):
    """Samples the memory of a process and its children; kills its busiest child once, after some seconds."""

    def __init__(self, pid: int, kill_after: float | None) -> None:
        super().__init__(daemon=True)
        self.pid, self.kill_after, self.peak, self.killed = pid, kill_after, 0.0, 0
        self.started_at = time.perf_counter()

    def run(self) -> None:
        """Until the process ends."""
        try:
            own = psutil.Process(self.pid)
            while own.is_running() and own.status() != psutil.STATUS_ZOMBIE:
                children = own.children(recursive=True)
                self.peak = max(self.peak, sum(_memory(each) for each in [own, *children]))
                late = self.kill_after is not None and time.perf_counter() - self.started_at > self.kill_after
                if late and not self.killed and children:
                    max(children, key=_work).kill()
                    self.killed = 1
                time.sleep(0.1)
        except psutil.NoSuchProcess:
            pass


def _memory(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0.0


def _work(process: psutil.Process) -> float:
    try:
        return float(process.cpu_times().user)
    except psutil.NoSuchProcess:
        return 0.0


def _cpu_of_children() -> float:
    """CPU seconds of all processes that have ended: what a busy machine does not stretch as it does the others."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
