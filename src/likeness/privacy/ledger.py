"""The ledger: what was ever asked of the people in a dataset, and what may still be asked.

A release is *reserved* before a private row is read, and counts as spent from then on; it is *committed* with the
digest of the released file. Costs are ρ of zero-concentrated differential privacy, which add up over releases,
methods, versions of the data, clones and branches. Storage is :mod:`likeness.privacy.chain`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likeness.errors import BudgetError, LedgerError
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.anchor import Anchor
from likeness.privacy.calibration import epsilon_of_rho, rho_for
from likeness.privacy.chain import Chain, Record, append
from likeness.privacy.home import Home
from likeness.rng import secret_bytes

_RELATIVE_TOLERANCE = 1e-9  # of ρ, for a plan that asks for exactly what is left


@dataclass(frozen=True)
class Budget:
    """State of one identity. ``spent_rho`` includes reservations that were never committed."""

    identity: str
    adjacency: Adjacency
    cap_epsilon: float
    cap_delta: float
    spent_rho: float
    uncommitted: int

    @property
    def spent_epsilon(self) -> float:
        """ε spent at the cap's δ."""
        return epsilon_of_rho(self.spent_rho, self.cap_delta)

    @property
    def remaining_rho(self) -> float:
        """ρ that may still be spent."""
        return max(0.0, rho_for(self.cap_epsilon, self.cap_delta) - self.spent_rho)


