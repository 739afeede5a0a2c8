"""The cost of a run before it starts: its releases that are not on record, and what the cap leaves.

Only the door charges. This is a preview for schedules and grids of methods and ε. It reads no private row: the keyed
hash of the source and the manifest of the encoded table identify the rows of an earlier run.
"""

import contextlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likeness.config.load import read_params
from likeness.config.params import NONE, Ingest
from likeness.core.errors import BudgetError, LikenessError, ParamsError
from likeness.core.hashing import sha256_json
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.refusals import refusals_of
from likeness.core.typed import build
from likeness.data.encoding.layout import encoding_digest
from likeness.ledger.budget import RELATIVE_TOLERANCE, Budget, Cost, composition, costs_on_record
from likeness.ledger.records import base_attempt
from likeness.ledger.reservation import Dataset
from likeness.ledger.series import Series
from likeness.pipeline.dvc_repair import locked_stages
from likeness.pipeline.ledger_session import delta_for_selection
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_of_rho
from likeness.privacy.cohorts import MOST_NIGHTS, Cohort
from likeness.release.door import current_draw
from likeness.release.partition_selection import partition_queries
from likeness.release.private_bounds import bounds_query, complete_schema
from likeness.release.released import Released, from_bytes
from likeness.release.request import AnyQuery, noise_scale, request_of
from likeness.release.store import stored_bytes


def with_target(project: Project, name: str, epsilon: float) -> Project:
    """A project with another method and ε."""
    params = project.params
    return replace(project, params=replace(params, method=name, privacy=replace(params.privacy, epsilon=epsilon)))


def last_rows(project: Project) -> "Dataset | None":
    """The rows of the last run, if source and rules of ingestion are certainly unchanged; else None."""
    from likeness.pipeline.doors import rows_of  # `likeness ledger show` needs no table

    try:
        dataset, _ = rows_of(project)
        if read_json(project.paths.source).get("hmac") != project.source_digest():
            return None
    except LikenessError:
        return None
    now = read_params(project.paths.params).ingest
    try:
        settings = locked_stages(project.paths)["ingest"]["params"][str(ProjectPaths.settings)]
        then = build(Ingest, settings["ingest"], "ingest")
    except (KeyError, TypeError, ParamsError):
        return None
    return dataset if then == now else None


def new_releases(project: Project, dataset: "Dataset | None") -> dict[str, Cost]:
    """Cost of every release of a run that is not on record, by its key. Without rows, all are new.

    Raises:
        PlanError: the settings cannot be planned.
    """
    params, ledger, plan = project.params, project.ledger, project.plan
    rows = dataset or Dataset(plan.identity, "rows to come", params.ledger.attempt, "", plan.unit)
    reserved = {str(record.body["key"]) for record in ledger.records() if record.kind == "reserve"}
    costs = {query.query: Cost(query.rho, query.delta_keys) for query in plan.queries}
    priced = {key: costs.pop(name) for name, key in _known_keys(project, rows, reserved)}
    section = params.sections.get(params.method)
    for name, cost in costs.items():
        priced[sha256_json([plan.digest, section, name])] = cost
    return {key: cost for key, cost in priced.items() if key not in reserved}


def _known_keys(project: Project, rows: "Dataset", reserved: Collection[str]) -> Iterator[tuple[str, str]]:
    """Name and key of each query of a run, up to the first one that depends on an answer that is not released yet."""
    plan, recipe, schema, ledger = project.plan, project.method, project.written_schema, project.ledger
    lost = ledger.lost_keys()

    def key_of(query: AnyQuery, encoding: str) -> str:
        draw = current_draw(query, plan, replace(rows, encoding=encoding), lost)
        return sha256_json(request_of(query, str(plan.adjacency), noise_scale(query, plan), draw))

    def answer_to(key: str) -> Released | None:
        data = stored_bytes(ledger, key) if key in reserved else None
        return None if data is None else from_bytes(data, key[:12])

    answered: list[Released] = []
    first_queries: list[AnyQuery] = [*partition_queries(schema, plan, project.params.categories.most)]
    first_queries += [bounds_query(schema)] if schema.unbounded_columns else []
    for first in first_queries:
        key = key_of(first, encoding_digest(schema))
        yield first.name, key
        if (answer := answer_to(key)) is not None:
            answered.append(answer)
    if len(answered) < len(first_queries):
        return
    with contextlib.suppress(KeyError):  # of a query that needs a missing answer: it and all later ones are new
        # The released categories encode the rows of the queries below.
        for row_set in project.row_sets_of(complete_schema(schema, answered)):
            auxiliary: dict[str, Released] = {}
            for query in recipe.auxiliary_queries(row_set.context, auxiliary):
                named = row_set.scope(query)
                key = key_of(named, row_set.encoding)
                yield named.name, key
                if (answer := answer_to(key)) is not None:
                    auxiliary[query.name] = answer
            named = row_set.scope(recipe.embedding_query(row_set.context, auxiliary))
            yield named.name, key_of(named, row_set.encoding)


