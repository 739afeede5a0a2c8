"""Composition of receipts: autodp against our solver and dp-accounting; what is unknown is not free.

What attackers gain, as the best test between two Gaussians, and what the short paragraphs say of it.
"""

import dataclasses
import math
import sys
import warnings
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from likeness.core.errors import PlanError, ReleaseError
from likeness.privacy.accountant import ORDERS, compose
from likeness.privacy.attackers import Attackers
from likeness.privacy.calibration import delta_of_mu, epsilon_gaussian, epsilon_of_rho, epsilon_renyi, rho_for
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.privacy.receipt import MECHANISM, Receipt
from likeness.report.in_short import short_paragraphs


def receipt(multiplier: float, stage: str = "privatize") -> Receipt:
    rho = 1 / (2 * multiplier**2) if multiplier else math.inf
    return Receipt(
        query="q", stage=stage, method="m", feature={"map": "constant"}, mechanism=MECHANISM if multiplier else "none",
        sampler="s", adjacency="add_remove_one", change="one_appears", num_groups=1, dimension=1, lattice_bits=30,
        sensitivity=1.0, noise_multiplier=multiplier, noise_scale=multiplier * 2**30, rho=rho, identity="people",
        digest="d", slot="1", plan="p", key="k", ledger_id="l", ledger_seq=3,
    )  # fmt: skip


RECEIPTS = [receipt(18.0, "auxiliary"), receipt(25.0, "auxiliary"), receipt(4.3)]


def test_three_accountants_agree() -> None:
    account = compose(RECEIPTS, 1e-5)
    rho = sum(item.rho for item in RECEIPTS)
    assert account.rho == pytest.approx(rho)
    assert account.epsilon == epsilon_of_rho(rho, 1e-5) == pytest.approx(account.epsilon_gaussian + ALLOWANCE, rel=1e-5)
    assert account.epsilon_rdp == pytest.approx(epsilon_renyi(rho, 1e-5), rel=1e-9)
    assert delta_of_mu(account.epsilon_gaussian, math.sqrt(2 * rho)) == pytest.approx(1e-5, rel=1e-6)
    dp_accounting = pytest.importorskip("dp_accounting")
    accountant = dp_accounting.pld.PLDAccountant()
    for item in RECEIPTS:
        accountant.compose(dp_accounting.GaussianDpEvent(item.noise_multiplier))
    assert account.epsilon_gaussian == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)
    assert account.epsilon_gaussian < account.epsilon < account.epsilon_rdp


def test_curve_adds_up_by_stage() -> None:
    account = compose(RECEIPTS, 1e-5)
    for place, order in enumerate(ORDERS):
        assert account.curve[place] == pytest.approx(account.rho * order)
        assert sum(curve[place] for curve in account.stages.values()) == pytest.approx(account.curve[place])


def test_no_noise_is_infinite() -> None:
    account = compose([*RECEIPTS, receipt(0.0)], 1e-5)
    assert account.epsilon == account.epsilon_rdp == account.epsilon_gaussian == math.inf


def test_autodp_says_nothing_when_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "autodp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))  # where nothing is compiled yet
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compose(RECEIPTS, 1e-5)
    assert "autodp" in sys.modules
    assert not [str(warning.message) for warning in said if warning.category is SyntaxWarning]


def test_accountants_that_do_not_agree_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, own in (("epsilon_renyi", epsilon_renyi), ("epsilon_gaussian_of_rho", epsilon_gaussian)):
        with monkeypatch.context() as patch:
            patch.setattr(f"likeness.privacy.accountant.{name}", lambda rho, delta, own=own: 0.999 * own(rho, delta))
            with pytest.raises(ReleaseError, match="two accountants do not agree"):
                compose(RECEIPTS, 1e-5)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("epsilon", [2e-4, 1e-3, 0.01, 1, 99, 101, 105, 150, 1000])
def test_every_plan_has_an_account(epsilon: float, delta: float) -> None:
    """Whichever conversion is claimed: else a budget is spent, and the statement refused."""
    multiplier = 1 / math.sqrt(2 * rho_for(epsilon, delta) / 2)
    account = compose([receipt(multiplier), receipt(multiplier, "auxiliary")], delta)
    assert account.epsilon <= epsilon * (1 + 1e-9) and account.epsilon <= account.epsilon_rdp * (1 + 1e-9)
    assert account.epsilon == pytest.approx(epsilon_of_rho(account.rho, delta), rel=1e-12)


def test_noise_that_is_too_coarse_has_no_account() -> None:
    with pytest.raises(PlanError, match="q: the noise of this plan"):
        compose([*RECEIPTS, dataclasses.replace(RECEIPTS[0], noise_scale=5000.0)], 1e-5)


def test_nothing_is_free_by_default() -> None:
    with pytest.raises(ReleaseError, match="no receipt"):
        compose([], 1e-5)
    with pytest.raises(ReleaseError, match="does not know mechanism 'laplace'"):
        compose([dataclasses.replace(RECEIPTS[0], mechanism="laplace")], 1e-5)


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
