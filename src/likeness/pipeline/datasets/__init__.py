"""What a data set is, from the source to the report: a table, and the kinds that wings add.

:func:`model_of` and :func:`model_described` are the only places that ask which. A further kind of data set is one more
class, found by the group ``likeness.datasets`` of entry points.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likeness.core.errors import MissingPackageError
from likeness.core.wings import Wings
from likeness.data.schema.row_sets import PublicSchema
from likeness.data.schema.yaml import read_mapping
from likeness.pipeline.datasets.model import DataModel
from likeness.pipeline.datasets.table import Table

MODELS: Wings[type[DataModel]] = Wings("likeness.datasets", {"table": Table})


def model_of(schema: Any) -> DataModel:
    """The data model that a public schema describes.

    Raises:
        MissingPackageError: that of a wing which is not installed.
    """
    for model in MODELS.values():
        if model.serves(schema):
            return model(schema)
    raise MissingPackageError(f"the schema describes no table. {MODELS.remedy}")


def model_described(content: Any, where: str = "schema") -> type[DataModel]:
    """The data model whose schema a file describes: that of the wing which knows it, else a table.

    Args:
        content: of the file.
        where: the file, for messages.

    Raises:
        MissingPackageError: it has no columns, and a wing that may know it is not installed.
    """
    for model in MODELS.values():
        if model.describes(content):
            return model
    if isinstance(content, Mapping) and "columns" not in content and MODELS.absent:
        raise MissingPackageError(f"{where} describes no table. {MODELS.remedy}")
    return Table


def read_schema(path: str | Path, aliases: bool = True) -> PublicSchema:
    """The public schema of a file. ``aliases``: whether a value may repeat another by its name.

    Raises:
        SchemaError: it cannot be read, or is wrong.
        MissingPackageError: that of a wing which is not installed.
    """
    content, where = read_mapping(path, aliases), Path(path).name
    return model_described(content, where).schema_from(content, where)