def refusal_ahead(project: Project) -> str:
    """Give the reason why a run on new rows would be over budget; empty if the cap has room for it.

    Without a ledger, the cap is that of params.yaml. It opens no row, no source and no team's database.

    Raises:
        LikenessError: the settings cannot be planned, or the ledger cannot be read.
    """
    home = project.ledger_session.home
    if home.url is not None:
        return ""
    budget = _budget(project) if home.database.exists() else _declared_budget(project)
    cost = Cost.total(Cost(query.rho, query.delta_keys) for query in project.plan.queries)
    return "".join(map(str, refusals_of(lambda: budget.check(cost), BudgetError)))


def _budget(project: Project) -> Budget:
    """The budget on record, or that of a population that is new to the ledger."""
    return project.ledger.budget(project.params.privacy.population) or _declared_budget(project)


def _declared_budget(project: Project) -> Budget:
    """The budget in params.yaml for a population that is new to the ledger."""
    cap, privacy = project.params.ledger.cap, project.params.privacy
    share = delta_for_selection(project.params) if project.written_schema.open_columns else 0.0
    adjacency = Adjacency(privacy.adjacency)
    return Budget(privacy.population, adjacency, cap.epsilon, cap.delta, 0.0, 0, selection_delta=share)


def afford(runs: Sequence[Project]) -> tuple[list[Cost], Budget]:
    """The charges of runs of these projects, and the budget with room for all of them.

    It takes all rows as new first. Only if that does not fit, it looks at the source.

    Raises:
        BudgetError: the cap has no room; nothing was read.
    """
    budget = _budget(runs[0])
    costs = grid_costs(runs, None)
    try:
        budget.check(Cost.total(costs))
    except BudgetError:
        dataset = last_rows(runs[0])
        if dataset is None:
            raise
        costs = grid_costs(runs, dataset)
        budget.check(Cost.total(costs))
    return costs, budget


Costs = NDArray[np.float64]
RUNS_A_YEAR = {"night": 365.25, "week": 365.25 / 7, "month": 12.0}


class Schedule(NamedTuple):
    """Runs on new rows, one after the other, under one lifetime cap.

    Attributes:
        runs: that are wished.
        cost: of each, at its full price, because its rows are new.
        room: number of runs that the cap has room for; ``runs`` without a finite cap, and at most ``runs`` of a series.
        keys_room: the same for the part of δ for private categories alone.
        epsilon: of a run, at ``privacy.delta``, with which ρ has room for all of them, rounded down to two digits; 0
            where nothing is left.
    """

    runs: int
    cost: Cost
    room: int
    keys_room: int
    epsilon: float


