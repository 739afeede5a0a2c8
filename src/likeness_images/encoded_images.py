"""PNG and JPEG images as values: bytes from a column of Parquet files, or files in folders by class.

Each image is decoded by itself, from its bytes and the schema's shape alone, and turned as its EXIF says. An image of
another size is refused, and never resized. No message names a file in a folder, because its name may be a person's.
"""

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from PIL import Image, ImageOps

from likeness.core.errors import DataError
from likeness.core.remote import SourcePath, ending, files_in, reading
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import TEXT, with_pixels

_FORMATS = ("PNG", "JPEG")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif")  # read or refused
_MOST_BYTES = 1 << 20  # of one image: a schema allows at most 16,384 values
_MODES = {"L": ("1", "L"), "RGB": ("1", "L", "P", "RGB")}
_SIZE = "of another size than image.shape {}. Images are turned by EXIF, never resized. Correct them, or the schema"
_FRAMES = "with several frames. Keep one"
_MODE = "with other channels or depths than image.shape {} takes: {}, 8 bits, not transparent. Convert it"
_DAMAGED = "that is no PNG or JPEG (a GIF or WebP is neither), or is damaged. Convert it"
_LARGE = f"of more than {_MOST_BYTES:,} bytes. Save it without what is no image"


def decode_images(images: Iterable[bytes | None], shape: tuple[int, ...], where: str) -> NDArray[np.uint8]:
    """Values of encoded images, pixel by pixel from the top left, shape (n, values). A gray one has three equal colors.

    Raises:
        DataError: an image is missing, damaged, too large, of another size or format, animated or transparent; or in
            color where the shape is gray. ``where`` begins the message.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their texts say sizes of private images
        rows = []
        for image in images:
            values = _read(image, shape)
            if isinstance(values, str):
                raise DataError(f"{where} an image {values}.")
            rows.append(values)
    return np.stack(rows) if rows else np.empty((0, int(np.prod(shape))), np.uint8)


def _read(data: bytes | None, shape: tuple[int, ...]) -> NDArray[np.uint8] | str:
    """The values, or the fault. The header is judged before a pixel is decoded, so no file fills the memory."""
    mode = "RGB" if shape[2:] else "L"
    if data is None:
        return "that is missing. Remove its row"
    if len(data) > _MOST_BYTES:
        return _LARGE
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as file:
            if getattr(file, "n_frames", 1) != 1:
                return _FRAMES
            if sorted(file.size) != sorted(shape[:2]):
                return _SIZE.format(list(shape))
            if file.mode not in _MODES[mode] or "transparency" in file.info:
                return _MODE.format(list(shape), "gray" if mode == "L" else "gray or RGB")
            image = ImageOps.exif_transpose(file)  # as every viewer turns it
            if image.size != (shape[1], shape[0]):
                return _SIZE.format(list(shape))
            return np.asarray(image.convert(mode), np.uint8).reshape(-1)
    except Image.DecompressionBombError:
        return _SIZE.format(list(shape))
    except Exception:  # each format has errors of its own, and none of them reaches a person
        return _DAMAGED


def image_column(types: Mapping[str, pa.DataType], where: str) -> str:
    """The column of encoded images: the only one of bytes, or of records with ``bytes`` as Hugging Face writes them.

    Args:
        types: of the columns, by name.
        where: name of the source in messages.

    Raises:
        DataError: there is no such column, or several.
    """
    names = [name for name, kind in types.items() if _holds_bytes(kind)]
    if len(names) != 1:
        raise DataError(
            f"{where}: must have columns pixel_1, pixel_2, ..., or one column of bytes with PNG or JPEG images. It has "
            f"{len(names)} columns of bytes. Correct the file."
        )
    return names[0]


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in kind.fields)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def only_bytes(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """A batch with the bytes of its image column in place of records."""
    cells = batch.column(name)
    if not pa.types.is_struct(cells.type):
        return batch
    index = batch.schema.get_field_index(name)
    return batch.set_column(index, name, pc.struct_field(cells, "bytes"))


def is_image_folder(folder: SourcePath) -> bool:
    """Tell whether the first file in a folder and its folders is an image, by its name."""
    first = next(_files(folder), None)
    return first is not None and ending(first[1]) in _SUFFIXES


def folder_layout(folder: SourcePath) -> tuple[tuple[int, ...], int]:
    """The shape of the first image of a folder, as a schema writes it, and in how many folders it lies.

    All images of a source that is read have this shape and this depth. So they are public, as the names of columns are.

    Raises:
        DataError: the first image cannot be read.
    """
    folders, file = next(_files(folder))
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(_bytes(file, folder.name))) as image:
            width, height = ImageOps.exif_transpose(image).size
            color = (3,) if image.mode not in _MODES["L"] else ()
    except Exception:  # each format has errors of its own, and none of them reaches a person
        raise DataError(f"{folder.name}: holds an image {_DAMAGED}.") from None
    return (height, width, *color), len(folders)


def folder_chunks(folder: SourcePath, schema: Schema, split_column: str | None, rows: int) -> Iterator[pd.DataFrame]:
    """Pixels, label and split of the images in ``CLASS/FILE``, or in ``PART/CLASS/FILE`` with a split column.

    Names that begin with a point are skipped. Without a label there are no folders by class.

    Raises:
        DataError: the schema has no image, folders lie otherwise, or :func:`decode_images` refuses an image.
    """
    if schema.image is None:
        raise DataError(
            f"{folder.name}: holds images, but schema {schema.name} has none. Add image: {{shape: [height, width]}}."
        )
    columns = [name for name in (split_column, schema.label) if name is not None]
    files = _files(folder)
    while chunk := list(islice(files, rows)):
        if any(len(folders) != len(columns) for folders, _ in chunk):
            levels = "/".join([*(f"[{name}]" for name in columns), "FILE"])
            raise DataError(f"{folder.name}: its images must lie in folders as {levels}. Move them.")
        columns_of_folders = pd.DataFrame([folders for folders, _ in chunk], range(len(chunk)), columns, TEXT)
        images = (_bytes(file, folder.name) for _, file in chunk)
        values = decode_images(images, schema.image, f"{folder.name}: holds")
        yield with_pixels(values, schema.pixels, columns_of_folders)


def _bytes(file: SourcePath, source: str) -> bytes:
    with reading(source), file.open("rb") as opened:
        data: bytes = opened.read(_MOST_BYTES + 1)
    return data


def _files(folder: SourcePath) -> Iterator[tuple[tuple[str, ...], SourcePath]]:
    """Each file with the names of its folders, by name."""
    for folders, file in files_in(folder):
        if not any(name.startswith(".") for name in (*folders, file.name)):
            yield folders, file
