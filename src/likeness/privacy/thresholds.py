r"""Partition selection: which keys are present, by noisy counts above a threshold, and its cost in δ.

A table gives each row at most one *key* (a partition), a text that is not public. The mechanism M counts the rows of
each key that is present, in steps of ``L = 2^bits`` lattice units. It adds an independent discrete Gaussian ``N(σ)`` to
each count. It releases the keys whose noisy count is at least T, with that count, and nothing of the others. Any later
step (an order, the largest of them) is post-processing.

*Neighbors.* A person has at most k rows. Under add/remove, D' is D with the rows of one more person: counts of keys
``a_1, a_2, ...`` grow by ``c_1, c_2, ... ≥ 1``, ``Σ c_j ≤ k``. Under replace-one (k = 1), one row leaves a key for
another. Let S and S' be the keys present in D and D'. A key in only one of them has at most c_j ≤ k rows there, all of
them the person's.

*Tail.* ``q(c) = P[cL + N ≥ T]``. By the lemma of :mod:`likeness.privacy.lattice_error`, for ``10^3 ≤ σ ≤ 10^40``, the
discrete Gaussian is at most ``exp(1/(12σ²))`` times the rounded continuous one, so that
``q(c) ≤ exp(1/(12σ²)) · Φ(−(T − cL − 1/2)/σ)``. (A sampler that stops at the ends of 64 bits changes nothing: T lies
far within them.)

*Theorem.* With ``δ_keys = k · max_{1≤c≤k} q(c)/c``: M is δ_keys-approximate ρ-zero-concentrated differentially private
(Bun and Steinke 2016, Definition 8.1), ``ρ = Δ²/(2σ²)``, Δ = kL under add/remove and √2·L under replace-one.

*Proof.* Let E be the event, under D, that no key of ``S \ S'`` is released, E' the same under D' for ``S' \ S``.
Keys have independent noise, so by the union bound ``P[not E'] ≤ Σ_j q(c_j) = Σ_j c_j · q(c_j)/c_j
≤ Σ_j c_j · max_c q(c)/c ≤ δ_keys``; so is ``P[not E]``. (Under add/remove E always holds: S lies in S'. Under
replace-one each side has at most one such key, with one row.) Given E, M(D) is the mechanism A that knows the *fixed*
set ``S ∩ S'`` and uses no other key. So is M(D') given E', because E' is about the noise of other keys only. A is a
discrete Gaussian on a vector of integers with fixed coordinates, and then a threshold. Its two vectors differ by the
c_j of keys in both, of norm at most ``L·√(Σ c_j²) ≤ L·Σ c_j ≤ kL``; under replace-one by −L in one place and L in
another at most. So both Rényi divergences of A(D) and A(D') are at most ρα at every α > 1 (Canonne, Kamath and Steinke
2020, Theorem 14). ∎

*A is nearly a continuous Gaussian.* Coordinates in which D and D' agree have the same law. Their number is private and
does not matter: given them, the theorem of :mod:`likeness.privacy.lattice_error` applies to those that differ. These
are at most k, or 2 under replace-one. This is the ``dimension`` in the η of such a release.

*Composition.* Let releases be made one after the other, each with any dependence on earlier answers: Gaussian sums, and
thresholds. Let Σρ and the thresholds' ``δ_1 + δ_2 + ...`` stay below ρ_K and δ_K, *both fixed beforehand*, for all
answers. Then all of them together are ``(ε, δ' + δ_K)``-differentially private for every (ε, δ') that the Gaussians
alone have, the A's in the place of the M's: by Rényi divergence at ρ_K, or as one Gaussian of ``μ = sqrt(2 ρ_K)`` with
its lattices.

*Proof.* Throw a coin beside each threshold so that "E and coin" has probability exactly ``1 − δ_i`` under D, and
"E' and coin" under D'. It is possible because both events have at least that probability. Given either, M is A.
So step i is A_i with probability ``1 − δ_i``, independently of the output of A_i, else something else. After the last
step throw one more coin. It brings the product of the ``1 − δ_i`` of this transcript, which is at least
``1 − Σδ_i ≥ 1 − δ_K``, down to exactly ``1 − δ_K``. The law of all answers is then ``(1 − δ_K)·A(D) + δ_K·R(D)``: A is
the adaptive composition of Gaussians, and R is the rest. D' has *the same weights*. For any set O:
``P[M(D) ∈ O] ≤ (1 − δ_K)·P[A(D) ∈ O] + δ_K ≤ (1 − δ_K)·(e^ε P[A(D') ∈ O] + δ') + δ_K ≤ e^ε P[M(D') ∈ O] + δ' + δ_K``,
and the same with D and D' exchanged: for the removal as for the addition of a person. ∎

(The equal weights matter. Where only one side can fail, as under add/remove, distance in total variation would give
``e^ε δ_K`` in the other direction.)

*One plan.* A run's plan fixes all of its ρ and δ_keys, so its ε is that of Σρ at ``δ − Σδ_keys``.

*A lifetime.* The next cost may be chosen after the answers. A cap on ``ε(Σρ, δ − Σδ_keys)`` alone is not enough. Let
δ(ρ) be the δ of a Gaussian of ρ at the cap's ε. Near a privacy loss of ε, δ grows faster than δ(ρ) says, and slower
elsewhere. An asker who sees the loss first, and then spends the rest on noise or on thresholds, gets more on average
than ``δ(ρ) + δ_keys``: one decision at ε = 1 and δ = 1e-5 gets 1.9 times the cap's δ. So a lifetime cap has a fixed
part of its δ for partition selection (:class:`likeness.ledger.budget.Budget`), and ρ_K is that of the rest.

Sources: thresholds for unknown keys, Korolova, Kenthapadi, Mishra and Ntoulas (2009); Wilson, Zhang, Lam, Desfontaines,
Simmons-Marengo and Gipson (2020); with Gaussian noise, Swanberg, Desfontaines and Haney (2023).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import scipy

from likeness.core.errors import PlanError

_STEPS = 10  # thresholds are multiples of 2^-10 of a row: they are part of a key, equal on all machines
_SLACK = 1e-9  # of δ_keys, for rounding here


def log_delta(threshold: int, scale: float, rows: int, bits: int) -> float:
    """An upper bound on the logarithm of δ_keys.

    Args:
        threshold: T in lattice steps.
        scale: σ in lattice steps.
        rows: k, the most rows of one person.
        bits: one row counts ``2**bits`` lattice steps.
    """
    counts = np.arange(1, rows + 1)
    tails = scipy.special.log_ndtr(-((threshold - counts * 2**bits) - 0.5) / scale) - np.log(counts)
    return math.log(rows) + float(tails.max()) + 1 / (12 * scale**2) + _SLACK


def threshold_for(delta_keys: float, scale: float, rows: int, bits: int) -> int:
    """The smallest T ≥ 0 whose δ_keys is at most the one given, in multiples of 2^-10 of a row.

    Args:
        delta_keys: δ that the threshold may cost.
        scale: σ in lattice steps.
        rows: k, the most rows of one person.
        bits: one row counts ``2**bits`` lattice steps.

    Raises:
        PlanError: δ_keys does not lie strictly between 0 and 1.
    """
    if not 0 < delta_keys < 1:
        raise PlanError(
            f"private categories need a delta strictly between 0 and 1, got {delta_keys}. Set categories.delta_share."
        )
    step, target = 1 << (bits - _STEPS), math.log(delta_keys)

    def enough(index: int) -> bool:
        return log_delta(index * step, scale, rows, bits) <= target

    most = 1 << _STEPS
    while not enough(most):
        most *= 2
    return bisect_left(range(most), True, key=enough) * step


def delta_left(delta: float, keys: Iterable[float]) -> float:
    """δ that partition selection leaves for the Gaussians; 0 or less where nothing is left."""
    return delta - math.fsum(keys)