def schedule(project: Project, every: str, years: float) -> Schedule:
    """Compute what the cap allows of a run repeated for years. ρ adds up, so ε grows with the root of their number.

    In a series each person is in few nights, so ρ grows with the logarithm (:mod:`likeness.privacy.cohorts`).

    Args:
        project: with the settings of each run.
        every: a key of ``RUNS_A_YEAR``.
        years: above 0.

    Raises:
        LikenessError: the settings cannot be planned, or the ledger cannot be read.
    """
    budget, runs = _budget(project), max(1, round(RUNS_A_YEAR[every] * years))
    cost = Cost.total(Cost(query.rho, query.delta_keys) for query in project.plan.queries)
    if project.params.privacy.series == NONE:
        keys_room = _room(budget.selection_delta - budget.spent_delta, cost.delta, runs)
        room = min(_room(budget.remaining_rho, cost.rho, runs), keys_room if cost.delta else math.inf)
        most = budget.remaining_rho / runs
    else:
        rho, delta, cohorts = _remaining_budget(project, budget, runs)
        keys_room = _nights(delta, cost.delta, cohorts)
        room, most = min(_nights(rho, cost.rho, cohorts), keys_room), _largest_rho(rho, cohorts)
    least = epsilon_of_rho(most, project.params.privacy.delta)
    if 0 < least < math.inf:
        two_digits = 10.0 ** (1 - math.floor(math.log10(least)))
        least = math.floor(least * two_digits) / two_digits
    return Schedule(runs, cost, int(room), keys_room, least)


def _room(left: float, cost: float, runs: int) -> int:
    """Count how often a cost fits into what is left; ``runs`` where there is no limit."""
    return runs if not cost or left == math.inf else math.floor(max(0.0, left * (1 + RELATIVE_TOLERANCE) / cost))


def _remaining_budget(project: Project, budget: Budget, runs: int) -> tuple[Costs, Costs, list[Cohort]]:
    """Compute the ρ and δ that are left by first night, shape (nights,) each, and the cohorts of the nights to come."""
    params = project.params
    records = project.ledger.records() if project.ledger_session.home.database.exists() else []
    composed, attempt = composition(costs_on_record(records, budget.population)), base_attempt(params.ledger.attempt)
    spent = np.zeros((2, MOST_NIGHTS + 1))
    if attempt in composed.series:
        spent[:, : composed.series[attempt].shape[1]] = composed.series[attempt]
    others = np.subtract(composed.total, composed.most.get(attempt, (0.0, 0.0)))[:, None]
    night = Series.from_records(records, budget.population, attempt).night
    last = 0 if night is None else night.cohort.last
    nights = range(last + 1, min(last + runs, MOST_NIGHTS) + 1)
    left = np.maximum(np.array([[budget.cap_rho], [budget.selection_delta]]) - others - spent, 0.0)
    return left[0], left[1], [Cohort.from_night(number, range(number)) for number in nights]


def _nights(left: Costs, cost: float, cohorts: Sequence[Cohort]) -> int:
    """Count the nights that fit, one after the other, at a cost for each person of the cohort."""
    room = left * (1 + RELATIVE_TOLERANCE)
    for done, cohort in enumerate(cohorts):
        span = slice(cohort.first, cohort.last + 1)
        room[span] -= cost
        if (room[span] < 0).any():
            return done
    return len(cohorts)


def _largest_rho(left: Costs, cohorts: Sequence[Cohort]) -> float:
    """The largest ρ of a night with which all of them fit."""
    times = np.zeros(len(left))
    for cohort in cohorts:
        times[cohort.first : cohort.last + 1] += 1
    return float((left[times > 0] / times[times > 0]).min(initial=math.inf))


def grid_costs(runs: Sequence[Project], dataset: "Dataset | None") -> list[Cost]:
    """The cost that each run adds to the earlier ones. Releases on record, or shared with them, are free."""
    seen: dict[str, Cost] = {}
    costs = []
    for run in runs:
        new = {key: cost for key, cost in new_releases(run, dataset).items() if key not in seen}
        seen |= new
        costs.append(Cost.total(new.values()))
    return costs


def remainder(budget: Budget, cost: Cost) -> str:
    """One line: what was spent, what is spent after a cost, and what is left then."""
    after = budget.add_cost(cost)
    line = (
        f"lifetime cap of {budget.population}: epsilon {budget.spent_epsilon:.4g} spent, {after.spent_epsilon:.4g} of "
        f"{budget.cap_epsilon:g} afterwards at delta {budget.cap_delta:g}; rho {after.remaining_rho:.4g} of "
        f"{after.cap_rho:.4g} would remain"
    )
    if not after.spent_delta:
        return line
    return f"{line}; thresholds would have taken {after.spent_delta:.4g} of their delta {budget.selection_delta:.4g}"
