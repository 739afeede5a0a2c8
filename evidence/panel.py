"""The panel of strangers' tables: the default of marginals on forty tables that did not shape it, and one picture.

Run: ``python -m evidence.panel [--tables NAME ...] [--draws 1] [--epsilon 1]``. Tables, codebooks, scores
and the figures of peers and floors lie in ../shared/panel. Each draw is a release of its own, in a ledger of the
benchmark's own. Resumable: a row that is in the CSV, of equal commit, table, draw and ε, is not run again.
``--method hp`` draws rows of another method into evidence/results/panel_methods.csv; those stay where the code changes.
``--peer aim --peers PYTHON`` draws rows of a peer of :mod:`evidence.tables` into evidence/results/panel_peers.csv, on
even cells of the public bounds; a peer that does not end within five CPU minutes has a row without figures.
``--floor`` scores noisy single columns alone with the whole budget instead, ``--floor ours`` those of our own releases.
``--picture`` draws docs/img/panel.png and fills evidence/TABLES.md instead: each table and each measure, ours beside
MST and two floors, which are shuffled rows and noisy single columns.
"""

import argparse
import math
import time
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from signal import SIGXCPU
from subprocess import CalledProcessError
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from evidence.common import temporary_ledger
from evidence.pages import Results, commit, markdown, on_page
from evidence.tables import NAMES as PEER_NAMES
from evidence.tables import PROGRAMS, ask_peer
from likeness import Synthesizer
from likeness.methods import DEFAULT
from likeness.methods.base import EMBEDDING
from likeness.methods.marginals import method as recipe
from likeness.methods.marginals.release_state import PRODUCTS, SECOND

PANEL = Path("../shared/panel")
RESULTS = Results(Path("evidence/results/panel.csv"), ["commit", "table", "draw", "epsilon"])
METHODS = Results(Path("evidence/results/panel_methods.csv"), ["method", "table", "epsilon"])
BOUNDS = Results(Path("evidence/results/panel_bounds.csv"), ["bounds", "table", "epsilon"])
PEERS = Results(Path("evidence/results/panel_peers.csv"), ["peer", "table", "epsilon"])
FLOORS = Results(Path("evidence/results/panel_floor.csv"), ["table", "epsilon", "floor"])
PICTURE = Path("docs/img/panel.png")
PAGE, PAPERS = Path("evidence/TABLES.md"), Path("evidence/RESULTS.md")
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
PEER_SECONDS, PEER_CELLS = 300, 32
_AT_MOST = ["kept_at_most_1" if name == "kept" else name for name in MEASURES]  # invented dependence is no gain
_HARDLY = 1e-6  # part of the budget for what is not used


