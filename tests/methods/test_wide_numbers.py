"""Numbers whose bounds say little: their bins follow the released histogram, and no noise puts a value near a bound."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toy_numbers import CONTEXT

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.data.encoding.round_grid import fine_grid, prior_of
from likeness.data.schema.column import Column
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.quantiles import auto_bins, seen_cells, shares_on_trees

AMOUNT = Column("v", "integer", 0.0, 1e9)
FINE = fine_grid(AMOUNT, 256, 16)


def amounts(rows: int, sigma: float, seed: int = 0) -> np.ndarray:
    """Noisy counts of a lognormal around 22,000."""
    generator = np.random.default_rng(seed)
    values = np.rint(np.exp(10 + generator.standard_normal(rows))) / 1e9
    counts = np.bincount(np.searchsorted(FINE.inner, values, side="right"), minlength=FINE.size)
    return counts + np.rint(sigma * generator.standard_normal(FINE.size)).astype(np.int64)


def test_cells_that_hold_noise_alone_are_cut_off_and_those_with_records_are_not() -> None:
    for seed in range(20):
        counts = amounts(5_000, 50.0, seed)
        start, end = seen_cells(counts, 50.0)
        low, high = (FINE.edges[place] * 1e9 for place in (start, end))
        assert low < 8_000 and 60_000 < high < 10_000_000
    assert seen_cells(np.array([0, 9, 9, 0]), 0.0) == (1, 3)


def test_bins_are_as_many_quantiles_as_noise_lets_see_and_else_public_ones() -> None:
    few, many = (auto_bins(AMOUNT, FINE, amounts(5_000, sigma), sigma, 16) for sigma in (90.0, 20.0))
    assert many[1].startswith("16 between") and few[1].split()[0] in {str(size) for size in range(4, 16)}
    edges = np.array(many[0].inner) * 1e9
    assert np.quantile(np.exp(10 + np.random.default_rng(9).standard_normal(9_999)), 0.5) == pytest.approx(
        edges[7], rel=0.3
    )
    hidden, words = auto_bins(AMOUNT, FINE, amounts(400, 300.0), 300.0, 16)
    assert words.startswith("at round numbers") and hidden.size <= 16 and hidden.inner[0] < 1e-8
    spread = np.rint(100_000 * np.diff(FINE.edges)).astype(np.int64)
    even, words = auto_bins(AMOUNT, FINE, spread, 1_000.0, 16)
    assert words.startswith("of equal width") and np.ptp(np.diff(even.inner)) < 1e-6


def test_trees_keep_what_stands_out_and_give_the_prior_its_part_of_the_noise() -> None:
    generator, prior = np.random.default_rng(0), [1.0] * 64
    frequent = np.full(64, 10)
    frequent[20] = 2_000
    assert shares_on_trees([0, 32], frequent.tolist(), prior, 0.0)[:32] == pytest.approx(frequent[:32] / 2_310)
    for seed in range(5):
        noise = np.rint(100 * np.random.default_rng(seed).standard_normal(64)).astype(int)
        shares = np.array(shares_on_trees([0, 32], (frequent + noise).tolist(), prior, 100.0))
        assert shares[20] > 0.5 and shares[:32].sum() == pytest.approx(1) and (shares >= 0).all()
    empty = np.rint(100 * generator.standard_normal(64)).astype(int) + 300
    even = np.array(shares_on_trees([0], empty.tolist(), prior, 100.0))
    assert np.abs(even - 1 / 64).sum() < 0.6 * np.abs(empty / empty.sum() - 1 / 64).sum()
    assert shares_on_trees([0, 2], [0, 0, 0, 0], [1.0, 3.0, 1.0, 1.0], 5.0) == pytest.approx((0.25, 0.75, 0.5, 0.5))
    assert sum(shares_on_trees([0], amounts(5_000, 70.0).tolist(), prior_of(AMOUNT, FINE, [0]), 70.0)) == pytest.approx(
        1
    )


def test_check_notes_wide_bounds_where_bins_have_equal_width() -> None:
    schema = replace(CONTEXT.schema, columns=(*CONTEXT.schema.columns, AMOUNT))
    for settings, noted in (({"edges": "equal_width"}, True), ({}, False), ({"columns": ["wide"]}, True)):
        hints = build(Marginals, {"auxiliary": {"quantiles": settings}}, "marginals").hints(schema)
        assert bool(hints) is noted
        assert not noted or ("wide, v" in hints[0] and "edges: auto" in hints[0])


@pytest.mark.long
def test_a_median_of_thousands_stays_one_under_bounds_of_a_billion(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKENESS_HOME", f"{tmp_path}/ledger")
    monkeypatch.setenv("LIKENESS_ANCHOR", f"{tmp_path}/anchor")
    Ledger.create(locate())
    generator = np.random.default_rng(0)
    paid = np.rint(np.exp(10 + generator.standard_normal(8_000)) / 100) * 100
    group = np.where(paid > 22_000, "u", "v")
    columns = {
        "paid": {"kind": "integer", "lower": 0, "upper": 10**9},
        "c": {"kind": "categorical", "categories": ["u", "v"]},
    }
    schema = {"name": "t", "source": "made up", "task": "none", "columns": columns}
    table = pd.DataFrame({"paid": paid.astype(int), "c": group})
    fit = Synthesizer(schema=schema, population="people", epsilon=3.0, settings={"train": {"num_components": 50}})
    synthetic = fit.fit(table).sample(8_000)
    assert "Bins of `paid`: 16 between quantiles" in fit.statement
    for share in (0.25, 0.5, 0.75):
        assert np.quantile(synthetic["paid"], share) == pytest.approx(np.quantile(paid, share), rel=0.2)
    assert synthetic["paid"].mean() < 2 * paid.mean()
    assert synthetic.loc[synthetic["c"] == "u", "paid"].median() > 1.5 * synthetic["paid"].median()
