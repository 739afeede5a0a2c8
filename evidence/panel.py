"""The panel of strangers' tables: the default of marginals on forty tables that did not shape it, and one picture.

Run: ``python -m evidence.panel [--tables NAME ...] [--draws 1] [--epsilon 1]``. Tables, codebooks, scores
and the figures of peers and floors lie in ../shared/panel. Each draw is a release of its own, in a ledger of the
benchmark's own. Resumable: a row that is in the CSV, of equal commit, table, draw and ε, is not run again.
``--picture`` draws docs/img/panel.png and prints the summary instead: each table and each measure, ours beside MST and
two floors, which are shuffled rows and noisy single columns.
"""

import argparse
import os
import tempfile
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from evidence.common import Results, commit
from likeness import Ledger, Synthesizer

PANEL = Path("../shared/panel")
RESULTS = Results(Path("evidence/results/panel.csv"), ["commit", "table", "draw", "epsilon"])
PICTURE = Path("docs/img/panel.png")
MEASURES = {
    "tv1": "total variation, one column",
    "tv2": "two columns",
    "kept": "dependence kept",
    "corr": "error of rank correlation",
    "mean": "error of means, sd",
    "sd": "error of log sd",
    "task": "task",
}
OTHERS = {"mst": "#888888", "floor": "#d95f02", "shuffled": "#7570b3"}
DELTA = 1e-5


def main() -> None:
    """Run what is missing, or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=[])
    parser.add_argument("--folder", type=Path, default=PANEL / "tables")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--picture", action="store_true")
    arguments = parser.parse_args()
    if arguments.picture:
        picture()
        return
    score = scores()
    names = arguments.tables or sorted(path.stem for path in arguments.folder.glob("*.json"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LIKENESS_HOME": f"{folder}/ledger", "LIKENESS_ANCHOR": f"{folder}/anchor"})
        Ledger.start()
        for name in names:
            for draw in range(arguments.draws):
                key = [commit(), name, draw, arguments.epsilon]
                if RESULTS.of(*key).empty:
                    RESULTS.add(key, measured(score, arguments.folder, name, arguments.epsilon))


def scores() -> ModuleType:
    """The panel's own scores."""
    spec = spec_from_file_location("panel_score", PANEL / "score.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(score: ModuleType, folder: Path, name: str, epsilon: float, task: bool = True) -> dict[str, Any]:
    """One release and one table as long as the training part, with its scores; ``task``: classifiers too."""
    codebook, train, test = score.load(folder, name)
    frame = train.astype({column["name"]: object for column in codebook["columns"] if column["kind"] == "categorical"})
    started, wall = time.process_time(), time.monotonic()
    synthetic = synthesizer_of(codebook, name, epsilon).fit(frame).sample(len(frame))
    seconds = {"cpu_seconds": time.process_time() - started, "seconds": time.monotonic() - wall}
    found = score.score(codebook, train, test, synthetic, task)
    return {"rows": len(frame), "columns": len(codebook["columns"]), **seconds, **found}


def synthesizer_of(codebook: dict[str, Any], name: str, epsilon: float) -> Synthesizer:
    """The default method with the schema of a codebook."""
    categorical = {column["name"] for column in codebook["columns"] if column["kind"] == "categorical"}
    label = codebook["label"] if codebook["label"] in categorical else None
    document = {
        "name": name,
        "source": "a codebook of the panel",
        "task": "classification" if label else "none",
        "columns": {column["name"]: _column(column) for column in codebook["columns"]},
    }
    return Synthesizer(
        schema={**document, "label": label} if label else document,
        epsilon=epsilon,
        delta=DELTA,
        population=name,
        cap=(1000.0, 1e-3),
        attempt=str(time.time_ns()),
    )


def _column(column: dict[str, Any]) -> dict[str, Any]:
    """A column of the codebook as one of a schema."""
    nullable = {"nullable": True} if column.get("nullable") else {}
    if column["kind"] == "categorical":
        return {"kind": "categorical", "categories": [str(key) for key in column["categories"]], **nullable}
    return {"kind": column["kind"], "lower": column["bounds"][0], "upper": column["bounds"][1], **nullable}


def picture() -> None:
    """Each measure of each table, of the latest commit, beside those of others."""
    import matplotlib.pyplot as plt

    ours = RESULTS.rows.query("epsilon == 1")
    ours = ours[ours["commit"] == ours["commit"].iloc[-1]].groupby("table").mean(numeric_only=True)
    given = pd.read_csv(PANEL / "figures.csv")
    others = {name: rows.set_index("table") for name, rows in given.groupby("method")}
    before = others["default"]
    names = [name for name in before.sort_values("rows").index if name in ours.index]
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(2.1 * len(MEASURES), 0.24 * len(names) + 1), sharey=True)
    for axis, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        for other, colour in OTHERS.items():
            axis.plot(others[other].reindex(names)[measure], range(len(names)), ".", color=colour, label=other)
        axis.plot(before.reindex(names)[measure], range(len(names)), "x", color="#999999", label="before", ms=4)
        axis.plot(ours.loc[names, measure], range(len(names)), "o", color="#1b9e77", label="marginals", ms=4)
        axis.set_title(title, fontsize=8)
        axis.grid(axis="y", alpha=0.3)
        if measure in ("mean", "sd"):
            axis.set_xscale("symlog", linthresh=0.1)
    axes[0].set_yticks(range(len(names)), [f"{name} ({ours.loc[name, 'rows']:,.0f})" for name in names], fontsize=6)
    axes[-1].legend(fontsize=6)
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight")
    rows = {"marginals": ours, "before": before, **{name: others[name] for name in ("mst", "floor")}}
    table = pd.DataFrame({name: frame.reindex(names)[list(MEASURES)].mean() for name, frame in rows.items()}).T
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
