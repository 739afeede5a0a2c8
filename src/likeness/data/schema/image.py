"""Images as tables: a pixel is an integer column from 0 to 255, so that all that holds for tables holds for images."""

from collections.abc import Mapping
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column import Column

BRIGHTEST = 255
_MOST_PIXELS = 1 << 14


def image_shape(spec: Any) -> tuple[int, int] | None:
    """Height and width in pixels from a schema's ``image`` section; None where there is none.

    Raises:
        SchemaError: it does not say ``shape: [height, width]``, or the image is too large to be a table.
    """
    if spec is None:
        return None
    shape: Any = spec.get("shape") if isinstance(spec, Mapping) and set(spec) == {"shape"} else None
    sizes = list(shape) if isinstance(shape, list | tuple) else []
    if len(sizes) != 2 or any(type(size) is not int or size < 1 for size in sizes):
        raise SchemaError("image must be {shape: [height, width]}, in pixels. Only gray images are supported.")
    height, width = sizes
    if height * width > _MOST_PIXELS:
        raise SchemaError(f"image has {height * width:,} pixels, more than {_MOST_PIXELS:,}. Scale the images down.")
    return height, width


def pixel_columns(shape: tuple[int, int]) -> tuple[Column, ...]:
    """Columns ``pixel_1`` ... of gray images, row by row from the top left, as OpenML lays out MNIST."""
    height, width = shape
    return tuple(Column(f"pixel_{place + 1}", "integer", 0.0, float(BRIGHTEST)) for place in range(height * width))
