"""The ledger of a run, opened to read or to spend."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from likeness.config.params import Params
from likeness.data.schema.schema import Schema
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger
from likeness.pipeline.schema import open_schema


def open_ledger(params: Params) -> "Ledger":
    """The ledger of this machine or team, verified."""
    from likeness.ledger.home import locate
    from likeness.ledger.ledger import Ledger

    return Ledger.open(locate(params.ledger.home, params.ledger.url))


def open_ledger_to_spend(params: Params, schema: Schema | None = None) -> "Ledger":
    """The ledger, with the identity's caps on record: for the stages that ask the door.

    Args:
        schema: as it is written, instead of the one that params.yaml names.

    Raises:
        LedgerError: git remembers a longer or another ledger of that id: this one is an old copy.
    """
    from likeness.ledger.witness import check_witnesses, git_witnesses

    ledger, cap = open_ledger(params), params.ledger.cap
    own = [witness for witness in git_witnesses(Path()) if witness.ledger_id == ledger.id]
    check_witnesses(ledger.records(), own)
    adjacency, unit = Adjacency(params.privacy.adjacency), params.ingest.unit
    person = None if unit is None else unit.column
    keys = delta_for_keys(params, open_schema(params) if schema is None else schema)
    ledger.declare_population(params.privacy.population, adjacency, cap.epsilon, cap.delta, person, keys)
    ledger.declare_limits(params.privacy.population, limits(params))
    return ledger


def delta_for_keys(params: Params, schema: Schema) -> float:
    """The part of a lifetime cap's δ that is kept for thresholds, where these people are not on record yet.

    As much as runs with these settings need until they have used the cap's ρ, but at most half, and enough for one:
    half of δ leaves nearly all of ρ (95 % at ε = 10). ``likeness ledger cap`` changes it on record.
    """
    cap, privacy = params.ledger.cap, params.privacy
    if not schema.open_columns:
        return 0.0
    one, half = privacy.delta * params.categories.delta_share, cap.delta / 2
    if one >= cap.delta or not math.isfinite(privacy.epsilon):
        return half
    runs = rho_for(cap.epsilon, cap.delta) / rho_for(privacy.epsilon, privacy.delta)
    return max(one, min(one * math.floor(runs), half) if math.isfinite(runs) else half)


def limits(params: Params) -> dict[str, tuple[float, float]]:
    """Caps beside the lifetime cap that params.yaml asks for, from scope to (ε, δ)."""
    caps = params.ledger.caps
    found = {"project": caps.project, "user": caps.user, "month": caps.month}
    return {scope: (cap.epsilon, cap.delta) for scope, cap in found.items() if cap is not None}
