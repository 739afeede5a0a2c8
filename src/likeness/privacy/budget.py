"""What the records say was spent, and what each cap still leaves. Pure functions of the chain.

The *lifetime* cap of an identity is the guarantee. Caps by *project*, *user* and *month* are policy beside it: who
asks, and for which project, is what the asker says, and a month is what the machine's clock says.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likeness.errors import BudgetError
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_of_rho, rho_for
from likeness.privacy.fineness import ALLOWANCE, COARSEST, coarseness
from likeness.privacy.records import Record
from likeness.rng import secret_bytes

SCOPES = ("project", "user", "month")
"""What a cap beside the lifetime cap may be about; each is recorded for one identity."""

RELATIVE_TOLERANCE = 1e-9  # of ρ, for a plan that asks for exactly what is left


@dataclass(frozen=True)
class Budget:
    """State of one identity. ``spent_rho`` includes reservations that were never committed.

    ``person`` is the column whose values name the people, where they may have several rows; None: a row is a person.
    """

    identity: str
    adjacency: Adjacency
    cap_epsilon: float
    cap_delta: float
    spent_rho: float
    uncommitted: int
    person: str | None = None

    @property
    def spent_epsilon(self) -> float:
        """ε spent at the cap's δ."""
        return epsilon_of_rho(self.spent_rho, self.cap_delta)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent."""
        return max(0.0, rho_for(self.cap_epsilon, self.cap_delta) - self.spent_rho)


@dataclass(frozen=True)
class Asker:
    """On whose behalf something is asked: what scoped caps count by."""

    user: str = ""
    project: str = ""

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> "Asker":
        """As an entry tells it; entries of earlier versions tell no project."""
        return cls(str(details.get("asked_by") or ""), str(details.get("project") or ""))


@dataclass(frozen=True)
class Room:
    """What one cap leaves.

    Attributes:
        scope: ``"lifetime"`` or one of :data:`SCOPES`. name: which project, user or month.
        spent_rho: counted against it so far.
    """

    identity: str
    scope: str
    name: str
    epsilon: float
    delta: float
    spent_rho: float

    @property
    def cap_rho(self) -> float:
        """ρ of the cap."""
        return rho_for(self.epsilon, self.delta)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent under it."""
        return max(0.0, self.cap_rho - self.spent_rho)

    @property
    def label(self) -> str:
        """For messages."""
        return self.scope if not self.name else f"{self.scope} {self.name}"

    @property
    def again(self) -> str:
        """When budget remains again."""
        if self.scope == "month":
            return f"Budget remains again from {next_month(self.name)}-01 (UTC)"
        return "Waiting brings no budget back"

    def fits(self, rho: float) -> bool:
        """Whether a cost may be added."""
        return self.spent_rho + rho <= self.cap_rho * (1 + RELATIVE_TOLERANCE)

    def refusal(self, rho: float) -> str:
        """Why a cost may not be added, and what to do."""
        spent, total = (epsilon_of_rho(value, self.delta) for value in (self.spent_rho, self.spent_rho + rho))
        scope = "" if self.scope == "lifetime" else f" --scope {self.scope}"
        return (
            f"over budget for '{self.identity}': spent epsilon {spent:.4g} (rho {self.spent_rho:.4g}), "
            f"asked rho {rho:.4g}, together epsilon {total:.4g}; {self.label} cap epsilon {self.epsilon:g} "
            f"(rho {self.cap_rho:.4g}) at delta {self.delta:g}. No private row was read for this release. "
            f"{self.again}. Lower privacy.epsilon, or let the person who answers for the data "
            f"raise the cap: likeness ledger cap{scope}"
        )


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
        uncommitted=sum(body["key"] not in committed for body in reserved),
        person=caps[-1].get("person"),
    )


def limits_of(records: Sequence[Record], identity: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Caps beside the lifetime cap: from (scope, name) to (ε, δ); the name ``""`` is everyone's. The last one rules."""
    return {
        (str(r.body["scope"]), str(r.body["name"])): (float(r.body["epsilon"]), float(r.body["delta"]))
        for r in records
        if r.kind == "limit" and r.body["identity"] == identity
    }


def rooms(
    records: Sequence[Record],
    budget: Budget,
    asker: Asker,
    now: str,
    wished: Mapping[str, tuple[float, float]] | None = None,
) -> list[Room]:
    """What every cap leaves that holds for this asker at this moment, the lifetime cap first.

    Args:
        wished: caps from scope to (ε, δ) that are about to be recorded where the records have none for everyone.
    """
    own = _reserved(records, budget.identity)
    limits = {(scope, ""): cap for scope, cap in (wished or {}).items()} | limits_of(records, budget.identity)
    found = [Room(budget.identity, "lifetime", "", budget.cap_epsilon, budget.cap_delta, budget.spent_rho)]
    names = {"project": asker.project, "user": asker.user, "month": now[:7]}
    for scope in SCOPES:
        limit = limits.get((scope, names[scope]), limits.get((scope, "")))
        if limit is not None:
            counted = [r for r in own if _name_of(r, scope) == names[scope]]
            spent = math.fsum(float(r.body["rho"]) for r in counted)
            found.append(Room(budget.identity, scope, names[scope] or "without a name", *limit, spent))
    return found


def check_rooms(found: Sequence[Room], rho: float) -> None:
    """Refuse a cost that any cap has no room for.

    Raises:
        BudgetError: the first cap that is too small.
    """
    for room in found:
        if not room.fits(rho):
            raise BudgetError(room.refusal(rho))


def check_lattices(records: Sequence[Record], identity: str, asked: Sequence[float]) -> None:
    """Refuse a release with which the lattices of an identity's releases would take more than their part of ε.

    Args:
        asked: η of what is asked, see :mod:`likeness.privacy.fineness`.

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
    identity: str, adjacency: Adjacency, epsilon: float, delta: float, person: str | None = None
) -> dict[str, Any]:
    """Content of a lifetime cap's record. ``person``: see :class:`Budget`."""
    body = {"identity": identity, "adjacency": str(adjacency), "epsilon": epsilon, "delta": delta, "nonce": _nonce()}
    return body if person is None else {**body, "person": person}


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


def limit_body(identity: str, scope: str, name: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Content of another cap's record."""
    body = {"identity": identity, "scope": scope, "name": name, "epsilon": epsilon, "delta": delta}
    return {**body, "nonce": _nonce()}


def next_month(month: str) -> str:
    """The month after one, as YYYY-MM."""
    year, number = int(month[:4]), int(month[5:7])
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def _nonce() -> str:
    """A bundle shows the digests of other people's records, and names can be guessed."""
    return secret_bytes(16).hex()


def _reserved(records: Sequence[Record], identity: str) -> list[Record]:
    return [r for r in records if r.kind == "reserve" and r.body["identity"] == identity]


def _name_of(record: Record, scope: str) -> str:
    asker = Asker.of(record.body)
    return {"project": asker.project, "user": asker.user, "month": record.time[:7]}[scope]
