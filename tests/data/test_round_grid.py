"""Cells at round numbers: every value finds its cell, bins are made of whole cells, and common values stand alone."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeness.data.encoding.bins import Grid, unit_of
from likeness.data.encoding.round_grid import coarse_grid, decades_grid, fine_grid, is_wide, prior_of
from likeness.data.schema.column import Column

AMOUNT = Column("v", "integer", 0.0, 1e9)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["integer", "numeric", "date", "datetime"]))
    lower = draw(st.integers(-(10**5), 10**5))
    upper = lower + draw(st.sampled_from([1, 9, 300, 1_000, 1_001, 40_000, 10**6]))
    decimals = draw(st.sampled_from([None, 0, 2])) if kind == "numeric" else None
    transform = draw(st.sampled_from(["none", "log1p"])) if kind in ("integer", "numeric") else "none"
    spikes = (float(draw(st.integers(lower, upper))),) if draw(st.booleans()) else ()
    return Column("v", kind, float(lower), float(upper), transform=transform, spikes=spikes, decimals=decimals)


def cell_of(grid: Grid, unit: float) -> int:
    return int(np.searchsorted(grid.inner, unit, side="right"))


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(column=columns(), bins=st.integers(2, 24), at=st.floats(0, 1))
def test_a_value_lies_in_its_cell_and_bins_are_made_of_whole_cells(column: Column, bins: int, at: float) -> None:
    fine, coarse = fine_grid(column, 256, bins), coarse_grid(column, bins)
    assert all(np.diff(fine.edges) > 0) and fine.size <= 1_024
    assert fine.firsts_of(coarse.inner) is not None
    lower, upper = column.bounds
    value = lower + at * (upper - lower)
    value = min(max(round(value, 0 if column.is_whole else column.decimals or 0), lower), upper)
    unit = unit_of(column, value)
    for grid in [fine, coarse, *([decades_grid(column, bins)] if is_wide(column) else [])]:
        cell = cell_of(grid, unit)
        assert grid.lows[cell] - 1e-12 <= unit <= grid.highs[cell] + 1e-12
    if is_wide(column):
        assert decades_grid(column, bins).size <= bins + 2 * len(column.spikes)


def test_wide_bounds_have_cells_in_every_decade_and_round_amounts_stand_alone() -> None:
    assert is_wide(AMOUNT) and is_wide(Column("v", "numeric", 0.0, 50.0, decimals=2))
    assert not any(
        is_wide(column)
        for column in (
            Column("v", "integer", 0.0, 1_000.0),
            Column("v", "integer", 0.0, 1e9, transform="log1p"),
            Column("v", "date", 0.0, 30_000.0),
            Column("v", "categorical", categories=("a", "b")),
        )
    )
    grid = fine_grid(AMOUNT, 256, 16)
    for power in range(1, 9):
        edges = (unit_of(AMOUNT, value) for value in (10**power, 10 ** (power + 1)))
        low, high = (cell_of(grid, edge) for edge in edges)
        assert high - low >= 12, f"10^{power}"
    for value in (0, 500, 2_000, 30_000):
        cell = cell_of(grid, unit_of(AMOUNT, value))
        assert grid.lows[cell] == grid.highs[cell] == unit_of(AMOUNT, value)
    decades = decades_grid(AMOUNT, 16)
    assert len({cell_of(decades, unit_of(AMOUNT, 10.0**power)) for power in range(9)}) == 9


def test_a_bin_begins_at_each_cut_of_a_rule() -> None:
    for column in (
        replace(AMOUNT, cuts=(12_345.0, 6e8)),
        Column("v", "numeric", 0.0, 5_000.0, decimals=2, cuts=(99.5,)),
    ):
        for grid in (decades_grid(column, 16), coarse_grid(column, 16), fine_grid(column, 256, 16)):
            for cut in column.cuts:
                assert grid.lows[cell_of(grid, unit_of(column, cut))] == pytest.approx(unit_of(column, cut), abs=1e-12)


def test_both_signs_have_decades() -> None:
    column = Column("v", "integer", -1e6, 1e9)
    grid = decades_grid(column, 16)
    places = [cell_of(grid, unit_of(column, value)) for value in (-50_000, -500, 0, 500, 50_000, 5e6, 5e8)]
    assert len({*places}) == len(places)


@pytest.mark.parametrize(("years", "months"), [(30, 1), (100, 3), (400, 12)])
def test_cells_of_a_date_begin_with_parts_of_the_calendar(years: int, months: int) -> None:
    first, last = date(1990, 1, 1), date(1990 + years, 12, 31)
    column = Column("v", "date", *(float((day - date(1970, 1, 1)).days) for day in (first, last)))
    grid = fine_grid(column, 256, 16)
    lower, upper = column.bounds
    starts = {round(lower + unit * (upper - lower) + 0.5) for unit in grid.inner}
    calendar = {
        (date(first.year + place // 12, place % 12 + 1, 1) - date(1970, 1, 1)).days
        for place in range(months, 12 * years, months)
    }
    assert calendar <= starts and len(starts - calendar) <= 15 + 12 // months


def test_a_tail_falls_as_amounts_do_and_never_lies_near_its_bound() -> None:
    grid = fine_grid(AMOUNT, 256, 16)
    first = cell_of(grid, unit_of(AMOUNT, 100_000))
    prior = np.array(prior_of(AMOUNT, grid, [0, first // 2, first]))
    beyond = cell_of(grid, unit_of(AMOUNT, 1_000_000))
    assert prior[beyond:].sum() < 0.02 * prior[first:].sum()
    narrow = Column("v", "integer", 0.0, 5_000.0)
    grid = fine_grid(narrow, 256, 16)
    half = cell_of(grid, unit_of(narrow, 2_500))
    prior = np.array(prior_of(narrow, grid, [0, half // 2, half]))
    assert prior[half:] == pytest.approx(5_000 * np.diff(grid.edges)[half:]), "bounds so near are believed"
