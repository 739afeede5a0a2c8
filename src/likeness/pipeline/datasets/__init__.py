"""What a data set is, from the source to the report: one table, or people with events.

:func:`model_of` is the only place that asks which. A further kind of data set is one more class.
"""

from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.schema import Schema
from likeness.pipeline.datasets.histories import Histories
from likeness.pipeline.datasets.model import DataModel
from likeness.pipeline.datasets.table import Table

MODELS: dict[type, type[DataModel]] = {Schema: Table, HistorySchema: Histories}


def model_of(schema: Schema | HistorySchema) -> DataModel:
    """The data model that a public schema describes."""
    return MODELS[type(schema)](schema)
