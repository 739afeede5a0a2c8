"""Ours against MST and AIM on tables: quality, seconds and peak memory side by side. Fills evidence/TABLES.md.

Run: ``python -m evidence.tables [--table adult] [--epsilon 1] [--draws 5] [--only ours|mst|aim]``. Without options:
Adult with all three at ε = 0.2, 1 and 10, Census-Income and Covertype with ours at 1, Covertype also with rules.
Resumable. ``--only aim_mbi`` runs AIM on its authors' package, more than an hour a draw, where it is asked for.

One protocol: the same public schema, the same cells (those of ``marginals`` in params.yaml), (ε, δ), add/remove; the
peers (:mod:`evidence.peers`, in an environment of their own: ``--peers PYTHON``) get the training rows as codes of
these cells, and their codes become rows by the same rule as ours. As many synthetic rows as params ask for each.
Seconds run from the training table in memory to the synthetic one; memory is the peak of the process that made it.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from evidence.common import Table, in_a_process, load, measured, score
from evidence.pages import Results, cell, markdown, on_page
from likeness.config.params import Params
from likeness.core import rng
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.evaluation.utility import shuffle_columns
from likeness.methods import method_from
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.mixture import MixtureColumn, rows_from_cells
from likeness.pipeline.project import Project

RESULTS = Results(Path("evidence/results/tables.csv"), ["table", "method", "epsilon", "draw"])
PAGE = Path("evidence/TABLES.md")
COLUMNS = {  # title and digits
    "roc_auc_hard": ("AUC hard", 3),
    "roc_auc_score": ("AUC score", 3),
    "roc_auc_score_median": ("its median", 3),
    "tv_1_train": ("1-way TV", 4),
    "tv_2_train": ("2-way TV", 4),
    "tv_3_train": ("3-way TV", 4),
    "tv_2_test": ("2-way, test", 4),
    "seconds": ("seconds", 0),
    "peak_mb": ("peak MB", 0),
}
PEERS = ("mst", "aim")
PROGRAMS = {
    "mst": "evidence/peers.py",
    "aim": "evidence/peers.py",
    "aim_mbi": "evidence/peers_mbi.py",
    "dpsynth_swift": "evidence/peers_swift.py",
}
TABLES = {  # ε and methods
    "adult": ((0.2, 1.0, 10.0), ("ours", *PEERS)),
    "census": ((1.0,), ("ours",)),
    "covtype": ((1.0,), ("ours",)),
    "covtype_one_of": ((1.0,), ("ours",)),
}
RULES = {"covtype_one_of": ("covtype", [{"one_of": ["Wilderness_Area*"]}, {"one_of": ["Soil_Type*"]}])}
"""A table whose schema gets public rules: the soil and the area of a cell of forest are one column each."""
NAMES = {
    "real": "real",
    "binned": "real, in these bins",
    "shuffled": "shuffled",
    "ours": "**ours**",
    "mst": "MST",
    "aim": "AIM",
    "aim_mbi": "AIM on mbi",
    "dpsynth_swift": "SWIFT",
}


def main() -> None:
    """Run what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=list(TABLES))
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", choices=["ours", *PROGRAMS])
    parser.add_argument("--peers", default="evidence/.peers/bin/python", help="python of the peers' environment")
    parser.add_argument("--peers-mbi", default="evidence/.peers_mbi/bin/python", help="the same of AIM on mbi")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--one", nargs=2, metavar=("DRAW", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        table = loaded(arguments.table)
        params = with_rules(arguments.table, with_epsilon(table.params, arguments.epsilon), table.schema)
        measured(params, table.train, int(arguments.one[0]), Path(arguments.one[1]))
        return
    for name in () if arguments.page else TABLES:
        if arguments.table in (None, name):
            run(name, arguments)
    tables = {str(name): rows for name, rows in RESULTS.rows.groupby("table", sort=False)}
    apart = {f"{name} without naive Bayes": naive_bayes_apart(rows) for name, rows in tables.items() if name == "adult"}
    on_page(PAGE, {name: section(rows) for name, rows in tables.items()} | apart)


