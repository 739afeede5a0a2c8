import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from likeness.privacy.attackers import Attackers
from likeness.privacy.calibration import rho_for
from likeness.report.in_short import short_paragraphs

RHO = rho_for(1.0, 1e-5)


def test_the_gain_at_epsilon_1_is_that_of_the_best_test_between_two_gaussians() -> None:
    attackers = Attackers(RHO, 1.0)
    assert (round(attackers.membership, 3), round(attackers.belief, 2)) == (0.553, 0.73)
    noise, member = np.random.default_rng(0).normal(size=(2, 400_000)), attackers.mu
    right = ((noise[0] < member / 2).mean() + (noise[1] + member > member / 2).mean()) / 2
    assert attackers.membership == pytest.approx(right, abs=0.003)  # 0.003: five standard errors
    for chance in (0.01, 0.5):
        limit = -np.quantile(noise[0], chance)
        assert attackers.success(chance) == pytest.approx((noise[1] + member > limit).mean(), abs=0.005)


def test_results_beyond_epsilon_are_bounded_by_the_curve_of_tests() -> None:
    """At the bound p = e^ε q = G(q). It is more than the tail of one Gaussian, and that is more than δ."""
    attackers = Attackers(RHO, 1.0)
    assert attackers.excess_probability == pytest.approx(
        attackers.success(attackers.excess_probability / math.e), rel=1e-6
    )
    tail = NormalDist().cdf(attackers.mu / 2 - 1 / attackers.mu)
    assert 1e-5 < tail < attackers.excess_probability < 5 * tail
    assert Attackers(RHO, 1.0, 1e-6).excess_probability == pytest.approx(attackers.excess_probability + 1e-6)
    assert (Attackers(0.0, 0.0).excess_probability, Attackers(math.inf, math.inf).excess_probability) == (0.0, 1.0)


def account(rho: float, epsilon: float) -> dict[str, Any]:
    """An account of a run at ε = 1 whose people have spent so much in all."""
    life = {"spent_rho": rho, "spent_epsilon": epsilon}
    return {"total": {"rho": RHO, "epsilon": 1.0}, "adjacency": "add_remove_one", "ledger": {"lifetime": life}}


def test_the_paragraph_has_the_same_numbers_in_three_languages() -> None:
    paragraphs = short_paragraphs(account(RHO, 1.0))
    for numbers, mark in zip(paragraphs, ".,,", strict=True):
        # Rounded up from 55.33, 73.11, 2.79, 1.98, 60.57 and 41.25: the words say at most.
        assert all(one.replace(".", mark) in numbers for one in ("55.4", "73.2", "2.8", "2.0", "60.6", " 42 "))
    replaced = short_paragraphs({**account(RHO, 1.0), "adjacency": "replace_one"})
    assert all(word in one for word, one in zip(("one of two", "von zwei", "de deux"), replaced, strict=True))
    assert "to nearly 100 %" in short_paragraphs(account(rho_for(20.0, 1e-5), 20.0))[0]
    assert "nearly 100 of 100" in short_paragraphs(account(math.inf, math.inf))[0]  # an earlier run had no noise


def test_a_second_run_counts_the_first_one() -> None:
    two = short_paragraphs(account(2 * RHO, 1.5))[0]
    together = Attackers(2 * RHO, 1.5)
    assert f"at most {math.ceil(1000 * together.membership) / 10:.1f} of 100" in two and "55.4" not in two
