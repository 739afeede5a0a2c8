"""Categorical columns of tables; those with private categories hold texts until these are released.

Each cell of them becomes a text by itself (:mod:`likeness.data.source.cells`). Partition selection releases the
categories. Any other text becomes the column's ``other``, each row by itself.
"""

import pandas as pd

from likeness.core.text import fault_of
from likeness.data.beside import with_columns
from likeness.data.schema.schema import Schema

LONGEST = 100
"""Most characters of a category; longer texts are ``other``."""


def unfit(texts: "pd.Series[str]") -> "pd.Series[bool]":
    """Which texts cannot be categories: too long, or with a control character or a line end inside.

    A released text goes into CSV files, YAML, pages and terminals, and they read such characters differently.
    """
    return texts.isin([text for text in texts.dropna().unique() if fault_of(text, LONGEST)])


def closed(table: pd.DataFrame, written: Schema, schema: Schema) -> pd.DataFrame:
    """Type the open columns of a table by their released categories.

    Args:
        table: typed with ``written``.
        written: the schema with its open columns.
        schema: the completed schema.
    """
    columns = {}
    for column in written.open_columns:
        categories = schema.column(column.name).categories
        texts = table[column.name]
        texts = texts.where(texts.isna() | texts.isin(categories), str(column.other))
        columns[column.name] = texts.astype(schema.column(column.name).typed([]).dtype)
    return with_columns(table, columns)
