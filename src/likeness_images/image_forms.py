"""Synthetic images as arrays, as PNG files and on the public page. A source of images may have the first two forms."""

import io
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from likeness.core.errors import ArtifactError
from likeness.core.files import naming
from likeness.data.encoding.dtypes import typed_again
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema, pixel_columns
from likeness.data.table_columns import matrix

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_CLASSES = 26  # of a page
_PLAIN = re.compile(r"\w[\w .-]*")  # no way out of a folder: a schema may be a stranger's


def images_of(table: "DataFrame", schema: Schema) -> NDArray[np.uint8]:
    """The images of a table in its dtypes, shape (n, height, width), or (n, height, width, 3) in color."""
    assert schema.image is not None  # the caller has a schema of images
    names = [column.name for column in pixel_columns(schema.image)]
    return matrix(table, names).astype(np.uint8).reshape(-1, *schema.image)


def npz_bytes(table: "DataFrame", schema: Schema) -> bytes:
    """Images as Keras stores MNIST: ``x_train``, and ``y_train`` with class numbers in the order of the schema.

    The same table gives the same bytes on each system: the archive has no time and is not packed.

    Args:
        table: in its dtypes.
        schema: of images, with or without a class.
    """
    arrays: dict[str, NDArray[Any]] = {"x_train": images_of(table, schema)}
    if schema.label is not None:
        numbers = _classes(table, schema)
        arrays["y_train"] = numbers.astype(np.min_scalar_type(len(schema.classes) - 1))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            item = zipfile.ZipInfo(f"{name}.npy")
            item.create_system = 3  # Unix, also where the system is another
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            archive.writestr(item, content.getvalue())
    return file.getvalue()


def write_png(table: "DataFrame", schema: Schema, target: Path) -> None:
    """Write each image as ``CLASS/NUMBER.png``, or as ``NUMBER.png`` without classes, into a new folder.

    A folder has the name of its class, or its number if a class has a name that is no plain name of a folder.

    Args:
        table: in its dtypes.
        schema: of images.
        target: the folder.

    Raises:
        ArtifactError: it exists.
    """
    if target.exists():
        raise ArtifactError(f"{target} exists and is not overwritten. Delete it, or give another name.")
    images, classes = images_of(table, schema), schema.classes
    plain = all(_PLAIN.fullmatch(name) for name in classes)
    folders = [name if plain else str(number) for number, name in enumerate(classes)] if schema.label else [""]
    numbers = _classes(table, schema) if schema.label is not None else np.zeros(len(table), np.int64)
    digits = len(str(len(images)))
    with naming(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=".images") as temporary:
        part = Path(temporary) / "images"
        for folder in folders:
            (part / folder).mkdir(parents=True, exist_ok=True)
        for number, (image, index) in enumerate(zip(images, numbers.tolist(), strict=True), start=1):
            Image.fromarray(image).save(part / folders[index] / f"{number:0{digits}}.png")
        part.rename(target)


def contact_sheet(table: "DataFrame", schema: Schema) -> list[tuple[str, str]]:
    """The first synthetic images of each class: the name of the class, and a picture inside the page."""
    from likeness.report.formats import MOST_LISTED, embed  # no stage before the report loads its folder

    height, width, *color = schema.image or ()
    sheet = []
    for index, name in enumerate(schema.classes[:_MOST_CLASSES]):
        rows = table if schema.label is None else table[table[schema.label] == name]
        encoder = Encoder(schema)
        images = encoder.expand(encoder.encode(rows.head(MOST_LISTED)))
        strip = np.full((height, (width + 1) * MOST_LISTED, *color), 1.0)
        for at, image in enumerate(images):
            strip[:, at * (width + 1) : at * (width + 1) + width] = np.reshape(image, (height, width, *color))
        buffer = io.BytesIO()
        Image.fromarray(np.rint(255 * strip).astype(np.uint8)).save(buffer, "PNG")
        sheet.append((name if len(schema.classes) > 1 else f"image {index + 1}", embed(buffer.getvalue())))
    return sheet


def _classes(table: "DataFrame", schema: Schema) -> NDArray[np.int64]:
    """The class of each image by its number."""
    assert schema.label_column is not None  # the caller asked
    typed = typed_again(table[[schema.label_column.name]], schema.select([schema.label_column.name]))
    return schema.label_column.numbers(typed.iloc[:, 0]).astype(np.int64)
