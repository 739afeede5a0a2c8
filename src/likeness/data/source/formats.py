"""Formats of sources that wings read, found by the group ``likeness.sources`` of entry points.

An entry point has the ending of the files of its format as its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import MissingPackageError
from likeness.core.remote import SourcePath, ending
from likeness.core.wings import Wings
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class SourceFormat(ABC):
    """A format of files or folders, whose records are images.

    Attributes:
        settings: keys of params.yaml that a draft for such a source has, with their values.
    """

    settings: ClassVar[Mapping[str, Any]] = {}

    @staticmethod
    @abstractmethod
    def serves(path: SourcePath) -> bool:
        """Tell whether an existing file or folder has this format, by its name and those of its files."""

    @staticmethod
    @abstractmethod
    def chunks(path: SourcePath, schema: Schema, split_column: str | None, rows: int) -> "Iterator[pd.DataFrame]":
        """The raw cells of the columns of a schema, and of the split, in chunks.

        Args:
            path: that :meth:`serves` accepted.
            schema: public.
            split_column: name of the column that splits; None: no such column.
            rows: most rows of a chunk.

        Raises:
            DataError: the source is damaged, or does not fit the schema.
        """

    @staticmethod
    @abstractmethod
    def layout(path: SourcePath) -> tuple[tuple[int, ...], int]:
        """The shape of the images, and 0 without classes, 1 with classes, 2 with classes and a split.

        Raises:
            DataError: the source cannot be read.
        """

    @staticmethod
    @abstractmethod
    def encoded_column(types: "Mapping[str, pa.DataType]", where: str) -> str:
        """The column of a Parquet file that holds encoded images.

        Args:
            types: of the columns, by name.
            where: name of the source in messages.

        Raises:
            DataError: there is no such column, or several.
        """

    @staticmethod
    @abstractmethod
    def only_bytes(batch: "pa.RecordBatch", name: str) -> "pa.RecordBatch":
        """A batch with bytes in its column of encoded images, also where a cell is a record that holds them."""

    @staticmethod
    @abstractmethod
    def decode_images(cells: Iterable[bytes | None], shape: tuple[int, ...], where: str) -> NDArray[np.uint8]:
        """Values of encoded images, pixel by pixel from the top left, shape (n, values).

        Args:
            cells: of the column of :meth:`only_bytes`.
            shape: height and width, and 3 in color.
            where: begins the message.

        Raises:
            DataError: an image is missing, damaged, or of another shape.
        """


SOURCE_FORMATS: Wings[type[SourceFormat]] = Wings("likeness.sources", {})


def format_of(path: SourcePath) -> type[SourceFormat] | None:
    """The format of a wing that serves a source; None: it is one of the core, or there is no such file.

    Raises:
        MissingPackageError: the wing of its ending is not installed.
    """
    SOURCE_FORMATS.check_installed(ending(path).lstrip("."), f"the format of {path.name}")
    return next((source_format for source_format in SOURCE_FORMATS.values() if source_format.serves(path)), None)


def format_of_images(where: str) -> type[SourceFormat]:
    """The format that decodes images in a column of a Parquet file.

    Args:
        where: name of the source in the message.

    Raises:
        MissingPackageError: no wing reads images.
    """
    for name in SOURCE_FORMATS:
        return SOURCE_FORMATS[name]
    raise MissingPackageError(
        f"{where}: holds images, and this Likeness has no part that reads them. Install all of it."
    )
