"""The plan: the part of ρ that each query may spend. It reads no data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import Any

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import PlanError
from likeness.core.format import FORMAT, RECIPE, check_known
from likeness.core.hashing import json_value, sha256_json
from likeness.core.typed import build
from likeness.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class QueryShare:
    """A query, and its share of ρ.

    Attributes:
        query: name, unique within the plan.
        stage: stage that releases it.
        share: part of the total ρ, in (0, 1]. The shares of a plan sum to 1.
        delta_share: part of δ of a partition selection (:mod:`likeness.privacy.thresholds`).
    """

    query: str
    stage: str
    share: float
    delta_share: float = 0.0


@dataclass(frozen=True)
class PlannedQuery:
    """A query with its noise: ``noise_multiplier = σ/Δ = 1/sqrt(2ρ)``, 0 without privacy.

    ``delta_keys`` is the δ of a partition selection, 0 for other queries.
    """

    query: str
    stage: str
    share: float
    rho: float
    noise_multiplier: float
    delta_keys: float = 0.0


@dataclass(frozen=True)
class Plan:
    """All noise multipliers of a run, from public settings alone.

    ``unit`` is the unit of privacy where a person may have several rows, None where a row is a person. Multipliers do
    not depend on it: they are noise in units of the sensitivity, and only the sensitivity grows with the rows.
    ``plugin`` is name and version of the distribution that holds the method; empty for a method of Likeness.
    """

    method: str
    identity: str
    adjacency: Adjacency
    epsilon: float
    delta: float
    num_records: int | None
    queries: tuple[PlannedQuery, ...]
    unit: PrivacyUnit | None = None
    plugin: str = ""
    recipe: int = RECIPE

    @property
    def rho(self) -> float:
        """Total ρ of the plan."""
        return math.fsum(query.rho for query in self.queries)

    @property
    def delta_keys(self) -> float:
        """δ of partition selection."""
        return math.fsum(query.delta_keys for query in self.queries)

    @property
    def private(self) -> bool:
        """False for ``epsilon: inf``."""
        return math.isfinite(self.epsilon)

    @property
    def digest(self) -> str:
        """Name of the plan in the ledger."""
        return sha256_json(self.to_dict())

    def query(self, name: str) -> PlannedQuery:
        """The planned query of that name."""
        for query in self.queries:
            if query.query == name:
                return query
        names = ", ".join(query.query for query in self.queries)
        raise PlanError(f"plan.json has no query '{name}'. Queries: {names}. Run: likeness run")

    def to_dict(self) -> dict[str, Any]:
        """JSON form; infinities as text."""
        return {"format": FORMAT, **json_value(self)}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Plan":
        """Inverse of :meth:`to_dict`."""
        check_known(value, ("format", "recipe"), "plan.json", PlanError)
        return build(cls, {key: item for key, item in value.items() if key != "format"}, "plan.json")


def make_plan(
    *,
    method: str,
    identity: str,
    shares: Sequence[QueryShare],
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    num_records: int | None,
    unit: PrivacyUnit | None = None,
    selection: Sequence[QueryShare] = (),
    plugin: str = "",
) -> Plan:
    """Split the ρ of the target by shares.

    ``ρ_total`` is the largest ρ whose conversion is at most (ε, δ); ``ρ_j = share_j · ρ_total``. Splitting ε and δ
    instead, as DP-HP does, is basic composition and wastes budget. A partition selection takes its part of δ and ρ
    first, and ``shares`` divide the rest of ρ.

    Args:
        method: name of the method.
        identity: name of the population.
        shares: queries and their shares, which sum to 1.
        epsilon: ε of the target.
        delta: δ of the target.
        adjacency: what counts as a neighboring table.
        num_records: public number of records under ``replace_one``, else None.
        unit: unit of privacy where a person may have several rows.
        selection: partition selections, if there are any.
        plugin: name and version of the distribution that holds the method, if it is none of Likeness.

    Raises:
        PlanError: the shares do not sum to 1, the target is impossible, or ``num_records`` or ``unit`` contradicts the
            adjacency.
    """
    from likeness.privacy.calibration import epsilon_left, rho_for  # scipy, without which a training runs
    from likeness.privacy.thresholds import delta_left

    names = [share.query for share in (*selection, *shares)]
    if len(set(names)) != len(names):
        raise PlanError(f"{method}: two queries of the plan have one name among {', '.join(names)}. Rename one.")
    _check_shares(method, shares)
    _check_people(adjacency, num_records, unit)
    rest = 1 - math.fsum(share.share for share in selection)
    parts = [*selection, *(replace(share, share=share.share * rest) for share in shares)]
    total = rho_for(epsilon, delta_left(delta, (delta * part.delta_share for part in parts)))
    total /= math.fsum(part.share for part in parts)  # 1 but for last digits
    queries = tuple(_plan_query(part, total, delta) for part in parts)
    plan = Plan(method, identity, adjacency, epsilon, delta, num_records, queries, unit, plugin)
    reached = epsilon_left(plan.rho, delta, plan.delta_keys)
    if plan.private and reached > epsilon:
        raise PlanError(
            f"the plan reaches epsilon {reached:.9g} at delta {delta:g}, more than privacy.epsilon, {epsilon:g}. "
            "Choose usual values, and report it."
        )
    return plan


def _check_shares(method: str, shares: Sequence[QueryShare]) -> None:
    """Refuse shares that do not sum to 1."""
    for share in shares:
        if not 0 < share.share <= 1:
            raise PlanError(
                f"{method}.plan.shares.{share.query} must lie above 0 and at most at 1, got {share.share}. Correct it "
                "in params.yaml."
            )
    total = math.fsum(share.share for share in shares)
    if abs(total - 1) > 1e-9:
        listed = ", ".join(f"{share.query} {share.share}" for share in shares)
        raise PlanError(
            f"{method}.plan.shares must sum to 1, but sum to {total:.6g} ({listed}). Correct them in params.yaml."
        )


def _check_people(adjacency: Adjacency, num_records: int | None, unit: PrivacyUnit | None) -> None:
    """Refuse a number of records, or a unit of privacy, that contradicts the adjacency."""
    if adjacency is Adjacency.REPLACE_ONE and (num_records is None or num_records < 1):
        raise PlanError(
            "privacy.num_records is missing. With privacy.adjacency: replace_one the number of training records is "
            "public: give it. Or set add_remove_one, which keeps it private."
        )
    if adjacency is Adjacency.ADD_REMOVE_ONE and num_records is not None:
        raise PlanError(
            "privacy.num_records must be null with privacy.adjacency: add_remove_one. The number of records is private "
            "there; a noisy count estimates it."
        )
    if unit is not None and adjacency is not Adjacency.ADD_REMOVE_ONE:
        raise PlanError(
            f"ingest.unit adds or removes a person with all rows, but privacy.adjacency is {adjacency}. Set "
            "privacy.adjacency: add_remove_one."
        )


def _plan_query(share: QueryShare, total: float, delta: float) -> PlannedQuery:
    """The query with its noise, of a total ρ."""
    rho = share.share * total if math.isfinite(total) else math.inf
    # Up to 12 significant digits: noise is part of a release's key, which must not depend on the solver.
    up = Context(prec=12, rounding=ROUND_CEILING).create_decimal_from_float
    multiplier = float(up(1 / math.sqrt(2 * rho))) if math.isfinite(rho) else 0.0
    cost = 1 / (2 * multiplier**2) if multiplier else math.inf
    return PlannedQuery(share.query, share.stage, share.share, cost, multiplier, delta * share.delta_share)
