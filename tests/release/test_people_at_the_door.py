"""The door with people of several rows: it counts for itself, its noise is so many times wider, its ledger knows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from counting import forbidden
from toys import plan_with

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import BudgetError, DataError, LikenessError, PlanError, ReleaseError
from likeness.core.hashing import sha256_json
from likeness.features.column_marginals import Constant
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.privacy.plan import Plan, QueryShare
from likeness.privacy.receipt import Receipt
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import REQUEST_KEYS, Dataset, request_in, request_of

ADD = Adjacency.ADD_REMOVE_ONE
UNIT = PrivacyUnit("pid", 3)
QUERY = Query("q", "privatize", Constant(), num_groups=2)
ROWS = Dataset("people", "digest", unit=UNIT)


def plan(unit: PrivacyUnit | None = UNIT) -> Plan:
    return plan_with([QueryShare("q", "privatize", 1.0)], unit=unit)


def rows(*chunks: list[int] | None) -> Iterator[Records]:
    for people in chunks:
        count = 4 if people is None else len(people)
        numbers = None if people is None else np.array(people, dtype=np.int64)
        yield Records(np.zeros((count, 1)), np.zeros(count, dtype=np.int64), numbers)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger.create(locate())
    made.declare_population("people", ADD, 5.0, 1e-5, "pid")
    return made


def asked(ledger: Ledger, *chunks: list[int] | None, unit: PrivacyUnit = UNIT) -> Released:
    data = Door(plan(unit), ledger, replace(ROWS, unit=unit), lambda: rows(*chunks)).release(QUERY)
    return from_bytes(data, "r")


def test_noise_is_so_many_times_as_wide_at_the_same_cost(ledger: Ledger) -> None:
    three = asked(ledger, [0, 1, 1], [1, 2]).receipt
    one = asked(ledger, [0, 1, 2], unit=PrivacyUnit("pid", 1)).receipt
    assert three.noise_scale == pytest.approx(3 * one.noise_scale, rel=1e-12)
    assert three.sensitivity == 3 * one.sensitivity
    assert (three.noise_multiplier, three.rho) == pytest.approx((one.noise_multiplier, one.rho), rel=1e-12)
    assert three.unit == UNIT and three.rho <= plan().rho
    assert ledger.budget("people").spent_rho == pytest.approx(2 * plan().rho)  # bounds differ, the people do not


@pytest.mark.parametrize(
    ("chunks", "error", "message"),
    [
        ([[0, 1, 1], [1, 2, 1]], DataError, r"more training rows than ingest\.unit\.max_rows, 3. Nothing was released"),
        ([[0, 5, 5, 5, 5]], DataError, "more training rows"),
        ([None], ReleaseError, "must have the number of its person"),
        ([[0], [-1]], ReleaseError, "must have the number of its person"),
    ],
    ids=["in two chunks", "in one", "nobody's", "below zero"],
)
def test_the_door_counts_the_rows_of_each_person(
    ledger: Ledger, chunks: list[list[int] | None], error: type[LikenessError], message: str
) -> None:
    with pytest.raises(error, match=message):
        asked(ledger, *chunks)
    assert ledger.commits() == {} and list(ledger.home.releases.iterdir()) == []
    assert asked(ledger, [0, 1, 1], [1]).receipt.unit == UNIT  # the reservation is resumed with rows as they should be


def test_rows_and_plan_must_agree_on_who_is_protected(ledger: Ledger) -> None:
    for own, dataset in [
        (plan(), replace(ROWS, unit=PrivacyUnit("pid", 2))),
        (plan(None), ROWS),
        (plan(), Dataset("people", "d")),
    ]:
        before = ledger.records()
        with pytest.raises(PlanError, match=r"plan.json protects .*, the rows were prepared for"):
            Door(own, ledger, dataset, forbidden).release(QUERY)
        assert ledger.records() == before
    other = Ledger.create(replace(locate(), path=locate().path / "o", anchor=locate().anchor / "o"))
    other.declare_population("people", ADD, 1.0, 1e-5)
    with pytest.raises(ReleaseError, match="protects single rows"):
        Door(plan(None), other, Dataset("people", "d"), lambda: rows([0, 1])).release(QUERY)


def test_the_key_changes_with_column_and_rows(ledger: Ledger) -> None:
    without = request_of(QUERY, "add_remove_one", 5.0, Dataset("people", "digest"))
    assert tuple(without) == REQUEST_KEYS
    units = [UNIT, PrivacyUnit("pid", 4), PrivacyUnit("household", 3)]
    requests = [without, *(request_of(QUERY, "add_remove_one", 5.0, replace(ROWS, unit=unit)) for unit in units)]
    assert len({sha256_json(request) for request in requests}) == 4
    receipt = asked(ledger, [0]).receipt
    entry = next(record.body for record in ledger.records() if record.kind == "reserve")
    assert sha256_json(request_in(entry)) == receipt.key


def test_an_identity_keeps_its_unit_of_privacy(ledger: Ledger) -> None:
    for person in (None, "household"):
        with pytest.raises(BudgetError, match="with all rows of one value of 'pid' as the unit of privacy"):
            ledger.declare_population("people", ADD, 5.0, 1e-5, person)
    with pytest.raises(BudgetError, match="cannot be composed with the earlier ones"):
        Door(plan(None), ledger, Dataset("people", "digest"), forbidden).release(QUERY)
    ledger.change_cap("people", 6.0, 1e-5)
    ledger.declare_population("people", ADD, 6.0, 1e-5, "pid")  # a new cap forgets nothing
    ledger.declare_population("rows", ADD, 1.0, 1e-5)
    with pytest.raises(BudgetError, match=r"with a row as the unit of privacy. .* as it was: null\."):
        ledger.declare_population("rows", ADD, 1.0, 1e-5, "pid")


def test_what_another_bound_has_paid_for_is_not_paid_for_this_one(ledger: Ledger) -> None:
    """A plan that cannot finish does not start: its other query was answered at that cost, for other bounds."""
    shares = [QueryShare("q", "privatize", 0.5), QueryShare("other", "auxiliary", 0.5)]
    queries = plan_with(shares).queries
    plans = [replace(plan(unit), queries=queries) for unit in (UNIT, PrivacyUnit("pid", 2))]
    other = replace(QUERY, name="other", stage="auxiliary")
    ledger.change_cap("people", 1.3, 1e-5)  # room for three quarters of a plan more
    for query in (other, QUERY):
        Door(plans[0], ledger, ROWS, lambda: rows([0])).release(query)
    with pytest.raises(BudgetError, match="over budget"):
        Door(plans[1], ledger, replace(ROWS, unit=plans[1].unit), forbidden).release(QUERY)


def test_plans_and_receipts_keep_their_units(ledger: Ledger) -> None:
    for own in (plan(), plan(None)):
        assert Plan.from_dict(own.to_dict()) == own
    receipt = asked(ledger, [0]).receipt
    for one in (receipt, replace(receipt, unit=None)):
        assert Receipt.from_dict(one.to_dict(), "r") == one


@pytest.mark.parametrize("rows_of", [2.5, True, "3", None], ids=["fraction", "truth", "text", "nothing"])
def test_a_receipt_whose_rows_are_no_whole_number_is_refused(ledger: Ledger, rows_of: object) -> None:
    value = {**asked(ledger, [0]).receipt.to_dict(), "unit": {"column": "pid", "max_rows": rows_of}}
    with pytest.raises(ReleaseError, match="max_rows, a whole number"):
        Receipt.from_dict(value, "r")


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(PlanError, match="max_rows must be at least 1"):
        lattice_sensitivity_squared(QUERY.bounded_parts, 8, Stability.ONE_APPEARS, rows=0)
    with pytest.raises(PlanError, match=r"needs privacy\.adjacency: add_remove_one"):
        lattice_sensitivity_squared(QUERY.bounded_parts, 8, Stability.ONE_REPLACED, rows=2)
    with pytest.raises(PlanError, match=r"Set privacy\.adjacency: add_remove_one"):
        plan_with([QueryShare("q", "privatize", 1.0)], adjacency=Adjacency.REPLACE_ONE, rows=9, unit=UNIT)
