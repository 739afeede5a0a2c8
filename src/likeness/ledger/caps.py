"""What each cap leaves, and why a cost is refused."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likeness.core.errors import BudgetError
from likeness.ledger.budget import RELATIVE_TOLERANCE, Budget, Cost, _reserved, _spent_delta
from likeness.ledger.records import Record
from likeness.privacy.calibration import epsilon_left, rho_left

SCOPES = ("project", "user", "month")
"""What a cap beside the lifetime cap may be about; each is recorded for one identity."""


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


def limit_body(identity: str, scope: str, name: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Content of another cap's record."""
    return {"identity": identity, "scope": scope, "name": name, "epsilon": epsilon, "delta": delta}


def next_month(month: str) -> str:
    """The month after one, as YYYY-MM."""
    year, number = int(month[:4]), int(month[5:7])
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def _name_of(record: Record, scope: str) -> str:
    asker = Asker.of(record.body)
    return {"project": asker.project, "user": asker.user, "month": record.time[:7]}[scope]
