"""Every method of the papers on the papers' data, beside their own numbers. Fills evidence/RESULTS.md.

Run: ``python -m evidence.papers [--data adult] [--method pearl] [--epsilon 1] [--adjacency add_remove_one]
[--draws 3]``. A row that is in the CSV is shown and skipped. ``--again`` runs it too and shows both; the CSV stays.
``--judges cnn resnet`` sets the classifiers of images. Without ``--data`` or ``--method``: all of them.

Settings are those of params.yaml for tables and of examples/ for images: the papers' where our bounds allow them,
public reasoning elsewhere, never a score. Each draw is a release of its own, in a ledger of the benchmark's own and a
process of its own, whose seconds (from rows in memory to synthetic rows) and peak memory are noted beside the commit.
Of images, the first ten of each class go into docs/img: those of the first draw at ε = 1 (CIFAR-10: 10) under
add/remove, whatever they look like.
"""

import argparse
import copy
import dataclasses
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.image import imsave

from evidence.common import NAMES, ONLY_IMAGES, Table, adjacent, in_a_process, load, measured, score
from evidence.pages import Results, cell, markdown, on_page
from evidence.papers_list import PAPERS, listing
from likeness.config.params import Params
from likeness.data.encoding.encoder import Encoder
from likeness.evaluation.utility import shuffle_columns
from likeness.methods import METHODS
from likeness_images.figures import MOST_CLASSES, grid

