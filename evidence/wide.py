"""Wide tables: seconds of a fit with hundreds of columns.

Run: ``python -m evidence.wide [--columns 100 300]``. Rows are made up from a public seed, ε is 1, and the ledger is one
of its own. Appends to evidence/results/wide.csv.
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

RESULTS = Results(Path("evidence/results/wide.csv"), ["what", "rows", "columns", "settings"])
YES_NO = {"kind": "categorical", "categories": ["no", "yes"]}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 300])
    arguments = parser.parse_args()
    with temporary_ledger():
        for columns in arguments.columns:
            wide_table(20_000, columns)


def wide_table(rows: int, columns: int) -> None:
    """Columns of eight categories and of integers, from five latent factors; more pairs than fit are drawn."""
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
    settings = {"privatize": {"max_coordinates": 1_000_000}}
    measure(frame, {**schema, "y": YES_NO}, settings)


def measure(frame: pd.DataFrame, schema: dict[str, Any], settings: dict[str, Any]) -> None:
    """Fit and sample once."""
    document = {"name": "columns", "source": "made up", "task": "classification", "label": "y", "columns": schema}
    synthesizer = Synthesizer(
        schema=document, population="columns", settings=settings, cap=(100.0, 1e-3), attempt=str(time.time_ns())
    )
    started = time.perf_counter()
    synthesizer.fit(frame)
    fitted = time.perf_counter()
    synthesizer.sample(len(frame))
    sampled = time.perf_counter()
    cost = {"fit_seconds": fitted - started, "sample_seconds": sampled - fitted, "peak_mb": peak_mb()}
    RESULTS.add(["columns", len(frame), len(schema), str(settings)], {**cost, "load": os.getloadavg()[0]})


def _integer(lower: int, upper: int) -> dict[str, Any]:
    return {"kind": "integer", "lower": lower, "upper": upper}


if __name__ == "__main__":
    main()
