"""Columns whose categories are not publicly known: texts at first, categories once those were released.

A cell is typed as text by itself (:mod:`likeness.data.sources`). Which texts become categories is the answer of a
release; every other text becomes the column's ``other``, each row by itself.
"""

import pandas as pd

from likeness.data.schema import Schema

LONGEST = 100
"""Characters of a text; longer ones are ``other``."""


def closed(table: pd.DataFrame, written: Schema, schema: Schema) -> pd.DataFrame:
    """A table that was typed with open columns, typed as their released categories say.

    Args:
        written: the schema with its open columns. schema: the same, completed.
    """
    columns = {}
    for column in written.open_columns:
        known = schema.column(column.name)
        texts = table[column.name]
        texts = texts.where(texts.isna() | texts.isin(known.categories), str(known.other))
        columns[column.name] = texts.astype(pd.CategoricalDtype(list(known.categories)))
    return table.assign(**columns)
