"""Thresholds for keys that nobody knows: their cost in δ against exact sums, plan, caps, and what old files were."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm
from toys import ledger_of_people, plan_with

from likeness.core.bounds import Part, PrivacyUnit
from likeness.core.errors import BudgetError, LedgerError, PlanError, ReleaseError
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.privacy.accountant import compose
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.privacy.calibration import delta_of_mu, epsilon_of_rho, rho_for
from likeness.privacy.plan import Plan, QueryShare
from likeness.privacy.receipt import THRESHOLDED, Receipt
from likeness.privacy.thresholds import log_delta, threshold_for

ADD = Adjacency.ADD_REMOVE_ONE
BITS, SCALE = 10, 2_000.0  # a small lattice, which can be summed: a row is 1,024 steps, the noise two rows wide
L = 2**BITS


def masses(reach: int = 40) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The discrete Gaussian of SCALE, exactly up to float64."""
    values = np.arange(-int(reach * SCALE), int(reach * SCALE) + 1)
    weights = np.exp(-(values**2) / (2 * SCALE**2))
    return values, weights / weights.sum()


VALUES, MASSES = masses()


def tail(least: float) -> float:
    """P[N >= least]."""
    return float(MASSES[least <= VALUES].sum())


def splits(rows: int, most: int | None = None) -> Iterator[list[int]]:
    """All ways to split at most so many rows over keys."""
    yield []
    for count in range(min(rows, most or rows), 0, -1):
        for rest in splits(rows - count, count):
            yield [count, *rest]


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
@pytest.mark.parametrize("target", [0.3, 1e-3, 1e-9])
def test_delta_covers_every_way_to_split_rows_over_keys_and_hardly_more(rows: int, target: float) -> None:
    threshold = threshold_for(target, SCALE, rows, BITS)
    told = math.exp(log_delta(threshold, SCALE, rows, BITS))
    passes = [1 - math.prod(1 - tail(threshold - count * L) for count in split) for split in splits(rows)]
    assert max(passes) <= told <= target
    assert max(passes) > 0.8 * target  # the union bound at 0.3 is the farthest
    assert log_delta(threshold - 1, SCALE, rows, BITS) > math.log(target)  # a step is one here: the smallest T


@settings(max_examples=40)
@given(st.floats(-400, -0.1), st.floats(1.1e3, 1e12), st.integers(1, 50))
def test_tiny_deltas_keep_their_digits(log_target: float, scale: float, rows: int) -> None:
    """Against another library's tail, in logarithms."""
    bits = 30
    threshold = threshold_for(math.exp(log_target), scale, rows, bits)
    tails = [norm.logsf((threshold - c * 2**bits - 0.5) / scale) + math.log(rows / c) for c in range(1, rows + 1)]
    assert max(tails) <= log_target + 1e-12 * abs(log_target)
    assert log_delta(threshold, scale, rows, bits) == pytest.approx(max(tails), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1])
def test_a_delta_that_is_none_is_refused(target: float) -> None:
    with pytest.raises(PlanError, match="strictly between 0 and 1"):
        threshold_for(target, SCALE, 1, BITS)


def hockey_stick(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float) -> float:
    return float(np.clip(first - math.exp(epsilon) * second, 0, None).sum())


def outcomes(known: int, new: int, threshold: int) -> tuple[NDArray[np.float64], float]:
    """Law of what a key with so many rows shows, the last place for nothing; and how likely the new key shows."""
    least = threshold - known * L
    shown = np.where(least <= VALUES, MASSES, 0)
    # In places of the released value, so that two tables can be compared.
    law = np.zeros(len(VALUES) + 10 * L + 1)
    law[known * L : known * L + len(VALUES)] = shown
    law[-1] = 1 - shown.sum()
    return law, tail(threshold - new * L) if new else 0.0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_whole_mechanism_has_the_privacy_that_is_claimed_and_less_would_show(epsilon: float) -> None:
    """Exact divergence of two neighbors, both ways: a person adds a row to a known key and one to a new key."""
    delta_keys, rows = 1e-3, 2
    threshold = threshold_for(delta_keys, SCALE, rows, BITS)
    rho = lattice_sensitivity_squared(
        (Part(2, Fraction(1), nonnegative=True),), BITS, Stability.ONE_APPEARS, 1, rows
    ) / (2 * SCALE**2)
    claimed = delta_of_mu(epsilon, math.sqrt(2 * rho)) + delta_keys

    def worst(own: int) -> float:
        without, _ = outcomes(4, 0, own)
        known, shows = outcomes(5, 1, own)
        # With the person: nothing of the new key, or something that the other table can never show.
        return max(
            hockey_stick((1 - shows) * known, without, epsilon) + shows,
            hockey_stick(without, (1 - shows) * known, epsilon),
        )

    assert worst(threshold) <= claimed
    assert worst(threshold - int(4 * SCALE)) > claimed


def plan(keys: Sequence[QueryShare], epsilon: float = 1.0, unit: PrivacyUnit | None = None) -> Plan:
    return plan_with(
        [QueryShare("a", "auxiliary", 0.3), QueryShare("b", "privatize", 0.7)], epsilon, unit=unit, selection=keys
    )


KEYS = [QueryShare(f"categories_{place}", "categories", 0.1, 0.05) for place in (1, 2)]


