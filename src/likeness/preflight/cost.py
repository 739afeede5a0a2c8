"""What a run would cost before it starts: which of its releases are on record already, and which caps have room.

Only the door charges; this is foresight, for schedules and grids of methods and ε. No private row is read: the keyed
hash of the source and the card of the encoded table say whether the rows are those of an earlier run.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from likeness.config.explain import plain
from likeness.config.load import read_params
from likeness.core.errors import BudgetError, LikenessError
from likeness.core.hashing import sha256_json
from likeness.core.paths import ProjectPaths, read_json
from likeness.ledger.budget import Asker, Budget, Cost, Headroom, check_headrooms, headrooms
from likeness.ledger.records import moment
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from likeness.release.request import Dataset


def with_target(project: Project, name: str, epsilon: float) -> Project:
    """A project with another method and ε."""
    params = project.params
    return replace(project, params=replace(params, method=name, privacy=replace(params.privacy, epsilon=epsilon)))


def known_rows(project: Project) -> "Dataset | None":
    """The rows of the last run, if source and rules of ingestion are still the same; None if that is not sure."""
    try:
        dataset, _ = project.rows()
        if read_json(project.paths.source).get("hmac") != project.source_digest():
            return None
    except LikenessError:
        return None
    lock, now = _yaml(project.paths.lock), plain(read_params(project.paths.params).ingest)
    try:
        then = lock["stages"]["ingest"]["params"][str(ProjectPaths.settings)]["ingest"]
    except (KeyError, TypeError):
        return None
    return dataset if then == now else None


def new_releases(project: Project, dataset: "Dataset | None") -> dict[str, Cost]:
    """Cost of every release of a run that is not on record, by its key.

    Args:
        dataset: the rows; None: rows that the ledger has never seen, so that everything is new.

    Raises:
        PlanError: the settings cannot be planned.
    """
    from likeness.data.encoding.layout import encoding_digest
    from likeness.release.door import current_draw, noise_scale
    from likeness.release.keys import KeyQuery, completed, key_queries
    from likeness.release.query import Query
    from likeness.release.released import Released, from_bytes
    from likeness.release.request import Dataset, request_of
    from likeness.release.store import stored_bytes

    params, ledger = project.params, project.ledger
    plan, recipe, schema = project.plan, project.method, project.written_schema
    rows = dataset or Dataset(plan.identity, "rows to come", params.ledger.attempt, "", plan.unit)
    lost, reserved = ledger.lost(), {str(r.body["key"]) for r in ledger.records() if r.kind == "reserve"}

    def key_of(query: Query | KeyQuery) -> str:
        draw = current_draw(query, plan, replace(rows, encoding=encoding_digest(schema)), lost)
        return sha256_json(request_of(query, str(plan.adjacency), noise_scale(query, plan), draw))

    costs = {query.query: Cost(query.rho, query.delta_keys) for query in plan.queries}
    found: dict[str, Cost] = {}
    auxiliary: dict[str, Released] = {}
    categories: list[Released] = []
    try:
        for asked in key_queries(schema, plan, params.categories.most):
            key = key_of(asked)
            found[key] = costs.pop(asked.name)
            data = stored_bytes(ledger, key) if key in reserved else None
            categories += [] if data is None else [from_bytes(data, key[:12])]
        if len(categories) < len(schema.open_columns):
            raise KeyError
        schema = completed(schema, categories)  # from here on rows are encoded with it
        facts = project.context_of(schema)
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
        found |= {sha256_json([plan.digest, section, name]): cost for name, cost in costs.items()}
    return {key: cost for key, cost in found.items() if key not in reserved}


def rooms_for(project: Project) -> list[Headroom]:
    """What every cap leaves for a run with these settings, started by this user."""
    return project.ledger.headrooms(_declared(project), Asker.of(project.provenance), project.limits)


def refusal_ahead(project: Project) -> str:
    """Why a run on rows that were never released would be over budget; empty if every cap has room for it.

    Where there is no ledger yet, the caps are those of params.yaml. No row, no source and no team's database is looked
    at.

    Raises:
        LikenessError: the settings cannot be planned, or the ledger cannot be read.
    """
    home = project.ledger_home
    if home.url is not None:
        return ""
    if not home.database.exists():
        found = headrooms([], _declared(project), Asker.of(project.provenance), moment([]), project.limits)
    else:
        found = rooms_for(project)
    try:
        check_headrooms(found, Cost.total(Cost(query.rho, query.delta_keys) for query in project.plan.queries))
    except BudgetError as error:
        return str(error)
    return ""


def _declared(project: Project) -> Budget:
    """What params.yaml says of an identity that the ledger has never heard of."""
    cap, privacy = project.params.ledger.cap, project.params.privacy
    keys = project.delta_for_keys
    return Budget(
        privacy.population, Adjacency(privacy.adjacency), cap.epsilon, cap.delta, 0.0, 0, selection_delta=keys
    )


def afford(runs: Sequence[Project]) -> tuple[list[Cost], list[Headroom]]:
    """What runs of these projects would be charged, and the caps with room for all of them.

    Rows that the ledger may not know are taken as new. Only where that would not fit is the source looked at.

    Raises:
        BudgetError: a cap has no room; nothing was read.
    """
    rooms = rooms_for(runs[0])
    costs = grid_costs(runs, None)
    try:
        check_headrooms(rooms, Cost.total(costs))
    except BudgetError:
        dataset = known_rows(runs[0])
        if dataset is None:
            raise
        costs = grid_costs(runs, dataset)
        check_headrooms(rooms, Cost.total(costs))
    return costs, rooms


def grid_costs(runs: Sequence[Project], dataset: "Dataset | None") -> list[Cost]:
    """What each run adds to those before it: what is on record, or shared with them, is not paid again."""
    seen: dict[str, Cost] = {}
    costs = []
    for run in runs:
        new = {key: cost for key, cost in new_releases(run, dataset).items() if key not in seen}
        seen |= new
        costs.append(Cost.total(new.values()))
    return costs


def room_lines(rooms: Sequence[Headroom], cost: Cost) -> list[str]:
    """One line a cap: what was spent, what it would be then, what remains."""
    return [_room_line(room, room.after(cost)) for room in rooms]


def _room_line(room: Headroom, after: Headroom) -> str:
    line = (
        f"{room.label} cap of {room.population}: epsilon {room.spent_epsilon:.4g} spent, {after.spent_epsilon:.4g} of "
        f"{room.epsilon:g} afterwards at delta {room.delta:g}; rho {after.remaining_rho:.4g} of {after.cap_rho:.4g} "
        "would remain"
    )
    if not after.spent_delta:
        return line
    most = room.delta if room.selection_delta is None else room.selection_delta
    return f"{line}; thresholds would have taken {after.spent_delta:.4g} of their delta {most:.4g}"


def _yaml(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = (yaml.safe_load(file.read_text()) if file.exists() else None) or {}
    return content
