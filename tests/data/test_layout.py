"""The layout: blocks one after another, and a diameter that bounds every distance."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import column_values, schemas, tables

from likeness.config.typed import build
from likeness.core.errors import LikenessError
from likeness.core.hashing import json_value
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Block, Layout
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema

TINY = Schema(
    "tiny",
    "made up",
    "classification",
    "sick",
    (
        Column("height", "numeric", 0.0, 2.0, nullable=True),
        Column("sick", "categorical", categories=("no", "yes")),
        Column("size", "categorical", categories=("s", "m", "l"), ordered=True, nullable=True),
        Column("visits", "integer", 0.0, 9.0),
    ),
)


def test_blocks_of_a_known_schema() -> None:
    layout = Layout.from_schema(TINY)
    assert layout.blocks == (
        Block("height", "unit", 0, 1),
        Block("height", "indicator", 1, 2),
        Block("size", "onehot", 2, 6),
        Block("visits", "unit", 6, 7),
    )
    assert (layout.width, layout.num_classes) == (7, 2)
    assert layout.diameter == math.sqrt(3 + 2)
    assert layout.numeric_columns.tolist() == [0, 1, 6]
    assert layout.onehot_columns.tolist() == [2, 3, 4, 5]


@pytest.mark.long
@given(schemas())
def test_blocks_tile_the_vector_and_the_json_form_reads_back(schema: Schema) -> None:
    layout = Layout.from_schema(schema)
    both = np.concatenate([layout.numeric_columns, layout.onehot_columns])
    assert sorted(both.tolist()) == list(range(layout.width))
    assert layout.width == sum(column.width for column in schema.feature_columns)
    assert build(Layout, json.loads(json.dumps(json_value(layout))), "layout") == layout


@pytest.mark.long
@given(st.data())
def test_diameter_bounds_the_distance_of_any_two_records(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    encoder = Encoder(schema)
    x = encoder.expand(encoder.encode(data.draw(tables(schema, min_rows=2))))
    distances = np.linalg.norm(x[:, None] - x[None], axis=2)
    assert distances.max() <= encoder.layout.diameter * (1 + 1e-12)


def extremes(column: Column) -> list[Any]:
    """The two values of a column that lie farthest apart."""
    return [column.categories[0], column.categories[-1]] if column.is_categorical else list(column.bounds)


@pytest.mark.long
@given(schemas(nullable=False))
def test_diameter_is_reached_where_no_number_is_nullable(schema: Schema) -> None:
    encoder = Encoder(schema)
    values = {column.name: column_values(column, extremes(column)) for column in schema.columns}
    x = encoder.expand(encoder.encode(pd.DataFrame(values)))
    assert np.linalg.norm(x[0] - x[1]) == pytest.approx(encoder.layout.diameter, rel=1e-12)


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"blocks": [], "num_classes": 1},
        {"blocks": [{"column": "a", "kind": "unit", "start": 0, "stop": 1}], "num_classes": 0},
        {"blocks": [{"column": "a", "kind": "unit", "start": 0, "stop": 2}], "num_classes": 1},
        {"blocks": [{"column": "a", "kind": "onehot", "start": 0, "stop": 0}], "num_classes": 1},
        {"blocks": [{"column": "a", "kind": "other", "start": 0, "stop": 1}], "num_classes": 1},
        {"blocks": [{"column": "a", "kind": "unit", "start": 1, "stop": 2}], "num_classes": 1},
        {"blocks": [{"column": "a", "kind": "unit", "start": "x", "stop": 2}], "num_classes": 1},
        {"blocks": 3, "num_classes": 1},
    ],
)
def test_what_is_no_layout_is_refused(mapping: dict[str, Any]) -> None:
    with pytest.raises(LikenessError, match=r"^layout"):
        build(Layout, mapping, "layout")