@dataclass(frozen=True)
class Reservation:
    """A request for one release.

    Attributes:
        key: name of the release. plan, digest: the plan and the typed rows it belongs to.
        slot: a deliberate repetition has another slot. encoding: of the rows, as in the key.
        rho: its cost. others: names and costs of the plan's other queries: what of them is not yet on record must fit
            as well, so that a run that cannot finish does not start.
        details: what else an auditor wants to read, public facts only.
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


class Ledger:
    """Budgets and reservations over one chain. Use :meth:`create` once, then :meth:`open`."""

    def __init__(self, chain: Chain) -> None:
        """Wrap an open chain."""
        self._chain = chain

    @classmethod
    def create(cls, home: Home) -> "Ledger":
        """Start a ledger; refused where there is, or was, one."""
        return cls(Chain.create(home))

    @classmethod
    def open(cls, home: Home) -> "Ledger":
        """Open a ledger and verify all of it; see :meth:`likeness.privacy.chain.Chain.open`."""
        return cls(Chain.open(home))

    @property
    def home(self) -> Home:
        """Its folders."""
        return self._chain.home

    @property
    def key(self) -> bytes:
        """The secret that keys digests of private data."""
        return self._chain.key

    @property
    def id(self) -> str:
        """Random name of this ledger."""
        return self.head().ledger_id

    def records(self) -> list[Record]:
        """All records, verified."""
        return self._chain.records()

    def head(self) -> Anchor:
        """Length and last digest, to be kept by outside witnesses."""
        return self._chain.head(self._chain.records())

    @staticmethod
    def reanchor(home: Home, head: str) -> None:
        """Write a lost anchor anew; see :meth:`likeness.privacy.chain.Chain.reanchor`."""
        Chain.reanchor(home, head)

    def declare_identity(self, identity: str, adjacency: Adjacency, epsilon: float, delta: float) -> None:
        """Record the lifetime cap of an identity the first time it is seen; later the ledger's cap rules.

        Raises:
            PlanError: the cap is no (ε, δ).
            BudgetError: the settings ask for another cap or adjacency than the one on record.
        """
        rho_for(epsilon, delta)
        with self._chain.appending() as records:
            budget = _budget(records, identity)
            if budget is None:
                append(records, "cap", _cap_body(identity, adjacency, epsilon, delta))
                return
            if budget.adjacency is not adjacency:
                raise BudgetError(
                    f"identity '{identity}' is accounted under {budget.adjacency}; a release under {adjacency} cannot "
                    f"be composed with the earlier ones. Set privacy.adjacency: {budget.adjacency}."
                )
            if (budget.cap_epsilon, budget.cap_delta) != (epsilon, delta):
                raise BudgetError(
                    f"ledger.cap in params.yaml is (epsilon {epsilon:g}, delta {delta:g}), the ledger's cap for "
                    f"'{identity}' is ({budget.cap_epsilon:g}, {budget.cap_delta:g}). The ledger rules: set params to "
                    "it, or change it on record with: likeness ledger cap"
                )

    def change_cap(self, identity: str, epsilon: float, delta: float) -> None:
        """Record a new lifetime cap, a decision of a person that stays visible for ever.

        Raises:
            PlanError: the cap is no (ε, δ).
            LedgerError: the identity is not on record.
        """
        rho_for(epsilon, delta)
        with self._chain.appending() as records:
            budget = _budget(records, identity)
            if budget is None:
                raise LedgerError(f"identity '{identity}' is not in the ledger")
            append(records, "cap", _cap_body(identity, budget.adjacency, epsilon, delta))

    def budget(self, identity: str) -> Budget | None:
        """State of one identity; None if the ledger has never heard of it."""
        return _budget(self._chain.records(), identity)

    def identities(self) -> list[str]:
        """All identities, in the order in which they were first seen."""
        return list(dict.fromkeys(str(r.body["identity"]) for r in self._chain.records() if r.kind == "cap"))

    def find(self, key: str) -> tuple[Record | None, Record | None]:
        """The reserve and the commit record of a release key, where they exist."""
        found: dict[str, Record] = {}
        for record in self._chain.records():
            if record.body.get("key") == key:
                found[record.kind] = record
        return found.get("reserve"), found.get("commit")

    def commits(self) -> dict[str, tuple[int, str]]:
        """Every committed release: from key to (seq of its reservation, SHA-256 of its file)."""
        bodies = (record.body for record in self._chain.records() if record.kind == "commit")
        return {str(body["key"]): (int(body["reserve_seq"]), str(body["sha256"])) for body in bodies}

    def reserve(self, request: Reservation) -> Record:
        """Spend before reading: record the cost of a release, or refuse it.

        A reservation that was made before under the same key is returned as it is, and costs nothing more.

        Raises:
            BudgetError: the release, or the plan it belongs to, would exceed the lifetime cap; or the same rows were
                released under another identity.
        """
        with self._chain.appending() as records:
            for record in records:
                if record.kind == "reserve" and record.body["key"] == request.key:
                    return record
            if not request.rho > 0:
                raise LedgerError("a reservation must cost more than 0")
            _check_owner(records, request)
            budget = _budget(records, request.identity)
            if budget is None or budget.adjacency is not request.adjacency:
                raise LedgerError(f"identity '{request.identity}' was not declared under {request.adjacency}")
            _check_cap(records, budget, request)
            body = {
                **request.details,
                "key": request.key,
                "identity": request.identity,
                "adjacency": str(request.adjacency),
                "rho": request.rho,
                "plan": request.plan,
                "digest": request.digest,
                "slot": request.slot,
                "encoding": request.encoding,
            }
            return append(records, "reserve", body)

    def commit(self, key: str, sha256: str) -> Record:
        """Record the digest of the file that was drawn for a reservation.

        Raises:
            LedgerError: there is no such reservation, or it was committed with other bytes.
        """
        with self._chain.appending() as records:
            reserved = None
            for record in records:
                if record.body.get("key") == key and record.kind == "commit":
                    if record.body["sha256"] != sha256:
                        raise LedgerError(f"release {key[:12]} was committed with other bytes: no second draw")
                    return record
                if record.body.get("key") == key and record.kind == "reserve":
                    reserved = record
            if reserved is None:
                raise LedgerError(f"release {key[:12]} was never reserved")
            return append(records, "commit", {"key": key, "reserve_seq": reserved.seq, "sha256": sha256})


def _check_owner(records: list[Record], request: Reservation) -> None:
    """The same rows under another name would be a way around the cap, or a slip."""
    for record in records:
        if record.kind == "reserve" and record.body["digest"] == request.digest:
            owner = record.body["identity"]
            if owner != request.identity:
                raise BudgetError(
                    f"these very rows are accounted under identity '{owner}' (entry {record.seq}); a new name would "
                    f"forget what was spent on them. Set privacy.identity: {owner}."
                )


def _check_cap(records: list[Record], budget: Budget, request: Reservation) -> None:
    cap = rho_for(budget.cap_epsilon, budget.cap_delta)
    paid: dict[str, list[float]] = {}
    for record in records:
        body = record.body
        if record.kind == "reserve" and (body["identity"], body["digest"], body["slot"], body["encoding"]) == (
            request.identity,
            request.digest,
            request.slot,
            request.encoding,
        ):
            paid.setdefault(str(body.get("query")), []).append(float(body["rho"]))
    # A query of the plan is paid if these rows answered one of its name at its cost: another method may have asked it.
    open_ = [
        rho
        for name, rho in request.others.items()
        if not any(math.isclose(rho, cost, rel_tol=_RELATIVE_TOLERANCE) for cost in paid.get(name, []))
    ]
    asked = request.rho + math.fsum(open_)
    if budget.spent_rho + asked <= cap * (1 + _RELATIVE_TOLERANCE):
        return
    total = epsilon_of_rho(budget.spent_rho + asked, budget.cap_delta)
    raise BudgetError(
        f"over budget for '{request.identity}': spent epsilon {budget.spent_epsilon:.4g} (rho {budget.spent_rho:.4g}), "
        f"asked rho {asked:.4g}, together epsilon {total:.4g}; lifetime cap epsilon {budget.cap_epsilon:g} "
        f"(rho {cap:.4g}) at delta {budget.cap_delta:g}. No private row was read for this release. Lower "
        "privacy.epsilon, or let the person who answers for the data raise the cap: likeness ledger cap"
    )


def _budget(records: list[Record], identity: str) -> Budget | None:
    caps = [record.body for record in records if record.kind == "cap" and record.body["identity"] == identity]
    if not caps:
        return None
    reserved = [r.body for r in records if r.kind == "reserve" and r.body["identity"] == identity]
    committed = {r.body["key"] for r in records if r.kind == "commit"}
    return Budget(
        identity=identity,
        adjacency=Adjacency(caps[-1]["adjacency"]),
        cap_epsilon=float(caps[-1]["epsilon"]),
        cap_delta=float(caps[-1]["delta"]),
        spent_rho=sum(float(body["rho"]) for body in reserved),
        uncommitted=sum(body["key"] not in committed for body in reserved),
    )


def _cap_body(identity: str, adjacency: Adjacency, epsilon: float, delta: float) -> dict[str, Any]:
    # The nonce: a bundle shows the digests of other people's records, and names can be guessed.
    nonce = secret_bytes(16).hex()
    return {"identity": identity, "adjacency": str(adjacency), "epsilon": epsilon, "delta": delta, "nonce": nonce}
