"""Draw docs/img/adult.png, the picture of the README: test rows of Adult beside synthetic rows at ε = 1.

Run: ``python scripts/draw_adult.py``. It fits the default method to the training rows, with a ledger of its own in a
temporary folder. UCI publishes the test rows, so this picture of them is public. Of private rows it would not be. The
noise is new at each run, so the picture changes a little.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likeness import Schema, Synthesizer
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.report.style import REAL, SYNTHETIC, draw

SOURCE, SCHEMA, TARGET = Path("data/raw/adult.csv.gz"), Path("data/schema/adult.yaml"), Path("docs/img/adult.png")
AGES = np.arange(15, 96, 5)


def synthetic_rows(train: pd.DataFrame, count: int) -> pd.DataFrame:
    """Rows of the default method at ε = 1, δ = 1e-5; the cost goes to a temporary ledger."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LIKENESS_HOME": f"{folder}/ledger", "LIKENESS_ANCHOR": f"{folder}/anchor"}
        Ledger.create(locate())
        return Synthesizer(schema=SCHEMA, population="uci-adult-1994").fit(train).sample(count)


def pair(panel: Axes, title: str, names: list[str], real: pd.Series, synthetic: pd.Series) -> None:
    """Shares of the real rows as bars, of the synthetic rows as dots."""
    at = np.arange(len(names))
    panel.bar(at, real, width=0.86, color=REAL, alpha=0.45, label="real (test rows)")
    panel.plot(at, synthetic, "o", color=SYNTHETIC, markersize=5, label="synthetic, ε = 1")
    panel.set_xticks(at, names, fontsize=7, rotation=90)
    panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    panel.grid(axis="x", visible=False)
    panel.set_title(title)


def shares(table: pd.DataFrame, levels: list[str]) -> list[pd.Series]:
    """Rows by age, rows by education, and of each level of education the share of high incomes."""
    ages = pd.cut(table["age"], AGES, right=False).value_counts(sort=False, normalize=True)
    education = table["education"].astype("str")
    rich = (table["income"].astype("str") == ">50K").groupby(education).mean()
    return [ages, education.value_counts(normalize=True).reindex(levels, fill_value=0), rich.reindex(levels)]


def main() -> None:
    """Fit, draw rows, paint."""
    table = pd.read_csv(SOURCE)
    test = table[table["split"] == "test"]
    levels = list(Schema.load(SCHEMA).column("education").categories)
    real = shares(test, levels)
    synthetic = shares(synthetic_rows(table[table["split"] == "train"], len(test)), levels)
    names = [[f"{low} to {low + 4}" for low in AGES[:-1]], levels, levels]
    titles = ["Age", "Education", "Income above $50,000, by education"]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(titles))
        for panel, *drawn in zip(panels, titles, names, real, synthetic, strict=True):
            pair(panel, *drawn)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)

    TARGET.write_bytes(draw(11, 3.6, paint))


if __name__ == "__main__":
    main()