RESULTS = Results(Path("evidence/results/papers.csv"), ["data", "method", "epsilon", "adjacency", "draw"])
PAGE = Path("evidence/RESULTS.md")
PICTURES = Path("docs/img")
CONTROLS = ("real", "shuffled")
SHOWN = {
    "classification": ["roc_auc_hard", "average_precision_hard", "roc_auc_score", "f1", "tv_2_test", "tv_3_test"],
    "marginals": ["tv_3_train", "tv_4_train"],
    "mixture": ["nll", "nll_as_published", "far", "modes"],
    "image": ["logistic_regression", "mlp", "cnn", "cnn_long", "resnet", "fid", "kid"],
}
COSTS = ("seconds", "peak_mb")
IMAGES = (60_000, 6000, 600, 60)  # synthetic ones, as in DP-HP's figure 3
TABLES = ("adult", "adult_rebalanced", "census", "census_rebalanced", "covtype")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A method with other settings than those shipped.

    Attributes:
        method: its name.
        changed: keys of its sections ``auxiliary``, ``plan``, ``privatize`` and ``train``.
        rows: synthetic rows; None: as the settings say.
        tables: the only data sets; empty: all.
    """

    method: str
    changed: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    rows: int | None = None
    tables: tuple[str, ...] = ()

    def meant_for(self, name: str, table: Table) -> bool:
        """Whether it has a meaning for a table."""
        images = self.method in ONLY_IMAGES or self.rows is not None
        able = self.method in table.params.sections and not (table.schema.image is None and images)
        return able and (not self.tables or name in self.tables)


def _from_classes(
    splits: int = 0, rows: int | None = 60_000, coefficients: int | None = None, **train: float
) -> Variant:
    """``moments`` measured from the means of classes; with clusters, and changes of drawn images."""
    privatize = {} if coefficients is None else {"privatize": {"num_coefficients": coefficients}}
    return Variant("moments", {"auxiliary": {"center": "classes", "splits": splits}, "train": train, **privatize}, rows)


BLACK = {"auxiliary": {"center": "black"}, "train": {"mirror": False}}
COSINE = {"schedule": "cosine"}
MODES = {
    "plan": {"shares": {"class_counts": 0.05, "mixture": 0.15, "mean_pairwise_distance": 0.05, "embedding": 0.75}},
    "auxiliary": {"mixture": {"components": 5, "iterations": 8}},
}  # of docs/pearl.md
VARIANTS = {
    "moments with clusters": Variant("moments", {"auxiliary": {"splits": 2}}),
    "moments from black": Variant("moments", BLACK),
    "moments from classes": _from_classes(rows=None),
    "moments from classes with clusters": _from_classes(2, rows=None),
    "moments from classes, 60,000 images": _from_classes(),
    "moments bent": _from_classes(warp=0.05),
    "moments bent with clusters": Variant(
        "moments", {"auxiliary": {"splits": 3}, "privatize": {"num_coefficients": 150}, "train": {"warp": 0.06}}, 60_000
    ),
    "moments varied": _from_classes(variety=0.3),
    "moments varied with clusters": _from_classes(2, variety=0.3),
    **{
        f"{method}, {count:,} images": Variant(method, rows=count)
        for method in ("merf", "hp", "moments")
        for count in IMAGES
    },
    "merf, best": Variant("merf", {"privatize": {"lengthscale": [0.1, 0.5, 2.0]}, "train": COSINE}, tables=TABLES),
    "hp, best": Variant("hp", {"train": COSINE}, tables=TABLES),
    "pearl, best": Variant("pearl", {**MODES, "train": {**COSINE, "critic": False}}, tables=TABLES),
    "ntk, best": Variant("ntk", {"train": COSINE}, tables=TABLES),
    "ntk by cnn_2l": Variant(
        "ntk", {"privatize": {"architecture": "cnn_2l", "widths": [30, 200]}}, tables=("adult_rebalanced",)
    ),  # DP-NTK, table 5
    "ntk by a residual network": Variant(
        "ntk",
        {
            "privatize": {"architecture": "fc_2l", "widths": [3000, 200], "max_coordinates": 100_000_000},
            "train": {
                "network": "residual",
                "latent_dim": 201,
                "batch_size": 1000,
                "learning_rate": 0.01,
                "iterations": 40_000,
            },
        },
        tables=("cifar10",),
    ),  # DP-NTK, its settings of CIFAR-10: python -m evidence.cifar
    **{
        f"ntk, width {width:,}": Variant("ntk", {"privatize": {"widths": [width]}}, tables=("mnist", "fashion_mnist"))
        for width in (100, 400, 1000)
    },  # DP-NTK, table 1; 800 is the default
    "pearl without critic": Variant("pearl", {"train": {"critic": False}}, tables=("digits", "mnist")),
    **{
        f"{method}, {steps:,} steps": Variant(method, {"train": {"iterations": steps}}, tables=("mixture",))
        for method in ("merf", "hp", "pearl", "ntk")
        for steps in (4000, 16_000, 64_000)
    },
    **{
        f"hp, γ = {gamma:g}": Variant("hp", {"train": {"gamma": gamma}}, tables=("adult_discretized",))
        for gamma in (0.001, 1.0, 1000.0)
    },  # DP-HP, table 5
    **{
        f"hp, 10 products of {size} columns": Variant(
            "hp",
            {"privatize": {"product_dimension": size, "num_subsets": 10, "product_order": 5}},
            tables=("adult_discretized",),
        )
        for size in (2, 5)
    },  # DP-HP, table 8
}
RUN = sorted([*METHODS, *VARIANTS])
ADJACENCIES = ("add_remove_one", "replace_one")
PICTURED = {"cifar10": 10}  # where the papers show images at another ε than 1
PRECISIONS = ("float32", "bfloat16")


def main() -> None:
    """Run what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(NAMES))
    parser.add_argument("--method", choices=[*RUN, "none"], help="none: ceiling and floor only")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--adjacency", choices=ADJACENCIES, default=ADJACENCIES[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of training; those of params by default. 1 where others compute")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0], help="train.precision of params")
    parser.add_argument("--judges", nargs="+", help="classifiers of images; the settings' by default")
    parser.add_argument("--again", action="store_true", help="run what is in the CSV too, and show both rows")
    parser.add_argument("--list", action="store_true", help="say which rows stand for each table and figure")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--one", nargs=2, metavar=("DRAW", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        make(arguments, int(arguments.one[0]), Path(arguments.one[1]))
        return
    if arguments.list:
        print(listing(RESULTS.rows))
        return
    if not arguments.page:
        run_all(arguments)
    write_page(RESULTS.rows)


def run_all(arguments: argparse.Namespace) -> None:
    """Every table that was asked for; of all tables, those whose file is there."""
    if arguments.data:
        run(arguments.data, arguments)
        return
    for name in NAMES:
        try:
            run(name, arguments)
        except SystemExit as missing:
            print(f"{name} is skipped: {missing}", flush=True)


