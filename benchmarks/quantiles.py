"""Bins between private quantiles against bins of equal width. Fills a table in docs/evidence/CHOICES.md.

Run: ``python -m benchmarks.quantiles [--table census] [--draws 2] [--only "16 bins"]``. Resumable.

Tables: Adult as it is; and a table like it made from UCI Census-Income: 32,561 working adults (test: 16,281), 24 % with
the rarer label, 14 columns. Each with its schema as declared, and as if nothing were known of its numbers but their
bounds: no logarithm, no spikes. Rows against the training rows, classifiers on the test rows; ε as in params.yaml.
"""

import argparse
import copy
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.stats import wasserstein_distance

from benchmarks.common import commit, keep, load, on_choices, read_results, synthesize
from benchmarks.look_alike import fidelity, like_adult, with_marginals
from likeness.config.params import Params
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import marginal_table

RESULTS = Path("benchmarks/results/quantiles.csv")
KEYS = ["table", "known", "variant", "draw"]
COLUMNS = ["auc_hard", "auc_score", "tv_2", "tv_3", "tv_2_fine", "wasserstein", "seconds"]
KNOWN = ("all", "bounds")
# Name of a variant: bins, share of the quantiles, cells, edges.
VARIANTS: dict[str, tuple[int, float, int, str]] = {
    "16 bins": (16, 0.0, 256, "learned"),
    "64 bins": (64, 0.0, 256, "learned"),
    "16 bins, histogram 1 %": (16, 0.01, 256, "equal_width"),
    "16 bins, histogram 2 %": (16, 0.02, 256, "equal_width"),
    "16 bins, histogram 5 %": (16, 0.05, 256, "equal_width"),
    "16 bins, histogram 2 %, 64 cells": (16, 0.02, 64, "equal_width"),
    "16 bins, quantiles 2 %": (16, 0.02, 256, "learned"),
    "16 bins, quantiles 5 %": (16, 0.05, 256, "learned"),
    "16 bins, quantiles 2 %, 1024 cells": (16, 0.02, 1024, "learned"),
}


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="census", choices=["census", "adult"])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", choices=VARIANTS)
    arguments = parser.parse_args()
    public_table = load(arguments.table)
    train, test = public_table.train, public_table.test
    content = yaml.safe_load(Path(public_table.params.ingest.schema).read_text(encoding="utf-8"))
    if arguments.table == "census":
        content, train, test = like_adult(public_table)
    for known in KNOWN:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "schema.yaml"
            path.write_text(yaml.safe_dump(_forgetting(content) if known == "bounds" else content, sort_keys=False))
            for variant in [arguments.only] if arguments.only else VARIANTS:
                for draw in range(1, arguments.draws + 1):
                    names = {"table": arguments.table, "known": known, "variant": variant, "draw": draw}
                    rows = read_results(RESULTS, KEYS)
                    if not (rows[KEYS] == list(names.values())).all(axis=1).any():
                        params = _settings(public_table.params, path, variant)
                        keep(
                            RESULTS,
                            {**names, "commit": commit(), **_run(params, Schema.load(path), train, test, draw)},
                            KEYS,
                        )
    on_choices("histograms", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


def _forgetting(content: dict[str, Any]) -> dict[str, Any]:
    """The schema without what is known of numbers beside their bounds."""
    own = copy.deepcopy(content)
    for spec in own["columns"].values():
        spec.pop("transform", None)
        spec.pop("spikes", None)
    return own


def _settings(params: Params, schema: Path, variant: str) -> Params:
    bins, share, cells, edges = VARIANTS[variant]
    shares = {**params.sections["marginals"]["plan"]["shares"], "quantiles": share}
    shares["embedding"] = 1 - shares["class_counts"] - share
    histogram = {"columns": "all" if share else "none", "cells": cells, "edges": edges}
    changes = {"plan": {"shares": shares}, "privatize": {"bins": bins}, "auxiliary": {"quantiles": histogram}}
    return with_marginals(params, schema, params.privacy.epsilon, changes)


def _run(params: Params, schema: Schema, train: pd.DataFrame, test: pd.DataFrame, draw: int) -> dict[str, float]:
    """Scores of one noise draw; the Wasserstein distance of single numbers is in units of their standard deviation."""
    started = time.monotonic()
    synthetic = synthesize(params, train, draw)
    found = {"seconds": time.monotonic() - started}
    found |= fidelity(params, schema, train, test, synthetic)
    fine = marginal_table(train, synthetic, schema, (2,), 64, params.evaluate.max_tuples, params.evaluate.seed)
    found["tv_2_fine"] = float(fine["total_variation"].mean())
    numbers = [column.name for column in schema.feature_columns if not column.is_categorical]
    pairs = [(train[name].to_numpy(np.float64), synthetic[name].to_numpy(np.float64)) for name in numbers]
    found["wasserstein"] = float(np.mean([wasserstein_distance(real, own) / real.std() for real, own in pairs]))
    return found


if __name__ == "__main__":
    main()
