"""A table with a rule of each kind, and rows that break them all."""

from typing import Any

import numpy as np
import pandas as pd
from toys import schema_with

from likeness.data.schema.constrained_tables import _type_columns
from likeness.data.schema.schema import Schema

YES = {"kind": "boolean"}
DAYS = {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"}
COLUMNS: dict[str, Any] = {
    "age": {"kind": "integer", "lower": 0, "upper": 99},
    "state": {"kind": "categorical", "categories": ["never", "married", "widowed"]},
    "income": {"kind": "integer", "lower": 0, "upper": 1000, "nullable": True},
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
    "place": {"kind": "categorical", "categories": ["husband", "wife", "child"]},
    "came": DAYS,
    "left": DAYS,
    "soil_1": YES,
    "soil_2": YES,
    "soil_3": YES,
    "a": {"kind": "numeric", "lower": 0, "upper": 10, "decimals": 2},
    "b": {"kind": "numeric", "lower": 0, "upper": 10, "decimals": 2, "nullable": True},
    "both": {"kind": "numeric", "lower": 0, "upper": 15, "decimals": 2, "nullable": True},
    "school": {"kind": "categorical", "categories": ["low", "middle", "high"], "ordered": True},
    "years": {"kind": "integer", "lower": 0, "upper": 20},
    "sick": {"kind": "boolean", "categories": ["no", "yes"]},
}
RULES: list[dict[str, Any]] = [
    {"if": {"age": "< 15"}, "then": {"state": "never", "income": None}},
    *({"never": {"place": "husband", "sex": "F"}}, {"never": {"age": "< 3", "sick": "yes"}}),
    *({"order": ["came", "left"]}, {"one_of": ["soil_*"]}, {"equal": ["both", ["a", "b"]], "kind": "sum"}),
    {"determines": ["school", "years"], "table": {"low": 4, "middle": 10, "high": 13}},
]
DERIVED = {"stay": {"is": "left - came", "lower": 0, "upper": 30}}


def ruled(**more: Any) -> Schema:
    """The schema; with other rules or columns where they are given."""
    given = {"rules": RULES, "derived": DERIVED, **more}
    return schema_with(given.pop("columns", COLUMNS), "sick", **given)


SCHEMA = ruled()


LEARNED = ruled(
    columns={
        **COLUMNS,
        "grade": {"kind": "categorical", "categories": ["a", "b", "c"]},
        "floor": {"kind": "integer", "lower": 0, "upper": 20, "nullable": True},
        "wing": {"kind": "integer", "lower": 1, "upper": 3, "nullable": True},
    },
    rules=[
        *RULES,
        {"determines": ["school", "grade"]},
        {"determines": ["floor", "wing"]},
        {"never": {"age": "< 5", "grade": "a"}},
    ],
)
"""The same with functions that the method learns."""


def rows(count: int, seed: int = 0, schema: Schema = SCHEMA) -> pd.DataFrame:
    """Typed rows whose columns are independent, so that many break a rule."""
    random, values = np.random.default_rng(seed), {}
    for column in schema.columns:
        if column.is_categorical:
            values[column.name] = random.integers(0, len(column.categories), count).astype(float)
        else:
            lower, upper = column.bounds
            values[column.name] = np.round(random.uniform(lower, upper, count), column.decimals or 0)
        if column.nullable:
            values[column.name][random.random(count) < 0.2] = np.nan
    return _type_columns(values, schema.columns)
