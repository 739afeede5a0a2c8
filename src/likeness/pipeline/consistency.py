"""Whether settings, plan, releases, generator and table of a folder belong together.

A statement is true of a table only under three conditions. A generator drew the table. The generator was trained on
exactly the releases that the statement composes. The settings ask for these releases. A stage that somebody runs by
hand, out of order or with changed settings may break that. Then nothing is stated.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from likeness.core.errors import ReleaseError
from likeness.core.paths import ProjectPaths, read_json
from likeness.ledger.records import base_attempt
from likeness.methods.row_set import RowSet
from likeness.pipeline.project import Project
from likeness.privacy.plan import Plan
from likeness.release.partition_selection import partition_queries
from likeness.release.released import Released
from likeness.release.request import AnyQuery, check_answer

# Two machines may solve for rho with a different last digit.
_TOLERANCE = 1e-9


def check_run(project: Project, plan: Plan, released: Mapping[Path, Released]) -> None:
    """Refuse plan, releases or generator that are not of these settings.

    Args:
        project: the project of the run.
        plan: as it was written.
        released: every released file of the run.

    Raises:
        ReleaseError: saying which file contradicts which setting.
    """
    check_plan(project, plan)
    _check_receipts(project.params.ledger.attempt, plan, released)
    queries = queries_of(project, plan, project.row_sets, auxiliary_of(released.values()))
    for path, release in released.items():
        check_answer(*queries[release.receipt.query], release, str(path))
    _check_generator(project, released)


def check_plan(project: Project, plan: Plan) -> None:
    """Refuse a plan that is not that of the settings.

    Args:
        project: with the settings.
        plan: as it was written.

    Raises:
        ReleaseError: they do not agree.
    """
    expected = project.plan
    same = [
        (query.query, query.stage, query.share) == (other.query, other.stage, other.share)
        and _close(query.noise_multiplier, other.noise_multiplier)
        and _close(query.rho, other.rho)
        and _close(query.delta_keys, other.delta_keys)
        for query, other in zip(plan.queries, expected.queries, strict=False)
    ]
    public = ("method", "identity", "adjacency", "epsilon", "delta", "num_records", "unit")
    if (
        len(plan.queries) != len(expected.queries)
        or not all(same)
        or any(getattr(plan, name) != getattr(expected, name) for name in public)
    ):
        raise ReleaseError(
            f"{project.paths.plan} is not the plan of params.yaml: the settings have changed. Run: likeness run"
        )


def _check_receipts(attempt: str, plan: Plan, released: Mapping[Path, Released]) -> None:
    """Every planned query was answered once, at the planned noise, for the planned people, from the same rows."""
    answered = sorted(release.receipt.query for release in released.values())
    planned = sorted(query.query for query in plan.queries)
    if answered != planned:
        fault = f"data/released answers the queries {answered}, but the plan has {planned}"
        raise ReleaseError(f"{fault}. Run: likeness run")
    for path, release in released.items():
        receipt = release.receipt
        if (receipt.adjacency, receipt.identity) != (str(plan.adjacency), plan.identity):
            raise ReleaseError(
                f"{path}: released under another privacy.adjacency or privacy.population. Run: likeness run"
            )
        if receipt.unit != plan.unit:
            raise ReleaseError(f"{path}: released under another ingest.unit. Run: likeness run")
        if base_attempt(receipt.slot) != attempt:
            raise ReleaseError(f"{path}: released under another ledger.attempt. Run: likeness run")
        query = plan.query(receipt.query)
        same = _close(receipt.noise_multiplier, query.noise_multiplier) and receipt.delta_keys == query.delta_keys
        if receipt.private is not plan.private or not same:
            raise ReleaseError(f"{path}: released with another noise than {ProjectPaths.plan} has. Run: likeness run")
    if len({release.receipt.digest for release in released.values()}) > 1:
        raise ReleaseError("data/released holds releases of different versions of the rows. Run: likeness run")


def auxiliary_of(released: Iterable[Released]) -> dict[str, Released]:
    """Answers of the auxiliary stage, by the name of their query, of all releases of a run."""
    return {release.receipt.query: release for release in released if release.receipt.stage == "auxiliary"}


def queries_of(
    project: Project, plan: Plan, row_sets: Iterable[RowSet], auxiliary: Mapping[str, Released]
) -> dict[str, tuple[AnyQuery, str]]:
    """Every query of the settings by name, with the digest of the encoding of its rows.

    Args:
        project: with the settings.
        plan: of these settings.
        row_sets: the rows, with the schema completed by the released categories.
        auxiliary: answers of the auxiliary stage, by the name of their query.
    """
    written, recipe = project.written_schema, project.method
    encoding = project.written_model.encoding(written)
    selections = partition_queries(written, plan, project.params.categories.most)
    queries: dict[str, tuple[AnyQuery, str]] = {query.name: (query, encoding) for query in selections}
    for rows in row_sets:
        answers = rows.queries(recipe, rows.auxiliary(auxiliary))
        queries |= {query.name: (query, rows.encoding) for query in answers}
    return queries


def _check_generator(project: Project, released: Mapping[Path, Released]) -> None:
    keys = sorted(release.receipt.key for release in released.values())
    for folder in map(project.output, project.outputs.generators):
        provenance = read_json(folder / "spec.json").get("provenance", {})
        if (provenance.get("method"), provenance.get("releases")) != (project.params.method, keys):
            raise ReleaseError(
                f"{folder} was trained on other releases than data/released holds, so no statement is true of it. "
                "Run: likeness run"
            )


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_TOLERANCE)
