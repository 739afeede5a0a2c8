"""What a data set is, from the source to the report: one table, images, or people with events.

:func:`model_of` is the only place that asks which. A further kind of data set is one more class.
"""

from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.schema import Schema
from likeness.pipeline.datasets.histories import Histories
from likeness.pipeline.datasets.model import DataModel
from likeness.pipeline.datasets.table import Images, Table

MODELS: tuple[type[DataModel], ...] = (Table, Images, Histories)


def model_of(schema: Schema | HistorySchema) -> DataModel:
    """The data model that a public schema describes."""
    return next(model for model in MODELS if model.serves(schema))(schema)
