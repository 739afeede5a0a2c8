r"""How near lattice noise is to rounded continuous noise, so that exact Gaussian accounting holds for it.

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

Releases that depend on earlier ones: likelihood ratios multiply along the transcript, so η adds up, and M' composes as
Gaussian differential privacy (Dong, Roth and Su 2022, Corollary 3.3; with noise chosen on the way, up to a cap that
was fixed before: Smith and Thakurta 2022). Where terms are made with secret dice, both inequalities hold for every
outcome of dice and noise, and are summed afterwards; and a mixture with the same weights of pairs that are μ-Gaussian
differentially private is so too, because Gaussian trade-off curves are convex. The door refuses a release with
``η > COARSEST``, and the ledger one with which those of an identity would add up to more than ``ALLOWANCE``: this is
what calibration takes off ε, always. Tails add up to far less than 10^-100 for any number of releases in a ledger.
"""

import math

from likeness.core.errors import PlanError

COARSEST = 1e-8
"""Most η of one release; usual ones have about 1e-15. At a noise multiplier of 0.02 and a million coordinates: 2e-9."""

ALLOWANCE = 1e-4
"""Part of ε that pays for the lattices of all releases of an identity, at least 10,000 of them; δ is multiplied by at
most ``exp(ALLOWANCE)``, and by a hair for the tails."""

_SCALES = (1e3, 1e40)  # for which the lemma is proved
_TAIL = 500


def coarseness(dimension: int, scale: float) -> float:
    """η of a release.

    Args:
        dimension: number of released coordinates. scale: σ in lattice steps.
    """
    return (dimension + _TAIL) / scale**2 if _SCALES[0] <= scale <= _SCALES[1] else math.inf


def check_fine(name: str, dimension: int, scale: float) -> None:
    """Refuse a release whose noise is so small that the lattice shows.

    Raises:
        PlanError: ε is far beyond any that protects.
    """
    if coarseness(dimension, scale) > COARSEST:
        raise PlanError(
            f"{name}: the noise of this plan is only {scale:.3g} lattice steps wide for {dimension} coordinates, too "
            "coarse to be accounted for. privacy.epsilon is far beyond any value that protects: lower it, or set inf. "
            "(Or the map's norm bound is far below 1, which no map of this project's is.)"
        )
