"""The ledger: all requests about the people in a dataset, and the budget that remains.

A release is *reserved* before a private row is read, or a database's count leaves memory. It counts as spent from then
on, and is *committed* with the digest of the released file. Costs are ρ of zero-concentrated differential privacy and δ
of partition selection. Both add up over releases, methods, versions of the data, clones and branches.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sqlalchemy import insert

from likeness.core.errors import BudgetError, LedgerError
from likeness.core.hashing import sha256_json
from likeness.core.messages import LOG
from likeness.core.rng import secret_bytes
from likeness.ledger.budget import (
    Budget,
    Cost,
    added_cost,
    budget_of,
    budget_on_record,
    cap_body,
    cap_of,
    check_lattices,
    check_person,
    costs_of_lost,
    discretization_error_of,
    remainder,
)
from likeness.ledger.chain import Anchor, Chain, anchor_missing, copies_of, lock_chain, make_folders, read_anchor
from likeness.ledger.database import RECORDS, database_errors, lock_database
from likeness.ledger.first_nights import first_nights_until, restore_first_nights
from likeness.ledger.home import Home, locate
from likeness.ledger.records import DAY, FEWER, RECOVERED, SALT, Record, append, moment, row
from likeness.ledger.reservation import Reservation, check_owner, check_same_request, open_queries
from likeness.ledger.series import check_night
from likeness.ledger.witness import Witness
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.cohorts import Cohort
from likeness.privacy.lattice_error import MOST_ERROR

__all__ = ["Budget", "Ledger", "Reservation"]


class Ledger:
    """Budgets and reservations on a chain of records. Use :meth:`start` once, then :meth:`open`.

    Attributes:
        chain: the records, and the released bytes of a team.
        home: its folders.
        key: the secret that makes its digests.
    """

    exists = staticmethod(Chain.exists)

    def __init__(self, chain: Chain) -> None:
        self.chain, self.home, self.key = chain, chain.home, chain.key
        self._salts: dict[Hashable, str] = {}  # of the runs of this process

    @classmethod
    def create(cls, home: Home) -> Self:
        """Start a ledger in a home, as :meth:`likeness.ledger.chain.Chain.create`."""
        return cls(Chain.create(home))

    @classmethod
    def open(cls, home: Home) -> Self:
        """Open a ledger, and verify all of it, as :meth:`likeness.ledger.chain.Chain.open`."""
        return cls(Chain.open(home))

    @classmethod
    def start(cls, home: str | Path | None = None, url: str | None = None, if_absent: bool = False) -> Self:
        """Start the ledger of this machine, or of a team: once, and then :meth:`open`.

        Args:
            home: its folder; None: the user's data folder. ``LIKENESS_HOME`` overrides both.
            url: of a team's database; None: SQLite in ``home``. ``LIKENESS_LEDGER_URL`` overrides both.
            if_absent: open the ledger if there is one.

        Raises:
            LedgerError: a ledger exists, or existed here.
        """
        location = locate(None if home is None else str(home), url)
        if if_absent and cls.exists(location):
            return cls.open(location)
        ledger = cls.create(location)
        LOG.warning(ledger.welcome)
        return ledger

    @property
    def welcome(self) -> str:
        """The text that says what a person must do about a new ledger."""
        text = f"started {self!r}. Back up both in different places."
        team = f"\nEvery machine of the team needs a copy of {self.home.key_file}; it is secret."
        return text if self.home.url is None else text + team

    def __repr__(self) -> str:
        """Say where it is. A backup needs both places."""
        return f"ledger {self.id} at {self.home.location}, anchor in {self.home.anchor}"

    @property
    def id(self) -> str:
        """Random name of this ledger."""
        return self.chain.ledger_id

    def records(self) -> list[Record]:
        """All records, in a new list, as :meth:`likeness.ledger.chain.Chain.records`."""
        return self.chain.records()

    def head(self) -> Anchor:
        """Length and last digest of the chain, for outside witnesses."""
        return self.chain.head()

    def declare_population(
        self,
        population: str,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        person: str | None = None,
        selection_delta: float = 0.0,
    ) -> None:
        """Record the lifetime cap of a new population. Later the ledger's cap counts.

        Args:
            population: name of the people.
            adjacency: what counts as a neighboring table.
            epsilon: ε of the cap.
            delta: δ of the cap.
            person: column that names people where a person may have several rows; None: a row is a person.
            selection_delta: part of ``delta`` for partition selection. It counts for a new population only.

        Raises:
            PlanError: ε or δ is out of range, of a new population.
            BudgetError: the settings name another cap, adjacency or unit of privacy than the record.
        """
        with self.chain.appending() as records:
            check_declared(records, population, adjacency, epsilon, delta, person)
            if cap_of(records, population) is None:
                append(records, "cap", cap_body(population, adjacency, epsilon, delta, person, selection_delta))
        # Lost records that nobody knows may be about these people, too.
        unknown = [r.body for r in self.records() if r.kind == RECOVERED and "rows_digests" not in r.body]
        if unknown and population not in {body["identity"] for body in unknown}:
            with self.chain.appending() as records:
                append(records, RECOVERED, remainder(budget_on_record(records, population), unknown[-1]))

    def check_owner(self, population: str, digest: str, rows_digests: Sequence[str]) -> None:
        """Raise the error of :meth:`reserve` for rows that are on record under another population, before its cost.

        Args:
            population: name of the people.
            digest: keyed hash of the typed rows.
            rows_digests: keyed hashes of the rows of each table of the source.
        """
        check_owner(self.records(), population, digest, rows_digests, self.key)

    def change_cap(self, population: str, epsilon: float, delta: float, selection_delta: float | None = None) -> None:
        """Record a new lifetime cap, a person's decision that stays visible for ever.

        Args:
            population: name of the people.
            epsilon: ε of the cap.
            delta: δ of the cap.
            selection_delta: part of ``delta`` for partition selection; None: no change.

        Raises:
            PlanError: ε or δ is out of range.
            LedgerError: the population is not on record; or partition selection would get all of δ, or less than it
                took.
        """
        rho_for(epsilon, delta)
        with self.chain.appending() as records:
            budget = budget_on_record(records, population)
            part = budget.selection_delta if selection_delta is None else selection_delta
            if not 0 <= part < delta:
                option = "--delta-keys, the part of delta for private categories,"
                raise LedgerError(f"{option} must be at least 0 and below delta, {delta:g}; got {part:g}.")
            if part < budget.spent_delta:
                raise LedgerError(
                    f"private categories of '{population}' took {budget.spent_delta:g} of delta already, more than "
                    f"their new part, {part:g}. Give --delta-keys {budget.spent_delta:g} or more."
                )
            append(records, "cap", cap_body(population, budget.adjacency, epsilon, delta, budget.person, part))

    def budget(self, population: str) -> Budget | None:
        """State of one population; None if it is not on record."""
        return budget_of(self.records(), population)

    def populations(self) -> list[str]:
        """All populations, in the order of their first records."""
        return list(dict.fromkeys(str(record.body["identity"]) for record in self.records() if record.kind == "cap"))

    def find(self, key: str) -> tuple[Record | None, Record | None]:
        """The reserve and the commit record of a release key, where they exist."""
        records = _records_by_kind(self.records(), key)
        return records.get("reserve"), records.get("commit")

    def commits(self) -> dict[str, tuple[int, str]]:
        """All committed releases, from key to (seq of the reservation, SHA-256 of the file)."""
        bodies = (record.body for record in self.records() if record.kind == "commit")
        return {str(body["key"]): (int(body["reserve_seq"]), str(body["sha256"])) for body in bodies}

    def reserve(self, request: Reservation) -> Record:
        """Spend before reading: record the cost of a release, or refuse it.

        A second request with one key gets the first record and costs nothing.

        Raises:
            BudgetError: the release, or its plan, exceeds the cap; the rows are on record under another population; the
                releases of its attempt have another recipe; its cohort is not that of the night; or the population has
                too many or too coarse releases.
        """
        with self.chain.appending() as records:
            if before := _records_by_kind(records, request.key).get("reserve"):
                return before
            self._check(records, request)
            # Equal seals of two runs would show that no row of the source changed in between.
            run = request.rows_digests, request.digest, request.attempt, request.plan, moment(records)
            salt = self._salts.setdefault((request.first_nights, *run), secret_bytes(16).hex())
            return append(records, "reserve", request.body(self.key, salt))

    def check(self, request: Reservation) -> None:
        """Raise the errors of :meth:`reserve`, and record nothing."""
        if not _records_by_kind(records := self.records(), request.key).get("reserve"):
            self._check(records, request)

    def _check(self, records: list[Record], request: Reservation) -> None:
        people = request.population
        if not (request.rho > 0 and request.delta >= 0):
            raise LedgerError(f"release {request.key[:12]} must cost more than 0. Run: likeness run")
        check_owner(records, people, request.digest, request.rows_digests, self.key)
        budget = budget_of(records, people)
        if budget is None or budget.adjacency is not request.adjacency:
            raise LedgerError(f"population '{people}' is not on record under {request.adjacency}. Run: likeness run")
        check_person(people, budget.person, None if request.unit is None else request.unit.column)
        check_night(records, request, moment(records))
        cohort, series = Cohort.from_group(request.group), (self.chain, people, request.attempt)
        if cohort is not None and request.first_nights != first_nights_until(*series, cohort.last):
            raise LedgerError("people came to the series after these rows were read. Run: dvc repro --force ingest")
        rest = open_queries(records, request)
        total = Cost.total([request.cost, *rest])
        check_same_request(records, people, request.attempt, total.rho)
        check_lattices(records, people, [discretization_error_of(request.details), *(MOST_ERROR for _ in rest)])
        budget.check(added_cost(records, people, total, request.attempt, request.group))

    @property
    def keeps_bytes(self) -> bool:
        """Tell whether released bytes lie in a team's database; else they are files in the home."""
        return self.home.url is not None

    def lost_keys(self) -> set[str]:
        """Keys of releases that a person declared lost. A new draw of them costs the full price."""
        return {str(record.body["key"]) for record in self.records() if record.kind == "lost"}

    def redraw(self, key: str, by: Mapping[str, Any]) -> Record:
        """Record that a release's bytes are lost for ever. The next request draws a new release.

        The new draw is charged in full, under a new attempt. The first draw stays spent: somebody may have seen it.

        Args:
            key: key of the lost release.
            by: who decided it.

        Raises:
            LedgerError: there is no such release, or it was declared lost before.
        """
        with self.chain.appending() as records:
            entries = _records_by_kind(records, key)
            if "commit" not in entries:
                raise LedgerError(f"release {key[:12]} was never committed, so nothing is lost. Run: likeness run")
            if "lost" in entries:
                seq = entries["lost"].seq
                raise LedgerError(f"release {key[:12]} was declared lost in entry {seq} already. Run: likeness run")
            return append(records, "lost", {**by, "key": key, "identity": entries["reserve"].body["identity"]})

    def confirm_day(self, day: str, by: Mapping[str, Any], fewer: str | None = None) -> Record:
        """Record by a person's word which day it is, after a clock was wrong or a ledger rested for long.

        Args:
            day: today in UTC, as 2026-11-26.
            by: who says so.
            fewer: name of people of whom the source of this day rightly lacks most; None: of nobody.

        Raises:
            LedgerError: this machine's clock says another day, or the people are not on record.
        """
        if day != moment([]):
            raise LedgerError(f"the clock says {moment([])}, and you say {day}. Set the clock, or give that day.")
        with self.chain.appending() as records:
            if fewer is None:
                return append(records, DAY, dict(by), time=day)
            budget_on_record(records, fewer)
            return append(records, FEWER, {**by, "identity": fewer})

    def commit(self, key: str, sha256: str, data: bytes | None = None) -> Record:
        """Record the digest of the file that was drawn for a reservation.

        The record has the day of the last record and not today's: it must not show a draw that lasts over midnight.

        Args:
            key: key of the release.
            sha256: SHA-256 of the file.
            data: the bytes, for a team's database. They are written with the record or not at all.

        Raises:
            LedgerError: there is no such reservation, or it was committed with other bytes.
        """
        with self.chain.appending(None if data is None else (key, data)) as records:
            entries = _records_by_kind(records, key)
            if "commit" in entries:
                if entries["commit"].body["sha256"] != sha256:
                    remedy = "A second draw is refused. Restore the first file: likeness ledger restore FILE"
                    raise LedgerError(f"release {key[:12]} was committed with other bytes. {remedy}")
                return entries["commit"]
            if "reserve" not in entries:
                raise LedgerError(f"release {key[:12]} was never reserved. Run: likeness run")
            reserved = entries["reserve"]
            shared = {name: reserved.body[name] for name in (SALT, "key", "identity")}
            return append(
                records, "commit", {**shared, "reserve_seq": reserved.seq, "sha256": sha256}, records[-1].time
            )

    def publish(self, population: str, files: Mapping[str, str], releases: Iterable[str]) -> Record:
        """Record one digest of files that were made from releases. It costs nothing.

        Equal files from equal releases have one record.

        Args:
            population: name of the people.
            files: from the name of a file to its SHA-256.
            releases: keys of the releases behind the files.

        Raises:
            LedgerError: a release is not a committed one of this population.
        """
        body = {"identity": population, "files": sha256_json(files), "releases": sorted(set(releases))}
        with self.chain.appending() as records:
            reserved = {r.body["key"] for r in records if r.kind == "reserve" and r.body["identity"] == population}
            committed = {r.body["key"] for r in records if r.kind == "commit"} & reserved
            for key in sorted(set(body["releases"]) - committed):
                raise LedgerError(f"release {key[:12]} is not a committed release of '{population}'. Run: likeness run")
            for record in records:
                if record.kind == "published" and body.items() <= record.body.items():
                    return record
            return append(records, "published", body)


