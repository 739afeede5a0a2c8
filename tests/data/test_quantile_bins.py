"""Bins of about equal content: against every partition there is, on any counts, and what noise may do."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeness.data.encoding.bins import Grid, grid_of, spike_bins
from likeness.data.encoding.quantile_bins import _nonnegative, quantile_bins
from likeness.data.schema.column import Column


def cost(content: np.ndarray, firsts: tuple[int, ...]) -> int:
    return int((np.add.reduceat(content, firsts) ** 2).sum())


def is_allowed(firsts: tuple[int, ...], alone: set[int]) -> bool:
    return all(place in firsts and (place + 1 in firsts or place == 8) for place in alone)


@settings(max_examples=100)
@given(
    counts=st.lists(st.integers(0, 50), min_size=9, max_size=9),
    alone=st.sets(st.integers(0, 8), max_size=2),
    bins=st.integers(5, 9),
)
def test_no_partition_is_better(counts: list[int], alone: set[int], bins: int) -> None:
    """Two cells that are alone force five bins at most."""
    content = np.array(counts)
    found = quantile_bins(content, 0.0, alone, bins)
    if content.sum() == 0:
        assert found is None
        return
    assert found is not None and len(found) == bins
    every = [(0, *rest) for rest in combinations(range(1, 9), bins - 1) if is_allowed((0, *rest), alone)]
    assert found in every and cost(content, found) == min(cost(content, own) for own in every)


def test_equal_contents_and_a_heavy_cell_alone() -> None:
    assert quantile_bins(np.array([4, 4, 1, 1, 1, 1, 2, 2]), 0.0, set(), 4) == (0, 1, 2, 6)
    heavy = np.array([900, *[2] * 50])
    assert quantile_bins(heavy, 0.0, set(), 6) == (0, 1, 11, 21, 31, 41)


@pytest.mark.long
@settings(max_examples=200)
@given(
    counts=st.lists(st.integers(-(2**50), 2**55), min_size=12, max_size=40),
    noise=st.floats(0, 2.0**56),
    alone=st.sets(st.integers(0, 11), max_size=3),
)
def test_whatever_noise_does_bins_are_bins_or_none(counts: list[int], noise: float, alone: set[int]) -> None:
    """Extremes of the lattice: nothing overflows, and the edges are distinct and cover the range."""
    found = quantile_bins(np.array(counts), noise, alone, 8)
    total, hidden = sum(counts), noise * 8 * len(counts) ** 0.5
    if total <= 0 or total < hidden * (1 - 1e-9):
        assert found is None
    elif total > (noise + 1) * 8 * len(counts) ** 0.5:
        assert found is not None and found[0] == 0 and len(found) == 8
        assert all(np.diff(found) > 0) and found[-1] < len(counts)
        for place in alone:
            assert place in found and (place + 1 in found or place == len(counts) - 1)


@pytest.mark.long
@settings(max_examples=200)
@given(counts=st.lists(st.integers(-1000, 1000), min_size=1, max_size=30))
def test_nearest_counts_that_are_not_negative(counts: list[int]) -> None:
    """They sum to the total, less a unit a cell at most; each is lowered by the same number, or cut off at 0."""
    total = sum(counts)
    if total <= 0:
        return
    found = _nonnegative(counts, total)
    assert min(found) >= 0 and total - len(counts) <= sum(found) <= total
    lowered = {own - new for own, new in zip(counts, found, strict=True) if new > 0}
    assert len(lowered) == 1 and all(own <= max(lowered) for own, new in zip(counts, found, strict=True) if new == 0)


def test_edges_are_near_the_quantiles_through_noise() -> None:
    """20,000 records, 256 cells, σ = 40: the share below an edge is within six standard errors of noise.

    The noise of the records below an edge has a deviation of at most σ √n / 2 = 320; cells that are cut off at 0 only
    help. Bins hold 1/16 but for what a cell holds (at most 1.5 %). False alarm below 16 · 1e-8.
    """
    generator = np.random.default_rng(0)
    exact = np.histogram(generator.normal(0.2, 0.1, 20_000).clip(0, 1), bins=256, range=(0, 1))[0]
    noisy = exact + np.rint(generator.normal(0, 40, 256)).astype(np.int64)
    found = quantile_bins(noisy, 40.0, set(), 16)
    assert found is not None
    # A cell counts its own noise more, which moves an edge: known, so it is taken from what is compared.
    below = np.concatenate([[0], np.cumsum(exact + 40)])
    shares = below[[*found, 256]] / below[-1]
    assert np.abs(shares - np.arange(17) / 16).max() < 6 * 320 / below[-1] + 0.015
    # Noise that is cut off at 0 in empty cells is taken from the others: else it would draw edges towards them.
    scaled = noisy * 2**20
    nearest = np.array(_nonnegative(scaled.tolist(), int(scaled.sum())))
    assert quantile_bins(nearest, 40.0 * 2**20, set(), 16) == found
    assert quantile_bins(noisy.clip(0), 40.0, set(), 16) != found
    assert np.diff(found).min() < 8 and np.diff(found).max() > 30  # narrow where records are, wide where none is


@pytest.mark.parametrize(
    ("column", "bins", "spikes"),
    [
        (Column("v", "integer", 0.0, 99.0, spikes=(40.0,)), 16, [40.0]),
        (Column("v", "integer", 0.0, 99_999.0, transform="log1p"), 12, [0.0]),
        (Column("v", "numeric", -5.0, 300.0, spikes=(0.0, 300.0)), 10, [0.0, 300.0]),
        (Column("v", "numeric", 0.0, 1.0), 16, []),
        (Column("v", "date", 0.0, 40_000.0, spikes=(7.0,)), 16, [7.0]),
    ],
    ids=["integer", "log1p", "numeric", "plain", "date"],
)
def test_joined_bins_cover_the_range_and_keep_spikes_and_integers(
    column: Column, bins: int, spikes: list[float]
) -> None:
    fine, size = grid_of(column, 200), grid_of(column, bins).size
    alone = spike_bins(column, fine.inner)
    assert len(alone) == len(spikes) and all(fine.lows[place] == fine.highs[place] for place in alone)
    counts = np.random.default_rng(1).integers(0, 50, fine.size)
    firsts = quantile_bins(counts, 0.0, alone, size)
    assert firsts is not None
    grid = fine.joined(firsts)
    assert grid.size == size and (grid.edges[0], grid.edges[-1]) == (fine.edges[0], fine.edges[-1])
    assert set(grid.edges) <= set(fine.edges) and all(np.diff(grid.edges) > 0)
    assert grid.lows[0] == 0 and grid.highs[-1] == 1
    assert {fine.lows[place] for place in alone} == {grid.lows[place] for place in spike_bins(column, grid.inner)}
    for low, high, left, right in zip(grid.lows, grid.highs, grid.edges, grid.edges[1:], strict=False):
        assert left <= low <= high <= right
    if column.is_whole:  # half a step between the last integer of a bin and the edge, as in the fine grid
        assert set(grid.highs) <= set(fine.highs) and set(grid.lows) <= set(fine.lows)


def test_a_spike_that_is_not_declared_is_none() -> None:
    assert spike_bins(Column("v", "integer", 0.0, 9.0), Grid((-0.5, 0.5, 1.5), (0.0, 1.0), (0.0, 1.0)).inner) == set()
