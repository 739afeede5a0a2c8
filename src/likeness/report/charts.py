"""Columns as small charts and pairs as a map, ready to print: the public page and the internal one draw them alike."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from likeness.report.formats import percent, value_text
from likeness.report.style import CYCLE, draw

MOST_BARS = 10
"""Categories of a chart. A column with more shows those with the largest shares."""
MOST_MAPPED = 60
"""Columns of a map of pairs. A wider table shows the first ones."""
MOST_PAIRS, MOST_TABLED = 12, 300
"""Rows of a list of pairs."""
_LONGEST = 24  # characters of a category in a chart


class Cell(NamedTuple):
    """A cell of a column.

    Attributes:
        label: in words.
        share: of the records; NaN where nobody has a value.
        low: end of its interval; NaN where it has none.
        high: the other end.
        synthetic: share of the synthetic rows; None where they are not compared.
        unreliable: whether the share is.
    """

    label: str
    share: float
    low: float = math.nan
    high: float = math.nan
    synthetic: float | None = None
    unreliable: bool = False


def chart(name: str, cells: Sequence[Cell], categories: bool, facts: str = "") -> dict[str, Any]:
    """A column: bars with labels for categories, bars side by side for the cells of a number.

    Args:
        name: of the column.
        cells: in the order of the column.
        categories: whether the cells are categories.
        facts: a line about the column.
    """
    ends = (end for cell in cells for end in (cell.share, cell.high, cell.synthetic or 0.0) if not math.isnan(end))
    largest = max(ends, default=0.0) or 1.0
    bars = [bar(cell, largest) for cell in cells]
    order = sorted(range(len(cells)), key=lambda index: -bars[index]["size"])
    shown = sorted(order[:MOST_BARS]) if categories else range(len(cells))
    present = [cell.label for cell in cells if cell.label != "(missing)"]
    middle = present[len(present) // 2 : len(present) // 2 + 1] if len(present) > 2 else []
    return {
        "name": name,
        "facts": facts,
        "categories": categories,
        "bars": bars,
        "shown": [bars[index] for index in shown],
        "hidden": len(cells) - len(shown),
        "ticks": [
            *(present[0].split("..")[0].split(" to ")[0] for _ in present[:1]),
            *(label.split("..")[0].split(" to ")[0] for label in middle),
            *(present[-1].split("..")[-1].split(" to ")[-1] for _ in present[1:2]),
            *("missing" for _ in cells[len(present) :]),
        ],
    }


def bar(cell: Cell, largest: float) -> dict[str, Any]:
    """A cell as texts, and places on a scale of 0 to 100.

    Args:
        cell: of a column.
        largest: the end of the scale.
    """
    scale = 100 / largest
    size, low, high = (min(max(0.0, scale * end), 100.0) for end in cell[1:4])  # of 0.0 and NaN max takes the first
    text = points(cell.share)
    interval = "" if math.isnan(cell.low) else percent_interval(cell.low, cell.high)
    comparison = "" if cell.synthetic is None else f", synthetic {percent(cell.synthetic)}"
    return {
        "label": cell.label,
        "short": cell.label if len(cell.label) <= _LONGEST else f"{cell.label[: _LONGEST - 1]}…",
        "share": f"({text})" if cell.unreliable else text,
        "interval": interval,
        "synthetic": percent(cell.synthetic),
        "title": f"{cell.label}: {text}{f' ({interval})' if interval else ''}{comparison}",
        "size": round(size, 1),
        "low": round(low, 1),
        "high": round(high, 1),
        "band": bool(interval),
        "mark": None if cell.synthetic is None else round(min(scale * cell.synthetic, 100.0), 1),
    }


def percent_interval(low: float, high: float) -> str:
    """An interval of shares in percent."""
    return f"{points(low).removesuffix(' %')} to {points(high)}"


def points(share: float) -> str:
    """A share in percent, ``–`` for NaN."""
    return percent(None if math.isnan(share) else share)


def verdict_map(names: Sequence[str], relations: Mapping[str, Any]) -> dict[str, Any]:
    """A square for each pair of columns: kept, lost or unknown, the darker the stronger.

    Args:
        names: of the columns.
        relations: see :func:`likeness.inference.relations.summary`.
    """
    names = list(names)[:MOST_MAPPED]
    order = {name: index for index, name in enumerate(names)}
    squares = []
    for key, kind, word in (("kept", "kept", "kept"), ("not_kept", "lost", "not kept")):
        for first, second, strength, synthetic in relations[key]:
            if first in order and second in order:
                text = f"{first} × {second}: {word}, {strength:.2f} in the release, {synthetic:.2f} in the model"
                squares.append(_square(order, first, second, max(0.25, strength), text, kind))
    return {"names": names, "squares": squares}


def heat_map(names: Sequence[str], errors: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """A square for each pair of columns, its darkness on the scale of this table."""
    order = {name: index for index, name in enumerate(names)}
    largest = max(errors.values()) or 1.0
    squares = [
        _square(order, *pair, 0.06 + 0.94 * error / largest, f"{' × '.join(pair)}: {error:.3f}", "kept")
        for pair, error in errors.items()
    ]
    return {"names": list(names), "squares": squares, "largest": f"{largest:.3f}"}


def _square(order: Mapping[str, int], first: str, second: str, dark: float, text: str, kind: str) -> dict[str, Any]:
    """A place below the diagonal."""
    left, below = sorted((order[first], order[second]))
    return {"x": left, "y": below, "dark": f"{dark:.2f}", "text": text, "kind": kind}


def fact(word: str, value: float | str, low: float | str, high: float | str, unreliable: bool) -> tuple[str, str, str]:
    """A number of a column and its interval as texts."""
    text = value_text(value)
    return word, f"({text})" if unreliable else text, f"{value_text(low)} to {value_text(high)}"


def loss_curve(losses: Mapping[str, Sequence[float]]) -> bytes:
    """PNG of the columns of ``loss.csv`` against the iteration, one panel a column, shared x axis.

    Args:
        losses: column name to values; ``iteration`` is the x axis. Only finite values and four columns are shown.
    """
    x = losses["iteration"]
    names = [name for name in losses if name != "iteration"][:4]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for panel, name, color in zip(panels, names, CYCLE, strict=False):
            points = [(at, value) for at, value in zip(x, losses[name], strict=True) if math.isfinite(value)]
            panel.plot([at for at, _ in points], [value for _, value in points], color=color, linewidth=1.2)
            values = [value for _, value in points]
            if values and min(values) > 0 and math.log10(max(values) / min(values)) > 1:
                panel.set_yscale("log")
                _plain(panel.yaxis)
            panel.set_title(name.replace("_", " of "))
        panels[-1].set_xlabel("iteration")

    return draw(8, 1.1 + 2.1 * len(names), paint)


def _plain(axis: Axis) -> None:
    """Ticks of a logarithmic axis as 0.01, 0.1, 1, 10."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
