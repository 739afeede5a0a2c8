"""Caps by project, user and month beside the lifetime cap: recorded, then the ledger rules; no clock undoes them."""

import pytest
from toys import ledger_of_people

from likeness.core.errors import BudgetError, LedgerError, PlanError
from likeness.ledger import records
from likeness.ledger.budget import Asker, Budget, Cost, next_month
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for

CAP = rho_for(10.0, 1e-5)
SMALL = rho_for(1.0, 1e-5)
ADD = Adjacency.ADD_REMOVE_ONE


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_people(ADD, 10.0)


def request(
    key: str, rho: float, user: str = "ada", project: str = "", others: dict[str, float] | None = None
) -> Reservation:
    details = {"query": key, "asked_by": user, "project": project}
    return Reservation(key, "people", ADD, rho, "plan", others or {}, "digest", "1", "e", details)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the machine's clock says; far enough ahead that no record is younger."""
    now = ["2099-01-30"]
    monkeypatch.setattr(records, "_now", lambda: now[0])
    return now


def test_each_user_has_a_cap_and_the_lifetime_cap_stays(ledger: Ledger) -> None:
    ledger.declare_limits("people", {"user": (1.0, 1e-5)})
    ledger.reserve(request("a", 0.7 * SMALL, "ada"))
    with pytest.raises(BudgetError, match=r"user ada cap is epsilon 1 .* Waiting brings no budget.* cap --scope user"):
        ledger.reserve(request("b", 0.7 * SMALL, "ada"))
    ledger.reserve(request("b", 0.7 * SMALL, "bob"))
    ledger.change_cap("people", 1.0, 1e-5)
    with pytest.raises(BudgetError, match="lifetime cap is epsilon 1"):
        ledger.reserve(request("c", 0.01 * SMALL, "eve"))


def test_a_cap_of_one_name_goes_before_that_of_each(ledger: Ledger) -> None:
    ledger.declare_limits("people", {"project": (1.0, 1e-5)})
    ledger.change_limit("people", "project", "census", 2.0, 1e-5)
    ledger.reserve(request("a", 1.5 * SMALL, project="census"))
    with pytest.raises(BudgetError, match="project other cap is epsilon 1"):
        ledger.reserve(request("b", 1.5 * SMALL, project="other"))
    ledger.change_limit("people", "project", "", float("inf"), 1e-5)  # lifted
    ledger.reserve(request("b", 1.5 * SMALL, project="other"))


def test_a_plan_that_cannot_finish_within_a_limit_does_not_start(ledger: Ledger) -> None:
    ledger.declare_limits("people", {"user": (1.0, 1e-5)})
    with pytest.raises(BudgetError, match="user ada"):
        ledger.reserve(request("counts", 0.1 * SMALL, others={"embedding": 1.0 * SMALL}))
    assert ledger.budget("people").spent_rho == 0


def test_limits_are_recorded_once_and_then_the_ledger_rules(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.declare_limits("people", {"user": (1.0, 1e-5), "month": (2.0, 1e-5)})
    assert [r.kind for r in ledger.records()] == ["genesis", "cap", "limit", "limit"]
    with pytest.raises(BudgetError, match=r"ledger.caps.user in params.yaml is .*the ledger counts"):
        ledger.declare_limits("people", {"user": (3.0, 1e-5)})
    ledger.declare_limits("people", {})  # settings that forget a cap do not lift it
    with pytest.raises(BudgetError, match="user ada"):
        ledger.reserve(request("a", 1.1 * SMALL))
    with pytest.raises(LedgerError, match="no cap by 'planet'"):
        ledger.change_limit("people", "planet", "", 1.0, 1e-5)
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.change_limit("nobody", "user", "", 1.0, 1e-5)
    before = ledger.records()
    with pytest.raises(PlanError):
        ledger.change_limit("people", "user", "", 0.0, 1e-5)
    assert ledger.records() == before


def test_a_month_ends_and_a_clock_set_back_does_not_open_another(ledger: Ledger, clock: list[str]) -> None:
    ledger.declare_limits("people", {"month": (1.0, 1e-5)})
    ledger.reserve(request("january", 0.9 * SMALL))
    refusal = r"month 2099-01 cap is epsilon 1 .*remains again from 2099-02-01 \(UTC\)"
    for now in ("2099-01-31", "2098-12-01", "2000-01-01"):
        clock[0] = now
        with pytest.raises(BudgetError, match=refusal):
            ledger.reserve(request("more", 0.9 * SMALL))
    clock[0] = "2099-02-01"
    ledger.reserve(request("february", 0.9 * SMALL))
    clock[0] = "2099-01-15"
    ledger.commit("february", "00")
    times = [record.time for record in ledger.records()]
    assert times == sorted(times) and times[-1] == "2099-02-01"


def test_rooms_before_anything_is_on_record(ledger: Ledger) -> None:
    fallback = Budget("others", ADD, 5.0, 1e-5, 0.0, 0)
    found = ledger.headrooms(fallback, Asker("ada", "p"), {"user": (1.0, 1e-5)})
    assert [(room.scope, room.name, room.epsilon) for room in found] == [("lifetime", "", 5.0), ("user", "ada", 1.0)]
    assert found[1].fits(Cost(SMALL)) and not found[1].fits(Cost(1.01 * SMALL))


def test_the_month_after_december() -> None:
    assert [next_month(month) for month in ("2026-11", "2026-12", "2026-01")] == ["2026-12", "2027-01", "2026-02"]
