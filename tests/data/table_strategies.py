"""Hypothesis strategies: any public schema, and any typed table that fits it."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from likeness.data.schema.column import Column
from likeness.data.schema.kinds import KINDS, TRANSFORMS
from likeness.data.schema.schema import Schema

WORDS = ["a", "b", "7", "07", "No", "1.5", "naïve", "<=50K", ">50K", "x y", "NA", "nan", "Other"]

ENDS: dict[str, tuple[Any, Any]] = dict.fromkeys(("date", "datetime"), ("0001-01-01", "9999-12-31"))
ENDS |= {"time": ("00:00", "23:59:59"), "integer": (-(10**12), 10**12)}


@st.composite
def columns(draw: st.DrawFn, name: str, nullable: bool | None = None) -> Column:
    """One column of any kind."""
    kind = draw(st.sampled_from(list(KINDS)))
    null = draw(st.booleans()) if nullable is None else nullable
    if kind == "categorical":
        words = draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=6, unique=True))
        return Column(name, kind, categories=tuple(words), ordered=draw(st.booleans()), nullable=null)
    if kind == "boolean":
        return Column(name, kind, categories=draw(st.sampled_from([("false", "true"), ("No", "Ja")])), nullable=null)
    if kind == "numeric":
        lower = draw(st.floats(-1e9, 1e9))
        upper = lower + draw(st.floats(1e-3, 1e9))
    else:
        lowest, highest = (
            int(KINDS[kind].parse_bound(*end)) for end in zip(("lower", "upper"), ENDS[kind], strict=True)
        )
        lower = draw(st.integers(lowest, highest - 1))
        upper = draw(st.integers(lower + 1, highest))
    transform = draw(st.sampled_from(TRANSFORMS if KINDS[kind].numeric_source else TRANSFORMS[:1]))
    return Column(name, kind, float(lower), float(upper), nullable=null, transform=transform)


@st.composite
def schemas(draw: st.DrawFn, nullable: bool | None = None) -> Schema:
    """One to four features, and a label for either task or none."""
    task = draw(st.sampled_from(["classification", "regression", "none"]))
    found = [draw(columns(f"c{place}", nullable)) for place in range(draw(st.integers(1, 4)))]
    if task == "classification":
        found.insert(draw(st.integers(0, len(found))), Column("label", "categorical", categories=("no", "yes", "7")))
    elif task == "regression":
        found.insert(draw(st.integers(0, len(found))), Column("label", "numeric", -5.0, 5.0))
    return Schema("any", "made up", task, None if task == "none" else "label", tuple(found))


def column_values(column: Column, values: list[Any]) -> pd.Series:
    """A column of a typed table from plain values, None for missing; days or seconds for dates."""
    places = {text: place for place, text in enumerate(column.categories)}
    return column.to_typed([np.nan if value is None else places.get(value, value) for value in values])


def objects(cells: list[Any]) -> "pd.Series[Any]":
    """Cells as Python's objects, also such that numpy would take apart."""
    column = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return pd.Series(column, dtype="object")


@st.composite
def tables(draw: st.DrawFn, schema: Schema, min_rows: int = 0, max_rows: int = 8) -> pd.DataFrame:
    """A typed table of the schema."""
    rows = draw(st.integers(min_rows, max_rows))
    found = {}
    for column in schema.columns:
        if column.is_categorical:
            cells: st.SearchStrategy[Any] = st.sampled_from(column.categories)
        elif column.is_integral:
            cells = st.integers(int(column.bounds[0]), int(column.bounds[1]))
        else:
            cells = st.floats(*column.bounds)
        if column.nullable:
            cells = st.none() | cells
        found[column.name] = column_values(column, draw(st.lists(cells, min_size=rows, max_size=rows)))
    return pd.DataFrame(found)


@st.composite
def schemas_and_tables(draw: st.DrawFn, min_rows: int = 0) -> tuple[Schema, pd.DataFrame]:
    """A schema and a table that fits it."""
    schema = draw(schemas())
    return schema, draw(tables(schema, min_rows))