def run(name: str, arguments: argparse.Namespace) -> None:
    """Ceiling, floor, and every draw of every method that is not in the CSV file."""
    table = loaded(name)
    controls = {
        "real": lambda: table.train,
        "binned": lambda: through_cells(table),
        "shuffled": lambda: shuffle_columns(table.train, table.params.evaluate.seed),
    }
    for control, make in () if name in RULES else controls.items():
        if RESULTS.of(name, control, 0.0, 0).empty:
            RESULTS.add([name, control, 0.0, 0], {"seconds": 0.0, "peak_mb": 0.0, **score(make(), table)})
    epsilons, methods = TABLES[name]
    for epsilon in epsilons if arguments.epsilon is None else [arguments.epsilon]:
        for method in asked_for(methods, arguments.only):
            for draw in range(1, arguments.draws + 1):
                if not RESULTS.of(name, method, epsilon, draw).empty:
                    continue
                if method == "ours":
                    words = ("--table", name, "--epsilon", epsilon, "--one", draw)
                    synthetic, cost = in_a_process("evidence.tables", *words)
                else:
                    python = arguments.peers_mbi if method == "aim_mbi" else arguments.peers
                    synthetic, cost = run_peer(python, method, with_epsilon(table.params, epsilon), table)
                RESULTS.add([name, method, epsilon, draw], {**cost, **score(synthetic, table)})


def loaded(name: str) -> Table:
    """One of :data:`TABLES`."""
    return load(RULES[name][0] if name in RULES else name)


def with_rules(name: str, params: Params, schema: Schema) -> Params:
    """Settings whose schema has the rules of :data:`RULES`."""
    return with_schema(params, {**schema.to_dict(), "rules": RULES[name][1]}) if name in RULES else params


def with_schema(params: Params, schema: dict[str, Any]) -> Params:
    """Settings with another schema, in a file, because a project reads its schema from one."""
    path = Path(tempfile.mkdtemp()) / "schema.yaml"
    path.write_text(yaml.safe_dump(schema, sort_keys=False))
    return dataclasses.replace(params, ingest=dataclasses.replace(params.ingest, schema=str(path)))


def unlabeled(population: str, source: Path, schema: Schema) -> Table:
    """All rows of a file, for training and as test rows."""
    rows, *_ = read_source(source, schema, None)
    params = with_schema(load("adult").params, schema.to_dict())
    privacy = dataclasses.replace(params.privacy, population=population)
    return Table(dataclasses.replace(params, privacy=privacy), schema, rows, rows)


def asked_for(methods: tuple[str, ...], only: str | None) -> list[str]:
    """Methods of a table that ``--only`` names, or all; AIM on mbi and SWIFT where named and the table has AIM."""
    if only in ("aim_mbi", "dpsynth_swift"):
        return [only] if "aim" in methods else []
    return [own for own in methods if only in (None, own)]


def section(rows: pd.DataFrame) -> str:
    """One line for each ε and method: mean ± standard deviation over draws."""
    lines = []
    for epsilon, own, lead in in_order(rows):
        shown = ((own[column], digits) for column, (_, digits) in COLUMNS.items())
        cells = ["" if epsilon == 0 and digits == 0 else cell(values, digits) for values, digits in shown]
        lines.append([*lead, *cells])
    return markdown(["ε", "method", "draws:", *(f"{title}:" for title, _ in COLUMNS.values())], lines)


def naive_bayes_apart(rows: pd.DataFrame) -> str:
    """AUC of Gaussian naive Bayes and the mean of the other classifiers, of the draws that have them."""
    columns = ["hard_gaussian_naive_bayes", "roc_auc_hard", "roc_auc_score"]
    rows = rows[rows[columns].notna().all(axis=1)].copy()
    for kind, short in (("roc_auc_hard", "hard_"), ("roc_auc_score", "auc_")):
        own = [name for name in rows.columns if name.startswith(short) and name != f"{short}gaussian_naive_bayes"]
        rows[kind] = rows[own].mean(axis=1)
    heads = ["Gaussian naive Bayes, hard:", "the other eleven, hard:", "the other eleven, score:"]
    lines = ([*lead, *(cell(own[name], 3) for name in columns)] for _, own, lead in in_order(rows))
    return markdown(["ε", "method", "draws:", *heads], lines)


def in_order(rows: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame, list[str]]]:
    """ε, the draws, and the first cells of their line; controls first."""
    places = list(NAMES)
    order = sorted(rows.groupby(["epsilon", "method"]), key=lambda own: (own[0][0], places.index(own[0][1])))
    for (epsilon, method), own in order:
        yield epsilon, own, ["-" if epsilon == 0 else f"{epsilon:g}", NAMES[method], str(len(own)) if epsilon else "-"]


