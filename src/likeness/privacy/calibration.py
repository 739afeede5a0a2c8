"""From a target (ε, δ) to a total ρ that never exceeds it.

A discrete or continuous Gaussian of sensitivity Δ and scale σ has ``ρ = Δ²/(2σ²)`` zero-concentrated differential
privacy, and ρ adds up over releases, also adaptive ones (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020). Two
conversions of a total ρ hold for such releases, and the better one is the guarantee:

- by Rényi divergence, which is at most ``ρ·α`` at each order α, for any mechanisms;
- by exact Gaussian accounting. Each release is a Gaussian on a lattice, continuous up to
  :data:`likeness.privacy.lattice_error.ALLOWANCE`, which is taken off ε. Composed Gaussians are one of ``μ = sqrt(2ρ)``
  (Dong, Roth and Su 2022), and its exact δ(ε) is a formula (Balle and Wang 2018). At ε = 1 the noise is 5 to 11 % less,
  for δ from 1e-9 to 1e-3.
"""

import math
from functools import lru_cache

import scipy  # loads its parts when they are used: solvers take longer to load than most stages need

from likeness.core.errors import PlanError
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.privacy.thresholds import delta_left

# Relative slack taken off each calibrated value, so that rounding in the solver cannot cross the target.
_SAFETY = 1e-9
# Within these limits the tails of the proof, e^ε · 10^-199 a release, and the rounding of the solver are far below
# _SAFETY of δ. Beyond them Rényi divergence alone counts.
MOST_GAUSSIAN, _LEAST_DELTA = 100.0, 1e-30


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest proven ε of a total ρ at ``delta``: the better of the two conversions."""
    return min(epsilon_renyi(rho, delta), epsilon_gaussian(rho, delta))


def epsilon_left(rho: float, delta: float, delta_keys: float) -> float:
    """:func:`epsilon_of_rho` at the δ that partition selection leaves; inf if it leaves none."""
    left = delta_left(delta, [delta_keys])
    return epsilon_of_rho(rho, left) if left > 0 else math.inf


def rho_left(epsilon: float, delta: float, delta_keys: float) -> float:
    """Largest ρ whose :func:`epsilon_left` is at most ``epsilon``; 0 if partition selection has all of δ."""
    left = delta_left(delta, [delta_keys])
    return rho_for(epsilon, left) if left > 0 else 0.0


def epsilon_renyi(rho: float, delta: float) -> float:
    """Smallest ε that ``ρ``-zCDP implies at ``delta``.

    ``ε = inf_{α>1} ρα + log((α−1)/α) − (log δ + log α)/(α−1)`` (Canonne, Kamath and Steinke 2020, Proposition 12).
    autodp applies the same conversion to an RDP curve.
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf

    def epsilon(log_order: float) -> float:
        above = math.exp(log_order)  # α − 1
        order = 1 + above
        return rho * order + math.log(above / order) - (math.log(delta) + math.log(order)) / above

    # The optimum lies near 1 + sqrt(log(1/δ)/ρ); a bracket of e^±6 around it is generous.
    center = 0.5 * math.log(math.log(1 / delta) / rho)
    best = scipy.optimize.minimize_scalar(
        epsilon, bounds=(center - 6, center + 6), method="bounded", options={"xatol": 1e-12}
    )
    return max(0.0, float(best.fun))


def epsilon_gaussian(rho: float, delta: float) -> float:
    """ε of the exact Gaussian of ``μ = sqrt(2ρ)`` at ``delta``, with the lattice's allowance; inf without a proof."""
    if rho == 0:
        return 0.0
    mu, target = mu_of_rho(rho), _gaussian_delta(delta)
    if math.isinf(mu) or delta < _LEAST_DELTA or delta_of_mu(MOST_GAUSSIAN, mu) > target:
        return math.inf
    if delta_of_mu(0.0, mu) <= target:
        return ALLOWANCE

    def excess(epsilon: float) -> float:
        return delta_of_mu(epsilon, mu) - target

    epsilon = float(scipy.optimize.brentq(excess, 0.0, MOST_GAUSSIAN, xtol=1e-13, rtol=1e-13))
    return epsilon * (1 + _SAFETY / 2) + ALLOWANCE


