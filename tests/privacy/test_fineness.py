"""The lattice's lemma and theorem, against numbers; what is too coarse, or too often, is refused."""

import math

import numpy as np
import pytest

from likeness.core.errors import PlanError
from likeness.privacy.calibration import delta_of_mu, epsilon_of_rho, rho_for
from likeness.privacy.lattice_error import ALLOWANCE, MOST_ERROR, check_discretization, discretization_error

mpmath = pytest.importorskip("mpmath")


@pytest.mark.parametrize("scale", [1000, 12345.678, 1e9])
@pytest.mark.parametrize("deviations", [0, 0.001, 1, 7.3, 40])
def test_lemma_of_the_lattice(scale: float, deviations: float) -> None:
    """Both inequalities, in 60 digits, and that neither has room for a constant ten times smaller."""
    with mpmath.workdps(60):
        sigma, k = mpmath.mpf(scale), mpmath.mpf(round(deviations * scale))
        density = mpmath.exp(-(k**2) / (2 * sigma**2)) / (sigma * mpmath.sqrt(2 * mpmath.pi))
        lattice = density  # its normalizer differs by less than 10^-100
        upper, lower = ((k + half) / (sigma * mpmath.sqrt(2)) for half in (mpmath.mpf("0.5"), -mpmath.mpf("0.5")))
        rounded = (mpmath.erfc(lower) - mpmath.erfc(upper)) / 2
        ratio = mpmath.log(lattice / rounded)
        assert ratio <= 1 / (12 * sigma**2) and -ratio <= k**2 / (8 * sigma**4)
        if deviations == 0:
            assert ratio >= 1 / (120 * sigma**2)
        if deviations == 40:
            assert -ratio >= k**2 / (80 * sigma**4)


@pytest.mark.parametrize("mu", [0.24, 1.0, 3.0])
def test_delta_of_the_lattice_is_below_the_theorem(mu: float) -> None:
    """One coordinate, σ = 1000 steps, where the lattice is a hundred times coarser than the door allows."""
    scale, shift = 1000.0, round(mu * 1000)
    steps = np.arange(-40_000, 40_001)
    log_p = -(steps**2) / (2 * scale**2)
    log_p -= np.logaddexp.reduce(log_p)
    log_moved = -((steps - shift) ** 2) / (2 * scale**2)
    log_moved -= np.logaddexp.reduce(log_moved)
    eta = discretization_error(1, scale)
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        delta = np.maximum(np.exp(log_moved) - np.exp(epsilon + log_p), 0).sum()
        exact = delta_of_mu(epsilon, mu)
        assert delta <= math.exp(eta) * delta_of_mu(epsilon - eta, mu)
        assert delta == pytest.approx(exact, rel=1e-3, abs=1e-12)  # and the lattice does show no more than this


def test_allowance_covers_all_releases_of_an_identity() -> None:
    assert MOST_ERROR * 10_000 <= ALLOWANCE  # as the docstrings say
    for dimension in (1, 100, 10**6):  # both terms of the proof
        assert discretization_error(dimension, 1e6) >= (dimension / 12 + (5 * dimension + 2760) / 8) / 1e12
    rho = rho_for(1.0, 1e-5)
    assert delta_of_mu(1.0 - ALLOWANCE, math.sqrt(2 * rho)) * math.exp(ALLOWANCE) <= 1e-5
    assert epsilon_of_rho(rho, 1e-5) == pytest.approx(1.0, rel=1e-8)


def test_noise_that_is_too_coarse_is_refused() -> None:
    assert discretization_error(1_000_000, 0.02 * 2**30) < MOST_ERROR
    check_discretization("embedding", 1_000_000, 0.02 * 2**30)
    for dimension, scale in ((1, 999.0), (1_000_000, 2.0**20), (1, 1e41)):
        with pytest.raises(PlanError, match=r"embedding: the noise of this plan .* privacy\.epsilon"):
            check_discretization("embedding", dimension, scale)
