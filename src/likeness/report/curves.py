"""The public figure of the training loss, from released files only. Equal files give equal bytes."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from likeness.report.style import CYCLE, draw


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
            panel.plot(
                [at for at, _ in points],
                [value for _, value in points],
                color=color,
                linewidth=1.2,
            )
            if points and all(value > 0 for _, value in points) and _decades([value for _, value in points]) > 1:
                panel.set_yscale("log")
                _plain(panel.yaxis)
            panel.set_title(name.replace("_", " of "))
        panels[-1].set_xlabel("iteration")

    return draw(8, 1.1 + 2.1 * len(names), paint)


def _decades(values: Sequence[float]) -> float:
    return math.log10(max(values) / min(values))


def _plain(axis: Axis) -> None:
    """Ticks of a logarithmic axis as 0.01, 0.1, 1, 10."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