def recover(home: Home, by: Mapping[str, Any], witnesses: Iterable[Witness] = ()) -> tuple[int, int]:
    """Append the records that an older copy of the database lacks, from their copies beside the anchor.

    Where others appended to the older copy since, the costs of the lost records are appended. A lost record that
    nobody has a copy of costs all that is left of each cap.

    Args:
        home: the ledger's folders.
        by: who decided it.
        witnesses: other places that name records.

    Returns:
        the number of records that are back, and of costs.

    Raises:
        LedgerError: there is no anchor, and so nothing that says what is lost; or the records are back, and a series
            cannot go on, because its first nights are lost.
    """
    anchor = read_anchor(home)
    if anchor is None:
        raise LedgerError(anchor_missing(home))
    make_folders(home)
    with lock_chain(home):
        copies = copies_of(home, anchor.head)
        lacked = not Chain.exists(home)
        if lacked and not copies:
            fault = f"{home.location} has no ledger, and {home.anchor} lacks copies of some of its records"
            raise LedgerError(f"{fault}. Restore the ledger from a backup, and run this again.")
        chain = Chain.write_first(home, copies) if lacked else Chain.connect(home)
        if chain.ledger_id != anchor.ledger_id:
            names = f"is ledger {chain.ledger_id}, and its anchor names {anchor.ledger_id}"
            raise LedgerError(f"{home.location} {names}. Restore that.")
        heads = {anchor.head: anchor.count}
        heads |= {head.digest: head.seq for head in witnesses if head.digest and head.ledger_id == chain.ledger_id}
        with database_errors(home), chain.engine.begin() as connection:
            lock_database(connection)
            before = chain.read(connection)
            same = [copy.digest for copy in copies[: len(before)]] == [record.digest for record in before]
            after = copies if same else list(before)
            bodies = list(costs_of_lost(after, copies, heads))
            for body in bodies:
                append(after, RECOVERED, {**by, **body})
            if after[len(before) :]:
                connection.execute(insert(RECORDS), [row(record) for record in after[len(before) :]])
        chain.write_anchor(chain.records())
        if people := restore_first_nights(chain):
            raise LedgerError(
                f"the records of {home.location} are back. The first nights of '{people[0]}' are not: neither the "
                f"ledger nor the copies in {home.anchor} have those of its newest night. Restore a newer copy of one, "
                "and run this again. Without it give ledger.attempt a new value: a new series begins, and costs beside "
                "this one."
            )
    return (len(after) if lacked else len(after) - len(before) - len(bodies)), len(bodies)


