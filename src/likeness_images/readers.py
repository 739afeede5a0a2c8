"""Sources of images: .npz files, folders of PNG and JPEG files, and images as bytes in a column of Parquet files."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from likeness.config.params import ONE_IMAGE
from likeness.core.errors import DataError
from likeness.core.remote import SourcePath, ending
from likeness.data.schema.schema import Schema
from likeness.data.source.formats import SourceFormat
from likeness_images.encoded_images import (
    decode_images,
    folder_chunks,
    folder_layout,
    image_column,
    is_image_folder,
    only_bytes,
)
from likeness_images.image_arrays import npz_chunks, npz_layout

_ARRAYS = ".npz"


class ImageFiles(SourceFormat):
    """Arrays of numpy, or folders of image files by class."""

    settings: ClassVar[Mapping[str, Any]] = {"privacy.unit": ONE_IMAGE, "method": "moments"}

    @staticmethod
    def serves(path: SourcePath) -> bool:
        """Tell whether it is an .npz file, or a folder whose first file is an image."""
        return ending(path) == _ARRAYS or (path.is_dir() and is_image_folder(path))

    @staticmethod
    def chunks(path: SourcePath, schema: Schema, split_column: str | None, rows: int) -> Iterator[pd.DataFrame]:
        """Pixels, label and split. An .npz file is in memory as a whole."""
        read = npz_chunks if ending(path) == _ARRAYS else folder_chunks
        return read(path, schema, split_column, rows)

    @staticmethod
    def layout(path: SourcePath) -> tuple[tuple[int, ...], int]:
        """Read the layout off the first image and the names of arrays or folders."""
        shape, depth = npz_layout(path) if ending(path) == _ARRAYS else folder_layout(path)
        if depth > 2:
            raise DataError(
                f"{path.name}: its images must lie in folders as CLASS/FILE, or PART/CLASS/FILE. Move them."
            )
        return shape, depth

    @staticmethod
    def encoded_column(types: Mapping[str, pa.DataType], where: str) -> str:
        """The only column of bytes, or of records with ``bytes`` as Hugging Face writes them."""
        return image_column(types, where)

    @staticmethod
    def only_bytes(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        """The ``bytes`` of records as Hugging Face writes them."""
        return only_bytes(batch, name)

    @staticmethod
    def decode_images(cells: Iterable[bytes | None], shape: tuple[int, ...], where: str) -> NDArray[np.uint8]:
        """Values of PNG and JPEG images."""
        return decode_images(cells, shape, where)
