"""Wide tables and wide bounds: seconds of a fit with hundreds of columns, and quantiles under bounds of a billion.

Run: ``python -m evidence.wide columns [--columns 100 300]`` or ``python -m evidence.wide bounds``. Rows are made up
from a public seed, ε is 1, and the ledger is one of its own. Appends to evidence/results/wide.csv.
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
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
YES_NO = {"kind": "categorical", "categories": ["no", "yes"]}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["columns", "bounds"])
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 300])
    arguments = parser.parse_args()
    with temporary_ledger():
        if arguments.what == "columns":
            for columns in arguments.columns:
                wide_table(20_000, columns)
        else:
            for rows in (5_000, 30_000):
                wide_bounds(rows)


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
    measure("columns", frame, {**schema, "y": YES_NO}, settings)


def wide_bounds(rows: int) -> None:
    """Lognormal, Pareto and signed amounts, far within their bounds."""
    generator = np.random.default_rng(1)
    logs = generator.standard_normal(rows)
    sign = np.where(generator.random(rows) < 0.2, -1, 1)
    frame = pd.DataFrame(
        {
            "lognormal": np.rint(np.exp(10 + logs)).astype(int),
            "pareto": (1_000 * generator.pareto(1.5, rows)).round(2).clip(0, 1e9),
            "signed": np.rint(sign * np.exp(8 + 1.5 * generator.standard_normal(rows))).astype(int),
            "y": np.where(logs + generator.standard_normal(rows) > 0, "yes", "no"),
        }
    )
    pareto = {"kind": "numeric", "lower": 0, "upper": 10**9, "decimals": 2}
    schema = {"lognormal": _integer(0, 10**9), "pareto": pareto, "signed": _integer(-(10**6), 10**9), "y": YES_NO}
    measure("bounds", frame, schema, {})


def measure(what: str, frame: pd.DataFrame, schema: dict[str, Any], settings: dict[str, Any]) -> None:
    """Fit and sample once."""
    document = {"name": what, "source": "made up", "task": "classification", "label": "y", "columns": schema}
    synthesizer = Synthesizer(
        schema=document, population=what, settings=settings, cap=(100.0, 1e-3), attempt=str(time.time_ns())
    )
    started = time.perf_counter()
    synthesizer.fit(frame)
    fitted = time.perf_counter()
    synthetic = synthesizer.sample(len(frame))
    sampled = time.perf_counter()
    cost = {"fit_seconds": fitted - started, "sample_seconds": sampled - fitted, "peak_mb": peak_mb()}
    for name in ["lognormal", "pareto", "signed"] if what == "bounds" else [""]:
        words, quantiles = str(settings), {}
        if name:
            words = name
            for key, table in (("real", frame), ("synthetic", synthetic)):
                quantiles[key] = " ".join(f"{table[name].astype(float).quantile(share):.0f}" for share in SHARES)
        keys = [what, len(frame), len(schema), words]
        RESULTS.add(keys, {**cost, **quantiles, "load": os.getloadavg()[0]})


def _integer(lower: int, upper: int) -> dict[str, Any]:
    return {"kind": "integer", "lower": lower, "upper": upper}


if __name__ == "__main__":
    main()
