"""Whether what lies in the folder belongs together: settings, plan, releases, generator and table.

A statement is about the table beside it only if the table was drawn from a generator that was trained on exactly the
releases that the statement composes, and these are what the settings ask for. Stages that are run by hand, out of order
or with changed settings break that; then nothing is stated.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from likeness.core.errors import ReleaseError
from likeness.core.hashing import sha256_json
from likeness.core.paths import read_json
from likeness.data.encoding.layout import encoding_digest
from likeness.generators.weights import check_weights
from likeness.ledger.reservation import base_attempt
from likeness.methods.base import Context
from likeness.pipeline.project import Project
from likeness.privacy.plan import Plan
from likeness.release.keys import KeyQuery, key_queries
from likeness.release.query import Query
from likeness.release.released import Released
from likeness.release.request import Dataset, request_of

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
    queries = queries_of(project, plan, project.context, auxiliary_of(released.values()))
    for path, one in released.items():
        check_answer(*queries[one.receipt.query], one, str(path))
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
        (own.query, own.stage, own.share) == (other.query, other.stage, other.share)
        and _close(own.noise_multiplier, other.noise_multiplier)
        and _close(own.rho, other.rho)
        and _close(own.delta_keys, other.delta_keys)
        for own, other in zip(plan.queries, expected.queries, strict=False)
    ]
    public = ("method", "identity", "adjacency", "epsilon", "delta", "num_records", "unit")
    if (
        len(plan.queries) != len(expected.queries)
        or not all(same)
        or any(getattr(plan, name) != getattr(expected, name) for name in public)
    ):
        raise ReleaseError(
            f"{project.paths.plan} is not the plan of params.yaml: settings were changed since. Run: dvc repro"
        )


def _check_receipts(slot: str, plan: Plan, released: Mapping[Path, Released]) -> None:
    """Every planned query was answered once, at the planned noise, for the planned people, from the same rows."""
    answered = sorted(one.receipt.query for one in released.values())
    planned = sorted(query.query for query in plan.queries)
    if answered != planned:
        raise ReleaseError(f"data/released answers {answered}, the plan asks {planned}. Run: dvc repro")
    for path, one in released.items():
        receipt = one.receipt
        if (receipt.adjacency, receipt.identity) != (str(plan.adjacency), plan.identity):
            raise ReleaseError(f"{path}: released under another adjacency or identity. Run: dvc repro")
        if receipt.unit != plan.unit:
            raise ReleaseError(f"{path}: released under another ingest.unit. Run: dvc repro")
        if base_attempt(receipt.slot) != slot:
            raise ReleaseError(f"{path}: released in another slot than ledger.attempt. Run: dvc repro")
        own = plan.query(receipt.query)
        same = _close(receipt.noise_multiplier, own.noise_multiplier) and receipt.delta_keys == own.delta_keys
        if receipt.private is not plan.private or not same:
            raise ReleaseError(f"{path}: released at another noise than the plan's. Run: dvc repro")
    if len({one.receipt.digest for one in released.values()}) > 1:
        raise ReleaseError("data/released mixes releases of different versions of the rows. Run: dvc repro")


def auxiliary_of(released: Iterable[Released]) -> dict[str, Released]:
    """Answers of the auxiliary stage, by the name of their query, of all releases of a run."""
    return {one.receipt.query: one for one in released if one.receipt.stage == "auxiliary"}


def queries_of(
    project: Project, plan: Plan, facts: Context, auxiliary: Mapping[str, Released]
) -> dict[str, tuple[Query | KeyQuery, str]]:
    """Every query that the settings ask, with the digest of the encoding of its rows, by name.

    Args:
        project: with the settings.
        plan: of these settings.
        facts: public facts, with the schema completed by the released categories.
        auxiliary: answers of the auxiliary stage, by the name of their query.
    """
    written, recipe = project.written_schema, project.method
    open_encoding, encoding = map(encoding_digest, (written, facts.schema))
    queries = [*recipe.auxiliary_queries(facts, auxiliary), recipe.embedding_query(facts, auxiliary)]
    return {
        **{query.name: (query, open_encoding) for query in key_queries(written, plan, project.params.categories.most)},
        **{query.name: (query, encoding) for query in queries},
    }


def check_answer(query: Query | KeyQuery, encoding: str, released: Released, where: str) -> None:
    """Refuse a release that answers another query.

    Args:
        query: the query.
        encoding: digest of the encoding of its rows.
        released: the answer.
        where: its file, for messages.

    Raises:
        ReleaseError: another map, number of classes, schema, or version of the mechanism.
    """
    receipt = released.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(f"{where}: answers another question than the settings ask. Run: dvc repro")
    # The key holds what the receipt does not: the schema's bounds and categories, and the mechanism's version.
    dataset = Dataset(receipt.identity, receipt.digest, receipt.slot, encoding, receipt.unit)
    if sha256_json(request_of(query, receipt.adjacency, receipt.noise_scale, dataset)) != receipt.key:
        raise ReleaseError(f"{where}: released for another schema, or by another version. Run: dvc repro")


def _check_generator(project: Project, released: Mapping[Path, Released]) -> None:
    provenance = read_json(project.paths.generator_spec).get("provenance", {})
    keys = sorted(one.receipt.key for one in released.values())
    if (provenance.get("method"), provenance.get("releases")) != (project.params.method, keys):
        raise ReleaseError(
            f"{project.paths.generator} was trained on other releases than those in data/released: the statement "
            "would not be about it. Run: dvc repro"
        )
    check_weights(project.paths.generator)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_TOLERANCE)