def rho_for(epsilon: float, delta: float) -> float:
    """Largest ρ whose conversion (:func:`epsilon_of_rho`) is at most ``epsilon``.

    Raises:
        PlanError: ε is not positive, δ does not lie strictly between 0 and 1, or floating point cannot hold ρ.
    """
    _check_target(epsilon, delta)
    return math.inf if math.isinf(epsilon) else _largest_rho(epsilon, delta)


@lru_cache(maxsize=128)
def _largest_rho(epsilon: float, delta: float) -> float:
    """:func:`rho_for` of a finite ε. A plan, its cap and its forecast ask for the same one several times."""
    rho = max(_rho_renyi(epsilon, delta), _rho_gaussian(min(epsilon, MOST_GAUSSIAN), delta))
    if not (rho > 0 and epsilon_of_rho(rho, delta) <= epsilon):
        raise PlanError(
            f"epsilon {epsilon:g} at delta {delta:g} is out of range of floating point. Choose usual values, as "
            "epsilon 1 at delta 1e-5."
        )
    return rho


def _rho_renyi(epsilon: float, delta: float) -> float:
    """Largest ρ by Rényi divergence; 0 where floating point cannot hold it."""

    def excess(log_rho: float) -> float:
        return epsilon_renyi(math.exp(log_rho), delta) - epsilon

    # For tiny ρ the bound is flat at 0 because of the max(). ε increases where it is positive.
    high = math.log(epsilon)
    try:
        low = 2 * high - math.log(8 * math.log(1 / delta) + 8 * epsilon) - 6
        while excess(low) >= 0:
            low -= 6
        while excess(high) < 0:
            high += 6
        return math.exp(scipy.optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - _SAFETY)
    except (ValueError, OverflowError, ZeroDivisionError):
        return 0.0


def _rho_gaussian(epsilon: float, delta: float) -> float:
    """Largest ρ by exact Gaussian accounting; 0 where the lattice takes all of ε or floating point cannot hold ρ."""
    if epsilon <= ALLOWANCE or delta < _LEAST_DELTA:
        return 0.0

    inner, target = epsilon - ALLOWANCE, _gaussian_delta(delta)

    def excess(log_mu: float) -> float:
        return delta_of_mu(inner, math.exp(log_mu)) - target

    try:
        # At μ = e^5, δ is 1 for every ε below 100.
        log_mu = scipy.optimize.brentq(excess, -50.0, 5.0, xtol=1e-14, rtol=1e-14)
    except ValueError:
        return 0.0
    rho = math.exp(log_mu) ** 2 / 2 * (1 - _SAFETY)
    return rho if epsilon_gaussian(rho, delta) <= epsilon else 0.0


def _gaussian_delta(delta: float) -> float:
    """The δ that the lattice's allowance leaves for the continuous Gaussian."""
    return delta * math.exp(-ALLOWANCE) * (1 - _SAFETY)


def mu_of_rho(rho: float) -> float:
    """The μ of Gaussian differential privacy (Dong, Roth and Su 2022), ``μ = Δ/σ = sqrt(2ρ)``."""
    return math.sqrt(2 * rho)


def delta_of_mu(epsilon: float, mu: float) -> float:
    """Exact δ(ε) of a Gaussian mechanism with ``μ = Δ/σ`` (Balle and Wang 2018, Theorem 8), stable in log space."""
    if mu == 0:
        return 0.0

    first = scipy.special.log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + scipy.special.log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first + math.log(-math.expm1(second - first)))) if second < first else 0.0


def _check_target(epsilon: float, delta: float) -> None:
    if not epsilon > 0:
        raise PlanError(f"epsilon must be greater than 0, got {epsilon}. Write inf for no privacy at all.")
    if not 0 < delta < 1:
        raise PlanError(f"delta must lie strictly between 0 and 1, got {delta}. Usual: well below 1 / records.")
