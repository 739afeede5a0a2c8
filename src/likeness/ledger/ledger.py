"""The ledger: what was ever asked of the people in a dataset, and what may still be asked.

A release is *reserved* before a private row is read, and counts as spent from then on; it is *committed* with the
digest of the released file. Costs are ρ of zero-concentrated differential privacy, which add up over releases,
methods, versions of the data, clones and branches; so does what thresholds cost of δ. Storage is
:mod:`likeness.ledger.chain`.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from likeness.core.errors import BudgetError, LedgerError
from likeness.ledger.anchor import Anchor
from likeness.ledger.budget import Budget, Cost, budget_of, cap_body, check_lattices, check_person, coarseness_of
from likeness.ledger.caps import SCOPES, Asker, Room, check_rooms, limit_body, limits_of, rooms
from likeness.ledger.chain import Chain
from likeness.ledger.home import Home
from likeness.ledger.records import Record, append, moment
from likeness.ledger.reservation import Reservation, check_owner, open_queries, sealed
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.lattice_error import COARSEST

__all__ = ["Budget", "Ledger", "Reservation"]


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
        """Open a ledger and verify all of it; see :meth:`likeness.ledger.chain.Chain.open`."""
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
        """Write a lost anchor anew; see :meth:`likeness.ledger.chain.Chain.reanchor`."""
        Chain.reanchor(home, head)

    def declare_identity(
        self,
        identity: str,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        person: str | None = None,
        keys: float = 0.0,
    ) -> None:
        """Record the lifetime cap of an identity the first time it is seen; later the ledger's cap rules.

        Args:
            person: the column whose values name the people, where they may have several rows; None: a row is a person.
            keys: the part of ``delta`` that is kept for thresholds; where the identity is on record, the record's.

        Raises:
            PlanError: the cap is no (ε, δ).
            BudgetError: the settings ask for another cap, adjacency or unit of privacy than the one on record.
        """
        rho_for(epsilon, delta)
        with self._chain.appending() as records:
            budget = budget_of(records, identity)
            if budget is None:
                append(records, "cap", cap_body(identity, adjacency, epsilon, delta, person, keys))
                return
            _check_declared(budget, adjacency, epsilon, delta, person)

    def check_identity(
        self, identity: str, adjacency: Adjacency, epsilon: float, delta: float, person: str | None = None
    ) -> None:
        """Raise what :meth:`declare_identity` would, and record nothing."""
        rho_for(epsilon, delta)
        budget = self.budget(identity)
        if budget is not None:
            _check_declared(budget, adjacency, epsilon, delta, person)

    def change_cap(self, identity: str, epsilon: float, delta: float, keys: float | None = None) -> None:
        """Record a new lifetime cap, a decision of a person that stays visible for ever.

        Args:
            keys: the part of ``delta`` that is kept for thresholds; None: as before.

        Raises:
            PlanError: the cap is no (ε, δ).
            LedgerError: the identity is not on record, or thresholds would have all of δ, or less than they took.
        """
        rho_for(epsilon, delta)
        with self._chain.appending() as records:
            known = _known(records, identity)
            keys = known.cap_keys if keys is None else keys
            if not 0 <= keys < delta:
                rule = f"0 or more and below delta, {delta:g}"
                raise LedgerError(f"the part of delta for private categories must be {rule}; got {keys:g}")
            if keys < known.spent_delta:
                raise LedgerError(
                    f"thresholds of '{identity}' took {known.spent_delta:g} of delta already, more than the part that "
                    f"is to be kept for them, {keys:g}. Give --delta-keys {known.spent_delta:g} or more."
                )
            append(records, "cap", cap_body(identity, known.adjacency, epsilon, delta, known.person, keys))

    def declare_limits(self, identity: str, limits: Mapping[str, tuple[float, float]]) -> None:
        """Record caps by project, user or month the first time that they are asked for; later the ledger's rule.

        Raises:
            PlanError: a cap is no (ε, δ).
            BudgetError: the settings ask for another cap than the one on record.
            LedgerError: the identity is not on record.
        """
        for scope, (epsilon, delta) in limits.items():
            rho_for(epsilon, delta)
            with self._chain.appending() as records:
                _known(records, identity)
                found = limits_of(records, identity).get((scope, ""))
                if found is None:
                    append(records, "limit", limit_body(identity, scope, "", epsilon, delta))
                elif found != (epsilon, delta):
                    raise BudgetError(
                        f"ledger.caps.{scope} in params.yaml is (epsilon {epsilon:g}, delta {delta:g}), the ledger's "
                        f"is ({found[0]:g}, {found[1]:g}) for '{identity}'. The ledger rules: set params to it, or "
                        f"change it on record with: likeness ledger cap --scope {scope}"
                    )

    def change_limit(self, identity: str, scope: str, name: str, epsilon: float, delta: float) -> None:
        """Record a new cap by project, user or month; for one of that name, or for everyone. ε = inf lifts it.

        Raises:
            PlanError: the cap is no (ε, δ).
            LedgerError: the identity is not on record, or there is no such scope.
        """
        rho_for(epsilon, delta)
        if scope not in SCOPES:
            raise LedgerError(f"there is no cap by '{scope}'. Caps: lifetime, {', '.join(SCOPES)}")
        with self._chain.appending() as records:
            _known(records, identity)
            append(records, "limit", limit_body(identity, scope, name, epsilon, delta))

    def rooms(
        self, fallback: Budget, asker: Asker, wished: Mapping[str, tuple[float, float]] | None = None
    ) -> list[Room]:
        """What every cap leaves for this asker now.

        Args:
            fallback: the budget as params.yaml has it, for an identity that the ledger has never heard of.
            wished: see :func:`likeness.ledger.caps.rooms`.
        """
        records = self._chain.records()
        return rooms(records, budget_of(records, fallback.identity) or fallback, asker, moment(records), wished)

    def budget(self, identity: str) -> Budget | None:
        """State of one identity; None if the ledger has never heard of it."""
        return budget_of(self._chain.records(), identity)

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
            BudgetError: the release, or the plan it belongs to, would exceed a cap; the same rows were released under
                another identity; or there are more, or coarser, releases than the account holds for.
        """
        with self._chain.appending() as records:
            for record in records:
                if record.kind == "reserve" and record.body["key"] == request.key:
                    return record
            if not (request.rho > 0 and request.delta_keys >= 0):
                raise LedgerError("a reservation must cost more than 0")
            check_owner(records, request, self.key)
            budget = budget_of(records, request.identity)
            if budget is None or budget.adjacency is not request.adjacency:
                raise LedgerError(f"identity '{request.identity}' was not declared under {request.adjacency}")
            check_person(request.identity, budget.person, None if request.unit is None else request.unit.column)
            asker = Asker.of(request.details)
            open_ = open_queries(records, request)
            asked = [coarseness_of(request.details), *(COARSEST for _ in open_)]
            check_lattices(records, request.identity, asked)
            check_rooms(rooms(records, budget, asker, moment(records)), Cost.total([request.cost, *open_]))
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
                **({"delta_keys": request.delta_keys} if request.delta_keys else {}),
                **({"rows_digest": sealed(request.rows_digest, self.key)} if request.rows_digest else {}),
            }
            return append(records, "reserve", body)

    @property
    def keeps_bytes(self) -> bool:
        """Whether released bytes lie in a team's database; else they are files in the home."""
        return self.home.url is not None

    def drawing(self, key: str) -> contextlib.AbstractContextManager[None]:
        """One process draws the release of that key at a time, on all machines that share the ledger."""
        return self._chain.drawing(key)

    def released(self, key: str) -> bytes | None:
        """Released bytes from a team's database."""
        return self._chain.released(key)

    def keep(self, key: str, data: bytes) -> None:
        """Put lost bytes back into a team's database; the caller has checked that they are the right ones."""
        self._chain.keep(key, data)

    def lost(self) -> set[str]:
        """Keys of releases that a person declared lost, to be drawn again at the full cost."""
        return {str(record.body["key"]) for record in self._chain.records() if record.kind == "lost"}

    def spend_again(self, key: str, by: Mapping[str, Any]) -> Record:
        """Record that a release's bytes are lost for ever, so that the next request for it draws another one.

        That is a second release: it is charged in full when it is drawn, under a slot of its own. The first stays
        spent, because somebody may have seen it.

        Args:
            by: who decided it.

        Raises:
            LedgerError: there is no such release, or it was given up before.
        """
        with self._chain.appending() as records:
            own = {r.kind: r for r in records if r.body.get("key") == key}
            if "commit" not in own:
                raise LedgerError(f"release {key[:12]} was never committed: nothing is lost, the next run draws it")
            if "lost" in own:
                raise LedgerError(f"release {key[:12]} was given up in entry {own['lost'].seq} already. Run: dvc repro")
            identity = own["reserve"].body["identity"]
            return append(records, "lost", {**by, "key": key, "identity": identity})

    def commit(self, key: str, sha256: str, data: bytes | None = None) -> Record:
        """Record the digest of the file that was drawn for a reservation.

        The record has the day of the last one, not today's: a draw that lasts over midnight is not to be seen.

        Args:
            data: the bytes, where a team's database keeps them: they are there with the record or not at all.

        Raises:
            LedgerError: there is no such reservation, or it was committed with other bytes.
        """
        with self._chain.appending(None if data is None else (key, data)) as records:
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
            body = {"key": key, "identity": reserved.body["identity"], "reserve_seq": reserved.seq, "sha256": sha256}
            return append(records, "commit", body, time=records[-1].time)

    def publish(self, identity: str, files: Mapping[str, str], releases: Iterable[str]) -> Record:
        """Record the digests of files that were made from releases of these people. It costs nothing.

        The same files from the same releases are on record once.

        Args:
            identity: the people.
            files: from the name of a file to its SHA-256.
            releases: keys of the releases that the files were made from.

        Raises:
            LedgerError: a release is not a committed one of these people.
        """
        body = {"identity": identity, "files": dict(files), "releases": sorted(set(releases))}
        with self._chain.appending() as records:
            reserved = {r.body["key"] for r in records if r.kind == "reserve" and r.body["identity"] == identity}
            committed = {r.body["key"] for r in records if r.kind == "commit"} & reserved
            for key in body["releases"]:
                if key not in committed:
                    raise LedgerError(f"release {key[:12]} is not a committed release of '{identity}'. Run: dvc repro")
            for record in records:
                if record.kind == "published" and body.items() <= record.body.items():
                    return record
            return append(records, "published", body)


def _check_declared(budget: Budget, adjacency: Adjacency, epsilon: float, delta: float, person: str | None) -> None:
    """Refuse other terms than those on record.

    Raises:
        BudgetError: the settings ask for another cap, adjacency or unit of privacy.
    """
    identity = budget.identity
    if budget.adjacency is not adjacency:
        raise BudgetError(
            f"identity '{identity}' is accounted under {budget.adjacency}; a release under {adjacency} cannot "
            f"be composed with the earlier ones. Set privacy.adjacency: {budget.adjacency}."
        )
    check_person(identity, budget.person, person)
    if (budget.cap_epsilon, budget.cap_delta) != (epsilon, delta):
        raise BudgetError(
            f"ledger.cap in params.yaml is (epsilon {epsilon:g}, delta {delta:g}), the ledger's cap for "
            f"'{identity}' is ({budget.cap_epsilon:g}, {budget.cap_delta:g}). The ledger rules: set params to "
            "it, or change it on record with: likeness ledger cap"
        )


def _known(records: list[Record], identity: str) -> Budget:
    budget = budget_of(records, identity)
    if budget is None:
        raise LedgerError(f"identity '{identity}' is not in the ledger")
    return budget
