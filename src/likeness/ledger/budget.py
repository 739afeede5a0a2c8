"""What the records say was spent, what the cap leaves, and why a cost is refused. Pure functions of the chain."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from likeness.core.bounds import MOST_DELTA
from likeness.core.errors import BudgetError, LedgerError, PlanError
from likeness.core.hashing import json_value
from likeness.ledger.records import RECOVERED, SALT, SPENDING, Record, base_attempt
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_left, rho_left
from likeness.privacy.cohorts import Cohort, Composition
from likeness.privacy.lattice_error import ALLOWANCE, MOST_ERROR, discretization_error

RELATIVE_TOLERANCE = 1e-9  # of ρ, for a plan that asks for exactly what is left


@dataclass(frozen=True)
class Cost:
    """The cost of one release or several. Both numbers add up.

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
        spent_rho: ρ on record, composed over cohorts (:mod:`likeness.privacy.cohorts`).
        uncommitted: number of reservations without a commit.
        person: column that names people where a person may have several rows; None: a row is a person.
        selection_delta: part of ``cap_delta`` for partition selection, recorded with the cap. The rest caps ρ. Both
            limits are fixed beforehand, as the theorem of :mod:`likeness.privacy.thresholds` requires.
        spent_delta: part of ``selection_delta`` that releases took.
        error: of the lattices of all releases, see :mod:`likeness.privacy.lattice_error`.
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
    error: float = 0.0

    @property
    def account_entries(self) -> dict[str, Any]:
        """The entries of an account about it, but for the ε that follows."""
        value = {name: getattr(self, name) for name in ("spent_rho", "cap_epsilon", "cap_delta", "uncommitted")}
        keys = {"cap_delta_keys": self.selection_delta, "spent_delta_keys": self.spent_delta}
        entries: dict[str, Any] = json_value({**value, **(keys if any(keys.values()) else {})})
        return entries

    @property
    def cap_rho(self) -> float:
        """ρ of the cap, at the δ that partition selection leaves."""
        return rho_left(self.cap_epsilon, self.cap_delta, self.selection_delta)

    @property
    def spent_epsilon(self) -> float:
        """ε spent at the cap's δ, the part for partition selection included; infinite if δ or error exceed theirs."""
        if not self.delta_fits or self.error > ALLOWANCE:
            return math.inf
        return epsilon_left(self.spent_rho, self.cap_delta, self.selection_delta)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent."""
        return max(0.0, self.cap_rho - self.spent_rho)

    @property
    def delta_fits(self) -> bool:
        """Tell whether partition selection took no more than its part of δ."""
        return self.spent_delta <= self.selection_delta * (1 + RELATIVE_TOLERANCE)

    @property
    def fits(self) -> bool:
        """Tell whether the cap allows what was spent, in ρ and in δ."""
        return self.delta_fits and self.spent_rho <= self.cap_rho * (1 + RELATIVE_TOLERANCE)

    def add_cost(self, cost: Cost) -> "Budget":
        """The budget once a cost is added."""
        total = Cost.total([Cost(self.spent_rho, self.spent_delta), cost])
        return replace(self, spent_rho=total.rho, spent_delta=total.delta)

    def check(self, cost: Cost) -> None:
        """Refuse a cost that the cap does not allow.

        Raises:
            BudgetError: the cap is too small.
        """
        after = self.add_cost(cost)
        if after.fits:
            return
        if after.delta_fits:
            selection = f", {self.selection_delta:.4g} of it for private categories" if self.selection_delta else ""
            numbers = (
                f"spent epsilon {self.spent_epsilon:.4g} (rho {self.spent_rho:.4g}), requested rho {cost.rho:.4g}, "
                f"together epsilon {after.spent_epsilon:.4g}. The lifetime cap is epsilon {self.cap_epsilon:g} (rho "
                f"{self.cap_rho:.4g}) at delta {self.cap_delta:g}{selection}"
            )
            key, option = "privacy.epsilon", ""
        else:
            numbers = (
                f"private categories spent delta {self.spent_delta:.4g}, requested {cost.delta:.4g}, together "
                f"{after.spent_delta:.4g}. The delta of the lifetime cap for them is {self.selection_delta:.4g} of "
                f"{self.cap_delta:g}"
            )
            key, option = "categories.delta_share", " --delta-keys"
        raise BudgetError(
            f"over budget for '{self.population}': {numbers}. No private row was read for this release. Waiting brings "
            f"no budget back. Lower {key}, or let the person responsible for the data raise the cap: likeness ledger "
            f"cap{option}"
        )


def cap_of(records: Sequence[Record], population: str) -> Mapping[str, Any] | None:
    """The newest content of a population's cap, as :func:`cap_body` makes it; None if it is not on record."""
    caps = (record.body for record in reversed(records) if record.kind == "cap")
    return next((cap for cap in caps if cap["identity"] == population), None)


def budget_of(records: Sequence[Record], population: str) -> Budget | None:
    """State of one population; None if it is not on record."""
    cap = cap_of(records, population)
    if cap is None:
        return None
    spending = costs_on_record(records, population)
    rho, delta = composition(spending).total
    committed = {record.body["reserve_seq"] for record in records if record.kind == "commit"}
    return Budget(
        population=population,
        adjacency=Adjacency(cap["adjacency"]),
        cap_epsilon=float(cap["epsilon"]),
        cap_delta=float(cap["delta"]),
        spent_rho=rho,
        selection_delta=float(cap["delta_keys"]),
        spent_delta=delta,
        uncommitted=sum(record.kind == "reserve" and record.seq not in committed for record in spending),
        person=cap["person"],
        error=math.fsum(discretization_error_of(record.body) for record in spending),
    )


