"""What draws of a test statistic say about ε: lower bounds that hold with a stated probability.

Clopper and Pearson (1934) bound the two error rates of "which of two neighboring tables was it?"; every promise of
differential privacy bounds them from below, so that small error rates refute a promise that is too good. The threshold
is chosen on one half of the draws and judged on the other: the bounds need no correction for the choice.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, chi2, norm

from likeness.privacy.calibration import delta_of_mu

Floats, Counts = NDArray[np.float64], NDArray[np.int64]
_THRESHOLDS = 200


def upper_rate(count: Counts, draws: int, alarm: float) -> Floats:
    """Clopper-Pearson: the true rate is above this with probability at most ``alarm``."""
    return np.where(count < draws, beta.isf(alarm, count + 1, draws - count), 1.0)


def epsilon_lower(without: Floats, present: Floats, delta: float, alarm: float) -> float:
    """Lower bound on ε at δ, without any assumption about the noise (Jagielski, Ullman and Oprea 2020).

    (ε, δ) promises ``P[T > t with the canary] ≤ e^ε P[T > t without] + δ``. Needs so large a δ that draws fall where
    the two differ: at 1e-5 it would take tens of millions.

    Args:
        without, present: the statistic under the two tables, shape (n,). alarm: probability that the bound is too high.
    """

    def bound(false_positives: Counts, true_positives: Counts, draws: int) -> Floats:
        excess = 1 - upper_rate(draws - true_positives, draws, alarm / 2) - delta
        rate = upper_rate(false_positives, draws, alarm / 2)
        return np.log(np.divide(excess, rate, out=np.ones_like(rate), where=excess > 0))

    return max(0.0, _at_best_threshold(without, present, bound))


def mu_lower(without: Floats, present: Floats, alarm: float) -> float:
    """Lower bound on μ = Δ/σ of a Gaussian mechanism from its two error rates (Nasr et al. 2023).

    μ-Gaussian differential privacy promises ``FNR ≥ Φ(Φ⁻¹(1 − FPR) − μ)`` at every threshold (Dong, Roth and Su 2022).
    """

    def bound(false_positives: Counts, true_positives: Counts, draws: int) -> Floats:
        missed = upper_rate(draws - true_positives, draws, alarm / 2)
        return norm.isf(upper_rate(false_positives, draws, alarm / 2)) - norm.ppf(missed)

    return max(0.0, _at_best_threshold(without, present, bound))


def tight_epsilon(mu: float, delta: float) -> float:
    """ε at δ of a Gaussian with μ = Δ/σ, exact (Balle and Wang 2018)."""
    if delta_of_mu(0.0, mu) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: delta_of_mu(epsilon, mu) - delta, 0.0, mu * mu / 2 + 40 * mu))


def variance_is(unit_noise: Floats, alarm: float) -> bool:
    """Two-sided chi-square test that noise, divided by its claimed scale, has variance 1 around 0."""
    low, high = chi2.ppf(alarm / 2, unit_noise.size), chi2.isf(alarm / 2, unit_noise.size)
    return bool(low <= float(np.square(unit_noise).sum()) <= high)


def _at_best_threshold(without: Floats, present: Floats, bound: Callable[[Counts, Counts, int], Floats]) -> float:
    half = min(len(without), len(present)) // 2
    halves = [(np.sort(without[part]), np.sort(present[part])) for part in (slice(half), slice(half, 2 * half))]
    choosing, judging = halves

    def at(thresholds: Floats, draws: tuple[Floats, Floats]) -> Floats:
        above = [half - np.searchsorted(values, thresholds, side="right") for values in draws]
        return bound(above[0], above[1], half)

    candidates = np.quantile(np.concatenate(choosing), np.linspace(0, 1, _THRESHOLDS))
    best = int(np.argmax(at(candidates, choosing)))
    return float(at(candidates[best : best + 1], judging)[0])
