"""The sampler's scale, by a test with a stated false-alarm rate and a stated power."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chi2

from likeness.core.errors import LikenessError
from likeness.privacy.noise import add_discrete_gaussian

DRAWS = 20_000
ALARM = 1e-6  # two-sided; at 5 % off the test misses with probability below 1e-6 as well


def accepts(noise: np.ndarray, scale: float) -> bool:
    """Chi-square test of the variance of centered Gaussian draws."""
    statistic = float(np.square(noise / scale).sum())
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(noise))
    return bool(low <= statistic <= high)


@pytest.mark.long
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


@pytest.mark.long
def test_neighbors_in_the_vector_are_independent() -> None:
    noise = add_discrete_gaussian(np.zeros(DRAWS, dtype=np.int64), 2.0**20) / 2.0**20
    assert abs(float((noise[1:] * noise[:-1]).mean())) < 6 / math.sqrt(DRAWS)


# No function of its own is sent to a process: one that is spawned could not import it from a program without a file.
MANY_PROCESSES = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
from likeness.privacy.noise import add_discrete_gaussian

zeros = np.zeros(16, dtype=np.int64)
drawn = [add_discrete_gaussian(zeros, 2.0**50)]  # a copy of a generator that has begun would repeat what comes next
for method in ["fork"] * 4 + ["spawn"] * 2:
    with ProcessPoolExecutor(1, get_context(method)) as pool:  # it forks before it has threads, which may hold locks
        drawn.append(pool.submit(add_discrete_gaussian, zeros, 2.0**50).result())
print(*np.concatenate([*drawn, add_discrete_gaussian(zeros, 2.0**50)]))
"""


@pytest.mark.process
def test_forked_and_spawned_processes_never_repeat_noise() -> None:
    """Every process draws 16 coordinates: no value comes twice, neither in one of them nor in two.

    False alarm: two of 128 honest coordinates at σ = 2**50 are equal with probability below 128²/2 / (2σ√π), 1e-11.
    """
    command = [sys.executable, "-c", MANY_PROCESSES]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert len(drawn) == 8 * 16 == len(set(drawn))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_impossible_scales_are_refused(scale: float) -> None:
    with pytest.raises(LikenessError):
        add_discrete_gaussian(np.zeros(3, dtype=np.int64), scale)
