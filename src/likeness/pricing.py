"""What a run would cost before it starts: which of its releases are on record already, and which caps have room.

Only the door charges; this is foresight, for schedules and sweeps. No private row is read: whether the rows are those
of an earlier run is told by the keyed hash of the source and the card of the encoded table.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from likeness.artifacts import SOURCE, context, limits, method, plan_of, provenance, read_json, source_digest
from likeness.canonical import sha256_json
from likeness.errors import BudgetError, LikenessError
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.budget import Asker, Budget, Room, check_rooms
from likeness.privacy.calibration import epsilon_of_rho
from likeness.privacy.ledger import Ledger
from likeness.rows import private_rows

if TYPE_CHECKING:
    from likeness.release.request import Dataset


def with_target(params: Params, name: str, epsilon: float) -> Params:
    """The same settings with another method and ε."""
    return replace(params, method=name, privacy=replace(params.privacy, epsilon=epsilon))


def known_rows(params: Params, ledger: Ledger) -> "Dataset | None":
    """The rows of the last run, if source and rules of ingestion are still the same; None if that is not sure."""
    try:
        dataset, _ = private_rows(params, ledger.id)
        if read_json(SOURCE).get("hmac") != source_digest(params, ledger.key):
            return None
    except LikenessError:
        return None
    lock, now = (_yaml(path) for path in ("dvc.lock", "params.yaml"))
    try:
        then = lock["stages"]["ingest"]["params"]["params.yaml"]["ingest"]
    except (KeyError, TypeError):
        return None
    return dataset if then == now["ingest"] else None


def new_releases(params: Params, ledger: Ledger, dataset: "Dataset | None") -> dict[str, float]:
    """ρ of every release of a run that is not on record, by its key.

    Args:
        dataset: the rows; None: rows that the ledger has never seen, so that everything is new.

    Raises:
        PlanError: the settings cannot be planned.
    """
    from likeness.data.layout import encoding_digest
    from likeness.release.door import current_draw, noise_scale, stored_bytes
    from likeness.release.query import Query
    from likeness.release.released import Released, from_bytes
    from likeness.release.request import Dataset, request_of

    plan, recipe, facts = plan_of(params), method(params), context(params)
    encoding = encoding_digest(facts.schema)
    rows = dataset or Dataset(plan.identity, "rows to come", params.ledger.slot, encoding, plan.unit)
    lost, reserved = ledger.lost(), {str(r.body["key"]) for r in ledger.records() if r.kind == "reserve"}

    def key_of(query: Query) -> str:
        draw = current_draw(query, plan, rows, lost)
        return sha256_json(request_of(query, str(plan.adjacency), noise_scale(query, plan), draw))

    costs = {query.query: query.rho for query in plan.queries}
    found: dict[str, float] = {}
    auxiliary: dict[str, Released] = {}
    try:
        for query in recipe.auxiliary_queries(facts, auxiliary):
            key = key_of(query)
            found[key] = costs.pop(query.name)
            data = stored_bytes(ledger, key) if key in reserved else None
            if data is not None:
                auxiliary[query.name] = from_bytes(data, key[:12])
        query = recipe.embedding_query(facts, auxiliary)
        found[key_of(query)] = costs.pop(query.name)
    except KeyError:  # a query hangs on what is not released yet: it is new, and so are those after it
        section = params.sections.get(params.method)
        found |= {sha256_json([plan.digest, section, name]): rho for name, rho in costs.items()}
    return {key: rho for key, rho in found.items() if key not in reserved}


def rooms_for(params: Params, ledger: Ledger) -> list[Room]:
    """What every cap leaves for a run with these settings, started by this user."""
    cap, privacy = params.ledger.cap, params.privacy
    fallback = Budget(privacy.identity, Adjacency(privacy.adjacency), cap.epsilon, cap.delta, 0.0, 0)
    return ledger.rooms(fallback, Asker.of(provenance(params)), limits(params))


def afford(params: Params, ledger: Ledger) -> tuple[float, list[Room]]:
    """The ρ that a run with these settings would be charged, and the caps with room for it.

    Rows that the ledger may not know are taken as new. Only where that would not fit is the source looked at.

    Raises:
        BudgetError: a cap has no room; nothing was read.
    """
    rooms = rooms_for(params, ledger)
    rho = sum(new_releases(params, ledger, None).values())
    try:
        check_rooms(rooms, rho)
    except BudgetError:
        dataset = known_rows(params, ledger)
        if dataset is None:
            raise
        rho = sum(new_releases(params, ledger, dataset).values())
        check_rooms(rooms, rho)
    return rho, rooms


def grid_costs(cells: Sequence[Params], ledger: Ledger, dataset: "Dataset | None") -> list[float]:
    """ρ that each cell of a grid adds to those before it: what is on record, or shared with them, is not paid again."""
    seen: dict[str, float] = {}
    costs = []
    for cell in cells:
        new = {key: rho for key, rho in new_releases(cell, ledger, dataset).items() if key not in seen}
        seen |= new
        costs.append(sum(new.values()))
    return costs


def room_lines(rooms: Sequence[Room], rho: float) -> list[str]:
    """One line a cap: what was spent, what it would be then, what remains."""
    return [
        f"{room.label} cap of {room.identity}: epsilon {_epsilon(room.spent_rho, room):.4g} spent, "
        f"{_epsilon(room.spent_rho + rho, room):.4g} of {room.epsilon:g} afterwards at delta {room.delta:g}; rho "
        f"{max(0.0, room.remaining_rho - rho):.4g} of {room.cap_rho:.4g} would remain"
        for room in rooms
    ]


def _epsilon(rho: float, room: Room) -> float:
    return epsilon_of_rho(rho, room.delta)


def _yaml(path: str) -> dict[str, Any]:
    file = Path(path)
    content: dict[str, Any] = (yaml.safe_load(file.read_text()) if file.exists() else None) or {}
    return content
