"""Composition of receipts: autodp against our solver and dp-accounting; what is unknown is not free."""

import dataclasses
import math
import sys
import warnings
from pathlib import Path

import pytest

from likeness.core.errors import PlanError, ReleaseError
from likeness.privacy.accountant import ORDERS, compose
from likeness.privacy.calibration import delta_of_mu, epsilon_gaussian, epsilon_of_rho, epsilon_renyi, rho_for
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.privacy.receipt import MECHANISM, Receipt


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
