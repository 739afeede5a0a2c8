"""Ours against MST and AIM on tables: quality, seconds and peak memory side by side. Fills docs/TABLES.md.

Run: ``python -m benchmarks.tables [--table adult] [--epsilon 1] [--draws 5] [--only ours|mst|aim]``. Resumable.

One protocol: the same public schema, the same cells (those of ``marginals`` in params.yaml), (ε, δ), add/remove; the
peers (:mod:`benchmarks.peers`, in an environment of their own: ``--peers PYTHON``) get the training rows as codes of
these cells, and their codes become rows by the same rule as ours. As many synthetic rows as params ask for each.
Seconds run from the training table in memory to the synthetic one; memory is the peak of the process that made it.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.common import Table, keep, load, markdown, read_results, score, synthesize
from benchmarks.memory import peak_mb
from likeness.artifacts import context
from likeness.data.encoding import Encoder
from likeness.evaluation.controls import shuffle_columns
from likeness.generators.mixture import rows_from_cells
from likeness.methods import method_from
from likeness.methods.marginals import Marginals
from likeness.params import Params

RESULTS = Path("benchmarks/results/tables.csv")
KEYS = ["table", "method", "epsilon", "draw"]
COLUMNS = [
    "roc_auc_hard",
    "roc_auc_score",
    "roc_auc_score_median",
    "tv_1_train",
    "tv_2_train",
    "tv_3_train",
    "tv_2_test",
    "seconds",
    "peak_mb",
]
PEERS = ("mst", "aim")


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="adult", choices=["adult", "census", "covtype"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", choices=["ours", *PEERS])
    parser.add_argument("--peers", default="benchmarks/.peers/bin/python", help="python of the peers' environment")
    parser.add_argument("--one", nargs=2, metavar=("DRAW", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    table = load(arguments.table)
    params = with_epsilon(table.params, arguments.epsilon)
    if arguments.one:
        make_ours(params, table, int(arguments.one[0]), Path(arguments.one[1]))
        return
    controls = {"real": table.train, "shuffled": shuffle_columns(table.train, params.evaluate.seed)}
    for name, other in controls.items():
        if not known(arguments.table, name, 0.0, 0):
            add(arguments.table, name, 0.0, 0, {"seconds": 0.0, "peak_mb": 0.0, **score(other, table)})
    for method in [arguments.only] if arguments.only else ["ours", *PEERS]:
        for draw in range(1, arguments.draws + 1):
            if known(arguments.table, method, arguments.epsilon, draw):
                continue
            with tempfile.TemporaryDirectory() as folder:
                if method == "ours":
                    cost = run_ours(arguments, draw, Path(folder))
                    synthetic = pd.read_parquet(Path(folder) / "synthetic.parquet")
                else:
                    synthetic, cost = run_peer(arguments.peers, method, params, table, Path(folder))
            add(arguments.table, method, arguments.epsilon, draw, {**cost, **score(synthetic, table)})
    print(markdown(read_results(RESULTS, KEYS), ["table", "method", "epsilon"], COLUMNS))


def with_epsilon(params: Params, epsilon: float) -> Params:
    """Settings as shipped, method ``marginals``, another ε."""
    privacy = dataclasses.replace(params.privacy, epsilon=epsilon)
    return dataclasses.replace(params, method="marginals", privacy=privacy)


def known(table: str, method: str, epsilon: float, draw: int) -> bool:
    """Whether the CSV file has this row."""
    rows = read_results(RESULTS, KEYS)
    return bool(((rows[KEYS] == [table, method, epsilon, draw]).all(axis=1)).any())


def add(table: str, method: str, epsilon: float, draw: int, values: dict[str, float]) -> None:
    """Add a row."""
    keep(RESULTS, {"table": table, "method": method, "epsilon": epsilon, "draw": draw, **values}, KEYS)


def run_ours(arguments: argparse.Namespace, draw: int, folder: Path) -> dict[str, float]:
    """Make a synthetic table in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.tables", "--table", arguments.table, "--one", str(draw), str(folder)]
    subprocess.run([*command, "--epsilon", str(arguments.epsilon)], check=True)
    cost: dict[str, float] = json.loads((folder / "cost.json").read_text())
    return cost


def make_ours(params: Params, table: Table, draw: int, folder: Path) -> None:
    """Synthesize, and note seconds and peak memory."""
    started = time.monotonic()
    synthetic = synthesize(params, table.train, draw)
    seconds = time.monotonic() - started
    synthetic.to_parquet(folder / "synthetic.parquet")
    peak = peak_mb()
    (folder / "cost.json").write_text(json.dumps({"seconds": seconds, "peak_mb": peak}))


def run_peer(
    python: str, method: str, params: Params, table: Table, folder: Path
) -> tuple[pd.DataFrame, dict[str, float]]:
    """The same cells as codes, to a peer and back."""
    encoder, own, recipe = Encoder(table.schema), context(params), method_from(params)
    assert isinstance(recipe, Marginals)
    columns = recipe.columns(own, {})
    encoded = encoder.encode(table.train)
    x, labels = encoder.expand(encoded), encoder.labels(encoded)
    codes = pd.DataFrame({f"c{place}": column.cells.places(x) for place, column in enumerate(columns)})
    sizes = {f"c{place}": column.cells.size for place, column in enumerate(columns)}
    if own.layout.num_classes > 1:
        codes["label"], sizes["label"] = labels, own.layout.num_classes
    codes.to_parquet(folder / "codes.parquet", index=False)
    (folder / "domain.json").write_text(json.dumps(sizes))
    options = {
        "--codes": folder / "codes.parquet", "--domain": folder / "domain.json", "--out": folder / "out.parquet",
        "--method": method, "--epsilon": params.privacy.epsilon, "--delta": params.privacy.delta,
        "--rows": params.sample.rows,
    }  # fmt: skip
    command = [python, "benchmarks/peers.py", *(str(word) for pair in options.items() for word in pair)]
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    told = json.loads(done.stdout.splitlines()[-1])
    found = pd.read_parquet(folder / "out.parquet")
    chosen = torch.from_numpy(found[[f"c{place}" for place in range(len(columns))]].to_numpy(dtype=np.int64))
    generator = torch.Generator().manual_seed(params.sample.seed)
    rows = rows_from_cells(columns, own.layout.width, chosen, generator).numpy()
    classes = found["label"].to_numpy(dtype=np.int64) if "label" in sizes else np.zeros(len(rows), dtype=np.int64)
    return encoder.decode(rows, classes), {"seconds": told["seconds"], "peak_mb": told["peak_mb"]}


if __name__ == "__main__":
    main()
