"""The sampler's scale, by a test with a stated false-alarm rate and a stated power."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from likeness.errors import LikenessError
from likeness.privacy.noise import add_discrete_gaussian

DRAWS = 20_000
ALARM = 1e-6  # two-sided; at 5 % off the test misses with probability below 1e-6 as well


def accepts(noise: np.ndarray, scale: float) -> bool:
    """Chi-square test of the variance of centered Gaussian draws."""
    statistic = float(np.square(noise / scale).sum())
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(noise))
    return bool(low <= statistic <= high)


def test_scale_is_right_and_five_percent_off_is_noticed() -> None:
    scale = 3.7 * 2**25
    noise = add_discrete_gaussian(np.zeros(DRAWS, dtype=np.int64), scale)
    assert accepts(noise, scale)
    assert not accepts(noise, scale * 1.05)
    assert not accepts(noise, scale / 1.05)


def test_draws_are_fresh_and_centered() -> None:
    values = np.full(2_000, 7 * 2**30, dtype=np.int64)
    first, second = add_discrete_gaussian(values, 2.0**20), add_discrete_gaussian(values, 2.0**20)
    assert (first != second).mean() > 0.99
    # Six standard errors: false alarm below 1e-8.
    assert abs(float((first - values).mean())) < 6 * 2.0**20 / math.sqrt(len(values))


def test_neighbors_in_the_vector_are_independent() -> None:
    noise = add_discrete_gaussian(np.zeros(DRAWS, dtype=np.int64), 2.0**20) / 2.0**20
    assert abs(float((noise[1:] * noise[:-1]).mean())) < 6 / math.sqrt(DRAWS)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_impossible_scales_are_refused(scale: float) -> None:
    with pytest.raises(LikenessError):
        add_discrete_gaussian(np.zeros(3, dtype=np.int64), scale)
