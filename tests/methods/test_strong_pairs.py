"""The second fit of ``marginals``: pairs that stand out of their noise regain the released strength."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import schema_with

from likeness import Synthesizer
from likeness.generators.base import Compute
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.objective import MarginalObjective
from likeness.methods.marginals.strong_pairs import strengthened
from likeness.pipeline.consistency import auxiliary_of
from likeness.pipeline.project import Project

SIX = [str(value) for value in range(6)]
SCHEMA = schema_with({name: {"kind": "categorical", "categories": SIX} for name in "abcd"})
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
EVEN = np.full((1, 6, 6), 1 / 36)


def released(dependence: float) -> np.ndarray:
    """2,000 rows, some with two equal cells, under noise of σ = 10."""
    counts = 2_000 * ((1 - dependence) * EVEN + dependence * np.eye(6) / 6)
    return np.asarray(counts + np.random.default_rng(0).normal(0, 10, EVEN.shape))


@pytest.mark.parametrize(("shown", "share"), [(0.2, 0.4), (0.1, 0.25)], ids=["by the slope", "at most 2.5 times"])
def test_a_target_has_the_released_strength_and_the_form_of_the_fit(shown: float, share: float) -> None:
    """The release has .4, the fit shows less: single columns and records stay, and cells without a record."""
    fit = 2_000 * ((1 - shown) * EVEN + shown * np.eye(6) / 6)
    ((i, j, target),), weights = strengthened([(0, 1, released(0.4))], [3.0], [fit], 10.0, gain=5.0)
    expected = 2_000 * ((1 - share) * EVEN + share * np.eye(6) / 6)
    assert (i, j, weights) == (0, 1, [15.0]) and np.abs(target - expected).max() < 12
    assert target.sum() == pytest.approx(2_000) and target.min() >= 0
    off = target[0][~np.eye(6, dtype=bool)]
    assert np.ptp(off) < 1e-9  # not the noise of the release


@pytest.mark.parametrize(
    ("there", "shown", "noise"),
    [(0.4, 0.45, 10.0), (0.4, 0.0, 10.0), (0.05, 0.02, 10.0), (0.4, 0.2, 60.0)],
    ids=["the fit shows as much", "the fit shows nothing", "the noise hides it", "more noise hides it"],
)
def test_other_pairs_are_fitted_as_they_were_released(there: float, shown: float, noise: float) -> None:
    fit, counts = 2_000 * ((1 - shown) * EVEN + shown * np.eye(6) / 6), released(there)
    ((_, _, target),), weights = strengthened([(0, 1, counts)], [1.0], [fit], noise, gain=5.0)
    assert target is counts and weights == [1.0]


def slopes(patch: pytest.MonkeyPatch, rows: int, power: float = 0.0) -> list[float]:
    """Of the release on the fit in the pair (a, b), equal in .7 of the rows: without a second fit, and with it."""
    random = np.random.default_rng(1)
    codes = random.integers(0, 6, (rows, 4))
    codes[:, 1] = np.where(random.random(rows) < 0.7, codes[:, 0], codes[:, 1])
    table = pd.DataFrame({name: pd.Categorical.from_codes(codes[:, at], SIX) for at, name in enumerate("abcd")})
    train = {"num_components": 50, "iterations": 200, "kl_adaptive": power}
    fitted = Synthesizer(schema=SCHEMA, population="people", epsilon=1.0, settings={"train": train}).fit(table)
    answers = {one.receipt.query: one for one in fitted.releases_.values()}
    method = Project(Path(), fitted.params(), SCHEMA).method
    assert isinstance(method, Marginals)
    given = (CONTEXT, auxiliary_of(answers.values()), answers[EMBEDDING])
    counts = method._blocks(*given)[0][0][2]
    values = []
    for second in (lambda *_: [], Marginals._second_fit):
        patch.setattr(Marginals, "_second_fit", second)
        mixture = method.fit_generator(*given, Compute()).generator
        (model,) = mixture.pairs([(0, 1)], np.array([counts.sum()]))
        apart = model.sum(axis=2)[:, :, None] * model.sum(axis=1)[:, None, :] / model.sum()
        values.append(float(((counts - apart) * (model - apart)).sum() / np.square(model - apart).sum()))
    return values


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "ledger"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "anchor"))
    Ledger.create(locate())


@pytest.mark.usefixtures("ledger")
def test_a_second_fit_gives_a_strong_pair_the_released_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    """600 rows: noise hides most cells."""
    first, second = slopes(monkeypatch, 600)
    assert first > 1.1 and second - 1 < 0.6 * (first - 1)


@pytest.mark.usefixtures("ledger")
def test_a_second_fit_has_prices_from_its_first_step_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three fits take a step before they have prices, the second fits of two of them have prices at once."""
    first: dict[MarginalObjective, str] = {}

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(self: MarginalObjective, *given: Any) -> Any:
            first.setdefault(self, call.__name__)
            return call(self, *given)

        return noting

    for call in (MarginalObjective.adapt, MarginalObjective.loss):
        monkeypatch.setattr(MarginalObjective, call.__name__, noted(call))
    slopes(monkeypatch, 600, power=0.5)
    assert sorted(first.values()) == ["adapt"] * 2 + ["loss"] * 3


@pytest.mark.usefixtures("ledger")
def test_there_is_no_second_fit_where_cells_are_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """6,000 rows: a mean cell has far more than its noise."""
    first, second = slopes(monkeypatch, 6_000)
    assert first == second
