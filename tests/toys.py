"""Schemas of small tables that are made up, plans about ``people``, and a ledger that knows these people."""

from collections.abc import Mapping, Sequence
from typing import Any

from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.plan import Plan, QueryShare, make_plan

ADD = Adjacency.ADD_REMOVE_ONE
CAP = rho_for(1.0, 1e-5)
"""ρ of the cap of :func:`ledger_of_people`."""


def schema_with(columns: Any, label: str | None = None, name: str = "toy", **more: Any) -> Schema:
    """A schema of these columns, with ``more`` keys of a schema; with a label it is about classification."""
    task = "none" if label is None else "classification"
    content: Mapping[str, Any] = {"name": name, "source": "made up", "task": task, "label": label, "columns": columns}
    return Schema.from_dict({**content, **more}, f"{name}.yaml")


def plan_with(
    shares: Sequence[QueryShare], epsilon: float = 1.0, adjacency: Adjacency = ADD, rows: int | None = None, **more: Any
) -> Plan:
    """A plan about ``people`` at delta 1e-5, unless ``more`` says else; ``replace_one`` alone makes ``rows`` public."""
    public = rows if adjacency is Adjacency.REPLACE_ONE else None
    usual = {"method": "m", "identity": "people", "delta": 1e-5}
    return make_plan(shares=shares, epsilon=epsilon, adjacency=adjacency, num_records=public, **{**usual, **more})


def ledger_of_people(adjacency: Adjacency = ADD, epsilon: float = 1.0, delta: float = 1e-5) -> Ledger:
    """A new ledger with a cap for ``people``."""
    ledger = Ledger.create(locate())
    ledger.declare_population("people", adjacency, epsilon, delta)
    return ledger


def request(
    key: str,
    rho: float,
    others: dict[str, float] | None = None,
    population: str = "people",
    attempt: str = "1",
    encoding: str = "e",
    **more: Any,
) -> Reservation:
    """A query named after its key."""
    about = {"population": population, "digest": "digest", "attempt": attempt, "encoding": encoding}
    asked = {
        "key": key,
        "adjacency": ADD,
        "rho": rho,
        "plan": "plan",
        "others": others or {},
        "details": {"query": key},
    }
    return Reservation(**{**about, **asked, **more})


def visits_of(name: str, most: int, states: Sequence[str] = ("a", "b")) -> dict[str, Any]:
    """Keys of a schema of people with at most so many visits, each in a state."""
    facts = {"name": name, "source": "made up", "person": "id", "order": "day", "most": most}
    days = {"kind": "integer", "lower": 0, "upper": 99}
    events = {"day": days, "state": {"kind": "categorical", "categories": [*states]}}
    return {**facts, "people": {"sex": {"kind": "categorical", "categories": ["f", "m"]}}, "events": events}