def test_the_plan_gives_keys_their_shares_and_meets_its_target() -> None:
    made = plan(KEYS)
    assert [query.query for query in made.queries] == ["categories_1", "categories_2", "a", "b"]
    assert [query.share for query in made.queries] == pytest.approx([0.1, 0.1, 0.24, 0.56])
    assert [query.rho / made.rho for query in made.queries] == pytest.approx([0.1, 0.1, 0.24, 0.56])
    assert [query.delta_keys for query in made.queries] == pytest.approx([5e-7, 5e-7, 0, 0])
    mu = math.sqrt(math.fsum(query.noise_multiplier**-2 for query in made.queries))
    assert delta_of_mu(1.0, mu) + made.delta_keys <= 1e-5
    assert 0.999 * rho_for(1.0, 9e-6) < made.rho <= rho_for(1.0, 9e-6)
    assert Plan.from_dict(made.to_dict()) == made


def receipt(**others: object) -> Receipt:
    multiplier, threshold = 10.0, threshold_for(1e-6, 10.0 * 2**30, 1, 30)
    made = Receipt(
        query="categories_1", stage="categories", method="m", feature={}, mechanism=THRESHOLDED, sampler="s",
        adjacency="add_remove_one", change="one_appears", num_groups=1, dimension=1, lattice_bits=30, sensitivity=1.0,
        noise_multiplier=multiplier, noise_scale=multiplier * 2**30, rho=0.005, identity="people", digest="d",
        slot="1", plan="p", key="k", ledger_id="l", ledger_seq=3, threshold=threshold, delta_keys=1e-6,
    )  # fmt: skip
    return dataclasses.replace(made, **others)


def test_the_account_takes_thresholds_off_delta_and_believes_no_receipt() -> None:
    account = compose([receipt(), receipt()], 1e-5)
    assert account.delta == 1e-5 and account.delta_keys == 2e-6
    assert account.epsilon == pytest.approx(epsilon_of_rho(0.01, 8e-6), rel=1e-12)
    with pytest.raises(ReleaseError, match="costs more of delta"):
        compose([receipt(threshold=receipt().threshold - 2**30)], 1e-5)
    with pytest.raises(ReleaseError, match="costs more of delta"):
        compose([receipt(delta_keys=0.0)], 1e-5)
    with pytest.raises(ReleaseError, match="does not know"):
        compose([receipt(threshold=None)], 1e-5)
    with pytest.raises(ReleaseError, match=r"all of privacy\.delta"):
        compose([receipt()], 1e-6)


def test_a_receipt_has_all_fields_and_no_others() -> None:
    made = receipt()
    assert Receipt.from_dict(made.to_dict(), "r") == made
    short = {key: value for key, value in made.to_dict().items() if key != "delta_keys"}
    for wrong in ({**made.to_dict(), "note": ""}, short):
        with pytest.raises(ReleaseError, match="fields of format"):
            Receipt.from_dict(wrong, "r")


def asked(key: str, rho: float, keys: float, **others: object) -> Reservation:
    made = Reservation(key, "people", ADD, rho, "plan", {}, "digest", "1", "e", {"query": key}, delta=keys)
    return dataclasses.replace(made, **others)


def test_a_lifetime_cap_keeps_a_part_of_delta_and_both_limits_hold() -> None:
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 1.0, 1e-5, selection_delta=2e-6)
    most = rho_for(1.0, 8e-6)
    ledger.reserve(asked("one", 0.5 * most, 1e-6))
    with pytest.raises(BudgetError, match=r"together 2\.1e-06.*for them is 2e-06.*--delta-keys"):
        ledger.reserve(asked("two", 0.1 * most, 1.1e-6))
    with pytest.raises(BudgetError, match="over budget"):  # the rest of its plan counts too
        ledger.reserve(asked("two", 0.1 * most, 5e-7, others={"x": 0.1 * most}, others_delta={"x": 6e-7}))
    ledger.reserve(asked("two", 0.1 * most, 1e-6))
    with pytest.raises(BudgetError, match="together epsilon 1"):
        ledger.reserve(asked("three", 0.401 * most, 0.0))
    ledger.reserve(asked("three", 0.4 * most, 0.0))
    budget = ledger.budget("people")
    assert budget.spent_delta == pytest.approx(2e-6) == budget.selection_delta
    assert budget.spent_epsilon == pytest.approx(1.0, rel=1e-6) and budget.remaining_rho == pytest.approx(0, abs=1e-9)
    reserved = [record.body["delta_keys"] for record in ledger.records() if record.kind == "reserve"]
    assert reserved == [1e-6, 1e-6, 0.0]
    ledger.change_cap("people", 2.0, 1e-5)
    assert ledger.budget("people").selection_delta == 2e-6
    with pytest.raises(LedgerError, match="below delta"):
        ledger.change_cap("people", 2.0, 1e-5, selection_delta=1e-5)


def test_without_a_part_of_delta_a_threshold_is_refused() -> None:
    ledger = ledger_of_people(ADD, 10.0)
    assert ledger.records()[-1].body["delta_keys"] == 0
    with pytest.raises(BudgetError, match="for them is 0 of 1e-05"):
        ledger.reserve(asked("one", 0.01, 1e-12))
    ledger.change_cap("people", 10.0, 1e-5, selection_delta=5e-6)
    ledger.reserve(asked("one", 0.01, 5e-6))
