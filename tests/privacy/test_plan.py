"""The plan: shares of rho, refusals, and agreement with two accountants."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeness.core.errors import PlanError
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import delta_of_mu, rho_for
from likeness.privacy.plan import Plan, QueryShare, make_plan


def made_of(shares: list[QueryShare], **changes: object) -> Plan:
    usual = {"epsilon": 1.0, "delta": 1e-5, "adjacency": Adjacency.ADD_REMOVE_ONE, "num_records": None}
    return make_plan(method="m", identity="people", shares=shares, **{**usual, **changes})


def plan(shares: list[float], epsilon: float = 1.0, delta: float = 1e-5) -> Plan:
    queries = [QueryShare(f"q{place}", "auxiliary", share) for place, share in enumerate(shares)]
    return made_of(queries, epsilon=epsilon, delta=delta)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0.05, 20))
def test_composition_meets_the_target_in_closed_form(weights: list[float], epsilon: float) -> None:
    made = plan([weight / math.fsum(weights) for weight in weights], epsilon)
    mu = math.sqrt(sum(query.noise_multiplier**-2 for query in made.queries))
    assert delta_of_mu(epsilon, mu) <= 1e-5
    assert Plan.from_dict(made.to_dict()) == made


def test_no_privacy_has_to_be_written_out() -> None:
    made = plan([0.5, 0.5], math.inf)
    assert not made.private
    assert [query.noise_multiplier for query in made.queries] == [0.0, 0.0]
    assert Plan.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("shares", [[0.5, 0.4], [0.5, 0.6], [1.5, -0.5], [0.0, 1.0]])
def test_wrong_shares_are_refused_with_numbers(shares: list[float]) -> None:
    with pytest.raises(PlanError, match=r"\d"):
        plan(shares)


@pytest.mark.parametrize(("adjacency", "num_records"), [(Adjacency.REPLACE_ONE, None), (Adjacency.ADD_REMOVE_ONE, 100)])
def test_number_of_records_must_fit_the_adjacency(adjacency: Adjacency, num_records: int | None) -> None:
    with pytest.raises(PlanError, match=r"num_records"):
        made_of([QueryShare("q", "auxiliary", 1.0)], adjacency=adjacency, num_records=num_records)


@given(st.floats(0.01, 50), st.floats(1e-12, 1e-3))
def test_noise_has_twelve_digits_and_is_never_too_small(epsilon: float, delta: float) -> None:
    """Another solver's last digit must not make another key; rounding goes up."""
    made = plan([0.05, 0.95], epsilon, delta)
    for query in made.queries:
        assert float(f"{query.noise_multiplier:.11e}") == query.noise_multiplier
        assert query.rho == 1 / (2 * query.noise_multiplier**2)
    assert made.rho <= rho_for(epsilon, delta)
