"""Typed tables as rules see them, and back."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.data.schema.column import Column
from likeness.data.schema.rule import Values
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import with_columns


def values_of(table: pd.DataFrame, columns: Iterable[Column]) -> Values:
    """Places of categories, or numbers, of each of these columns of a typed table, NaN where missing."""
    return {column.name: column.numbers(table[column.name]) for column in columns}


def forward_transform(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Typed private rows as a method sees them, see :class:`likeness.data.schema.rules.ConstrainedTable`."""
    if not schema.rules:
        return table
    values = schema.constrained_table.forward_transform(values_of(table, schema.columns))
    return _type_columns(values, schema.model_schema.columns).set_axis(table.index)


def inverse_transform(table: pd.DataFrame, schema: Schema) -> tuple[pd.DataFrame, dict[str, NDArray[np.bool_]]]:
    """Rows of a method (``schema.modeled``) with all columns, and which of them each rule rejects, by its words."""
    if not schema.rules:
        return table, {}
    values, rejected = schema.constrained_table.inverse_transform(values_of(table, schema.model_schema.columns))
    computed = [schema.column(name) for rule in schema.constrained_table.computing for name in rule.computes]
    return with_columns(table, _type_columns(values, computed))[list(schema.names)], rejected


def violation_counts(table: pd.DataFrame, schema: Schema) -> dict[str, int]:
    """Count the rows of a typed table that break each rule, by the rule's text. NOT private for private rows."""
    values = values_of(table, schema.columns)
    return {rule.text: int(rule.violations(values).sum()) for rule in schema.rules}


def _type_columns(values: Values, columns: Iterable[Column]) -> pd.DataFrame:
    """Values as typed columns; numbers are clipped to their bounds, and one that may not be missing is the lower."""
    typed = {}
    for column in columns:
        cells = values[column.name]
        typed[column.name] = column.to_typed(cells if column.is_categorical else column.clip_to_bounds(cells))
    return pd.DataFrame(typed)
