"""Calibration against other libraries and the exact Gaussian formula; the plan's shares of rho, and its refusals.

Sensitivity of lattice sums: hand-made values, and a search for a counterexample.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import plan_with

from likeness.core.bounds import Part
from likeness.core.errors import PlanError
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.privacy.calibration import (
    delta_of_mu,
    epsilon_gaussian,
    epsilon_of_rho,
    epsilon_renyi,
    mu_of_rho,
    rho_for,
)
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.privacy.plan import Plan, QueryShare, make_plan

EPSILONS = st.floats(0.01, 100)
DELTAS = st.floats(1e-12, 1e-3)


@given(EPSILONS, DELTAS)
def test_rho_is_the_largest_that_meets_the_target(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon and epsilon_of_rho(rho * (1 + 1e-6), delta) > epsilon


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1 - 2**-53))
def test_any_pair_is_solved_on_the_safe_side_or_refused(epsilon: float, delta: float) -> None:
    try:
        rho = rho_for(epsilon, delta)
    except PlanError:
        return
    assert rho > 0 and epsilon_of_rho(rho, delta) <= epsilon


@given(EPSILONS, DELTAS)
def test_stated_epsilon_is_never_below_the_exact_gaussian(epsilon: float, delta: float) -> None:
    """The Balle-Wang δ of the calibrated Gaussian, the lattice paid for, must not exceed the stated δ."""
    mu = mu_of_rho(rho_for(epsilon, delta))
    assert math.exp(ALLOWANCE) * delta_of_mu(epsilon - ALLOWANCE, mu) <= delta


@given(EPSILONS, DELTAS)
def test_the_better_conversion_is_claimed(epsilon: float, delta: float) -> None:
    """Rényi is never better by more than the lattice's allowance, and both hold."""
    rho = rho_for(epsilon, delta)
    renyi, gaussian = epsilon_renyi(rho, delta), epsilon_gaussian(rho, delta)
    assert epsilon_of_rho(rho, delta) == min(renyi, gaussian) and gaussian - ALLOWANCE <= renyi * (1 + 1e-6)


@given(st.floats(1e-8, 1e3), st.floats(1e-8, 1e3), DELTAS)
def test_more_is_never_cheaper(rho: float, another: float, delta: float) -> None:
    low, high = sorted((rho, another))
    assert epsilon_of_rho(low, delta) <= epsilon_of_rho(high, delta) * (1 + 1e-8)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    sigma = 1 / mu_of_rho(rho_for(epsilon, delta))
    event = dp_accounting.GaussianDpEvent(sigma)
    tight = dp_accounting.pld.PLDAccountant().compose(event).get_epsilon(delta)
    renyi = dp_accounting.rdp.RdpAccountant().compose(event).get_epsilon(delta)
    assert tight == pytest.approx(epsilon, rel=5e-3)  # which rounds up in steps of 1e-4
    assert renyi == pytest.approx(epsilon, rel=0.25) and renyi >= epsilon * (1 - 1e-6)
    assert renyi >= epsilon_renyi(1 / (2 * sigma**2), delta) * (1 - 1e-6)  # a grid of orders is looser
    exact = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert delta_of_mu(exact, 1 / sigma) == pytest.approx(delta, rel=1e-6)
    assert exact <= epsilon  # ours is on the safe side of the tight value


def test_edges() -> None:
    assert epsilon_of_rho(0, 1e-5) == 0 and epsilon_of_rho(math.inf, 1e-5) == math.inf
    assert rho_for(math.inf, 1e-5) == math.inf and delta_of_mu(1.0, 0.0) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (-1, 1e-5), (1, 0), (1, 1), (float("nan"), 1e-5)])
def test_impossible_targets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(PlanError, match=r"epsilon|delta"):
        rho_for(epsilon, delta)


def plan(shares: list[float], epsilon: float = 1.0, delta: float = 1e-5) -> Plan:
    queries = [QueryShare(f"q{place}", "auxiliary", share) for place, share in enumerate(shares)]
    return plan_with(queries, epsilon, delta=delta)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0.05, 20))
def test_composition_meets_the_target_in_closed_form(weights: list[float], epsilon: float) -> None:
    made = plan([weight / math.fsum(weights) for weight in weights], epsilon)
    mu = math.sqrt(sum(query.noise_multiplier**-2 for query in made.queries))
    assert delta_of_mu(epsilon, mu) <= 1e-5 and Plan.from_dict(made.to_dict()) == made