def main() -> None:
    """Run what is missing, or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=[])
    parser.add_argument("--folder", type=Path, default=PANEL / "tables")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--method", help="of a paper, in place of marginals: hp, merf, ntk or pearl")
    parser.add_argument("--peer", choices=list(PROGRAMS), help="of other people, in place of marginals")
    parser.add_argument("--peers", default="evidence/.peers/bin/python", help="python of the peer's environment")
    parser.add_argument("--floor", choices=["given", "ours"], help="noisy single columns alone, in place of marginals")
    parser.add_argument("--bounds", action="store_true", help="public and private bounds, one draw of each")
    parser.add_argument("--picture", action="store_true")
    arguments = parser.parse_args()
    if arguments.picture:
        page()
        return
    score = scores()
    names = arguments.tables or sorted(path.stem for path in arguments.folder.glob("*.json"))
    with temporary_ledger():
        for name in names:
            if arguments.floor and FLOORS.of(name, arguments.epsilon, arguments.floor).empty:
                codebook, train, test = score.load(arguments.folder, name)
                if arguments.floor == "given":
                    columns = score.floor(codebook, train, arguments.epsilon, 0)
                else:
                    columns = alone(codebook, name, arguments.epsilon, train)
                found = score.score(codebook, train, test, columns, False)
                FLOORS.add([name, arguments.epsilon, arguments.floor], found)
            if arguments.method and METHODS.of(arguments.method, name, arguments.epsilon).empty:
                row = measured(score, arguments.folder, name, arguments.epsilon, method=arguments.method)
                METHODS.add([arguments.method, name, arguments.epsilon], row)
            for bounds in ("public", "private") if arguments.bounds else ():
                if BOUNDS.of(bounds, name, arguments.epsilon).empty:
                    private = bounds == "private"
                    row = measured(score, arguments.folder, name, arguments.epsilon, False, private=private)
                    BOUNDS.add([bounds, name, arguments.epsilon], row)
            if arguments.peer and PEERS.of(arguments.peer, name, arguments.epsilon).empty:
                row = by_peer(score, arguments.folder, name, arguments.epsilon, arguments.peer, arguments.peers)
                PEERS.add([arguments.peer, name, arguments.epsilon], row)
            others = arguments.floor or arguments.method or arguments.peer or arguments.bounds
            for draw in [] if others else range(arguments.draws):
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


def measured(
    score: ModuleType,
    folder: Path,
    name: str,
    epsilon: float,
    task: bool = True,
    method: str = DEFAULT,
    private: bool = False,
) -> dict[str, Any]:
    """One release and one table as long as the training part, with its scores; ``task``: classifiers too."""
    codebook, train, test = score.load(folder, name)
    frame = _objects(codebook, train)
    started, wall = time.process_time(), time.monotonic()
    synthetic = synthesizer_of(codebook, name, epsilon, method, private).fit(frame).sample(len(frame))
    seconds = {"cpu_seconds": time.process_time() - started, "seconds": time.monotonic() - wall}
    found = score.score(codebook, train, test, synthetic, task)
    return {"rows": len(frame), "columns": len(codebook["columns"]), **seconds, **found}


def by_peer(
    score: ModuleType, folder: Path, name: str, epsilon: float, peer: str, python: str, cells: int = PEER_CELLS
) -> dict[str, Any]:
    """The scores of a peer's table; none where it does not end. Cells are even, as for MST in the panel's figures."""
    codebook, train, test = score.load(folder, name)
    columns = {column["name"]: column for column in codebook["columns"]}
    codes = pd.DataFrame({name: _codes(column, train[name], cells) for name, column in columns.items()})
    sizes = {name: _size(column, cells) for name, column in columns.items()}
    row: dict[str, Any] = {"rows": len(train), "columns": len(columns)}
    privacy = SimpleNamespace(epsilon=epsilon, delta=DELTA)
    short = {name: f"c{place}" for place, name in enumerate(columns)}
    try:
        found, costs = ask_peer(
            python, peer, codes.rename(columns=short), {short[name]: size for name, size in sizes.items()},
            len(train), privacy, PEER_SECONDS,
        )  # fmt: skip
    except CalledProcessError as error:
        if error.returncode != -SIGXCPU:
            raise
        return row
    random = np.random.default_rng(0)
    synthetic = {
        name: _values(column, found[short[name]].to_numpy(), cells, random) for name, column in columns.items()
    }
    return {**row, "cpu_seconds": costs["seconds"], **score.score(codebook, train, test, pd.DataFrame(synthetic), True)}


def _size(column: dict[str, Any], cells: int) -> int:
    """Public number of cells of a column, with one for missing values where they may be."""
    if column["kind"] == "categorical":
        return len(column["categories"]) + bool(column.get("nullable"))
    return len(_edges(column, cells)) - 1 + bool(column.get("nullable"))


def _edges(column: dict[str, Any], cells: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Even edges between public bounds; each integer has its own cell where they are few."""
    low, high = map(float, column["bounds"])
    if column["kind"] == "integer":
        return np.linspace(low, high + 1, min(cells, int(high - low) + 1) + 1)
    return np.linspace(low, high, cells + 1)


