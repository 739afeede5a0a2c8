"""The two public figures, from released files only: training loss and privacy curve. Equal files give equal bytes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

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
                marker="o" if len(points) == 1 else None,
            )
            if points and all(value > 0 for _, value in points) and _decades([value for _, value in points]) > 1:
                panel.set_yscale("log")
                _plain(panel.yaxis)
            panel.set_title(name.replace("_", " of "))
        panels[-1].set_xlabel("iteration")

    return draw(8, 1.1 + 2.1 * len(names), paint, secret=False)


def rdp_curve(curve: Mapping[str, Any]) -> bytes:
    """PNG of the Renyi curve: epsilon(alpha) of the whole run and of each stage, on logarithmic axes.

    Args:
        curve: ``rdp_curve`` of ``privacy.json``: ``orders``, ``total`` and ``stages`` (name to values).
    """

    def paint(figure: Figure) -> None:
        panel = figure.subplots()
        lines = {"all stages": curve["total"], **curve["stages"]}
        dashes = ["-", "--", ":", "-.", (0, (5, 1)), (0, (1, 2)), (0, (3, 1, 1, 1))]
        for index, (name, values) in enumerate(lines.items()):
            points = [
                (float(order), float(value))
                for order, value in zip(curve["orders"], values, strict=True)
                if float(order) > 1 and math.isfinite(float(value)) and float(value) > 0
            ]
            panel.plot(
                [order for order, _ in points],
                [value for _, value in points],
                color=CYCLE[index % len(CYCLE)],
                linestyle=dashes[index % len(dashes)],
                linewidth=2.2 if index == 0 else 1.4,
                label=name,
            )
        panel.set_xscale("log")
        panel.set_yscale("log")
        for axis in (panel.xaxis, panel.yaxis):
            _plain(axis)
        panel.set_xlabel("order α")
        panel.set_ylabel("Rényi ε(α)")
        panel.legend(loc="upper left")

    return draw(8, 3.8, paint, secret=False)


def _decades(values: Sequence[float]) -> float:
    return math.log10(max(values) / min(values))


def _plain(axis: Axis) -> None:
    """Ticks of a logarithmic axis as 0.01, 0.1, 1, 10."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
