"""Figures that real rows went into: associations, scores and answers. NOT private, for ``reports/internal`` only.

Every function returns PNG bytes padded with random text (:func:`likeness.report.padding.pad_png`).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import cells, cramers_v
from likeness.report.style import GREY, MOST_COLUMNS, REAL, SYNTHETIC, cut, draw, label, note_cut

NOTHING_TO_SCORE = "The schema names no label: there is nothing to learn, and nothing to score."


def correlations(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int = 16) -> bytes:
    """Three matrices of pairwise association (Cramer's V on public bins): real, synthetic, and synthetic minus real."""
    shown = schema.columns[:MOST_COLUMNS]
    matrices = []
    for table in (real, synthetic):
        codes, sizes = cells(table, schema, bins)
        matrices.append(cramers_v(codes[:, : len(shown)], sizes[: len(shown)]))
    names = [cut(column.name, 22) for column in shown]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 3, sharey=True)
        for panel, matrix, title in zip(
            panels,
            [*matrices, matrices[1] - matrices[0]],
            ["real (training rows)", "synthetic", "synthetic − real"],
            strict=True,
        ):
            signed = title.endswith("− real")
            image = panel.imshow(matrix, cmap="PuOr_r" if signed else "cividis", vmin=-1 if signed else 0, vmax=1)
            panel.set_title(title)
            panel.grid(visible=False)
            panel.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
            panel.set_yticks(range(len(names)), names, fontsize=7)
            figure.colorbar(image, ax=panel, location="bottom", shrink=0.8, pad=0.02, ticks=[-1, -0.5, 0, 0.5, 1])
        note_cut(figure, len(shown), len(schema.columns))

    side = max(4.0, 0.2 * len(shown) + 1.2)
    return draw(3 * side, side + 1.2, paint, secret=True)


def score_chart(scores: pd.DataFrame, metrics: Sequence[str]) -> bytes:
    """One panel per metric: a bar per estimator for the synthetic table, with marks for the ceiling and the floor.

    Args:
        scores: columns ``table`` (synthetic, real, shuffled), ``classifier`` and the metrics.
        metrics: which to draw, at most four; none where the schema has no label.
    """
    chosen = list(metrics)[:4]
    if not chosen:
        return draw(8, 1.0, lambda figure: figure.text(0.5, 0.5, NOTHING_TO_SCORE, ha="center"), secret=True)
    names = list(dict.fromkeys(scores["classifier"]))
    across = min(2, len(chosen))
    down = math.ceil(len(chosen) / across)

    def paint(figure: Figure) -> None:
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        at = np.arange(len(names))
        for panel, metric in zip(panels, chosen, strict=False):
            by = {
                table: scores[scores["table"] == table].set_index("classifier")[metric].reindex(names).to_numpy(float)
                for table in ("synthetic", "real", "shuffled")
            }
            panel.barh(at, by["synthetic"], color=SYNTHETIC, alpha=0.75, height=0.62, label="synthetic")
            panel.scatter(by["real"], at, marker="D", s=34, color=REAL, label="ceiling: real training rows", zorder=3)
            panel.scatter(
                by["shuffled"],
                at,
                marker="|",
                s=130,
                color="black",
                linewidths=2,
                label="floor: columns shuffled",
                zorder=3,
            )
            panel.axvline(
                np.nanmean(by["synthetic"]), color=SYNTHETIC, linewidth=1, linestyle="--", label="synthetic, mean"
            )
            panel.set_title(label(metric))
            panel.set_yticks(at, [label(name) for name in names])
            panel.grid(axis="y", visible=False)
            if metric != "rmse" and metric != "r2":
                panel.set_xlim(0, 1)
        panels[0].invert_yaxis()
        for panel in panels[len(chosen) :]:
            panel.set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)

    return draw(5.6 * across, (0.27 * len(names) + 0.8) * down + 0.5, paint, secret=True)


def query_chart(real: NDArray[np.float64], tables: Mapping[str, NDArray[np.float64]]) -> bytes:
    """Answers of the range queries: held-out rows across, each table upwards; on the diagonal they agree.

    Args:
        real: share of the held-out rows that each query counts, (queries,).
        tables: these shares for ``synthetic``, ``real`` and ``shuffled``.
    """
    shown = {"synthetic": SYNTHETIC, "real": REAL, "shuffled": "black"}
    titles = {"synthetic": "synthetic", "real": "ceiling: real training rows", "shuffled": "floor: columns shuffled"}
    most = max(float(values.max(initial=0.0)) for values in (real, *tables.values())) or 1.0

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(shown), sharey=True)
        for panel, (name, color) in zip(panels, shown.items(), strict=True):
            panel.plot([0, most], [0, most], color=GREY, linewidth=1, linestyle="--")
            panel.scatter(real, tables[name], s=7, color=color, alpha=0.5, linewidths=0)
            panel.set_title(titles[name])
            panel.set_xlabel("share of held-out rows")
        panels[0].set_ylabel("share of the table's rows")

    return draw(11, 3.9, paint, secret=True)
