"""A request for one release, and the checks against the records before it is granted."""

import hmac
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import BudgetError
from likeness.core.format import RECIPE
from likeness.core.hashing import json_value
from likeness.ledger.budget import RELATIVE_TOLERANCE, Cost
from likeness.ledger.records import SALT, SPENDING, Record, base_attempt
from likeness.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class Dataset:
    """The identity of rows, without a row: whose they are, and which version of them.

    Attributes:
        population: name of the people.
        digest: keyed hash of the typed training rows.
        attempt: a deliberate second release of a request has another one.
        encoding: digest of the public rules that turn typed rows into the vectors that feature maps see.
        unit: for whom the rows were bounded, where a person may have several; None: a row is a person.
        rows_digests: keyed hashes of the rows of each table of the source, in no order and with all columns, and of the
            typed rows of both parts; no part of the request.
        sibling_encodings: encodings of the plan's other rows of these people; no part of the request.
        group: the cohort of a night of a series (:mod:`likeness.privacy.cohorts`); empty: everybody.
        first_nights: digest of the first nights of all people; no part of the request.
        day: on which the rows of a night were read; no part of the request.
    """

    population: str
    digest: str
    attempt: str = "1"
    encoding: str = ""
    unit: PrivacyUnit | None = None
    rows_digests: tuple[str, ...] = ()
    sibling_encodings: tuple[str, ...] = ()
    group: str = ""
    first_nights: str = ""
    day: str = ""


@dataclass(frozen=True, kw_only=True)
class Reservation(Dataset):
    """A request for one release about a data set.

    Attributes:
        key: name of the release.
        adjacency: what counts as a neighboring table.
        rho: ρ of the release.
        plan: digest of the plan.
        others: from the name of each other query of the plan to its ρ. The part that is not on record must fit too:
            a run that cannot finish does not start.
        details: public facts for an auditor.
        delta: δ of the partition selection.
        others_delta: from the name of each other partition selection of the plan to its δ.
    """

    key: str
    adjacency: Adjacency
    rho: float
    plan: str
    others: Mapping[str, float]
    details: dict[str, Any]
    delta: float = 0.0
    others_delta: Mapping[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> Cost:
        """Cost of this release alone."""
        return Cost(self.rho, self.delta)

    def body(self, key: bytes, salt: str) -> dict[str, Any]:
        """Content of its record; the secret of the ledger seals digests of rows, and the salt is that of the run."""
        return {
            SALT: salt,
            **self.details,
            "key": self.key,
            "identity": self.population,
            "adjacency": str(self.adjacency),
            "unit": json_value(self.unit),
            "rho": self.rho,
            "plan": self.plan,
            "digest": self.digest,
            "slot": self.attempt,
            "group": self.group,
            "encoding": self.encoding,
            "delta_keys": self.delta,
            "rows_digests": [seal_digest(digest, key, salt) for digest in self.rows_digests],
            **({"day": self.day, "first_nights": seal_digest(self.first_nights, key, salt)} if self.group else {}),
        }


def seal_digest(digest: str, key: bytes, salt: str) -> str:
    """128 bits that only the ledger can compare with a digest: a keyed hash of salt and digest.

    An entry stands whole in a bundle. Two equal digests there would show that no row of the source changed in between.

    Args:
        digest: keyed hash of the rows of a source.
        key: the secret of the ledger.
        salt: of the entry.
    """
    return hmac.digest(key, f"{salt}{digest}".encode(), "sha256").hex()[:32]


def check_owner(records: list[Record], population: str, digest: str, rows_digests: Sequence[str], key: bytes) -> None:
    """Refuse rows that are on record under another name: a new name would get around the cap.

    Rows are equal if they are typed alike or if a table of their sources is the same: another schema or split is no
    other population. People without their events, or events without their people, are the same people.

    Args:
        records: of the ledger.
        population: name of the people.
        digest: keyed hash of the typed rows.
        rows_digests: keyed hashes of the rows of each table of the source.
        key: of the ledger.

    Raises:
        BudgetError: the rows are accounted under another population.
    """
    for record in records:
        body = record.body
        if record.kind not in SPENDING or body["identity"] == population:
            continue
        seals = {seal_digest(mine, key, body[SALT]) for mine in rows_digests}
        if body.get("digest") == digest or seals & {*body.get("rows_digests", ())}:
            owner = body["identity"]
            raise BudgetError(
                f"these rows are accounted under population '{owner}' (entry {record.seq}). A new name would forget "
                f"what was spent on them. Set privacy.population in params.yaml: {owner}."
            )


def check_same_request(records: Sequence[Record], population: str, attempt: str, rho: float) -> None:
    """Refuse to ask by another recipe than the earlier releases of an attempt did, until a person agrees.

    After an upgrade of Likeness the same settings may ask another question. Nothing of it is paid then. A person agrees
    by another attempt, which is a deliberate new release. So all releases of an attempt have one recipe.

    Args:
        records: of the ledger.
        population: name of the people.
        attempt: of params.yaml, with or without the number of a draw.
        rho: that the question costs.

    Raises:
        BudgetError: the releases of this attempt have another recipe.
    """
    name = base_attempt(attempt)
    for record in reversed(records):
        body = record.body
        if record.kind != "reserve" or (body["identity"], base_attempt(body["slot"])) != (population, name):
            continue
        if body.get("recipe", RECIPE) != RECIPE:
            raise BudgetError(
                f"Likeness {body.get('likeness', 'of another version')} made earlier releases about '{population}', by "
                f"recipe {body['recipe']}. This version has recipe {RECIPE}: the same settings ask another question. "
                f"It costs rho {rho:.6g} beside all earlier costs. Nothing was spent. To agree, give ledger.attempt in "
                "params.yaml a value that is new. Or install that version."
            )
        return  # the others have that of the newest


def open_queries(records: list[Record], request: Reservation) -> list[Cost]:
    """Costs of the plan's other queries that are not on record for these rows at that cost.

    Partition selection comes before rows are encoded with its result, so its entries have another encoding.
    """
    lost = {record.body["key"] for record in records if record.kind == "lost"}
    unit = json_value(request.unit)
    paid: dict[str, list[float]] = {}
    for record in records:
        body = record.body
        if (
            record.kind == "reserve"
            and body["digest"] == request.digest  # first: of other rows nothing else is read
            and body["key"] not in lost
            and (body["identity"], base_attempt(body["slot"]), body["unit"])
            == (request.population, base_attempt(request.attempt), unit)
            and (body["encoding"] in (request.encoding, *request.sibling_encodings) or body["delta_keys"])
        ):
            paid.setdefault(str(body.get("query")), []).append(float(body["rho"]))
    # A query is paid if these rows answered one of its name at its cost, also for another method.
    return [
        Cost(rho, request.others_delta.get(name, 0.0))
        for name, rho in request.others.items()
        if not any(math.isclose(rho, cost, rel_tol=RELATIVE_TOLERANCE) for cost in paid.get(name, []))
    ]
