"""What a data set is, from the source to the report: a table, and the kinds that wings add.

:func:`model_of` is the only place that asks which. A further kind of data set is one more class, found by the group
``likeness.datasets`` of entry points.
"""

from typing import Any

from likeness.core.errors import MissingPackageError
from likeness.core.wings import Wings
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
    raise MissingPackageError(f"schema {schema.name} describes no table. {MODELS.remedy}")
