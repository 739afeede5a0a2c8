"""A request for one release, and what the records say about it before it is granted."""

import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likeness.core.bounds import Unit
from likeness.core.errors import BudgetError
from likeness.core.rng import secret_bytes
from likeness.ledger.budget import RELATIVE_TOLERANCE, Cost
from likeness.ledger.records import Record
from likeness.privacy.adjacency import Adjacency

AGAIN = "~"
"""Between a slot and the number of the draw, where an earlier draw was lost and is spent again."""


@dataclass(frozen=True)
class Reservation:
    """A request for one release.

    Attributes:
        key: name of the release. plan, digest: the plan and the typed rows it belongs to.
        slot: a deliberate repetition has another slot. encoding: of the rows, as in the key.
        rho: its cost. others: names and costs of the plan's other queries: what of them is not yet on record must fit
            as well, so that a run that cannot finish does not start.
        details: what else an auditor wants to read, public facts only.
        unit: who is protected where a person may have several rows; None: a row is a person.
        delta_keys: what its threshold costs of δ, if it has one. others_delta: the same of the plan's other queries
            that have one.
        rows_digest: of the rows of the source, whatever a schema takes of them; empty if it is not told.
    """

    key: str
    identity: str
    adjacency: Adjacency
    rho: float
    plan: str
    others: Mapping[str, float]
    digest: str
    slot: str
    encoding: str
    details: dict[str, Any]
    unit: Unit | None = None
    delta_keys: float = 0.0
    others_delta: Mapping[str, float] = field(default_factory=dict)
    rows_digest: str = ""

    @property
    def cost(self) -> Cost:
        """What it would cost by itself."""
        return Cost(self.rho, self.delta_keys)


def base_slot(slot: str) -> str:
    """The slot of params.yaml, whichever draw in it this is."""
    return slot.partition(AGAIN)[0]


def sealed(digest: str, key: bytes, salt: str | None = None) -> str:
    """A digest that only the ledger can compare: a salt, and a keyed hash of salt and digest.

    An entry stands whole in a bundle. Two equal digests would tell whoever sees both that no row of the source changed
    in between, not even one that no release is about.

    Args:
        digest: of the rows of a source.
        key: the secret of the ledger.
        salt: of an entry, to compare with it; None: a new one.
    """
    salt = secret_bytes(16).hex() if salt is None else salt
    return f"{salt}:{hmac.digest(key, f'{salt}{digest}'.encode(), 'sha256').hex()}"


def check_owner(records: list[Record], request: Reservation, key: bytes) -> None:
    """The same rows under another name would be a way around the cap, or a slip.

    Rows are the same if they are typed alike, or if they are those of the same source: another schema or split is no
    other people. Entries of older versions do not tell of the source.

    Raises:
        BudgetError: the rows are accounted under another identity.
    """
    for record in records:
        body = record.body
        if record.kind != "reserve" or body["identity"] == request.identity:
            continue
        source = str(body.get("rows_digest", ""))
        same_source = bool(request.rows_digest and source) and source == sealed(
            request.rows_digest, key, source.partition(":")[0]
        )
        if body["digest"] == request.digest or same_source:
            owner = body["identity"]
            raise BudgetError(
                f"these very rows are accounted under identity '{owner}' (entry {record.seq}); a new name would "
                f"forget what was spent on them. Set privacy.population: {owner}."
            )


def open_queries(records: list[Record], request: Reservation) -> list[Cost]:
    """Costs of what the plan of a request asks besides, and these rows have not answered at that cost.

    Keys are released before rows are encoded with them, so that their entries have an encoding of their own.
    """
    gone = {record.body["key"] for record in records if record.kind == "lost"}
    unit = None if request.unit is None else request.unit.to_dict()
    paid: dict[str, list[float]] = {}
    for record in records:
        body = record.body
        if (
            record.kind == "reserve"
            and body["key"] not in gone
            and (body["identity"], body["digest"], base_slot(body["slot"]), body.get("unit"))
            == (request.identity, request.digest, base_slot(request.slot), unit)
            and (body["encoding"] == request.encoding or "delta_keys" in body)
        ):
            paid.setdefault(str(body.get("query")), []).append(float(body["rho"]))
    # A query of the plan is paid if these rows answered one of its name at its cost: another method may have asked it.
    return [
        Cost(rho, request.others_delta.get(name, 0.0))
        for name, rho in request.others.items()
        if not any(math.isclose(rho, cost, rel_tol=RELATIVE_TOLERANCE) for cost in paid.get(name, []))
    ]
