"""Figures that real rows went into: histograms, associations, scores. NOT private: they belong in ``reports/internal`` only.

Every function returns PNG bytes with a random salt inside (:func:`likeness.evaluation.style.draw`).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from likeness.data.encoding import Encoder
from likeness.data.schema import Column, Schema
from likeness.evaluation.marginals import cells
from likeness.evaluation.style import REAL, SYNTHETIC, draw, label

MOST_COLUMNS = 60
"""Wider tables show their first columns only, and the figure says so."""

NOTHING_TO_SCORE = "The schema names no label: there is nothing to learn, and nothing to score."


def histograms(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int = 24) -> bytes:
    """A grid with one panel per column: share of rows per category or per bin of the public range, real against synthetic.

    Numeric columns are binned after their public transform; a missing value is a bar of its own at the right.
    """
    shown = schema.columns[:MOST_COLUMNS]
    encoder = Encoder(schema)
    coded = [encoder.encode(table) for table in (real, synthetic)]
    landmarks = _landmarks(encoder, schema)
    across = min(3, len(shown))
    down = math.ceil(len(shown) / across)

    def paint(figure: Figure) -> None:
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for panel, column in zip(panels, shown, strict=False):
            shares = [_shares(codes[column.name].to_numpy(), column, bins) for codes in coded]
            at = np.arange(len(shares[0]))
            panel.bar(at, shares[0], width=0.86, color=REAL, alpha=0.45, label="real (training rows)")
            panel.step(
                np.append(at - 0.5, at[-1] + 0.5),
                np.append(shares[1], shares[1][-1]),
                where="post",
                color=SYNTHETIC,
                linewidth=1.4,
                label="synthetic",
            )
            panel.set_title(_cut(column.name, 34))
            panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
            panel.grid(axis="x", visible=False)
            _ticks(panel, column, bins, () if column.is_categorical else landmarks[column.name].astype(float).tolist())
        for panel in panels[len(shown) :]:
            panel.set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        _note_cut(figure, schema, len(shown))

    return draw(4.2 * across, 2.5 * down + 0.5, paint, secret=True)


def cramers_v(codes: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.float64]:
    r"""Matrix (k, k) of Bergsma's bias-corrected Cramer's V between columns of cell numbers (n, k).

    .. math:: \tilde V = \sqrt{\frac{\max(0, \chi^2/n - (r-1)(c-1)/(n-1))}{\min(\tilde r, \tilde c) - 1}},
        \qquad \tilde r = r - \frac{(r-1)^2}{n-1}

    with r, c the cells that occur. One measure for all kinds of columns: numeric ones count by their bins. 0 is independence,
    1 is a function of one another; a constant column has 0 with everything. It has no sign. Source: Bergsma (2013).
    """
    n, k = codes.shape
    matrix = np.eye(k)
    for i in range(k):
        for j in range(i):
            joint = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
            joint = joint.reshape(sizes[i], sizes[j]) / n
            joint = joint[joint.sum(1) > 0][:, joint.sum(0) > 0]
            r, c = joint.shape
            if min(r, c) < 2 or n < 2:
                continue
            expected = np.outer(joint.sum(1), joint.sum(0))
            phi = max(0.0, float(((joint - expected) ** 2 / expected).sum()) - (r - 1) * (c - 1) / (n - 1))
            least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
            matrix[i, j] = matrix[j, i] = min(1.0, math.sqrt(phi / least)) if least > 0 else 0.0
    return matrix


def correlations(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int = 16) -> bytes:
    """Three matrices of pairwise association (Cramer's V on public bins): real, synthetic, and synthetic minus real."""
    shown = schema.columns[:MOST_COLUMNS]
    matrices = []
    for table in (real, synthetic):
        codes, sizes = cells(table, schema, bins)
        matrices.append(cramers_v(codes[:, : len(shown)], sizes[: len(shown)]))
    names = [_cut(column.name, 22) for column in shown]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 3, sharey=True)
        for panel, matrix, title in zip(
            panels, [*matrices, matrices[1] - matrices[0]], ["real (training rows)", "synthetic", "synthetic − real"], strict=True
        ):
            signed = title.endswith("− real")
            image = panel.imshow(matrix, cmap="PuOr_r" if signed else "cividis", vmin=-1 if signed else 0, vmax=1)
            panel.set_title(title)
            panel.grid(visible=False)
            panel.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
            panel.set_yticks(range(len(names)), names, fontsize=7)
            figure.colorbar(image, ax=panel, location="bottom", shrink=0.8, pad=0.02)
        _note_cut(figure, schema, len(shown))

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
        return draw(8, 1.0, lambda figure: void(figure.text(0.5, 0.5, NOTHING_TO_SCORE, ha="center")), secret=True)
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
                by["shuffled"], at, marker="|", s=130, color="black", linewidths=2, label="floor: columns shuffled", zorder=3
            )
            panel.axvline(np.nanmean(by["synthetic"]), color=SYNTHETIC, linewidth=1, linestyle="--", label="synthetic, mean")
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