def with_epsilon(params: Params, epsilon: float) -> Params:
    """Settings as shipped, method ``marginals``, another ε."""
    privacy = dataclasses.replace(params.privacy, epsilon=epsilon)
    return dataclasses.replace(params, method="marginals", privacy=privacy)


def peer_columns(params: Params, schema: Schema | None = None) -> list[MixtureColumn]:
    """Cells of ``marginals``, and values even within a bin: peers know no histogram."""
    recipe = method_from(params)
    assert isinstance(recipe, Marginals)
    return recipe.mixture_columns(Project(Path(), params, schema).context, {})


def as_codes(table: Table, columns: list[MixtureColumn]) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The cell of every column of the training rows, ``c0`` and so on, and their classes."""
    encoder = Encoder(table.schema)
    encoded = encoder.encode(table.train)
    x = encoder.expand(encoded)
    codes = pd.DataFrame({f"c{place}": column.cells.cell_indices(x) for place, column in enumerate(columns)})
    return codes, encoder.labels(encoded)


def from_codes(
    table: Table, columns: list[MixtureColumn], codes: pd.DataFrame, classes: NDArray[np.int64]
) -> pd.DataFrame:
    """Rows of codes, each number drawn from its cell."""
    own = codes[[f"c{place}" for place in range(len(columns))]].to_numpy(dtype=np.int64, copy=True)
    random = rng.public(table.params.sample.seed, "peers.values")
    rows = rows_from_cells(columns, Project(Path(), table.params, table.schema).context.layout.width, own, random)
    return Encoder(table.schema).decode(rows, classes)


def through_cells(table: Table) -> pd.DataFrame:
    """The training rows as codes and back: what a method without noise and fit that sees these cells could reach."""
    columns = peer_columns(with_epsilon(table.params, 1.0))
    return from_codes(table, columns, *as_codes(table, columns))


def run_peer(python: str, method: str, params: Params, table: Table) -> tuple[pd.DataFrame, dict[str, float]]:
    """The same cells as codes, to a peer and back."""
    columns, num_classes = peer_columns(params, table.schema), len(table.schema.classes)
    codes, labels = as_codes(table, columns)
    sizes = {f"c{place}": column.cells.size for place, column in enumerate(columns)}
    if num_classes > 1:
        codes["label"], sizes["label"] = labels, num_classes
    found, costs = ask_peer(python, method, codes, sizes, params.sample.rows, params.privacy)
    classes = found["label"].to_numpy(dtype=np.int64) if "label" in sizes else np.zeros(len(found), dtype=np.int64)
    return from_codes(table, columns, found, classes), costs


def ask_peer(
    python: str, method: str, codes: pd.DataFrame, sizes: dict[str, int], rows: int, privacy: Any, limit: int = 0
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Codes from 0 to ``sizes`` less 1 to a peer, and as many synthetic rows of codes back.

    Args:
        python: of the peer's environment.
        method: name of the peer.
        codes: the training rows.
        sizes: public number of cells of each column.
        rows: how many rows to write.
        privacy: has ``epsilon`` and ``delta``.
        limit: CPU seconds after which the peer is stopped; 0 for none.

    Raises:
        subprocess.CalledProcessError: the peer failed, or did not end within the limit.
    """
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    environment |= {"JAX_ENABLE_X64": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # read by mbi's only
    environment |= {name: os.environ[name] for name in ("PEERS_CLONES",) if name in os.environ}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        codes.to_parquet(folder / "codes.parquet", index=False)
        (folder / "domain.json").write_text(json.dumps(sizes))
        options = {
            "--codes": folder / "codes.parquet", "--domain": folder / "domain.json", "--out": folder / "out.parquet",
            "--method": method.replace("aim_mbi", "aim"), "--rows": rows,
            "--epsilon": privacy.epsilon, "--delta": privacy.delta,
        }  # fmt: skip
        command = [python, PROGRAMS[method], *(str(word) for pair in options.items() for word in pair)]
        if limit:
            command = ["prlimit", f"--cpu={limit}:{limit + 10}", *command]  # the soft limit ends it with SIGXCPU
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        found = pd.read_parquet(folder / "out.parquet")
    told = json.loads(done.stdout.splitlines()[-1])
    return found, {name: told[name] for name in ("seconds", "peak_mb")}


if __name__ == "__main__":
    main()
