import math

import numpy as np
import pytest

from likeness.privacy.attackers import Attackers
from likeness.privacy.calibration import rho_for
from likeness.report.in_short import in_short

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


def test_results_beyond_epsilon_are_those_that_delta_weighs() -> None:
    """δ = P(beyond with the record) less e^ε P(beyond without it): so they are more frequent than δ."""
    attackers = Attackers(RHO, 1.0)
    without = attackers.beyond - math.e * Attackers(RHO, 1.0 + attackers.mu**2).beyond
    assert without == pytest.approx(1e-5, rel=5e-3)  # the lattice takes a part of ε
    assert attackers.beyond == pytest.approx(1.61e-4, rel=0.01)
    assert Attackers(RHO, 1.0, 1e-6).beyond == pytest.approx(attackers.beyond + 1e-6)


def test_the_paragraph_has_the_same_numbers_in_three_languages() -> None:
    account = {"total": {"rho": RHO, "epsilon": 1.0}, "adjacency": "add_remove_one"}
    paragraphs = in_short(account)
    for numbers, mark in zip(paragraphs, ".,,", strict=True):
        assert all(one.replace(".", mark) in numbers for one in ("55.3", "73.1", "2.8", "2.0", "60.6", " 16 "))
    assert all(
        "zwei" in one or "two" in one or "deux" in one for one in in_short({**account, "adjacency": "replace_one"})
    )
    large = {**account, "total": {"rho": rho_for(20.0, 1e-5), "epsilon": 20.0}}
    assert "to nearly 100 %" in in_short(large)[0]