def test_no_privacy_has_to_be_written_out() -> None:
    made = plan([0.5, 0.5], math.inf)
    assert not made.private and [query.noise_multiplier for query in made.queries] == [0.0, 0.0]
    assert Plan.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("shares", [[0.5, 0.4], [0.5, 0.6], [1.5, -0.5], [0.0, 1.0]])
def test_wrong_shares_are_refused_with_numbers(shares: list[float]) -> None:
    with pytest.raises(PlanError, match=r"\d"):
        plan(shares)


@pytest.mark.parametrize(("adjacency", "num_records"), [(Adjacency.REPLACE_ONE, None), (Adjacency.ADD_REMOVE_ONE, 100)])
def test_number_of_records_must_fit_the_adjacency(adjacency: Adjacency, num_records: int | None) -> None:
    shares, target = [QueryShare("q", "auxiliary", 1.0)], {"epsilon": 1.0, "delta": 1e-5, "num_records": num_records}
    with pytest.raises(PlanError, match=r"num_records"):
        make_plan(method="m", identity="people", shares=shares, adjacency=adjacency, **target)


@given(st.floats(0.01, 50), st.floats(1e-12, 1e-3))
def test_noise_has_twelve_digits_and_is_never_too_small(epsilon: float, delta: float) -> None:
    """Another solver's last digit must not make another key; rounding goes up."""
    made = plan([0.05, 0.95], epsilon, delta)
    for query in made.queries:
        assert float(f"{query.noise_multiplier:.11e}") == query.noise_multiplier
        assert query.rho == 1 / (2 * query.noise_multiplier**2)
    assert made.rho <= rho_for(epsilon, delta)


SIGNED, COUNT, ONEHOT = Part(4, Fraction(1)), Part(1, Fraction(1), True), Part(3, Fraction(2, 3), True)


@pytest.mark.parametrize(
    ("parts", "change", "groups", "expected"),
    [
        ([SIGNED], Stability.ONE_APPEARS, 1, 4**8),
        ([SIGNED], Stability.ONE_REPLACED, 1, 4 * 4**8),  # 2B
        ([SIGNED], Stability.ONE_REPLACED, 2, 4 * 4**8),  # max(2B, √2·B)
        ([COUNT], Stability.ONE_REPLACED, 1, 4**8),  # a number in [0, 1]
        ([COUNT], Stability.ONE_REPLACED, 2, 2 * 4**8),  # counts of two classes: √2
        ([COUNT, COUNT], Stability.ONE_APPEARS_OR_REPLACED, 1, 2 * 4**8),
        ([ONEHOT], Stability.ONE_REPLACED, 1, 2 * (2 * 4**8 // 3)),  # √2·B of non-negative features
        ([SIGNED, ONEHOT], Stability.ONE_REPLACED, 2, 4 * 4**8 + 2 * (2 * 4**8 // 3)),
    ],
)
def test_values(parts: list[Part], change: Stability, groups: int, expected: int) -> None:
    assert lattice_sensitivity_squared(parts, 8, change, groups) == expected


@given(st.data())
def test_no_two_admissible_terms_are_farther_apart(data: st.DataObject) -> None:
    """Random integer terms that obey the bounds never move the sum by more than the sensitivity."""
    parts = data.draw(st.lists(st.sampled_from([SIGNED, COUNT, ONEHOT]), min_size=1, max_size=3))
    bits, groups = 4, data.draw(st.integers(1, 3))

    def term() -> np.ndarray:
        coordinates: list[int] = []
        for part in parts:
            low = 0 if part.nonnegative else -(2**bits)
            block = data.draw(st.lists(st.integers(low, 2**bits), min_size=part.width, max_size=part.width))
            while sum(value * value for value in block) > part.lattice_bound_squared(bits):
                block = [int(value * 0.9) for value in block]
            coordinates += block
        table = np.zeros((groups, len(coordinates)), dtype=np.int64)
        table[data.draw(st.integers(0, groups - 1))] = coordinates
        return table

    first, second = term(), term()
    assert (first**2).sum() <= lattice_sensitivity_squared(parts, bits, Stability.ONE_APPEARS, groups)
    assert ((first - second) ** 2).sum() <= lattice_sensitivity_squared(parts, bits, Stability.ONE_REPLACED, groups)
