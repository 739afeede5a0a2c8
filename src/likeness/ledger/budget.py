"""What the records say was spent, what each cap leaves, and why a cost is refused. Pure functions of the chain.

The *lifetime* cap of a population is the guarantee. Caps by *project*, *user* and *month* are policy. The asker states
user and project, and the clock of the machine states the month.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likeness.core.errors import BudgetError
from likeness.ledger.records import Record
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_left, rho_left
from likeness.privacy.lattice_error import ALLOWANCE, MOST_ERROR, discretization_error

RELATIVE_TOLERANCE = 1e-9  # of ρ, for a plan that asks for exactly what is left
SCOPES = ("project", "user", "month")
"""Scopes of caps beside the lifetime cap; each cap is recorded for one population."""


@dataclass(frozen=True)
class Cost:
    """What one release or several cost. Both numbers add up.

    Attributes:
        rho: ρ of the noise.
        delta: δ of the partition selection (:mod:`likeness.privacy.thresholds`).
    """

    rho: float
    delta: float = 0.0

    @classmethod
    def total(cls, costs: Iterable["Cost"]) -> "Cost":
        """The sum of costs."""
        costs = list(costs)
        return cls(math.fsum(cost.rho for cost in costs), math.fsum(cost.delta for cost in costs))


@dataclass(frozen=True)
class Budget:
    """State of one population. Reservations that were never committed count as spent.

    Attributes:
        population: name of the people.
        adjacency: under which all of their releases are accounted.
        cap_epsilon: ε of the lifetime cap.
        cap_delta: δ of the lifetime cap.
        spent_rho: ρ on record.
        uncommitted: number of reservations without a commit.
        person: column that names people where a person may have several rows; None: a row is a person.
        selection_delta: part of ``cap_delta`` for partition selection, recorded with the cap. The rest caps ρ. Both
            limits are fixed beforehand, as the theorem of :mod:`likeness.privacy.thresholds` requires.
        spent_delta: part of ``selection_delta`` that releases took.
    """

    population: str
    adjacency: Adjacency
    cap_epsilon: float
    cap_delta: float
    spent_rho: float
    uncommitted: int
    person: str | None = None
    selection_delta: float = 0.0
    spent_delta: float = 0.0

    @property
    def spent_epsilon(self) -> float:
        """ε spent at the cap's δ, the part for partition selection included."""
        return epsilon_left(self.spent_rho, self.cap_delta, self.selection_delta)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent."""
        return max(0.0, rho_left(self.cap_epsilon, self.cap_delta, self.selection_delta) - self.spent_rho)


@dataclass(frozen=True)
class Asker:
    """On whose behalf a release is requested: scoped caps count by it."""

    user: str = ""
    project: str = ""

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> "Asker":
        """Read an entry, whose user and project may be missing."""
        return cls(str(details.get("asked_by") or ""), str(details.get("project") or ""))


@dataclass(frozen=True)
class Headroom:
    """What one cap leaves.

    Attributes:
        population: name of the people.
        scope: ``"lifetime"`` or one of :data:`SCOPES`.
        name: which project, user or month.
        epsilon: ε of the cap.
        delta: δ of the cap.
        spent_rho: ρ counted against it.
        spent_delta: part of ``delta`` that partition selection took.
        selection_delta: part of ``delta`` that partition selection may take, fixed with the cap. None, for caps that
            are policy only: selection takes what it needs, and ε is that of ρ at the rest of δ.
    """

    population: str
    scope: str
    name: str
    epsilon: float
    delta: float
    spent_rho: float
    spent_delta: float = 0.0
    selection_delta: float | None = None

    @property
    def cap_rho(self) -> float:
        """ρ of the cap, at the δ that partition selection leaves."""
        return rho_left(self.epsilon, self.delta, self._taken)

    @property
    def spent_epsilon(self) -> float:
        """ε spent at ``delta``, the part for partition selection included."""
        return epsilon_left(self.spent_rho, self.delta, self._taken)

    @property
    def _taken(self) -> float:
        return self.spent_delta if self.selection_delta is None else self.selection_delta

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent under the cap."""
        return max(0.0, self.cap_rho - self.spent_rho)

    @property
    def label(self) -> str:
        """Name of the cap in messages."""
        return self.scope if not self.name else f"{self.scope} {self.name}"

    def after(self, cost: Cost) -> "Headroom":
        """The headroom once a cost is added."""
        total = Cost.total([Cost(self.spent_rho, self.spent_delta), cost])
        return replace(self, spent_rho=total.rho, spent_delta=total.delta)

    def fits(self, cost: Cost) -> bool:
        """Whether the cap allows a cost, in ρ and in δ."""
        after = self.after(cost)
        return after.spent_rho <= after.cap_rho * (1 + RELATIVE_TOLERANCE) and after._delta_fits

    @property
    def _delta_fits(self) -> bool:
        if self.selection_delta is None:
            return self.spent_delta < self.delta
        return self.spent_delta <= self.selection_delta * (1 + RELATIVE_TOLERANCE)

    def refusal(self, cost: Cost) -> str:
        """Why the cap refuses a cost, and what to do."""
        after = self.after(cost)
        option = "" if self.scope == "lifetime" else f" --scope {self.scope}"
        wait = "Waiting brings no budget back"
        if self.scope == "month":
            wait = f"Budget remains again from {next_month(self.name)}-01 (UTC)"
        if after._delta_fits:
            selection = f", {after._taken:.4g} of it for private categories" if after._taken else ""
            numbers = (
                f"spent epsilon {self.spent_epsilon:.4g} (rho {self.spent_rho:.4g}), requested rho {cost.rho:.4g}, "
                f"together epsilon {after.spent_epsilon:.4g}. The {self.label} cap is epsilon {self.epsilon:g} (rho "
                f"{after.cap_rho:.4g}) at delta {self.delta:g}{selection}"
            )
            key = "privacy.epsilon"
        else:
            limit = f"is {self.delta:g} in all"
            if self.selection_delta is not None:
                limit, option = f"for them is {self.selection_delta:.4g} of {self.delta:g}", " --delta-keys"
            numbers = (
                f"private categories spent delta {self.spent_delta:.4g}, requested {cost.delta:.4g}, together "
                f"{after.spent_delta:.4g}. The delta of the {self.label} cap {limit}"
            )
            key = "categories.delta_share"
        return (
            f"over budget for '{self.population}': {numbers}. No private row was read for this release. {wait}. Lower "
            f"{key}, or let the person responsible for the data raise the cap: likeness ledger cap{option}"
        )