def check_declared(
    records: Sequence[Record], population: str, adjacency: Adjacency, epsilon: float, delta: float, person: str | None
) -> None:
    """Refuse settings that contradict the record, and the cap of a new population that cannot be."""
    cap = cap_of(records, population)
    if cap is None:
        rho_for(epsilon, delta)
        return
    if cap["adjacency"] != adjacency:
        raise BudgetError(
            f"population '{population}' is accounted under {cap['adjacency']}. A release under {adjacency} cannot be "
            f"composed with the earlier ones. Set privacy.adjacency in params.yaml: {cap['adjacency']}."
        )
    check_person(population, cap["person"], person)
    on_record = float(cap["epsilon"]), float(cap["delta"])
    if on_record != (epsilon, delta):
        raise BudgetError(
            f"ledger.cap in params.yaml is (epsilon {epsilon:g}, delta {delta:g}). The ledger's cap for '{population}' "
            f"is ({on_record[0]:g}, {on_record[1]:g}), and the ledger counts. Correct params.yaml, or change the cap "
            "on record: likeness ledger cap"
        )


def _records_by_kind(records: Iterable[Record], key: str) -> dict[str, Record]:
    """The records of a release, by their kind."""
    return {record.kind: record for record in records if key in record.text and record.body.get("key") == key}