def _width(column: Column, bins: int) -> int | None:
    """Integers per bin of an integer column, so that each bin holds equally many of them; None for all other columns."""
    if column.kind != "integer" or column.transform != "none":
        return None
    low, high = column.bounds
    return math.ceil((high - low + 1) / bins)


def _shares(codes: NDArray[Any], column: Column, bins: int) -> NDArray[np.float64]:
    """Share of rows per category, or per bin with missing values in the last place if the column may have any."""
    if column.is_categorical:
        counts = np.bincount(codes, minlength=column.width)
    else:
        missing, width = np.isnan(codes), _width(column, bins)
        if width is None:
            binned = np.minimum((codes[~missing] * bins).astype(np.int64), bins - 1)
        else:
            span = column.bounds[1] - column.bounds[0]
            binned, bins = np.rint(codes[~missing] * span).astype(np.int64) // width, math.ceil((span + 1) / width)
        counts = np.bincount(binned, minlength=bins)
        if column.nullable:
            counts = np.append(counts, missing.sum())
    share: NDArray[np.float64] = counts / max(1, len(codes))
    return share


def _ticks(panel: Axes, column: Column, bins: int, landmarks: Sequence[float]) -> None:
    """Categories by name while they fit; numeric bins by the values of the lower bound, the middle and the upper bound."""
    if column.is_categorical:
        names = [*column.categories, *(["(missing)"] if column.nullable else [])]
        at = list(range(0, len(names), max(1, math.ceil(len(names) / 14))))
        slant: dict[str, Any] = {"rotation": 40, "ha": "right"} if len(names) > 3 else {}
        panel.set_xticks(at, [_cut(names[index], 14) for index in at], fontsize=7, **slant)
        return
    width = _width(column, bins)
    if width is None:
        places = [-0.5, bins / 2 - 0.5, bins - 0.5]
    else:
        places = [(value - column.bounds[0] + 0.5) / width - 0.5 for value in landmarks]
        bins = math.ceil((column.bounds[1] - column.bounds[0] + 1) / width)
    labels = [f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}" for value in landmarks]
    if column.nullable:
        places, labels = [*places, bins + 0.4], [*labels, "  (missing)"]
    panel.set_xticks(places, labels, fontsize=7)
    if column.transform == "log1p":
        panel.set_xlabel("logarithmic scale", fontsize=7)


def _landmarks(encoder: Encoder, schema: Schema) -> pd.DataFrame:
    """Table of three rows: every numeric column at its lower bound, the middle of its transformed range, its upper bound."""
    codes = {
        column.name: np.zeros(3, np.int32) if column.is_categorical else np.array([0.0, 0.5, 1.0]) for column in schema.columns
    }
    return encoder.decode_codes(pd.DataFrame(codes))


def _note_cut(figure: Figure, schema: Schema, shown: int) -> None:
    if shown < len(schema.columns):
        figure.supxlabel(f"The first {shown} of {len(schema.columns)} columns.", fontsize=8)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def void(_: object) -> None:
    """Drop a value, where a callback must return nothing."""
