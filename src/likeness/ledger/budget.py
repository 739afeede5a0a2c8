"""What the records say was spent, and what each cap still leaves. Pure functions of the chain.

The *lifetime* cap of an identity is the guarantee. Caps by *project*, *user* and *month* are policy beside it: who
asks, and for which project, is what the asker says, and a month is what the machine's clock says.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likeness.core.errors import BudgetError
from likeness.ledger.records import Record
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_left, rho_left
from likeness.privacy.lattice_error import ALLOWANCE, COARSEST, coarseness

RELATIVE_TOLERANCE = 1e-9  # of ρ, for a plan that asks for exactly what is left


@dataclass(frozen=True)
class Cost:
    """What a release costs, or several: both add up.

    Attributes:
        rho: of its noise. delta_keys: of its threshold, if it has one (:mod:`likeness.privacy.thresholds`).
    """

    rho: float
    delta_keys: float = 0.0

    @classmethod
    def total(cls, costs: Iterable["Cost"]) -> "Cost":
        """The cost of all."""
        costs = list(costs)
        return cls(math.fsum(cost.rho for cost in costs), math.fsum(cost.delta_keys for cost in costs))


@dataclass(frozen=True)
class Budget:
    """State of one identity. What was spent includes reservations that were never committed.

    ``cap_keys`` is the part of the cap's δ that is kept for thresholds, recorded with the cap: ρ is capped at what it
    leaves, and thresholds by it. Both limits are fixed beforehand, as the theorem of
    :mod:`likeness.privacy.thresholds` asks. ``spent_delta`` is what thresholds took of it.

    ``person`` is the column whose values name the people, where they may have several rows; None: a row is a person.
    """

    identity: str
    adjacency: Adjacency
    cap_epsilon: float
    cap_delta: float
    spent_rho: float
    uncommitted: int
    person: str | None = None
    cap_keys: float = 0.0
    spent_delta: float = 0.0

    @property
    def spent_epsilon(self) -> float:
        """ε spent at the cap's δ, the thresholds' part included."""
        return epsilon_left(self.spent_rho, self.cap_delta, self.cap_keys)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent."""
        return max(0.0, rho_left(self.cap_epsilon, self.cap_delta, self.cap_keys) - self.spent_rho)

    @property
    def remaining_keys(self) -> float:
        """δ that thresholds may still cost."""
        return max(0.0, self.cap_keys - self.spent_delta)


def budget_of(records: Sequence[Record], identity: str) -> Budget | None:
    """State of one identity; None if it is not on record."""
    caps = [record.body for record in records if record.kind == "cap" and record.body["identity"] == identity]
    if not caps:
        return None
    reserved = [r.body for r in _reserved(records, identity)]
    committed = {r.body["key"] for r in records if r.kind == "commit"}
    return Budget(
        identity=identity,
        adjacency=Adjacency(caps[-1]["adjacency"]),
        cap_epsilon=float(caps[-1]["epsilon"]),
        cap_delta=float(caps[-1]["delta"]),
        spent_rho=sum(float(body["rho"]) for body in reserved),
        cap_keys=float(caps[-1].get("delta_keys", 0.0)),
        spent_delta=_spent_delta(reserved),
        uncommitted=sum(body["key"] not in committed for body in reserved),
        person=caps[-1].get("person"),
    )


def check_lattices(records: Sequence[Record], identity: str, asked: Sequence[float]) -> None:
    """Refuse a release with which the lattices of an identity's releases would take more than their part of ε.

    Args:
        asked: η of what is asked, see :mod:`likeness.privacy.lattice_error`.

    Raises:
        BudgetError: there are too many releases, or too coarse ones, for the account to hold.
    """
    spent = [coarseness_of(record.body) for record in _reserved(records, identity)]
    if math.fsum([*spent, *asked]) > ALLOWANCE:
        raise BudgetError(
            f"'{identity}' has {len(spent):,} releases on record, whose lattices are as coarse together as the account "
            "allows. No private row was read. Waiting brings no budget back."
        )


def coarseness_of(entry: Mapping[str, Any]) -> float:
    """η of a release as its entry tells it; an entry that does not, of another writer than the door, has the most."""
    if "dimension" not in entry or "noise_scale" not in entry:
        return COARSEST
    return coarseness(int(entry["dimension"]), float(entry["noise_scale"])) if entry["noise_scale"] else 0.0


def cap_body(
    identity: str,
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    person: str | None = None,
    keys: float = 0.0,
) -> dict[str, Any]:
    """Content of a lifetime cap's record. ``person``, ``keys``: see :class:`Budget`."""
    body = {"identity": identity, "adjacency": str(adjacency), "epsilon": epsilon, "delta": delta}
    return {**body, **({} if person is None else {"person": person}), **({"delta_keys": keys} if keys else {})}


def check_person(identity: str, on_record: str | None, asked: str | None) -> None:
    """Refuse to add up what protects rows and what protects people, or people by different names.

    Another number of rows a person is no matter: adjacency is about the table before its rows are bounded.

    Raises:
        BudgetError: who is protected is not who was protected before.
    """
    if on_record != asked:
        raise BudgetError(
            f"identity '{identity}' is accounted with {_who(on_record)} as the unit of privacy; a release for "
            f"{_who(asked)} cannot be composed with the earlier ones. Set ingest.unit in params.yaml as it was: "
            + ("null." if on_record is None else f"column: {on_record}.")
        )


def _who(person: str | None) -> str:
    return "a row" if person is None else f"all rows of one value of '{person}'"


def _reserved(records: Sequence[Record], identity: str) -> list[Record]:
    return [r for r in records if r.kind == "reserve" and r.body["identity"] == identity]


def _spent_delta(entries: Sequence[Mapping[str, Any]]) -> float:
    """What thresholds took of δ; entries without one, as all of earlier versions, took nothing."""
    return math.fsum(float(entry.get("delta_keys", 0.0)) for entry in entries)
