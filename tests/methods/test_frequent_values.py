"""Frequent values of a number have a cell alone after three releases, and a smooth number has none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import schema_with

from likeness.data.encoding.bins import Grid, unit_of, value_of
from likeness.data.schema.column import Column
from likeness.methods.marginals.columns import first_grid, next_grid
from likeness.methods.marginals.frequent_values import NEXT_NOISE, Seen, joined_again, seen_of

RECORDS, NOISE = 10_000, 20.0
(INCOME,) = schema_with({"income": {"kind": "numeric", "lower": 0, "upper": 500_000}}).columns
FREQUENT = {167_844.5: 3_000, 61_103.0: 1_500, 19_282.9: 800}


def released(column: Column, values: np.ndarray, step: float | None, seed: int, noise_of_first: float = NOISE) -> Seen:
    """What three releases say, with stand-in noise."""
    random, units = np.random.default_rng(seed), np.round(values / column.bounds[1], 14)  # as `unit_of` rounds

    def counts(grid: Grid, noise: float) -> list[float]:
        records = np.bincount(np.searchsorted(grid.inner, units, side="right"), minlength=grid.size)
        return (records + noise * random.standard_normal(grid.size)).tolist()

    grid, noise = first_grid(column, 64, step), noise_of_first
    seen = seen_of(grid, counts(grid, noise), noise, len(values), None)
    for noise in (NEXT_NOISE * noise_of_first, noise_of_first / 2):
        grid = next_grid(column, step, seen.grid, seen.cleaned, len(values), noise, seen.split)
        seen = seen_of(grid, counts(grid, noise), noise, len(values), seen)
    return seen


@pytest.mark.parametrize("step", [0.1, None])
def test_a_frequent_value_among_five_million_has_a_cell_alone(step: float | None) -> None:
    """Counts are within five standard deviations of the last release. Without a step, the cell is narrow."""
    smooth = np.random.default_rng(1).uniform(0, 500_000, RECORDS - sum(FREQUENT.values())).round(1)
    seen = released(INCOME, np.concatenate([np.repeat(list(FREQUENT), list(FREQUENT.values())), smooth]), step, 2)
    assert math.fsum(seen.cleaned) == pytest.approx(RECORDS) and seen.grid.size < 200
    for value, count in FREQUENT.items():
        place = int(np.searchsorted(seen.grid.inner, unit_of(INCOME, value), side="right"))
        low, high = (value_of(INCOME, ends[place]) for ends in (seen.grid.lows, seen.grid.highs))
        assert low <= value + 1e-6 and value - 1e-6 <= high <= low + (1e-6 if step else 1.0)
        assert abs(seen.cleaned[place] - count) < 5 * NOISE / 2


def test_a_smooth_number_has_no_frequent_value_and_as_fine_cells() -> None:
    """A cell of noise stands out with a chance of 3e-6: of 20 draws of at most 4,096 cells, one in four has one."""
    narrow, sizes = [], []
    for seed in range(20):
        values = np.random.default_rng(seed).uniform(0, 500_000, RECORDS).round(1)
        seen = released(INCOME, values, 0.1, seed)
        widths = np.subtract(seen.grid.highs, seen.grid.lows)
        narrow.append(sum(count for count, width in zip(seen.cleaned, widths, strict=True) if width < 1e-4))
        sizes.append(seen.grid.size)
    assert np.median(narrow) < RECORDS / 100 and sum(held > RECORDS / 50 for held in narrow) <= 2
    assert min(sizes) > 60


def test_a_tail_of_noise_ends_where_joining_leaves_few_cells() -> None:
    """Times of runners within two hours, in 24 fixed draws, with even last cells: 9 spreads are a sixth too large.

    Where tails have no end it is 19.
    """
    (seconds,) = schema_with({"seconds": {"kind": "integer", "lower": 0, "upper": 7_200}}).columns
    wide = 0
    for seed in range(24):
        values = np.exp(np.random.default_rng(seed).normal(7.4, 0.15, 4_300)).round()
        seen = released(seconds, values, 1.0, seed, 44.0)
        lows, highs = (np.array(ends) * 7_200 for ends in (seen.grid.lows, seen.grid.highs))
        shares, middles = np.array(seen.cleaned) / 4_300, (lows + highs) / 2
        variance = shares @ ((middles - shares @ middles) ** 2 + (highs - lows) ** 2 / 12)
        wide += math.sqrt(variance) > 7 / 6 * values.std()
    assert wide <= 13


@settings(max_examples=60)
@given(st.lists(st.floats(-30, 200), min_size=4, max_size=40), st.floats(1, 20), st.data())
def test_joining_moves_no_count_out_of_its_range(counts: list[float], noise: float, data: st.DataObject) -> None:
    size = len(counts)
    edges = tuple(np.linspace(0, 1, size + 1).tolist())
    first = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(first + 1, size))
    grid = Grid(edges, edges[:-1], edges[1:])
    joined, sums, frequent = joined_again(grid, counts, noise, [(edges[first], edges[stop])])
    assert {*joined.edges} <= {*edges} and len(sums) == joined.size
    assert {*edges[: first + 1], *edges[stop:]} <= {*joined.edges}
    assert math.fsum(sums) == pytest.approx(math.fsum(counts))
    for place, (low, high) in enumerate(zip(joined.edges[:-1], joined.edges[1:], strict=True)):
        if place in frequent or not edges[first] <= low < edges[stop]:
            assert sums[place] == pytest.approx(counts[edges.index(low)]) and high == edges[edges.index(low) + 1]
    alone = {joined.lows[place] for place in frequent}
    assert alone == {edges[at] for at in range(first, stop) if counts[at] > 4.5 * noise}
