"""Images in .npz files, as Keras stores MNIST: arrays of images and of class numbers, for training and test."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.remote import SourcePath
from likeness.data.schema.schema import BRIGHTEST, Schema
from likeness.data.source.opening import drop_errors
from likeness.data.table_columns import with_pixels

_PARTS = ("train", "test")
_UNREADABLE = "cannot be read as images. Give an .npz file with arrays x_train, y_train, x_test and y_test."


def npz_chunks(path: SourcePath, schema: Schema, split_column: str | None, rows: int) -> Iterator[pd.DataFrame]:
    """Read ``x_train``, ``y_train``, ``x_test`` and ``y_test`` as pixels, label and split, in chunks.

    Images are whole numbers from 0 to 255, shape (n, height, width), or (n, height, width, 3) in color. Labels are
    class numbers, shape (n,), in the order of the label's categories. The two test arrays may be missing together, and
    the labels for task none.

    Args:
        path: the .npz file.
        schema: public schema with an image.
        split_column: name of a new column that says ``train`` or ``test``; None: no such column.
        rows: most rows of a chunk.

    Raises:
        DataError: the file is not like that, or does not fit the schema.
    """
    if schema.image is None:
        raise DataError(
            f"{path.name}: holds images, but schema {schema.name} has none. Add image: {{shape: [height, width]}}."
        )
    if not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the source in params.yaml, ingest.source.")
    arrays = _arrays(path)
    if arrays is None or "x_train" not in arrays:
        raise DataError(f"{path.name}: {_UNREADABLE}")
    for part in [part for part in _PARTS if f"x_{part}" in arrays]:
        x = _images(arrays[f"x_{part}"], schema.image, f"{path.name}: x_{part}")
        columns = pd.DataFrame(index=range(len(x)))
        if schema.label is not None:
            columns[schema.label] = _labels(arrays.get(f"y_{part}"), schema, len(x), f"{path.name}: y_{part}")
        if split_column is not None:
            columns[split_column] = part
        for start in range(0, len(x) or 1, rows):
            chunk = x[start : start + rows]
            some = columns.iloc[start : start + rows].reset_index(drop=True)
            yield with_pixels(chunk.reshape(len(chunk), -1), schema.pixels, some)


def npz_layout(path: SourcePath) -> tuple[tuple[int, ...], int]:
    """The shape of the images of a file, as a schema writes it; and 0 without classes, 1 with them, 2 with test images.

    Raises:
        DataError: it has no array ``x_train`` of images.
    """
    arrays = _arrays(path) or {}
    images = arrays.get("x_train")
    if images is None or images.ndim not in (3, 4):
        raise DataError(f"{path.name}: {_UNREADABLE}")
    return images.shape[1:], 0 if "y_train" not in arrays else 1 + ("x_test" in arrays)


def _arrays(path: SourcePath) -> dict[str, NDArray[Any]] | None:
    with drop_errors(), path.open("rb") as packed, np.load(packed, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
    return None


def _images(x: NDArray[Any], shape: tuple[int, ...], where: str) -> NDArray[np.uint8]:
    if x.shape[1:] != shape or x.dtype.kind not in "iu":
        raise DataError(
            f"{where}: must hold whole numbers of shape (n, {', '.join(map(str, shape))}). Correct it, or image.shape."
        )
    clipped: NDArray[np.uint8] = x if x.dtype == np.uint8 else np.clip(x, 0, BRIGHTEST).astype(np.uint8)
    return clipped


def _labels(y: NDArray[Any] | None, schema: Schema, count: int, where: str) -> list[str]:
    label = schema.label_column
    assert label is not None  # the label of a schema with an image is a class
    if y is None or y.shape != (count,) or y.dtype.kind not in "iu":
        raise DataError(f"{where}: must hold one class number for each image. Correct it.")
    if len(y) and not (y.min() >= 0 and y.max() < len(label.categories)):
        raise DataError(f"{where}: has a number that is not a class. Classes: 0 to {len(label.categories) - 1}.")
    return [label.categories[number] for number in y.tolist()]
