"""Pictures of images, synthetic beside real. NOT private, for ``reports/internal`` only.

Every function returns PNG bytes. Images are drawn with the same scale everywhere: 0 black, 1 white, or full red, green
and blue.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from likeness.evaluation.marginals import cramers_v
from likeness.report.style import REAL, SYNTHETIC, cut, draw
from likeness_images.pixels import Shape, mean_images

Pixels = NDArray[Any]
Labels = NDArray[np.int64]
Labelled = tuple[Pixels, Labels]
"""Images (n, values) in [0, 1] and their classes (n,)."""

MOST_CLASSES = 26
"""Rows of a grid; further classes are left out, and the figure says so."""


def grid(images: Pixels, labels: Labels, shape: Shape, classes: int, across: int = 10) -> NDArray[np.float64]:
    """One picture of ``classes`` rows and ``across`` columns: the first images of each class, in table order.

    Args:
        images: (n, values).
        labels: class of each.
        shape: height and width, and 3 in color.
        classes: number of rows.
        across: images in a row; places without an image stay NaN.

    Returns:
        Values (classes · (height + 1) + 1, across · (width + 1) + 1), and 3 in color; the lines between images are NaN.
    """
    height, width = shape[:2]
    sheet = np.full((classes * (height + 1) + 1, across * (width + 1) + 1, *shape[2:]), np.nan)
    for row in range(classes):
        for column, index in enumerate(np.flatnonzero(labels == row)[:across]):
            top, left = row * (height + 1) + 1, column * (width + 1) + 1
            sheet[top : top + height, left : left + width] = images[index].reshape(shape)
    return sheet


def sample_grids(real: Labelled, synthetic: Labelled, shape: Shape, classes: Sequence[str]) -> bytes:
    """Synthetic images on the left, held-out real ones on the right: the first images of each class in a row."""
    shown = classes[:MOST_CLASSES]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 2)
        for panel, pair, title in zip(panels, (synthetic, real), ("synthetic", "real (held-out rows)"), strict=True):
            _show(panel, grid(*pair, shape, len(shown)))
            panel.set_title(title)
            panel.set_yticks((np.arange(len(shown)) + 0.5) * (shape[0] + 1), [cut(name, 12) for name in shown])
        if len(shown) < len(classes):
            figure.supxlabel(f"The first {len(shown)} of {len(classes)} classes.", fontsize=8)

    side = 4.6
    return draw(2 * side + 1, side * len(shown) / 10 * shape[0] / shape[1] + 0.8, paint)


def means_and_values(real: Labelled, synthetic: Labelled, shape: Shape, classes: Sequence[str]) -> bytes:
    """Mean image of every class: real, synthetic and their difference. Below, the shares of pixel values of both."""
    shown = len(classes[:MOST_CLASSES])
    means = [mean_images(*pair, len(classes))[:shown] for pair in (real, synthetic)]

    def paint(figure: Figure) -> None:
        above, below = figure.subfigures(2, 1, height_ratios=[3, 2], squeeze=False)[:, 0]
        panels = above.subplots(3, shown, squeeze=False)
        titles = ("real", "synthetic", "synthetic − real")
        for row, (title, images) in enumerate(zip(titles, [*means, means[1] - means[0]], strict=True)):
            for column in range(shown):
                picture = images[column].reshape(shape)
                if row < 2:
                    _show(panels[row, column], picture)
                else:
                    _bare(panels[row, column])
                    panels[row, column].imshow(_flat(picture), cmap="PuOr_r", vmin=-1, vmax=1)
                if row == 0:
                    panels[row, column].set_title(cut(classes[column], 8), loc="center", fontsize=8)
            panels[row, 0].set_ylabel(title, fontsize=8)
        panel = below.subplots()
        edges = np.linspace(0, 1, 33)
        shares = [np.histogram(pair[0], edges)[0] / max(1, pair[0].size) for pair in (real, synthetic)]
        panel.stairs(shares[0], edges, fill=True, color=REAL, alpha=0.45, label="real (held-out rows)")
        panel.stairs(shares[1], edges, color=SYNTHETIC, linewidth=1.4, label="synthetic")
        panel.set_yscale("log")
        panel.set_ylim(1e-4, 1)
        panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("pixel value, 0 least to 1 most of the public range")
        panel.set_ylabel("share of pixels")
        panel.legend(loc="upper center", ncols=2)

    return draw(max(6.0, 0.95 * shown), 5.6, paint)


def class_association(
    real: Labelled, synthetic: Labelled, shape: Shape, classes: Sequence[str], bins: int = 16
) -> bytes:
    """Paint how much each pixel says of the class: Cramér's V as a picture, for real, synthetic and their difference.

    Without classes, the spread of each pixel (its standard deviation) instead.
    """
    name = "Cramér's V with the class" if len(classes) > 1 else "standard deviation"
    maps = [_flat(_association(*pair, len(classes), bins).reshape(shape)) for pair in (real, synthetic)]

    def paint(figure: Figure) -> None:
        titles = ["real (held-out rows)", "synthetic", "synthetic − real"]
        panels = figure.subplots(1, 3)
        for panel, values, title in zip(panels, [*maps, maps[1] - maps[0]], titles, strict=True):
            signed = title.endswith("− real")
            _bare(panel)
            image = panel.imshow(values, cmap="PuOr_r" if signed else "cividis", vmin=-1 if signed else 0, vmax=1)
            panel.set_title(title)
            figure.colorbar(image, ax=panel, location="bottom", shrink=0.8, ticks=[-1, -0.5, 0, 0.5, 1])
        figure.supxlabel(name, fontsize=8)

    return draw(9, 4, paint)


def _association(images: Pixels, labels: Labels, classes: int, bins: int) -> NDArray[np.float64]:
    if classes < 2:
        return np.asarray(images.std(axis=0), np.float64)
    codes = np.minimum((images * bins).astype(np.int64), bins - 1)
    pairs = (np.stack([codes[:, pixel], labels], axis=1) for pixel in range(codes.shape[1]))
    return np.array([cramers_v(pair, [bins, classes])[0, 1] for pair in pairs])


def _flat(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """One number a pixel; in color, the mean of the three."""
    return picture if picture.ndim == 2 else np.asarray(picture.mean(axis=-1))


def _show(panel: Axes, picture: NDArray[np.float64]) -> None:
    _bare(panel)
    panel.set_facecolor("#6a86a8")  # what is no image: lines, and places without one
    if picture.ndim == 2:
        panel.imshow(np.ma.masked_invalid(picture), cmap="gray", vmin=0, vmax=1)
        return
    opaque = np.isfinite(picture).all(axis=-1, keepdims=True)
    panel.imshow(np.concatenate([np.nan_to_num(picture), opaque], axis=-1))


def _bare(panel: Axes) -> None:
    panel.grid(visible=False)
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)
