"""One look for every figure, and one way to turn a figure into PNG bytes.

Colors are Okabe and Ito's: people with any of the common color-vision deficiencies tell them apart. Where colors carry
meaning, a shape or a position carries it too. Figures are drawn on white in both page themes.
"""

import io
from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676"
REAL, SYNTHETIC = BLUE, ORANGE
"""The real table (and the ceiling learned from it) and the synthetic one. The shuffled baseline is black."""

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, GREY, "#56B4E9", "#E69F00")

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "text.parse_math": False,  # a dollar in a column name is a dollar
    "figure.facecolor": "white",
    "savefig.dpi": 110,
}


def draw(width: float, height: float, paint: Callable[[Figure], object]) -> bytes:
    """PNG bytes of a figure of ``width`` x ``height`` inches that ``paint`` fills, without a date.

    They are the same every time on one version of matplotlib.

    Args:
        width: in inches.
        height: in inches.
        paint: draws on the empty figure.
    """
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def cut(text: str, most: int) -> str:
    """A text of at most ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
