"""What the records say was spent, and what each cap still leaves. Pure functions of the chain.

The *lifetime* cap of an identity is the guarantee. Caps by *project*, *user* and *month* are policy beside it: who
asks, and for which project, is what the asker says, and a month is what the machine's clock says.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likeness.errors import BudgetError
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_left, rho_left
from likeness.privacy.fineness import ALLOWANCE, COARSEST, coarseness
from likeness.privacy.records import Record

SCOPES = ("project", "user", "month")
"""What a cap beside the lifetime cap may be about; each is recorded for one identity."""

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
        spent_rho: counted against it so far. spent_delta: what thresholds took of ``delta``.
        keys: the part of ``delta`` that thresholds may take, fixed with the cap. None: they take what they need, and ε
            is that of ρ at what they left; only for caps that are policy.
    """

    identity: str
    scope: str
    name: str
    epsilon: float
    delta: float
    spent_rho: float
    spent_delta: float = 0.0
    keys: float | None = None

    @property
    def cap_rho(self) -> float:
        """ρ of the cap, at what thresholds leave of its δ."""
        return rho_left(self.epsilon, self.delta, self._taken)

    @property
    def spent_epsilon(self) -> float:
        """ε spent at ``delta``, the thresholds' part included."""
        return epsilon_left(self.spent_rho, self.delta, self._taken)

    @property
    def _taken(self) -> float:
        return self.spent_delta if self.keys is None else self.keys

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

    def after(self, cost: Cost) -> "Room":
        """The same once a cost was added."""
        both = Cost.total([Cost(self.spent_rho, self.spent_delta), cost])
        return replace(self, spent_rho=both.rho, spent_delta=both.delta_keys)

    def fits(self, cost: Cost) -> bool:
        """Whether a cost may be added: ρ at the δ that thresholds leave, and what thresholds take of δ."""
        after = self.after(cost)
        return after.spent_rho <= after.cap_rho * (1 + RELATIVE_TOLERANCE) and after.keys_fit

    @property
    def keys_fit(self) -> bool:
        """Whether thresholds have not taken more of δ than they may."""
        if self.keys is None:
            return self.spent_delta < self.delta
        return self.spent_delta <= self.keys * (1 + RELATIVE_TOLERANCE)

    def refusal(self, cost: Cost) -> str:
        """Why a cost may not be added, and what to do."""
        after = self.after(cost)
        scope = "" if self.scope == "lifetime" else f" --scope {self.scope}"
        if not after.keys_fit:
            return self._refused_keys(after, scope)
        keys = f", {after._taken:.4g} of it for thresholds" if after._taken else ""
        return (
            f"over budget for '{self.identity}': spent epsilon {self.spent_epsilon:.4g} (rho {self.spent_rho:.4g}), "
            f"asked rho {cost.rho:.4g}, together epsilon {after.spent_epsilon:.4g}; {self.label} cap epsilon "
            f"{self.epsilon:g} (rho {after.cap_rho:.4g}) at delta {self.delta:g}{keys}. No private row was read for "
            "this release. "
            f"{self.again}. Lower privacy.epsilon, or let the person who answers for the data "
            f"raise the cap: likeness ledger cap{scope}"
        )

    def _refused_keys(self, after: "Room", scope: str) -> str:
        kept, remedy = f"has delta {self.delta:g}", scope
        if self.keys is not None:
            kept, remedy = f"keeps {self.keys:.4g} of its delta {self.delta:g}", " --delta-keys"
        return (
            f"over budget for '{self.identity}': thresholds of private categories would have taken "
            f"{after.spent_delta:.4g} of delta, {self.spent_delta:.4g} of it before; the {self.label} cap {kept} for "
            f"them. No private row was read for this release. {self.again}. Lower categories.delta_share, or let the "
            f"person who answers for the data change the cap: likeness ledger cap{remedy}"
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
        cap_keys=float(caps[-1].get("delta_keys", 0.0)),
        spent_delta=_spent_delta(reserved),
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
    cap = budget.cap_epsilon, budget.cap_delta
    found = [Room(budget.identity, "lifetime", "", *cap, budget.spent_rho, budget.spent_delta, budget.cap_keys)]
    names = {"project": asker.project, "user": asker.user, "month": now[:7]}
    for scope in SCOPES:
        limit = limits.get((scope, names[scope]), limits.get((scope, "")))
        if limit is not None:
            counted = [r for r in own if _name_of(r, scope) == names[scope]]
            spent = math.fsum(float(r.body["rho"]) for r in counted)
            taken = _spent_delta([r.body for r in counted])
            found.append(Room(budget.identity, scope, names[scope] or "without a name", *limit, spent, taken))
    return found


def check_rooms(found: Sequence[Room], cost: Cost) -> None:
    """Refuse a cost that any cap has no room for.

    Raises:
        BudgetError: the first cap that is too small.
    """
    for room in found:
        if not room.fits(cost):
            raise BudgetError(room.refusal(cost))


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


def limit_body(identity: str, scope: str, name: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Content of another cap's record."""
    return {"identity": identity, "scope": scope, "name": name, "epsilon": epsilon, "delta": delta}


def next_month(month: str) -> str:
    """The month after one, as YYYY-MM."""
    year, number = int(month[:4]), int(month[5:7])
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def _reserved(records: Sequence[Record], identity: str) -> list[Record]:
    return [r for r in records if r.kind == "reserve" and r.body["identity"] == identity]


def _spent_delta(entries: Sequence[Mapping[str, Any]]) -> float:
    """What thresholds took of δ; entries without one, as all of earlier versions, took nothing."""
    return math.fsum(float(entry.get("delta_keys", 0.0)) for entry in entries)


def _name_of(record: Record, scope: str) -> str:
    asker = Asker.of(record.body)
    return {"project": asker.project, "user": asker.user, "month": record.time[:7]}[scope]