def budget_of(records: Sequence[Record], population: str) -> Budget | None:
    """State of one population; None if it is not on record."""
    caps = [record.body for record in records if record.kind == "cap" and record.body["identity"] == population]
    if not caps:
        return None
    reserved = [record.body for record in _reserved(records, population)]
    committed = {record.body["key"] for record in records if record.kind == "commit"}
    return Budget(
        population=population,
        adjacency=Adjacency(caps[-1]["adjacency"]),
        cap_epsilon=float(caps[-1]["epsilon"]),
        cap_delta=float(caps[-1]["delta"]),
        spent_rho=sum(float(body["rho"]) for body in reserved),
        selection_delta=float(caps[-1].get("delta_keys", 0.0)),
        spent_delta=_spent_delta(reserved),
        uncommitted=sum(body["key"] not in committed for body in reserved),
        person=caps[-1].get("person"),
    )


def limits_of(records: Sequence[Record], population: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Caps beside the lifetime cap, from (scope, name) to (ε, δ). Name ``""`` is everyone's; the last cap counts."""
    return {
        (str(r.body["scope"]), str(r.body["name"])): (float(r.body["epsilon"]), float(r.body["delta"]))
        for r in records
        if r.kind == "limit" and r.body["identity"] == population
    }


def headrooms(
    records: Sequence[Record],
    budget: Budget,
    asker: Asker,
    now: str,
    planned: Mapping[str, tuple[float, float]] | None = None,
) -> list[Headroom]:
    """What each cap leaves for an asker, the lifetime cap first.

    Args:
        records: all records of the ledger.
        budget: state of the population.
        asker: user and project.
        now: the day; see :func:`likeness.ledger.records.moment`.
        planned: from scope to (ε, δ), caps that will be recorded where the records have none for everyone.
    """
    reserved = _reserved(records, budget.population)
    limits = {(scope, ""): cap for scope, cap in (planned or {}).items()} | limits_of(records, budget.population)
    cap = budget.cap_epsilon, budget.cap_delta, budget.spent_rho, budget.spent_delta, budget.selection_delta
    result = [Headroom(budget.population, "lifetime", "", *cap)]
    names = {"project": asker.project, "user": asker.user, "month": now[:7]}
    for scope in SCOPES:
        limit = limits.get((scope, names[scope]), limits.get((scope, "")))
        if limit is not None:
            counted = [r.body for r in reserved if _name_of(r, scope) == names[scope]]
            spent = math.fsum(float(body["rho"]) for body in counted), _spent_delta(counted)
            result.append(Headroom(budget.population, scope, names[scope] or "without a name", *limit, *spent))
    return result


def check_headrooms(caps: Sequence[Headroom], cost: Cost) -> None:
    """Refuse a cost that a cap does not allow.

    Raises:
        BudgetError: the first cap that is too small.
    """
    for cap in caps:
        if not cap.fits(cost):
            raise BudgetError(cap.refusal(cost))


def check_lattices(records: Sequence[Record], population: str, errors: Sequence[float]) -> None:
    """Refuse releases whose discretization errors add up to more than their part of ε.

    Args:
        records: all records of the ledger.
        population: name of the people.
        errors: η of each requested release; see :mod:`likeness.privacy.lattice_error`.

    Raises:
        BudgetError: the population has too many releases, or too coarse ones.
    """
    spent = [discretization_error_of(record.body) for record in _reserved(records, population)]
    if math.fsum([*spent, *errors]) > ALLOWANCE:
        raise BudgetError(
            f"'{population}' has {len(spent):,} releases on record. The discretization errors of their noise reach the "
            "limit of the account. No private row was read. Waiting brings no budget back."
        )


def discretization_error_of(entry: Mapping[str, Any]) -> float:
    """η of a release on record. An entry without the numbers, which the door did not write, counts the most."""
    if "dimension" not in entry or "noise_scale" not in entry:
        return MOST_ERROR
    return discretization_error(int(entry["dimension"]), float(entry["noise_scale"])) if entry["noise_scale"] else 0.0


def cap_body(
    population: str,
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    person: str | None = None,
    selection_delta: float = 0.0,
) -> dict[str, Any]:
    """Content of a lifetime cap's record; see :class:`Budget`."""
    body = {"identity": population, "adjacency": str(adjacency), "epsilon": epsilon, "delta": delta}
    selection = {"delta_keys": selection_delta} if selection_delta else {}
    return {**body, **({} if person is None else {"person": person}), **selection}


def limit_body(population: str, scope: str, name: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Content of the record of a cap by project, user or month."""
    return {"identity": population, "scope": scope, "name": name, "epsilon": epsilon, "delta": delta}


def check_person(population: str, on_record: str | None, requested: str | None) -> None:
    """Refuse to add up releases with different units of privacy.

    Another bound on the rows of a person is allowed: adjacency is about the table before contribution bounding.

    Raises:
        BudgetError: the unit of privacy differs from the one on record.
    """
    if on_record != requested:
        raise BudgetError(
            f"population '{population}' is accounted with {_unit(on_record)} as the unit of privacy. A release for "
            f"{_unit(requested)} cannot be composed with the earlier ones. Set ingest.unit in params.yaml as it was: "
            + ("null." if on_record is None else f"column: {on_record}.")
        )


def next_month(month: str) -> str:
    """The month after one, as YYYY-MM."""
    year, number = int(month[:4]), int(month[5:7])
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def _unit(person: str | None) -> str:
    return "a row" if person is None else f"all rows of one value of '{person}'"


def _name_of(record: Record, scope: str) -> str:
    asker = Asker.of(record.body)
    return {"project": asker.project, "user": asker.user, "month": record.time[:7]}[scope]


def _reserved(records: Sequence[Record], population: str) -> list[Record]:
    return [r for r in records if r.kind == "reserve" and r.body["identity"] == population]


def _spent_delta(entries: Sequence[Mapping[str, Any]]) -> float:
    """δ that partition selection took; entries without the key took nothing."""
    return math.fsum(float(entry.get("delta_keys", 0.0)) for entry in entries)
