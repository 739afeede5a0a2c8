"""Coefficients are those of the rows, and cover the truth as often as they say: see ``toy_release`` for the odds."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import toy_release as toy
from toy_release import ROWS, SCHEMA, covered, drawn, exact, read_draws, squared, table, understated, without_noise

from likeness.core.errors import ParamsError, ReleaseError
from likeness.inference.measurements import Measurements, measurements
from likeness.inference.terms import Terms
from likeness_margins.regression import LinearModel as Model
from likeness_margins.regression import coefficients

MODEL = Model("y", ("c", "age", "d"), "Yes")


def rows_in_cells(measured: Measurements) -> pd.DataFrame:
    """Rows with the middle of its cell for each number."""
    axis = measured.axes["age"]
    cell = np.searchsorted(axis.lows, table().age, side="right") - 1
    return table().assign(age=((axis.lows + axis.highs) / 2)[cell])


@cache
def least_squares() -> tuple[pd.Series, np.ndarray, np.ndarray]:
    """Least squares on the rows themselves, by numpy, with their regressors and outcome."""
    rows = rows_in_cells(measurements(SCHEMA, exact()))
    regressors = {
        ("(intercept)", ""): np.ones(ROWS), ("c", "v"): rows.c == "v", ("c", "w"): rows.c == "w",
        ("age", ""): rows.age, ("d", "right"): rows.d == "right", ("d", "(missing)"): rows.d.isna(),
    }  # fmt: skip
    x = np.stack([np.asarray(one, float) for one in regressors.values()], axis=1)
    y = (rows.y == "Yes").to_numpy(float)
    return pd.Series(np.linalg.lstsq(x, y, rcond=None)[0], index=pd.MultiIndex.from_tuples(regressors)), x, y


def frames(draws: int, total: int | None = None) -> list[pd.DataFrame]:
    return [coefficients(measured, MODEL) for measured in read_draws(toy.DRAWS, total)[:draws]]


def test_exact_sums_give_the_coefficients_of_the_rows() -> None:
    frame = MODEL.fit(SCHEMA, map(without_noise, exact()), ROWS)
    assert list(frame.index) == list(least_squares()[0].index)
    assert frame.estimate.to_numpy() == pytest.approx(least_squares()[0].to_numpy(), abs=1e-4)
    assert frame.noise_error.max() < 1e-9


def test_a_number_with_missing_values_and_a_number_as_outcome() -> None:
    measured = measurements(SCHEMA, map(without_noise, exact()), ROWS)
    axis, rows = measured.axes["money"], rows_in_cells(measured)
    present = (axis.lows + axis.highs)[:, None].ravel() / 2
    cell = np.searchsorted(axis.lows, rows.money.fillna(0), side="right") - 1
    x = np.stack([np.ones(ROWS), np.where(rows.money.isna(), 0, present[cell]), rows.money.isna()], axis=1)
    beta = np.linalg.lstsq(x, rows.age.to_numpy(float), rcond=None)[0]
    frame = coefficients(measured, Model("age", ("money",)))
    assert list(frame.index) == [("(intercept)", ""), ("money", ""), ("money", "(missing)")]
    assert frame.estimate.to_numpy() == pytest.approx(beta, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("total", [None, ROWS])
def test_coefficients_are_covered_as_often_as_they_say(total: int | None) -> None:
    all_frames, true = frames(toy.DRAWS, total), least_squares()[0].to_numpy()
    inside, errors = covered(all_frames, true), squared(all_frames, true)
    assert (inside >= toy.FEWEST).all() and inside.mean() <= toy.MOST, inside
    assert ((errors > toy.LEAST) & (errors < toy.LARGEST)).all(), errors


@pytest.mark.long
def test_coverage_shows_a_wrong_receipt_and_lost_dependence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of six numbers is seven deviations below 47, and .28 five below ``LEAST``: it fails below 1e-6."""
    wrong = [MODEL.fit(SCHEMA, map(understated, draw)) for draw in drawn(toy.DRAWS)[: toy.FEW]]
    assert covered(wrong, least_squares()[0].to_numpy()).min() < toy.FEWEST_OF_FEW
    sound = Terms.covariance_of_sums
    monkeypatch.setattr(Terms, "covariance_of_sums", lambda self, parts: np.diag(np.diag(sound(self, parts))))
    assert squared(frames(toy.FEW), least_squares()[0].to_numpy()).min() < toy.LEAST


def test_the_error_of_sampling_is_that_of_least_squares_on_the_rows() -> None:
    model = Model("y", ("c", "age", "d"), "Yes", sampling=True)
    frame = coefficients(measurements(SCHEMA, exact()), model)
    beta, x, y = least_squares()
    rest = float(((y - x @ beta.to_numpy()) ** 2).sum()) / (ROWS - 6)
    usual = np.sqrt(rest * np.diag(np.linalg.inv(x.T @ x)))
    assert frame.sampling_error.to_numpy() == pytest.approx(usual, rel=1e-4)
    both = np.hypot(frame.noise_error, frame.sampling_error)
    assert ((frame.high - frame.low) / (2 * both)).to_numpy() == pytest.approx(1.96, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        *(
            (Model("y", ()), "at least one beside the outcome"),
            (Model("y", ("y",), "Yes"), "different names"),
        ),
        *(
            (Model("y", ("c",)), "category must be one of"),
            (Model("y", ("z",), "Yes"), "columns must be one of"),
        ),
        (Model("money", ("c",)), "must be a number without missing values"),
        (Model("y", ("c",), "Yes", level=95), "level must be between 0 and 1"),
    ],
)
def test_a_model_that_nobody_can_compute_is_refused(model: Model, rule: str) -> None:
    with pytest.raises(ParamsError, match=rule):
        model.fit(SCHEMA, exact())


def test_a_missing_pair_and_too_much_noise_are_refused() -> None:
    measured = measurements(SCHEMA, exact()[:1])
    with pytest.raises(ReleaseError, match=r"no joint counts of c, y"):
        coefficients(measured, Model("y", ("c",), "Yes"))
    with pytest.raises(ReleaseError, match="Name fewer columns"):
        MODEL.fit(SCHEMA, map(toy.noisier, exact()))