def run(name: str, arguments: argparse.Namespace) -> None:
    """Ceiling, floor, and every draw of every method. A row of the CSV is shown, and run again only if asked for."""

    @cache
    def table() -> Table:  # loaded only if something runs
        return judged(load(name), arguments.judges)

    def control(method: str) -> dict[str, float]:
        rows = table().train if method == "real" else shuffle_columns(table().train, table().params.evaluate.seed)
        picture(name, "real", table().test, table())
        return {"seconds": 0.0, "peak_mb": 0.0, **score(rows, table())}

    def drawn(method: str, draw: int) -> dict[str, float]:
        return one_draw(name, table(), arguments, method, draw)

    controls_again = arguments.again and arguments.method in (None, "none")
    for method in CONTROLS:
        row(arguments, [name, method, 0.0, "-", 0], partial(control, method), controls_again)
    for method in [arguments.method] if arguments.method else RUN:
        for draw in range(1, arguments.draws + 1) if method != "none" else ():
            keys = [name, method, arguments.epsilon, arguments.adjacency, draw]
            if RESULTS.of(*keys).empty and not VARIANTS.get(method, Variant(method)).meant_for(name, table()):
                print(f"{name}, {method} is skipped: the method is not meant for this table.", flush=True)
                break
            row(arguments, keys, partial(drawn, method, draw), arguments.again)


def judged(table: Table, judges: list[str] | None) -> Table:
    """A table with other classifiers than its settings name."""
    if judges is None:
        return table
    evaluate = dataclasses.replace(table.params.evaluate, classifiers=tuple(judges))
    return dataclasses.replace(table, params=dataclasses.replace(table.params, evaluate=evaluate))


def row(arguments: argparse.Namespace, keys: list[Any], measure: Callable[[], dict[str, float]], again: bool) -> None:
    """Show the row of the CSV, and measure what it lacks. A row that is measured again is not written."""
    earlier = RESULTS.of(*keys)
    if not earlier.empty and not again:
        print(f"\n{' '.join(map(str, keys))}: skipped, because {RESULTS.path} has it. --again runs it.", flush=True)
        print(beside(earlier.iloc[0], None), flush=True)
        return
    values = measure()
    if earlier.empty:
        RESULTS.add(keys, {"precision": arguments.precision, **values})
    else:
        print(f"\n{' '.join(map(str, keys))}: the row of {RESULTS.path}, and the new one")
        print(beside(earlier.iloc[0], values))


def beside(earlier: pd.Series, values: dict[str, float] | None) -> str:
    """The scores of the page and the costs of a committed row, and of a new one beside it."""
    measured_ones = set(earlier.dropna().index)
    columns = [name for names in (*SHOWN.values(), COSTS) for name in names if name in measured_ones]
    shown = pd.DataFrame({f"commit {earlier['commit']}": earlier[columns].astype(float)})
    if values is not None:
        shown["new"] = pd.Series({column: values.get(column, math.nan) for column in columns})
    return shown.to_string(float_format="{:.4g}".format)


def one_draw(name: str, table: Table, arguments: argparse.Namespace, method: str, draw: int) -> dict[str, float]:
    """Costs and scores of one draw in a process of its own."""
    options = ["--data", name, "--method", method, "--epsilon", arguments.epsilon]
    options += ["--adjacency", arguments.adjacency, "--precision", arguments.precision]
    options += [] if arguments.threads is None else ["--threads", arguments.threads]
    synthetic, cost = in_a_process("evidence.papers", *options, "--one", draw)
    variant = VARIANTS.get(method, Variant(method))
    more = variant.rows is not None and not {"warp", "variety"} & {*variant.changed.get("train", {})}  # of equal look
    if arguments.epsilon == PICTURED.get(name, 1) and arguments.adjacency == ADJACENCIES[0] and not more:
        picture(name, method, synthetic, table)
    smaller = IMAGES[1:] if method == f"{variant.method}, {IMAGES[0]:,} images" else ()
    for count in smaller:  # of the same images
        keys = [name, f"{variant.method}, {count:,} images", arguments.epsilon, arguments.adjacency, draw]
        if RESULTS.of(*keys).empty:
            RESULTS.add(keys, {**cost, **score(synthetic.head(count), table)})
    return {**cost, **score(synthetic, table)}


