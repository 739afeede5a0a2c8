"""Wide tables: seconds of a fit with hundreds of columns.

Run: ``python -m evidence.wide [--columns 60 100 300]``. Rows are made up from a public seed, settings are the
defaults, and the ledger is one of its own. Appends to evidence/results/wide.csv.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.common import Results, temporary_ledger
from evidence.memory import peak_mb
from likeness import Synthesizer

RESULTS = Results(Path("evidence/results/wide.csv"), ["rows", "columns"])
YES_NO = {"kind": "categorical", "categories": ["no", "yes"]}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[60, 100, 300])
    arguments = parser.parse_args()
    with temporary_ledger():
        for columns in arguments.columns:
            wide_table(20_000 if columns > 60 else 12_000, columns)


def wide_table(rows: int, columns: int) -> None:
    """Columns of eight categories and of integers, from five latent factors."""
    generator = np.random.default_rng(0)
    factors, table, schema = generator.standard_normal((rows, 5)), {}, {}
    for place in range(columns):
        value = factors @ generator.standard_normal(5) / 2.2 + generator.standard_normal(rows)
        table[f"c{place}"] = np.clip(np.floor(2 * value) + 4, 0, 7).astype(int)
        schema[f"c{place}"] = {"kind": "categorical", "categories": [str(code) for code in range(8)], "ordered": True}
        if place % 2 and columns > 100:
            table[f"c{place}"], schema[f"c{place}"] = np.clip(50 + 10 * value, 0, 99).astype(int), _integer(0, 99)
    frame = pd.DataFrame(table).astype({name: str for name, spec in schema.items() if "categories" in spec})
    frame = frame.assign(y=np.where(factors[:, 0] > 0, "yes", "no"))
    measure(frame, {**schema, "y": YES_NO})


def measure(frame: pd.DataFrame, schema: dict[str, Any]) -> None:
    """Fit and sample once."""
    document = {"name": "columns", "source": "made up", "task": "classification", "label": "y", "columns": schema}
    synthesizer = Synthesizer(schema=document, population="columns", cap=(100.0, 1e-3), attempt=str(time.time_ns()))
    started, cpu = time.perf_counter(), time.process_time()
    synthesizer.fit(frame)
    fitted, cpu = time.perf_counter(), time.process_time() - cpu
    synthesizer.sample(len(frame))
    sampled = time.perf_counter()
    cost = {"cpu_seconds": cpu, "fit_seconds": fitted - started, "sample_seconds": sampled - fitted}
    RESULTS.add([len(frame), len(schema)], {**cost, "peak_mb": peak_mb(), "load": os.getloadavg()[0]})


def _integer(lower: int, upper: int) -> dict[str, Any]:
    return {"kind": "integer", "lower": lower, "upper": upper}


if __name__ == "__main__":
    main()
