r"""Discretization error: how near lattice noise is to a continuous Gaussian, so that its exact accounting holds.

Let ``p`` be the discrete Gaussian, ``p_k ∝ exp(−k²/2σ²)`` on the integers, and ``q`` the law of a continuous Gaussian
of the same σ rounded to the nearest integer. Write φ for the continuous density. Let ``10^3 ≤ σ ≤ 10^40``.

*Lemma.* For every integer k: ``p_k ≤ q_k · exp(1/(12σ²))`` and ``q_k ≤ p_k · exp(k²/(8σ⁴) + 10^-100)``.

*Proof.* By Poisson summation the normalizer of p is ``σ√(2π)·(1 + Θ)``, ``0 < Θ = 2 Σ_{n≥1} exp(−2π²σ²n²) < 10^-100``,
so that ``p_k ≤ φ(k) = p_k (1 + Θ)``. By symmetry ``q_k = φ(k) ∫_{−1/2}^{1/2} exp(−t²/2σ²) cosh(kt/σ²) dt``. From below,
``cosh ≥ 1`` and ``exp(−t²/2σ²) ≥ 1 − t²/2σ²`` give ``q_k ≥ φ(k) (1 − 1/(24σ²)) ≥ p_k exp(−1/(12σ²))``. From above,
``cosh(kt/σ²) ≤ cosh(k/2σ²) ≤ exp(k²/8σ⁴)``. ∎

*Theorem.* Let M release ``f + p-noise`` in D coordinates and M' the same with q-noise. M' is a continuous
Gaussian mechanism followed by rounding (f is an integer vector), so it has its exact (ε, δ(ε)) (Balle and Wang 2018).
With ``η = (D + 500)/σ²``, M is ``(ε + η, e^η δ(ε) + e^(ε+η) 10^-199)``-differentially private.

*Proof.* For any set S and neighbors x, x': the first inequality, in D coordinates, gives
``P[M(x) ∈ S] ≤ e^(η₁) P[M'(x) ∈ S] ≤ e^(η₁) (e^ε P[M'(x') ∈ S] + δ(ε))`` with ``η₁ = D/(12σ²)``. The second one, where
the noise n of M'(x') obeys ``Σ n_i² ≤ σ²(5D + 2760)``, is a factor ``e^(η₂)``, ``η₂ = (5D + 2760)/(8σ²) + D·10^-100``.
Elsewhere: ``Σ n_i² ≤ 2σ²χ² + D/2`` for a χ² of D degrees of freedom, and ``χ² ≤ D + 2√(460 D) + 920 ≤ 2D + 1380`` but
with probability ``e^-460 < 10^-199`` (Laurent and Massart 2000, Lemma 1). And ``η₁ + η₂ ≤ η``. ∎

*Composition.* Let releases depend on earlier ones. Likelihood ratios multiply along the transcript, so η adds up. M'
composes as Gaussian differential privacy (Dong, Roth and Su 2022, Corollary 3.3). Noise may be chosen on the way, up to
a cap that was fixed before (Smith and Thakurta 2022).

*Secret dice.* Contributions may be made with secret dice. Both inequalities then hold for each outcome of dice and
noise, and are summed afterwards. A mixture of μ-Gaussian differentially private pairs, with equal weights on both
sides, is μ-Gaussian differentially private: Gaussian trade-off curves are convex.

*Limits.* The door refuses a release with ``η > MOST_ERROR``. The ledger refuses a release with which the η of a
population add up to more than ``ALLOWANCE``; calibration always takes this part off ε. The tails of all releases in a
ledger add up to far less than 10^-100.
"""

import math

from likeness.core.errors import PlanError

MOST_ERROR = 1e-8
"""Largest η of one release. Usual ones have 1e-15; a noise multiplier of 0.02 and a million coordinates have 2e-9."""

ALLOWANCE = 1e-4
"""Part of ε for the discretization errors of all releases of a population, at least 10,000. δ grows by at most a factor
``exp(ALLOWANCE)`` and by the tails."""

_SCALES = (1e3, 2.0**57)  # the lemma is proved up to 1e40, and a file holds 64 bits
_TAIL = 500


def discretization_error(dimension: int, scale: float) -> float:
    """η of a release; inf for σ outside the range of the lemma.

    Args:
        dimension: number of released coordinates.
        scale: σ in lattice steps.
    """
    return (dimension + _TAIL) / scale**2 if _SCALES[0] <= scale <= _SCALES[1] else math.inf


def check_discretization(name: str, dimension: int, scale: float) -> None:
    """Refuse a release whose discretization error is too large: its noise is only a few lattice steps wide.

    Args:
        name: name of the query.
        dimension: number of released coordinates.
        scale: σ in lattice steps.

    Raises:
        PlanError: ε is too large to protect anybody.
    """
    if scale > _SCALES[1]:
        fault = f"{name}: the noise of this plan is {scale:.3g} lattice steps wide, more than a file holds"
        raise PlanError(f"{fault}. Raise privacy.epsilon, or the query's share.")
    if discretization_error(dimension, scale) > MOST_ERROR:
        raise PlanError(
            f"{name}: the noise of this plan is only {scale:.3g} lattice steps wide for {dimension} coordinates. Exact "
            "accounting does not hold for it. privacy.epsilon is too large to protect anybody: lower it, or set inf. "
            "For a new feature map: raise its norm bound, which should be near 1."
        )
