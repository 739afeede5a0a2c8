"""Images among tables: a row whose numeric feature columns are the pixels, row by row, of one image.

A schema states it with ``image: {shape: [height, width]}``, or ``[height, width, 3]`` in color. All functions take the
shape, so that they also work for integer columns of a schema without ``image``.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import cells, total_variation

Shape = tuple[int, ...]
"""Height and width, in pixels, and 3 in color."""

MOST_ROWS = 10_000
"""Images of a table in an evaluation, unless ``evaluate.max_rows`` is set: time and memory stay those of other tables.
The papers' tables take all 60,000."""

_CHUNK = 4096
_CELLS = 16


def check_shape(schema: Schema, shape: Shape) -> None:
    """Refuse a shape that the feature columns do not fill.

    Raises:
        DataError: a feature column is not a pixel, or their number is not that of the shape.
    """
    columns = schema.feature_columns
    if len(columns) != math.prod(shape) or any(column.is_categorical or column.nullable for column in columns):
        raise DataError(
            f"schema {schema.name}: images of {' x '.join(map(str, shape))} need {math.prod(shape)} numeric feature "
            f"columns without missing values. The schema has {len(columns)} feature columns. Correct image.shape or "
            "columns."
        )


def pixels(df: pd.DataFrame, schema: Schema) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images (n, values) in [0, 1] and classes (n,), encoded in chunks: memory is that of the result."""
    encoder = Encoder(schema)
    images = np.empty((len(df), encoder.layout.width), np.float32)
    labels = np.zeros(len(df), np.int64)
    for start in range(0, len(df), _CHUNK):
        codes = encoder.encode(df.iloc[start : start + _CHUNK])
        images[start : start + len(codes)] = encoder.expand(codes)
        labels[start : start + len(codes)] = encoder.labels(codes)
    return images, labels


def halves(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers 0 ... count - 1 in two public random halves, each sorted; the second has the odd one."""
    order = rng.public(seed, "evaluation.halves").permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])


def mean_images(images: NDArray[Any], labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Mean image of each class (classes, d); NaN for a class without images."""
    sums = np.zeros((classes, images.shape[1]))
    np.add.at(sums, labels, images)
    counts = np.bincount(labels, minlength=classes)[:, None]
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def pixel_marginals(real: pd.DataFrame, other: pd.DataFrame, schema: Schema, bins: int = _CELLS) -> pd.DataFrame:
    """Total variation of each column alone (order 1), and of each pixel jointly with the class (order 2).

    It leaves out the 306,936 pairs of 784 pixels, whose mean says little about an image.

    Returns:
        Columns ``order``, ``columns`` and ``total_variation``, as of
        :func:`likeness.evaluation.marginals.marginal_table`.
    """
    (a, sizes), (b, _) = (cells(table, schema, bins) for table in (real, other))
    label = None if schema.task != "classification" else schema.names.index(str(schema.label))
    rows: list[tuple[int, str, float]] = []
    for index, name in enumerate(schema.names):
        rows.append((1, name, total_variation(a, b, sizes, [index])))
        if label is not None and index != label:
            joint = total_variation(a, b, sizes, [index, label])
            rows.append((2, f"{name} × {schema.names[label]}", joint))
    return pd.DataFrame(rows, columns=["order", "columns", "total_variation"]).sort_values("order", kind="stable")
