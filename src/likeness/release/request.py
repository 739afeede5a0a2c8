"""A request: everything that shapes a release. Its digest is the key in the ledger."""

import math
from collections.abc import Mapping
from typing import Any

from likeness.core.errors import PlanError, ReleaseError
from likeness.core.format import RECIPE
from likeness.core.hashing import json_value, plain_json, sha256_bytes, sha256_json
from likeness.ledger.reservation import Dataset
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import CHOICE, MECHANISM, THRESHOLDED
from likeness.release.choices import ChoiceQuery
from likeness.release.partition_selection import PartitionQuery
from likeness.release.query import Query
from likeness.release.released import Released

AnyQuery = Query | PartitionQuery
_ROUND_UP = 1 + 2.0**-48  # the scale is never rounded below that of the plan


def noise_scale(query: AnyQuery, plan: Plan) -> float:
    """σ in lattice steps: the plan's noise multiplier times the sensitivity; 0 where the plan is not private.

    Raises:
        PlanError: the plan contradicts itself.
    """
    sensitivity = math.sqrt(query.sensitivity_squared(plan.adjacency, plan.unit))
    scale = sensitivity * plan.query(query.name).noise_multiplier * _ROUND_UP
    if plan.private is not (scale > 0):
        raise PlanError("plan.json contradicts itself: noise and target do not agree. Run: likeness run")
    return scale


def request_of(query: AnyQuery, adjacency: str, scale: float, dataset: Dataset) -> dict[str, Any]:
    """Everything that shapes the released values; its digest is the key. A scale of 0 is no privacy."""
    mechanism, threshold, delta_keys = CHOICE if isinstance(query, ChoiceQuery) else MECHANISM, None, 0.0
    if isinstance(query, PartitionQuery):
        mechanism, delta_keys = THRESHOLDED, query.delta_keys
        threshold = query.threshold(scale, dataset.unit)
    return {
        "mechanism": mechanism if scale > 0 else "none",
        "recipe": RECIPE,
        "identity": dataset.population,
        "digest": dataset.digest,
        "slot": dataset.attempt,
        "encoding": dataset.encoding,
        "query": query.name,
        "feature": query.spec(),
        "num_groups": query.num_groups,
        "adjacency": adjacency,
        "lattice_bits": query.lattice_bits,
        "noise_scale": scale,
        "unit": json_value(dataset.unit),
        "threshold": threshold,
        "delta_keys": delta_keys,
        **_cohort_part(dataset.group),
    }


def request_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The request in a ledger's entry, for whoever recomputes its key.

    Raises:
        KeyError: the entry holds none.
    """
    return {**{key: entry[key] for key in REQUEST_KEYS}, **_cohort_part(entry["group"])}


def key_in(entry: Mapping[str, Any]) -> str:
    """The key of the request in a ledger's entry, as JSON gave it."""
    return sha256_bytes(plain_json(request_in(entry)).encode())


def _cohort_part(group: str) -> dict[str, str]:
    """The cohort as a part of a request; a request about everybody has none."""
    return {"group": group} if group else {}


def check_answer(query: AnyQuery, encoding: str, released: Released, where: str) -> None:
    """Refuse a release that answers another query.

    Args:
        query: the query.
        encoding: digest of the encoding of its rows.
        released: the answer.
        where: its file, for messages.

    Raises:
        ReleaseError: another map, number of classes, schema, or recipe; or a choice that was not left.
    """
    receipt = released.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(f"{where}: answers another question than the settings ask")
    if isinstance(query, ChoiceQuery) and not query.allows(released.lattice):
        raise ReleaseError(f"{where}: holds a choice that the candidates and the choices before it do not leave")
    # The key holds what the receipt does not: the schema's bounds and categories.
    dataset = Dataset(receipt.identity, receipt.digest, receipt.slot, encoding, receipt.unit, group=receipt.group)
    if sha256_json(request_of(query, receipt.adjacency, receipt.noise_scale, dataset)) != receipt.key:
        raise ReleaseError(f"{where}: answers another question: that of another schema or version of Likeness")


REQUEST_KEYS = (
    "mechanism",
    "recipe",
    "identity",
    "digest",
    "slot",
    "encoding",
    "query",
    "feature",
    "num_groups",
    "adjacency",
    "lattice_bits",
    "noise_scale",
    "unit",
    "threshold",
    "delta_keys",
)
"""The keys of every :func:`request_of`; one about a cohort has ``group``, too."""
