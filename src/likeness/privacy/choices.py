r"""The cost of choices: each is charged as the Gaussian that dominates it.

A choice takes candidate i with probability :math:`\propto e^{s_i / b}`: the exponential mechanism (McSherry and Talwar
2007), by Gumbel noise of scale b on the scores s. Between neighbors let the differences of the scores lie in an
interval of length r. Then the logarithms of the likelihood ratios of all outcomes lie in an interval of length
:math:`\varepsilon' = r / b`, because the normalizer moves all of them alike (bounded range: Durfee and Rogers 2019).

*Theorem.* A mechanism of range ε' is μ-Gaussian differentially private with :math:`\mu = \varepsilon' \sqrt{\pi / 8}`.

*Proof.* Let P and Q be its laws on neighbors, and let all ratios dP/dQ lie between a and b = a·exp(ε'), a < 1 < b.
Take two-point laws (p, 1 − p) and (q, 1 − q) with p = bq and 1 − p = a(1 − q). Given the first point, draw an outcome
with density Q·(dP/dQ − a) / ((b − a)q); given the second, with Q·(b − dP/dQ) / ((b − a)(1 − q)). This turns them into P
and Q, so no test tells P from Q better than p from q. A test of these has errors on the lines from (0, 1) to (q, 1 − p)
and on to (1, 0). The convex trade-off curve of a Gaussian is at most these lines where it is at most 1 − p at q. So
:math:`\mu \ge \Phi^{-1}(p) - \Phi^{-1}(q)` is enough. The logits of p and q are ε' apart. With σ the logistic function
and h the composition of Φ⁻¹ and σ, the difference is at most ε' times the largest slope of h. At :math:`z = h(x)` the
slope is :math:`h'(x) = \Phi(z)\Phi(-z) / \varphi(z)`. The square :math:`[-|z|, |z|]^2` holds the disc of radius |z|, so
two independent normals give :math:`(2\Phi(|z|) - 1)^2 \ge 1 - e^{-z^2/2}`. Hence
:math:`4\Phi(z)\Phi(-z) \le e^{-z^2/2}`, and :math:`h'(x) \le \sqrt{2\pi}/4`, which is √(π/8). ∎

So k choices, each after those before it, cost :math:`\rho = \mu^2 k / 2 = (\pi/16)\, k\, \varepsilon'^2` in both
conversions: Gaussian differential privacy composes (Dong, Roth and Su 2022), and implies ρ-zCDP. OpenDP's map says
ε'²/8, which is right for Rényi divergence alone.

*Range.* A score that only grows with records, by at most one for each, moves by 0 or 1 where one is added: r = 1. A
replacement removes one and adds one: r = 2. A person of k rows is k such steps, all of one sign: r = k.
"""

import math

from likeness.privacy.adjacency import Adjacency

CHOICE_BITS = 20
"""A row counts ``2**20`` steps of the noise scale of a choice."""


def range_of(adjacency: Adjacency, rows: int) -> int:
    """Length of the interval in which differences of scores lie, in rows, where scores only grow with records.

    Args:
        adjacency: which tables are neighbors.
        rows: most rows of a person.
    """
    return 2 if adjacency is Adjacency.REPLACE_ONE else rows


def dominating_sensitivity_squared(rounds: int, score_range: int) -> float:
    """Square of the L2 sensitivity of the Gaussian of equal noise scale that dominates some choices, in steps.

    Args:
        rounds: number of choices.
        score_range: see :func:`range_of`.
    """
    return math.pi / 8 * rounds * score_range**2 * 4.0**CHOICE_BITS
