"""From a target (ε, δ) to the total ρ that it allows, never on the wrong side.

A discrete or continuous Gaussian of sensitivity Δ and scale σ has ``ρ = Δ²/(2σ²)`` zero-concentrated differential
privacy, i.e. Rényi divergence at most ``ρ·α`` at every order α; ρ adds up over releases, also adaptive ones
(Bun and Steinke 2016; Canonne, Kamath and Steinke 2020).
"""

import math

from likeness.errors import PlanError

# Relative slack taken off every calibrated value, so that rounding in the solver cannot cross the target.
_SAFETY = 1e-9


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest ε that ``ρ``-zCDP is shown to imply at ``delta``.

    ``ε = inf_{α>1} ρα + log((α−1)/α) − (log δ + log α)/(α−1)`` (Canonne, Kamath and Steinke 2020, Proposition 12),
    the conversion that autodp applies to an RDP curve too.
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    from scipy.optimize import minimize_scalar

    def epsilon(log_order: float) -> float:
        above = math.exp(log_order)  # α − 1
        order = 1 + above
        return rho * order + math.log(above / order) - (math.log(delta) + math.log(order)) / above

    # The optimum lies near 1 + sqrt(log(1/δ)/ρ); a bracket of e^±6 around it is generous.
    center = 0.5 * math.log(math.log(1 / delta) / rho)
    best = minimize_scalar(epsilon, bounds=(center - 6, center + 6), method="bounded", options={"xatol": 1e-12})
    return max(0.0, float(best.fun))


def rho_for(epsilon: float, delta: float) -> float:
    """Largest ρ whose conversion (:func:`epsilon_of_rho`) stays at or below ``epsilon``.

    Raises:
        PlanError: ε is not positive, δ does not lie strictly between 0 and 1, or the pair is beyond floating point.
    """
    _check_target(epsilon, delta)
    if math.isinf(epsilon):
        return math.inf
    from scipy.optimize import brentq

    def excess(log_rho: float) -> float:
        return epsilon_of_rho(math.exp(log_rho), delta) - epsilon

    # For tiny ρ the bound is flat at 0 because of the max(); ε is increasing where it is positive.
    high = math.log(epsilon)
    try:
        low = 2 * high - math.log(8 * math.log(1 / delta) + 8 * epsilon) - 6
        while excess(low) >= 0:
            low -= 6
        while excess(high) < 0:
            high += 6
        rho = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - _SAFETY)
    except (ValueError, OverflowError, ZeroDivisionError):
        rho = math.nan
    if not (rho > 0 and epsilon_of_rho(rho, delta) <= epsilon):
        raise PlanError(f"epsilon {epsilon:g} at delta {delta:g} is beyond what can be computed; choose usual values")
    return rho


def mu_of_rho(rho: float) -> float:
    """The μ of Gaussian differential privacy (Dong, Roth and Su 2022) of one Gaussian, ``μ = Δ/σ = sqrt(2ρ)``."""
    return math.sqrt(2 * rho)


def delta_of_mu(epsilon: float, mu: float) -> float:
    """Exact δ(ε) of a Gaussian mechanism with ``μ = Δ/σ`` (Balle and Wang 2018, Theorem 8), stable in log space."""
    if mu == 0:
        return 0.0
    from scipy.special import log_ndtr

    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first + math.log(-math.expm1(second - first)))) if second < first else 0.0


def _check_target(epsilon: float, delta: float) -> None:
    if not epsilon > 0:
        raise PlanError(f"epsilon must be greater than 0, got {epsilon}. Write inf for no privacy at all.")
    if not 0 < delta < 1:
        raise PlanError(f"delta must lie strictly between 0 and 1, got {delta}. Usual: well below 1 / records.")
