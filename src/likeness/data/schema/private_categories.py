"""Columns whose categories are not publicly known: texts at first, categories once those were released.

A cell is typed as text by itself (:mod:`likeness.data.source.cells`). Which texts become categories is the answer of a
release; every other text becomes the column's ``other``, each row by itself.
"""

import re

import pandas as pd

from likeness.data.schema.schema import Schema

LONGEST = 100
"""Characters of a text; longer ones are ``other``."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def unfit(texts: "pd.Series[str]") -> "pd.Series[bool]":
    """Which texts cannot be categories: too long, or with a control character or the end of a line within.

    A released text goes into CSV files, YAML, pages and terminals, which each read those in their own way.
    """
    controls = [text for text in texts.dropna().unique() if _CONTROL.search(text)]
    return (texts.str.len() > LONGEST) | texts.isin(controls)


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