def make(arguments: argparse.Namespace, draw: int, folder: Path) -> None:
    """Synthesize once, and note seconds and peak memory."""
    table = load(arguments.data)
    params = settings(table, arguments.method, arguments.epsilon, arguments.adjacency)
    threads = arguments.threads or params.train.threads
    train = dataclasses.replace(params.train, threads=threads, precision=arguments.precision)
    params = dataclasses.replace(params, train=train)
    measured(params, table.train, draw, folder)


def picture(name: str, method: str, images: pd.DataFrame, table: Table) -> None:
    """The first ten images of each class as a PNG, unless it is there; nothing for tables."""
    schema, path = table.schema, _picture(name, method)
    if schema.image is None or path.exists():
        return
    encoder = Encoder(schema)
    encoded = encoder.encode(images)
    x, labels = encoder.expand(encoded), encoder.labels(encoded)
    sheet = grid(x, labels, schema.image, min(len(schema.classes), MOST_CLASSES))
    imsave(path, np.nan_to_num(sheet, nan=0.5).repeat(2, axis=0).repeat(2, axis=1), cmap="gray", vmin=0, vmax=1)


def settings(table: Table, method: str, epsilon: float, adjacency: str) -> Params:
    """Settings as shipped or a variant's, another method, ε and adjacency."""
    params = adjacent(table.params, adjacency, len(table.train))
    variant = VARIANTS.get(method, Variant(method))
    section = copy.deepcopy(params.sections[variant.method])
    for name, values in variant.changed.items():
        section[name] |= values
    params = dataclasses.replace(params, sections={**params.sections, variant.method: section})
    sample = dataclasses.replace(params.sample, rows=variant.rows or params.sample.rows)
    privacy = dataclasses.replace(params.privacy, epsilon=epsilon)
    return dataclasses.replace(params, method=variant.method, privacy=privacy, sample=sample)


def write_page(results: pd.DataFrame) -> None:
    """Put the tables between the markers of the page."""
    by_data = {name: rows for name, rows in results.groupby("data", sort=False)}
    on_page(PAGE, {name: section(name, by_data[name]) for name in NAMES if name in by_data})


def section(name: str, rows: pd.DataFrame) -> str:
    """One line for each method, ε and adjacency: mean ± standard deviation over draws."""
    has = {c for c in rows if rows[c].notna().any()}
    columns = SHOWN[_shown(has)]
    columns = [*(c for c in columns if c in has), *COSTS]
    heads = ["method", "ε:", "adjacency", "draws:", *(f"{column}:" for column in columns), "the paper (replace_one)"]
    cells = []
    places = [*CONTROLS, *RUN]
    groups = sorted(
        rows.groupby(["adjacency", "epsilon", "method"]), key=lambda own: (*own[0][:2], places.index(own[0][2]))
    )
    last = ""
    for (adjacency, epsilon, method), own in groups:
        control = method in CONTROLS
        scores = [_cell(own[column], column) if not control or column not in COSTS else "" for column in columns]
        paper = PAPERS.get((name, method) if control or epsilon == 1 else (name, method, epsilon), "")
        paper = paper if control or adjacency == "replace_one" else ""
        named = adjacency if adjacency != last and not control else ""  # once for the rows below it
        last = named or last
        lead = [method, "", "", ""] if control else [method, f"{epsilon:g}", named, str(len(own))]
        cells.append([*lead, *scores, paper])
    lines = [markdown(heads, cells)]
    drawn = [method for method in ("real", *RUN) if _picture(name, method).exists()]
    if "cnn" in has and drawn:
        pictures = [f"![{name}](../docs/img/{_picture(name, method).name})" for method in drawn]
        lines += ["", markdown(drawn, [pictures])]
    return "\n".join(lines)


def _shown(has: set[str]) -> str:
    """The kind of scores that some rows have."""
    marks = {"mixture": "nll", "image": "cnn", "classification": "roc_auc_hard"}
    return next((kind for kind, mark in marks.items() if mark in has), "marginals")


def _picture(name: str, method: str) -> Path:
    return PICTURES / f"grid_{name}_{method.replace(' ', '_')}.png"


def _cell(values: pd.Series, column: str) -> str:
    return cell(values, 0 if column in (*COSTS, "nll", "nll_as_published", "modes") else 1 if column == "fid" else 3)


if __name__ == "__main__":
    main()
