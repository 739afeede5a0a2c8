"""Histograms of every column, real against synthetic. NOT private, for ``reports/internal`` only."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.report.style import MOST_COLUMNS, REAL, SYNTHETIC, cut, draw, note_cut


def histograms(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int = 24) -> bytes:
    """A grid with one panel per column: share of rows per category or bin, real against synthetic.

    Numeric columns are binned after their public transform; missing values have a bar at the right.
    """
    shown = schema.columns[:MOST_COLUMNS]
    encoder = Encoder(schema)
    coded = [encoder.encode(table) for table in (real, synthetic)]
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
            panel.set_title(cut(column.name, 34))
            panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
            panel.grid(axis="x", visible=False)
            _ticks(panel, column, bins)
        for panel in panels[len(shown) :]:
            panel.set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        note_cut(figure, len(shown), len(schema.columns))

    return draw(4.2 * across, 2.5 * down + 0.5, paint, secret=True)


def _width(column: Column, bins: int) -> int | None:
    """Integers per bin of an integer column, so that all bins hold equally many; None for all other columns."""
    if not column.is_integral or column.transform != "none":
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


def _ticks(panel: Axes, column: Column, bins: int) -> None:
    """Categories by name while they fit; numeric bins by the lower bound, the middle and the upper bound."""
    if column.is_categorical:
        names = [*column.categories, *(["(missing)"] if column.nullable else [])]
        at = list(range(0, len(names), max(1, math.ceil(len(names) / 16))))
        slant: dict[str, Any] = {"rotation": 40, "ha": "right"} if len(names) > 3 else {}
        panel.set_xticks(at, [cut(names[index], 14) for index in at], fontsize=7, **slant)
        return
    landmarks = column.numbers(column.type.decode(np.array([0, 0.5, 1]), column)).tolist()
    width = _width(column, bins)
    if width is None:
        places = [-0.5, bins / 2 - 0.5, bins - 0.5]
    else:
        places = [(value - column.bounds[0] + 0.5) / width - 0.5 for value in landmarks]
        bins = math.ceil((column.bounds[1] - column.bounds[0] + 1) / width)
    labels = [column.type.label(value) for value in landmarks]
    if column.nullable:
        places, labels = (
            [*places, bins],
            [*labels, "\n(missing)"],
        )  # a line lower: there is no room beside the upper bound
    panel.set_xticks(places, labels, fontsize=7)
    if column.transform == "log1p":
        panel.set_xlabel("logarithmic scale", fontsize=7)
