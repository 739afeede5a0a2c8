"""The encoding: bins on public edges, whose values stay in them, and blocks, whose diameter bounds distances."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_strategies import column_values, schemas, tables

from likeness.core.errors import LikenessError, SchemaError
from likeness.core.hashing import json_value
from likeness.core.typed import build
from likeness.data.encoding.bins import Grid, grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Block, Layout
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells


def encoder_of(column: Column) -> Encoder:
    return Encoder(Schema("t", "made up", "none", None, (column,)))


def units(column: Column, values: np.ndarray) -> np.ndarray:
    encoder = encoder_of(column)
    return encoder.expand(encoder.encode(pd.DataFrame({"v": column.to_typed(values)})))


def bin_of(grid: Grid, x: np.ndarray) -> np.ndarray:
    return Cells(0, grid.size, grid.inner).cell_indices(x)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    lower = draw(st.integers(-1000, 1000))
    upper = lower + draw(st.integers(1, 200_000))
    spikes = draw(st.lists(st.integers(lower, upper), max_size=3, unique=True))
    return Column(
        "v",
        draw(st.sampled_from(["integer", "numeric"])),
        float(lower),
        float(upper),
        transform=draw(st.sampled_from(["none", "log1p"])),
        spikes=tuple(float(spike) for spike in sorted(spikes)),
    )


@pytest.mark.long
@settings(max_examples=200)
@given(column=columns(), bins=st.integers(2, 70))
def test_edges_ascend_and_no_bin_is_empty(column: Column, bins: int) -> None:
    grid = grid_of(column, bins)
    assert 1 <= grid.size <= bins + 2 + 2 * len(column.spikes) and len(grid.highs) == grid.size == len(grid.edges) - 1
    assert all(np.diff(grid.edges) > 0)
    assert all(0 <= low <= high <= 1 for low, high in zip(grid.lows, grid.highs, strict=True))
    assert grid.lows[0] == 0 and grid.highs[-1] == 1


@pytest.mark.long
@settings(max_examples=200)
@given(column=columns(), bins=st.integers(2, 40), times=st.integers(1, 20))
def test_bins_are_made_of_whole_cells_where_these_are_a_multiple(column: Column, bins: int, times: int) -> None:
    wide, fine = grid_of(column, bins), grid_of(column, bins * times)
    joined = fine.join_bins([0, *(int(np.abs(np.subtract(fine.edges, edge)).argmin()) for edge in wide.inner)])
    np.testing.assert_allclose(joined.edges, wide.edges, atol=1e-12)
    np.testing.assert_allclose([*joined.lows, *joined.highs], [*wide.lows, *wide.highs], atol=1e-12)


@pytest.mark.long
@settings(max_examples=200)
@given(column=columns(), bins=st.integers(2, 70), share=st.floats(0, 1))
def test_what_is_drawn_from_a_bin_is_encoded_into_that_bin(column: Column, bins: int, share: float) -> None:
    grid = grid_of(column, bins)
    low, high, edges = np.array(grid.lows), np.array(grid.highs), np.array(grid.edges)
    drawn = np.clip(edges[:-1] + share * np.diff(edges) * (1 - 1e-9), low, high)[:, None]
    encoder = encoder_of(column)
    decoded = encoder.decode(drawn, np.zeros(len(drawn), dtype=np.int64))
    again = encoder.expand(encoder.encode(decoded))
    found = bin_of(grid, again)
    if column.kind == "integer":
        assert np.array_equal(found, np.arange(grid.size))
    else:  # a decoded number may be off by a last bit
        assert np.abs(found - np.arange(grid.size)).max() <= 1 and np.allclose(again, drawn, atol=1e-9)


def test_few_integers_have_a_bin_each() -> None:
    grid = grid_of(Column("v", "integer", 1.0, 16.0), 32)
    assert grid.size == 16
    assert np.array_equal(bin_of(grid, units(Column("v", "integer", 1.0, 16.0), np.arange(1, 17))), np.arange(16))


def test_zero_of_an_amount_of_money_has_a_bin_of_its_own() -> None:
    column = Column("v", "integer", 0.0, 99_999.0, transform="log1p")
    found = bin_of(grid_of(column, 32), units(column, np.array([0, 1, 2, 99_999])))
    assert found[0] == 0 and found[1] == 1 and found[3] == grid_of(column, 32).size - 1


@pytest.mark.long
@settings(max_examples=100)
@given(column=columns(), bins=st.integers(2, 70))
def test_a_spike_has_a_bin_of_its_own_and_comes_back_exactly(column: Column, bins: int) -> None:
    grid = grid_of(column, bins)
    x = units(column, np.array(column.spikes))
    own = bin_of(grid, x) if len(x) else np.array([], dtype=int)
    encoder = encoder_of(column)
    for spike, place in zip(column.spikes, own, strict=True):
        assert grid.lows[place] == grid.highs[place]
        back = encoder.decode(np.array([[grid.lows[place]]]), np.zeros(1, dtype=np.int64))["v"][0]
        assert back == pytest.approx(spike, rel=1e-9, abs=1e-9)


def test_integers_of_a_bin_are_drawn_alike() -> None:
    column = Column("v", "integer", 17.0, 90.0)
    grid = grid_of(column, 10)
    shares = np.linspace(0, 1, 20_001)[:-1]
    for b in range(grid.size):
        drawn = np.clip(grid.edges[b] + shares * (grid.edges[b + 1] - grid.edges[b]), grid.lows[b], grid.highs[b])
        decoded = encoder_of(column).decode(drawn[:, None], np.zeros(len(drawn), dtype=np.int64))
        counts = decoded["v"].value_counts()
        assert counts.max() - counts.min() <= 2


@pytest.mark.parametrize(
    ("size", "edges", "missing"), [(0, None, False), (2, (0.5, 0.6), False), (3, (0.6, 0.5), False), (2, None, True)]
)
def test_cells_that_contradict_themselves_are_refused(
    size: int, edges: tuple[float, ...] | None, missing: bool
) -> None:
    with pytest.raises(ValueError, match="cells"):
        Cells(0, size, edges, missing)


@pytest.mark.parametrize(
    ("upper", "spikes"), [(1e10, (0.0, 1.0, 5.0)), (1e10, (1e10 - 3, 1e10)), (100.0, (0.00000015, 50.0))]
)
def test_spikes_of_a_wide_column_stay_apart(upper: float, spikes: tuple[float, ...]) -> None:
    column = Column("v", "numeric", 0.0, upper, spikes=spikes)
    grid = grid_of(column, 16)
    assert len(set(bin_of(grid, units(column, np.array(spikes))).tolist())) == len(spikes)
    values = np.array([0.0, upper, *spikes, *(spike + upper * 1e-11 for spike in spikes if spike < upper)])
    found = bin_of(grid, units(column, values))
    lows, highs = np.array(grid.lows)[found], np.array(grid.highs)[found]
    x = units(column, values)[:, 0]
    assert ((lows - 1e-9 <= x) & (x <= highs + 1e-9)).all()


@pytest.mark.parametrize("spikes", [(0.0, 1e-300), (0.5, 0.5 + 1e-15)])
def test_spikes_that_cannot_be_told_apart_are_refused(spikes: tuple[float, ...]) -> None:
    with pytest.raises(SchemaError, match="spikes too close"):
        grid_of(Column("v", "numeric", 0.0, 1.0, spikes=spikes), 16)


def test_a_number_too_large_is_refused() -> None:
    with pytest.raises(SchemaError, match="too large"):
        column_from("v", {"kind": "numeric", "lower": 0, "upper": 1, "spikes": [10**400]})


def test_edges_have_few_digits() -> None:
    """They are part of a release's key: a logarithm that differs in its last digit must not give another one."""
    grid = grid_of(Column("v", "integer", 1.0, 2_000_000.0, transform="log1p"), 16)
    assert all(edge == round(edge, 14) for edge in grid.edges)


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
    assert (layout.width, layout.num_classes) == (7, 2) and layout.diameter == math.sqrt(3 + 2)
    assert layout.numeric_columns.tolist() == [0, 1, 6] and layout.onehot_columns.tolist() == [2, 3, 4, 5]


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