def composition(records: Sequence[Record]) -> Composition:
    """Compose the costs of :func:`costs_on_record`. The attempt of a cohort's release names its series."""
    composed = Composition()
    for record in records:
        body = record.body
        cohort = Cohort.from_group(str(body.get("group", "")))
        series = "" if cohort is None else base_attempt(body["slot"])
        composed.add(float(body["rho"]), float(body["delta_keys"]), series, cohort)
    return composed


def added_cost(records: Sequence[Record], population: str, cost: Cost, attempt: str, group: str) -> Cost:
    """Give the increase of the total on record by a cost; all of the cost, unless it is about a cohort.

    Args:
        records: of the ledger.
        population: name of the people.
        cost: of the releases.
        attempt: of the releases.
        group: their cohort; empty: everybody.
    """
    composed, cohort = composition(costs_on_record(records, population)), Cohort.from_group(group)
    before = composed.total
    if cohort is None or math.inf in (*before, cost.rho):
        return cost
    after = composed.add(cost.rho, cost.delta, base_attempt(attempt), cohort).total
    return Cost(after[0] - before[0], after[1] - before[1])


def check_lattices(records: Sequence[Record], population: str, errors: Sequence[float]) -> None:
    """Refuse releases whose discretization errors add up to more than their part of ε.

    Args:
        records: all records of the ledger.
        population: name of the people.
        errors: η of each requested release; see :mod:`likeness.privacy.lattice_error`.

    Raises:
        BudgetError: the population has too many releases, or too coarse ones.
    """
    spent = [discretization_error_of(record.body) for record in costs_on_record(records, population)]
    if math.fsum([*spent, *errors]) > ALLOWANCE:
        raise BudgetError(
            f"'{population}' has {len(spent):,} releases on record. The discretization errors of their noise reach the "
            "limit of the account. No private row was read. Waiting brings no budget back."
        )


def discretization_error_of(entry: Mapping[str, Any]) -> float:
    """η of a release on record. An entry without the numbers, which the door did not write, counts the most."""
    if "error" in entry:  # of what was recovered
        return float(entry["error"])
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
    """Content of a lifetime cap's record; see :class:`Budget`.

    Raises:
        PlanError: δ is so large that it protects little.
    """
    if delta > MOST_DELTA:
        raise PlanError(
            f"the delta of a lifetime cap (ledger.cap, or --delta) must be at most {MOST_DELTA:g}, got {delta:g}. A "
            "larger one protects little. Give one well below 1 / number of people."
        )
    body = {"identity": population, "adjacency": str(adjacency), "person": person}
    return {**body, "epsilon": float(epsilon), "delta": float(delta), "delta_keys": float(selection_delta)}


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


def _unit(person: str | None) -> str:
    return "a row" if person is None else f"all rows of one value of '{person}'"


def costs_on_record(records: Sequence[Record], population: str) -> list[Record]:
    """The records of a population that cost something."""
    return [r for r in records if r.kind in SPENDING and r.body["identity"] == population]


_NO_COST = {"rho": 0.0, "delta_keys": 0.0, "error": 0.0}


def costs_of_lost(
    records: Sequence[Record], copies: Sequence[Record], heads: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the costs of lost records, as bodies of records that name them.

    Args:
        records: on the chain.
        copies: all records up to the anchor, or none.
        heads: numbers of records by their digests, which must have been on the chain.
    """
    on_record = {record.digest for record in records}
    on_record |= {digest for record in records if record.kind == RECOVERED for digest in record.body["lost"]}
    copied = {record.digest: record for record in copies if record.digest not in on_record}
    names = list(dict.fromkeys(str(r.body["identity"]) for r in records if r.kind == "cap"))
    spent = dict.fromkeys(names, Cost(0.0))
    free = sorted(digest for digest, record in copied.items() if record.kind not in SPENDING)
    if free and names:
        yield {"identity": names[0], **_NO_COST, "rows_digests": [], "lost": free}
    for digest, record in copied.items():
        if record.kind in SPENDING:  # also what stood for records that were lost before
            entry, keys = record.body, (SALT, "identity", "rho", "delta_keys", "digest", "rows_digests")
            body = {key: entry[key] for key in keys if key in entry}
            cost = Cost(float(body["rho"]), float(body["delta_keys"]))
            spent[body["identity"]] = Cost.total([spent.get(body["identity"], Cost(0.0)), cost])
            yield {**body, "error": discretization_error_of(entry), "lost": [digest, *entry.get("lost", ())]}
    if unknown := sorted(heads.keys() - on_record - copied.keys()):
        lost = {"lost": unknown, "error": MOST_ERROR * max(heads[digest] for digest in unknown)}
        whole = [record for record in records if not record.body.get("group")]  # a person may be in no cohort of before
        yield from (remainder(budget_on_record(whole, name).add_cost(spent[name]), lost) for name in names)


def remainder(budget: Budget, lost: Mapping[str, Any]) -> dict[str, Any]:
    """All that is left of a cap, as the cost of lost records that nobody knows."""
    delta = max(0.0, budget.selection_delta - budget.spent_delta)
    costs = {"rho": budget.remaining_rho, "delta_keys": delta, "error": lost["error"]}
    return {**costs, "identity": budget.population, "lost": lost["lost"]}


def budget_on_record(records: Sequence[Record], population: str) -> Budget:
    """The budget of people that are in the ledger.

    Raises:
        LedgerError: they are not.
    """
    budget = budget_of(records, population)
    if budget is None:
        remedy = "Give a name that `likeness ledger budget` prints."
        raise LedgerError(f"population '{population}' is not in the ledger. {remedy}")
    return budget