def _codes(column: dict[str, Any], values: pd.Series, cells: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    missing = values.isna().to_numpy()
    if column["kind"] == "categorical":
        texts = pd.Categorical(values.astype(object).map(str), [str(key) for key in column["categories"]])
        codes = texts.codes.astype(np.int64)
    else:
        edges = _edges(column, cells)
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        codes = np.clip(np.searchsorted(edges, np.nan_to_num(numbers, nan=edges[0]), "right") - 1, 0, len(edges) - 2)
    return np.where(missing, _size(column, cells) - 1, codes)


def _values(
    column: dict[str, Any], codes: "np.ndarray[Any, np.dtype[np.int64]]", cells: int, random: np.random.Generator
) -> pd.Series:
    missing = (codes == _size(column, cells) - 1) & bool(column.get("nullable"))
    if column["kind"] == "categorical":
        texts = [*column["categories"], None]
        return pd.Series([None if gone else texts[code] for code, gone in zip(codes, missing, strict=True)])
    edges = _edges(column, cells)
    places = np.minimum(codes, len(edges) - 2)
    numbers = random.uniform(edges[places], edges[places + 1])
    numbers = np.floor(numbers) if column["kind"] == "integer" else numbers
    return pd.Series(np.where(missing, np.nan, numbers))


def alone(codebook: dict[str, Any], name: str, epsilon: float, train: pd.DataFrame) -> pd.DataFrame:
    """Single columns that have what pairs have in the default, independent of each other."""
    left = {query: share for query, share in recipe._SHARES.items() if query not in (PRODUCTS, SECOND, EMBEDDING)}
    whole = sum(left.values())
    shares = {query: share / whole * (1 - 3 * _HARDLY) for query, share in left.items()}
    with patch.object(recipe, "_SHARES", shares | dict.fromkeys([PRODUCTS, SECOND, EMBEDDING], _HARDLY)):
        synthetic = synthesizer_of(codebook, name, epsilon).fit(_objects(codebook, train)).sample(len(train))
    random = np.random.default_rng(0)
    return pd.DataFrame({name: synthetic[name].array[random.permutation(len(train))] for name in synthetic})


def _objects(codebook: dict[str, Any], train: pd.DataFrame) -> pd.DataFrame:
    return train.astype({column["name"]: object for column in codebook["columns"] if column["kind"] == "categorical"})


def synthesizer_of(
    codebook: dict[str, Any], name: str, epsilon: float, method: str = DEFAULT, private: bool = False
) -> Synthesizer:
    """A method with its defaults and the schema of a codebook, or with private bounds in place of the codebook's."""
    categorical = {column["name"] for column in codebook["columns"] if column["kind"] == "categorical"}
    label = codebook["label"] if codebook["label"] in categorical else None
    document = {
        "name": name,
        "source": "a codebook of the panel",
        "task": "classification" if label else "none",
        "columns": {column["name"]: _column(column, private) for column in codebook["columns"]},
    }
    return Synthesizer(
        schema={**document, "label": label} if label else document,
        method=method,
        epsilon=epsilon,
        delta=DELTA,
        population=name,
        cap=(1000.0, 1e-3),
        attempt=str(time.time_ns()),
    )


def _column(column: dict[str, Any], private: bool) -> dict[str, Any]:
    """A column of the codebook as one of a schema."""
    nullable = {"nullable": True} if column.get("nullable") else {}
    if column["kind"] == "categorical":
        return {"kind": "categorical", "categories": [str(key) for key in column["categories"]], **nullable}
    if private:
        return {"kind": column["kind"], "bounds": "private"}
    return {"kind": column["kind"], "lower": column["bounds"][0], "upper": column["bounds"][1], **nullable}


def page() -> None:
    """Draw the picture of ε = 1, and write the tables of all ε."""
    last = RESULTS.rows.groupby("epsilon")["commit"].transform("last")
    latest = RESULTS.rows[RESULTS.rows["commit"] == last]
    given = pd.read_csv(PANEL / "figures.csv")
    others = {str(name): rows.set_index("table") for name, rows in given.groupby("method")}
    ours = {epsilon: rows.groupby("table").mean(numeric_only=True) for epsilon, rows in latest.groupby("epsilon")}
    picture(ours[1.0], others)
    mst = others["mst"].assign(kept_at_most_1=others["mst"]["kept"].clip(upper=1))
    beside = beside_peers(ours[1.0], mst)
    on_page(PAGE, {"panel": means(ours, others), "panel goals": goals(ours, others), "panel peers": beside})
    on_page(PAPERS, {"panel methods": beside_methods(ours[1.0])})


def picture(ours: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> None:
    """Each measure of each table beside those of others."""
    import matplotlib.pyplot as plt

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


def means(ours: Mapping[float, pd.DataFrame], others: Mapping[str, pd.DataFrame]) -> str:
    """Mean over tables of each measure; those of others are at ε = 1."""
    rows = {f"`marginals`, ε = {epsilon:g}": frame for epsilon, frame in sorted(ours.items())}
    named = {"all on cells of all pairs": "default", "MST": "mst", "noisy single columns alone": "floor"}
    rows |= {f"{title}, ε = 1": others[name].reindex(ours[1.0].index) for title, name in named.items()}
    columns = {"tables": "rows", **{title: name for name, title in MEASURES.items()}, "CPU seconds": "cpu_seconds"}
    lines = [f"| | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for title, frame in rows.items():
        values = [frame[name].mean() if name in frame else math.nan for name in columns.values()]
        digits = [f"{len(frame)}", *(f"{value:.3f}" for value in values[1:-1]), f"{values[-1]:.1f}"]
        lines.append(f"| {title} | {' | '.join('' if one == 'nan' else one for one in digits)} |")
    return "\n".join(lines)


def goals(ours: Mapping[float, pd.DataFrame], others: Mapping[str, pd.DataFrame]) -> str:
    """How many tables reach what was asked for; figures of peers are of ε = 1. The best peer may differ by measure."""
    frame = ours[1.0]
    floor, real = (others[name].reindex(frame.index) for name in ("floor", "real"))
    peers = [others["mst"].assign(kept_at_most_1=others["mst"]["kept"].clip(upper=1))]
    peers += [one.set_index("table") for _, one in PEERS.rows[PEERS.rows["epsilon"] == 1].groupby("peer")]
    best = {
        measure: pd.concat([peer[measure].reindex(frame.index) for peer in peers], axis=1).agg(
            "max" if measure in ("kept_at_most_1", "task") else "min", axis=1
        )
        for measure in ("tv1", "tv2", "kept_at_most_1", "strong", "task")
    }
    rows = frame["rows"]
    strong, task = frame["kept_at_most_1"].notna(), frame["task"].notna()
    given = FLOORS.rows[FLOORS.rows["floor"] == "given"]
    floors = {1.0: floor["tv2"]} | {at: one.set_index("table")["tv2"] for at, one in given.groupby("epsilon")}
    released = FLOORS.rows[FLOORS.rows["floor"] == "ours"].groupby("epsilon")
    reached = (
        {
            f"2-way TV at most 1.05 times a floor of our releases, ε = {at:g}: all": _missed(ours[at], own["tv2"])
            for at, own in ((at, one.set_index("table")) for at, one in released)
        }
        | {
            f"2-way TV at most 1.05 times the given floor, ε = {epsilon:g}: all": _missed(one, floors[epsilon])
            for epsilon, one in sorted(ours.items())
            if epsilon in floors
        }
        | {
            "1-way TV at most twice the floor: 85 %": _share(frame["tv1"] <= 2 * floor["tv1"]),
            "means within .1 sd, 2,000 rows: 97 %": _share(frame["mean"][rows >= 2000] <= 0.1),
            "log sd within .15, 2,000 rows: 85 %": _share(frame["sd"][rows >= 2000] <= 0.15),
            "1-way TV at most 1.05 times the best peer's: 95 %": _share(frame["tv1"] <= 1.05 * best["tv1"]),
            "2-way TV at most 1.05 times the best peer's: 95 %": _share(frame["tv2"] <= 1.05 * best["tv2"]),
            "dependence kept at least .95 of the best peer's: 85 %": _share(
                (frame["kept_at_most_1"] >= 0.95 * best["kept_at_most_1"])[strong]
            ),
            "TV of the strong pairs at most 1.05 times the best peer's: 85 %": _share(
                (frame["strong"] <= 1.05 * best["strong"])[strong]
            ),
            "task at most .01 below the best peer: 90 %": _share((frame["task"] >= best["task"] - 0.01)[task]),
            "task at most .05 below real rows: 75 %": _share((frame["task"] >= real["task"] - 0.05)[task]),
        }
    )
    return "\n".join(
        [
            "| goal, at ε = 1 if no other is named | reached |",
            "| --- | --- |",
            *(f"| {a} | {b} |" for a, b in reached.items()),
        ]
    )


def beside_peers(ours: pd.DataFrame, mst: pd.DataFrame) -> str:
    """Means over the tables where a peer ends within five CPU minutes: the peer's, ours and MST's there."""
    lines = [f"| tables, ε = 1 | {' | '.join(MEASURES.values())} |", "| --- |" + " ---: |" * len(MEASURES)]
    for peer, rows in PEERS.rows[PEERS.rows["epsilon"] == 1].groupby("peer"):
        ended = rows[rows["tv2"].notna()].set_index("table")
        where = f"the {len(ended)} of {len(rows)} tables where {PEER_NAMES[str(peer)]} ends"
        frames = {f"{PEER_NAMES[str(peer)]} on {where}": ended, "`marginals` there": ours, "MST there": mst}
        for title, frame in frames.items():
            shown = (frame.reindex(ended.index)[name].mean() for name in _AT_MOST)
            lines.append(f"| {title} | {' | '.join(f'{value:.3f}' for value in shown)} |")
    return "\n".join(lines)


def beside_methods(ours: pd.DataFrame) -> str:
    """The papers' methods on some tables, each beside marginals; bold where they are ahead of it."""
    rows = []
    for row in METHODS.rows.sort_values(["table", "method"]).to_dict("records"):
        marginals, cells = ours.loc[row["table"]], []
        for shown in MEASURES:
            measure = "kept_at_most_1" if shown == "kept" else shown  # invented dependence is no gain
            high = shown in ("kept", "task")
            ahead = row[measure] > marginals[measure] if high else row[measure] < marginals[measure]
            pair = f"{row[measure]:.3f} / {marginals[measure]:.3f}"
            cells.append("" if math.isnan(row[measure]) else f"**{pair}**" if ahead else pair)
        rows.append((row["table"], row["method"], f"{row['rows']:,.0f}", *cells, f"{row['cpu_seconds']:.0f}"))
    heads = ("table", "method", "rows:", *(f"{title}:" for title in MEASURES.values()), "CPU seconds:")
    return markdown(heads, rows)


def _missed(frame: pd.DataFrame, floor: pd.Series) -> str:
    """Which tables are farther from the truth than the floor."""
    ratio = frame["tv2"] / floor.reindex(frame.index)
    above, large = ratio > 1.05, frame["rows"] >= 2500
    worst = f"; {ratio.idxmax()} most with {ratio.max():.2f} times" if above.any() else ""
    return f"{above.sum()} of {len(frame)} tables miss it, {(above & large).sum()} of them with 2,500 rows{worst}"


def _share(reached: pd.Series) -> str:
    return f"{100 * reached.mean():.0f} %"


if __name__ == "__main__":
    main()
