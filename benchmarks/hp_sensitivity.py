"""How much DP-HP depends on the weight of its products, γ, and on how many columns are multiplied, D_prod.

Run: ``python -m benchmarks.hp_sensitivity [--draws 2]``. Resumable: a row that is in the CSV is not run again. About a
minute a row.

On the bundled digits at ε = 1, δ = 1e-5, add_remove_one, with the settings of examples/digits but for what is varied,
400 training steps, and products of order 5 for the sweep of D_prod (the paper's order for Adult: a product has
(order + 1)^D_prod coordinates). Every row is a release of its own. Scores: accuracy of logistic regression on the test
images, mean total variation of the marginals of pairs of pixels in 16 bins, against the test images. Source:
Vinaroz et al. (DP-HP, ICML 2022), tables 5 (γ, on Census) and 8 (D_prod, on Adult); other data, so only the shape can
be compared. Nothing here chooses a setting: the defaults were there before.
"""

import argparse
import copy
import dataclasses
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.common import Table, keep, load, read_results, synthesize
from likeness.config.params import Params
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import train_on_synthetic_test_on_real
from likeness.report.style import BLUE, ORANGE, draw

RESULTS, PICTURE = Path("benchmarks/results/hp_sensitivity.csv"), Path("docs/img/hp_sensitivity.png")
KEYS = ["varied", "value", "draw"]
GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0, 1000.0)
DIMENSIONS = (1, 2, 3, 4)
STEPS, ORDER = 400, 5


def settings(params: Params, varied: str, value: float) -> Params:
    """The example's settings with another γ, or another D_prod."""
    section = copy.deepcopy(dict(params.sections["hp"]))
    section["train"]["iterations"] = STEPS
    if varied == "gamma":
        section["train"]["gamma"] = value
    else:
        section["privatize"] |= {"product_dimension": int(value), "product_order": ORDER}
    one_thread = dataclasses.replace(params.train, threads=1)
    return dataclasses.replace(params, method="hp", sections={**params.sections, "hp": section}, train=one_thread)


def score(synthetic: pd.DataFrame, table: Table) -> dict[str, float]:
    """Accuracy, and total variation of pairs."""
    seed, own = table.params.evaluate.seed, table.params.evaluate
    accuracy = train_on_synthetic_test_on_real(
        synthetic, table.test, table.schema, seed, classifiers=("logistic_regression",), shape=table.schema.image
    )["accuracy"]
    pairs = marginal_table(table.test, synthetic, table.schema, (2,), own.bins, own.max_tuples, seed)
    return {"accuracy": float(accuracy.iloc[0]), "tv_2": float(pairs["total_variation"].mean())}


def paint(table: pd.DataFrame, figure: Figure) -> None:
    """Both scores by γ and by D_prod, mean and every draw."""
    panels = figure.subplots(1, 2)
    for panel, varied, name in zip(panels, ("gamma", "dimension"), ("γ", "columns in a product"), strict=True):
        own = table[table["varied"] == varied]
        for metric, color, marker, label in (
            ("accuracy", BLUE, "o", "accuracy (more is better)"),
            ("tv_2", ORANGE, "s", "total variation of pairs (less is better)"),
        ):
            means = own.groupby("value")[metric].mean()
            panel.plot(means.index, means, color=color, marker=marker, label=label)
            panel.plot(own["value"], own[metric], ".", color=color, alpha=0.5)
        panel.set_xlabel(name)
        panel.set_ylim(0, 1)
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panels[1].set_xticks(DIMENSIONS)
    panels[1].legend()


def main() -> None:
    """Run what is missing, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    draws = parser.parse_args().draws
    table = load("digits")
    grid = [*(("gamma", value) for value in GAMMAS), *(("dimension", float(value)) for value in DIMENSIONS)]
    for number in range(1, draws + 1):
        for varied, value in grid:
            rows = read_results(RESULTS, KEYS)
            if not (rows[KEYS] == [varied, value, number]).all(axis=1).any():
                synthetic = synthesize(settings(table.params, varied, value), table.train, number)
                keep(RESULTS, {"varied": varied, "value": value, "draw": number, **score(synthetic, table)}, KEYS)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    found = read_results(RESULTS, KEYS)
    PICTURE.write_bytes(draw(8, 3.6, lambda figure: paint(found, figure), secret=False))


if __name__ == "__main__":
    main()
