"""The ledger's extract: its links, and the population's entries with their costs."""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from likeness.bundle import contents as names
from likeness.bundle.chain import OF_QUESTION
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import MOST_WORDS, VERSION, Untestable, Wrong, require
from likeness.core.bounds import MOST_DELTA
from likeness.core.errors import MissingPackageError, ParamsError
from likeness.core.format import HERE, RECIPE, check_known
from likeness.core.hashing import canonical_json, sha256_json
from likeness.data.encoding.layout import encoding_digest
from likeness.features.column_marginals import ColumnMarginals
from likeness.ledger.budget import Budget, Cost
from likeness.ledger.records import (
    DAY,
    FEWER,
    MOST_BACK,
    OPENING,
    RECOVERED,
    REDRAW,
    SALT,
    Record,
    base_attempt,
    days_between,
)
from likeness.ledger.series import LAST_STAGE, Series
from likeness.methods import METHODS, Method, method_named
from likeness.methods.base import CLASS_COUNTS
from likeness.methods.maps import SHARED, known_maps
from likeness.methods.plugins import DISTRIBUTION
from likeness.methods.row_set import rows_of
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.provenance import SOFTWARE
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.cohorts import Cohort, Composition
from likeness.privacy.lattice_error import ALLOWANCE, discretization_error
from likeness.privacy.receipt import FACTS, Receipt
from likeness.release.partition_selection import STAGE as SELECTION_STAGE
from likeness.release.private_bounds import BOUNDS
from likeness.release.request import REQUEST_KEYS, key_in, request_in
from likeness.release.sums.backends import counted_tables
from likeness.verify.receipts import KEYS, check_claim, maps_in

_EXACT = 1e-9
_ASKED = {"asked_by", "git_changed", "git_commit", "likeness", "params_sha256", "software"}
_BODIES: dict[str, tuple[set[str], set[str]]] = {
    "genesis": ({SALT, "format", "key_sha256", "ledger_id"}, set()),
    "cap": ({SALT, "identity", "adjacency", "person", "epsilon", "delta", "delta_keys"}, set()),
    "reserve": ({SALT, *REQUEST_KEYS, *FACTS, "rows_digests", *_ASKED}, {"day", "first_nights"}),
    "commit": ({SALT, "key", "identity", "reserve_seq", "sha256"}, set()),
    "lost": ({SALT, "key", "identity"}, _ASKED),
    "published": ({SALT, "identity", "files", "releases"}, set()),
    DAY: ({SALT}, _ASKED),
    FEWER: ({SALT, "identity"}, _ASKED),
    RECOVERED: ({SALT, "identity", "rho", "delta_keys", "error", "lost"}, {"digest", "rows_digests", *_ASKED}),
}
"""Keys of the body of each kind of record: required keys, and optional ones."""
_SHA = "[0-9a-f]{64}"
_TABLES = 4  # of a source: people and their events, as they are given and typed
FORMS = {
    **dict.fromkeys(("digest", "encoding", "files", "key", "key_sha256", "params_sha256", "plan", "reference"), _SHA),
    **dict.fromkeys(("adjacency", "change", "mechanism", "method"), "[a-z0-9_]{1,60}"),
    "plugin": f"|{DISTRIBUTION}",
    "query": "[a-z0-9_]{1,60}",
    "stage": f"{SELECTION_STAGE}|auxiliary|privatize",
    "git_commit": "none|[0-9a-f]{40,64}",
    "ledger_id": "[0-9a-f]{16}",
    **dict.fromkeys(("lost", "releases", "sha256"), _SHA),
    "likeness": VERSION,
    **dict.fromkeys(("first_nights", "rows_digests", SALT), "[0-9a-f]{32}"),
}
"""Patterns of texts that no person chose, by key. Other texts are one short line."""
_TYPES: dict[str, type] = {
    **dict.fromkeys((*_ASKED, "identity", "slot", *FORMS), str),
    **dict.fromkeys(("feature", "software"), dict),
    **dict.fromkeys(("lost", "releases", "rows_digests"), list),
    **dict.fromkeys(("git_changed",), bool),
    **dict.fromkeys(("format", "reserve_seq"), int),
}
"""Type of the value of a key; the check of costs holds the others to theirs."""
_FIRST_DAY = "2020-01-01"  # before the first ledger
_AHEAD = timedelta(days=2)  # by which the clock of a ledger may be before that of the verifier
_MOST_NUMBER = 1 << 64


def chain(bundle: Bundle) -> str:
    """Records lead to the head that the ledger's extract states, and each key and text is one that Likeness writes."""
    time, whole, salts, last = "", 0, dict[str, Any](), (datetime.now(UTC).date() + _AHEAD).isoformat()
    (records, head), seen = bundle.stated_chain, set[tuple[str, int]]()
    for number, record in enumerate(records, start=1):
        if "body" not in record:
            shown = ("hash",) if "hash" in record else ("content", OPENING)
            formed = all(re.fullmatch(_SHA, record[name]) for name in shown)
            require(formed, f"record {number} has a text that is not a digest")
            _check_texts({key: record[key] for key in ("identity",) if key in record}, "", number)
            continue
        require(_is_day(record["time"]), f"record {number} is of {record['time']!r}, which is no day until today")
        day = record["kind"] == DAY  # a person's word corrects the days before
        require(record["time"] >= time or day, f"record {number} is of a day before that of an earlier record")
        require((record["kind"] == "genesis") is (number == 1), "the first record is not the ledger's first")
        same_day = record["kind"] != "commit" or "body" not in records[number - 2] or record["time"] == time
        require(same_day, f"record {number} commits a release on a later day than that of the record before it")
        _check_body(record["kind"], record["body"], number, seen)
        whole, time = whole + 1, record["time"]
        if record["kind"] != "commit":  # it has the salt of its reservation
            is_new = all(salts.setdefault(secret, facts) == facts for secret, facts in _secrets_in(record, number))
            require(is_new, "two records have one salt or one seal, which nobody draws twice")
    require(whole > 0 and "body" in records[0], "the first record is not the ledger's first")
    require(time <= last, f"the last record is of {time}, which is no day until today")
    reached = records[-1]["digest"]
    require(reached == head, f"{names.LEDGER}: the records lead to another head. One was edited, removed or moved")
    return f"{len(records)} records linked, {whole} of them whole; head {head[:16]}"


def _secrets_in(record: Mapping[str, Any], number: int) -> Iterator[tuple[str, Any]]:
    """The salt of a record, and the seals that are made with it; each with what all records have that share it."""
    body = record["body"]
    yield body[SALT], [body["digest"], body.get("rows_digests")] if "digest" in body else number
    if record["kind"] == "reserve":  # one source, plan and attempt
        run = body["plan"], body["slot"], body["backend"].split()[0], body.get("first_nights")
        yield f"{body[SALT]} of a run", run
    nights = [body["first_nights"]] if "first_nights" in body else []
    yield from ((seal, body[SALT]) for seal in [*nights, *body.get("rows_digests", ())])


def _is_day(text: str) -> bool:
    """Tell whether a text is a day of the calendar since the first ledger."""
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text).isoformat() == text and text >= _FIRST_DAY
    return False


def _check_body(kind: str, body: dict[str, Any], number: int, seen: set[tuple[str, int]]) -> None:
    """Refuse keys and values that Likeness does not write; an object that stood under its key before is not new."""
    require(kind in _BODIES, f"record {number} is of an unknown kind")
    always, sometimes = _BODIES[kind]
    listed = always <= body.keys() <= always | sometimes
    require(listed, f"record {number} has unknown keys, or lacks some")
    reserved = {"genesis": ("format",), "reserve": ("group", "backend")}
    check_known(body, reserved.get(kind, ()), f"record {number}", Wrong)
    new = {key: value for key, value in body.items() if (key, id(value)) not in seen}
    require(len(new.get("rows_digests", ())) <= _TABLES, f"record {number} names more tables than a source has")
    typed = all(type(value) is _TYPES.get(key, type(value)) for key, value in new.items())
    require(typed, f"record {number} has a value of another type than Likeness writes")
    software = new.get("software", {})
    listed = software.keys() <= {*SOFTWARE} and all(isinstance(text, str) for text in software.values())
    require(listed, f"record {number} names software that Likeness does not write")
    _check_texts(new, "", number)
    seen.update((key, id(value)) for key, value in new.items())


def _check_texts(value: Any, key: str, number: int) -> None:
    """Refuse a text that does not match the pattern of its key, a long text, and a huge number."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check_texts(name, "", number)
            _check_texts(item, "likeness" if key == "software" else str(name), number)
    elif isinstance(value, list):
        lines = key not in FORMS or all(isinstance(item, str) for item in value)
        require(lines, f"record {number} has a list that Likeness does not write")
        for item in value:
            _check_texts(item, key, number)
    elif isinstance(value, str):
        match = len(value) <= MOST_WORDS and value.isprintable() and re.fullmatch(FORMS.get(key, ".*"), value)
        require(bool(match), f"record {number} has a text that Likeness does not write")
    elif isinstance(value, int):
        require(abs(value) < _MOST_NUMBER, f"record {number} has a number that is larger than Likeness writes it")


def entries(bundle: Bundle) -> str:
    """Each release is the one that the ledger reserved and committed, with every fact of its receipt.

    The ledger also has the SHA-256 of each file that follows from the releases.
    """
    reserved = {record.body["key"]: record for record in bundle.records if record.kind == "reserve"}
    committed = {record.body["key"]: record.body for record in bundle.records if record.kind == "commit"}
    lost = {record.body["key"] for record in bundle.records if record.kind == "lost"}
    written, ledger_id = encoding_digest(bundle.project.written_schema), bundle.records[0].body["ledger_id"]
    for name, answer in bundle.released_files.items():
        receipt, stated = answer.receipt, answer.receipt.to_dict()
        require(receipt.key in reserved and receipt.key in committed, f"{name}: no entry in the ledger")
        entry = reserved[receipt.key]
        facts = Receipt.from_reservation(entry.body, ledger_id, entry.seq, receipt.sampler).to_dict()
        other = [fact for fact in facts if canonical_json(facts[fact]) != canonical_json(stated[fact])]
        require(not other, f"{name}: the ledger reserved another {' and '.join(other)}")
        require(receipt.key not in lost, f"{name}: the ledger gave this release up")
        digest = bundle.sha256(name)
        require(committed[receipt.key]["sha256"] == digest, f"{name}: other bytes than the ledger committed")
        of_schema = receipt.stage == SELECTION_STAGE
        encoding = written if of_schema else rows_of(bundle.project.row_sets, receipt.query).encoding
        require(entry.body["encoding"] == encoding, f"{name}: the ledger reserved another encoding")
    _check_order(bundle, reserved)
    _check_published(bundle)
    return f"{len(bundle.released_files)} releases were reserved, committed and published as they are here"


def _check_order(bundle: Bundle, reserved: Mapping[str, Record]) -> None:
    """Each question was asked after the ledger had an answer to each question that it may follow from.

    An earlier answer to a question of that name is enough: bytes may be lost and drawn again, and other settings may
    change a question without those after it. Where records were lost, so may have been that answer.
    """
    if any(record.kind == RECOVERED for record in bundle.records):
        return
    answered, before = dict[tuple[str, ...], int](), list[Receipt]()
    for record in bundle.records:
        if record.kind == "commit" and record.body["key"] in reserved:
            answered.setdefault(_subject(reserved[record.body["key"]].body), record.seq)
    receipts = {answer.receipt.query: answer.receipt for answer in bundle.answers}
    planned = [query.query for query in bundle.project.written_plan.queries]
    for receipt in (receipts[query] for query in planned if query in receipts):
        rows, asked = rows_of(bundle.project.row_sets, receipt.query), reserved[receipt.key].seq
        for other in before if receipt.stage != SELECTION_STAGE else ():
            may_follow = other.stage == SELECTION_STAGE or rows_of(bundle.project.row_sets, other.query) is rows
            may_follow &= receipt.plugin == "" or other.plan == receipt.plan  # its other plan may lack that question
            late = answered.get(_subject(vars(other)), math.inf) > asked
            fault = f"the ledger reserved {receipt.query} before it had an answer to {other.query}"
            require(not (may_follow and late), fault)
        before.append(receipt)


def _subject(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The name of a question, with its rows and attempt, in a receipt or reservation."""
    return str(facts["query"]), str(facts["digest"]), base_attempt(str(facts["slot"]))


def _check_published(bundle: Bundle) -> None:
    """The ledger has the files of the bundle, made from exactly these releases."""
    files = names.recorded_files(bundle.project.outputs)
    published = {
        "identity": bundle.project.params.privacy.population,
        "files": sha256_json({name: bundle.sha256(name) for name in files}),
        "releases": sorted(answer.receipt.key for answer in bundle.answers),
    }
    records = [record.body for record in bundle.records if record.kind == "published"]
    recorded = any(published.items() <= body.items() for body in records)
    require(recorded, "the ledger has no record that these files were published")


def costs(bundle: Bundle) -> str:
    """Each record about these people, also of other runs, is one that the ledger allows at its place.

    The cost of each reservation is computed again, from its specification, noise, adjacency and unit. What these people
    have spent stays within the cap that is in force there.
    """
    present = frozenset(record.digest for record in bundle.records)
    spent = _Spending(bundle.project.params.privacy.population, bundle.records[0].body["ledger_id"], present)
    for record in bundle.records[1:]:
        spent.add(record)
    if spent.unknown:
        raise Untestable(f"this version cannot compute the cost of {', '.join(spent.unknown)}")
    budget = spent.budget
    if budget is None:
        raise Wrong("the ledger has no cap of this population")
    delta = f", {budget.spent_delta:.6g} of it for private categories" if budget.spent_delta else ""
    lost = f", and {spent.recovered} lost costs by its keeper's word" if spent.recovered else ""
    return (
        f"{len(spent.reserved)} reservations of these people, computed again{lost}: epsilon "
        f"{budget.spent_epsilon:.6g} of {budget.cap_epsilon:g} at delta {budget.cap_delta:g}{delta}"
    )


@dataclass
class _Spending:
    """The records about some people up to one of them."""

    population: str
    ledger_id: str
    present: frozenset[str] = frozenset()  # digests of records that are shown: none is lost
    budget: Budget | None = None  # under the cap in force; None before the first cap
    composed: Composition = field(default_factory=Composition)  # of all reservations
    series: dict[str, Series] = field(default_factory=dict)  # nights on record, by attempt
    reserved: dict[str, Record] = field(default_factory=dict)  # by key
    files: set[str] = field(default_factory=set)  # SHA-256 of those that are committed
    committed: set[str] = field(default_factory=set)  # keys
    lost: set[str] = field(default_factory=set)  # keys that a person gave up
    counted: set[tuple[str, str]] = field(default_factory=set)  # rows and attempts whose classes were counted
    error: float = 0.0  # discretization errors of all releases together
    recovered: int = 0  # number of costs
    unknown: list[str] = field(default_factory=list)  # questions whose cost this version cannot compute
    claims: dict[str, Receipt] = field(default_factory=dict)  # the first reservation of each question
    groups: dict[str, str] = field(default_factory=dict)  # cohorts, by digest of their rows

    def add(self, record: Record) -> None:
        """Take the next record; one that no ledger of Likeness has at this place is wrong."""
        name, body = f"record {record.seq}", record.body
        if record.kind == DAY:
            for series in self.series.values():
                series.confirmed = record.time
            return
        require(body["identity"] == self.population, f"{name} is shown, and is about other people")
        if record.kind == "cap":
            self._cap(name, body)
        elif record.kind == "reserve":
            self._reserve(name, record)
        elif record.kind == RECOVERED:
            self._recover(name, body)
        elif record.kind == "commit":
            entry = self.reserved.get(body["key"])
            follows = entry is not None and (body["reserve_seq"], body[SALT]) == (entry.seq, entry.body[SALT])
            require(follows, f"{name} commits no reservation before it")
            require(body["key"] not in self.committed, f"{name} commits a release a second time")
            require(body["sha256"] not in self.files, f"{name} commits the file of another release")
            if entry is not None and (of_entry := self.series.get(base_attempt(entry.body["slot"]))):
                of_entry.commit(body["key"])
            self.files.add(body["sha256"])
            self.committed.add(body["key"])
        elif record.kind == "lost":
            require(body["key"] in self.committed - self.lost, f"{name} gives up no committed release")
            self.lost.add(body["key"])
            for series in self.series.values():
                series.queries.pop(body["key"], None)
        elif record.kind != FEWER:
            releases = body["releases"]
            named = releases == sorted({*releases} & self.committed) != []
            require(named, f"{name} publishes no release, or one without a commit before it")

    def _cap(self, name: str, body: Mapping[str, Any]) -> None:
        """Take a cap; it keeps adjacency and unit, and the part of δ that partition selection took."""
        before, delta, keys = self.budget, body["delta"], body["delta_keys"]
        epsilon = math.inf if body["epsilon"] == "inf" else body["epsilon"]
        numbers = {type(epsilon), type(delta), type(keys)} == {float} and epsilon > 0 <= keys < delta <= MOST_DELTA
        numbers &= repr(keys) != "-0.0"
        require(numbers, f"{name} has no cap in numbers, or gives partition selection all of its delta")
        adjacency, person = Adjacency(body["adjacency"]), body["person"]
        spent = Cost(*self.composed.total)
        same = before is None or (before.adjacency, before.person) == (adjacency, person)
        require(same, f"{name} has another adjacency or unit of privacy than the cap before")
        require(spent.delta <= keys * (1 + _EXACT), f"{name} leaves partition selection less of delta than it took")
        cap = self.population, adjacency, epsilon, delta
        self.budget = Budget(*cap, spent.rho, 0, person, keys, spent.delta)

    def _recover(self, name: str, body: Mapping[str, Any]) -> None:
        """Take the cost of lost records by the word of the ledger's keeper. It allows nothing, and exceeds any cap."""
        costs = [math.inf if body[key] == "inf" else body[key] for key in ("rho", "delta_keys", "error")]
        numbers = {*map(type, costs)} == {float} and not any(repr(cost).startswith("-") for cost in costs)
        require(numbers, f"{name} has a lost cost that is no number, or below 0")
        require(bool(body["lost"]), f"{name} is the cost of no lost record")
        once = len(body["lost"]) == len({*body["lost"]} - self.present)
        require(once, f"{name} is the cost of a record that is here, or of one record twice")
        rho, delta, error = costs
        self.recovered += 1
        self.error += error
        self._spend(rho, delta)

    def _spend(self, rho: float, delta: float, attempt: str = "", cohort: Cohort | None = None) -> None:
        """Take a cost, as :mod:`likeness.privacy.cohorts` composes it."""
        spent = Cost(*self.composed.add(rho, delta, attempt, cohort).total)
        if self.budget is not None:
            self.budget = replace(self.budget, spent_rho=spent.rho, spent_delta=spent.delta)

    def _reserve(self, name: str, record: Record) -> None:
        """Take a reservation, and compute its cost again."""
        body = record.body
        if self.budget is None:
            raise Wrong(f"{name} is a release without a cap before it")
        costs = {type(body["rho"]), type(body["delta_keys"])} == {float} and body["rho"] > 0 <= body["delta_keys"]
        require(costs, f"{name} has a cost that is no number, or too small")
        require(key_in(body) == body["key"], f"{name} has another request than its key")
        require(body["key"] not in self.reserved, f"{name} reserves a release a second time")
        question = repr([body["query"], *(body[key] for key in OF_QUESTION)])
        claim = self.claims.get(question) or Receipt.from_reservation(body, self.ledger_id, record.seq, "")
        require(self._follows_a_loss(body), f"{name} draws again what the ledger did not give up")
        require(claim.adjacency == self.budget.adjacency, f"{name} has another adjacency than the cap")
        person = None if claim.unit is None else claim.unit.column
        require(person == self.budget.person, f"{name} has another unit of privacy than the cap")
        if question not in self.claims:
            self._question(name, body, claim)
            self.claims[question] = claim
        self._follow(name, body)
        self.reserved[body["key"]] = record
        self._spend(claim.rho, claim.delta_keys, base_attempt(body["slot"]), self._cohort(name, record))
        require(self.budget.fits, f"{name} spends more than the cap in force allows")
        self.error += discretization_error(claim.dimension, claim.noise_scale)
        require(self.error <= ALLOWANCE, f"{name}: the lattices of all releases are too coarse for exact accounting")

    def _question(self, name: str, body: Mapping[str, Any], claim: Receipt) -> None:
        """Compute the cost of a question again; it is one that its method asks."""
        facts = claim.to_dict()
        same = all(canonical_json(body[fact]) == canonical_json(facts[fact]) for fact in FACTS)
        require(same, f"{name} has a fact in another form than Likeness writes")
        method, maps = _method(body["method"]), list(maps_in(body["feature"]))
        consistent = METHODS.is_ours(body["method"]) is (body["plugin"] == "")
        require(consistent or not METHODS.are_declared, f"{name} names another distribution than that of its method")
        is_selection = re.fullmatch(_SELECTION, body["query"]) is not None
        bounds = (body["query"], body["stage"], maps) == (BOUNDS, SELECTION_STAGE, [ColumnMarginals.name])
        signs = {body["stage"] == SELECTION_STAGE and not bounds, body["threshold"] is not None, KEYS in maps}
        require(signs == {is_selection}, f"{name} is a selection of categories in part only")
        named = is_selection or bounds
        if method is not None and not named:
            query_name, asking = _bare_name(body["query"]), (body["stage"], str(body["feature"].get("map")))
            named, foreign = method.allows(query_name, *asking), (set(maps) & known_maps().keys()) - maps_of(method)
            # A data set of a wing that is not here puts a word of its own before the names of queries.
            elsewhere = bool(MODELS.absent) and method.allows(query_name.partition("_")[2], *asking)
            require((named or elsewhere) and not foreign, f"{name} asks by {method.name} what that method never asks")
        recipe, is_known = body["recipe"], set(maps) <= known_maps().keys() | {KEYS}
        is_known = method is not None and repr(recipe) == repr(RECIPE) and is_known
        if is_known:
            query = check_claim(name, claim)
            require(body["backend"] == HERE or not claim.is_choice, f"{name} names a database, where nobody chooses")
            if query is not None and body["backend"] != HERE:
                counted_tables(query)  # or counts of cells do not give such a sum
        if not (is_known and named):
            listed = f"map {', '.join(map(repr, maps))}, recipe {recipe!r}, method {body['method']!r}"
            self.unknown.append(f"{name} ({listed})")

    def _follow(self, name: str, body: Mapping[str, Any]) -> None:
        """Refuse an embedding before the class counts of its rows, but where records were lost.

        Nothing else has one order: other settings of a method may ask more of equal rows by an equal plan.
        """
        rows = body["digest"], base_attempt(body["slot"])
        counted = rows in self.counted or self.recovered > 0
        require(body["stage"] != LAST_STAGE or counted, f"{name} is an embedding of rows whose classes nobody counted")
        if body["query"].endswith(CLASS_COUNTS):
            self.counted.add(rows)

    def _cohort(self, name: str, record: Record) -> Cohort | None:
        """The cohort of a reservation, which follows from the nights before; None: it is about everybody."""
        body = record.body
        try:
            cohort = Cohort.from_group(body["group"])
        except ValueError:
            raise Wrong(f"{name} names a cohort that no series has") from None
        named = ("day" in body, "first_nights" in body, body["unit"] is not None)
        right = all(named) if cohort else not any(named[:2])
        require(right, f"{name} names a cohort of nobody, or no cohort")
        if cohort is None:
            return None
        near = _is_day(body["day"]) and 0 <= days_between(body["day"], record.time) <= MOST_BACK
        require(near, f"{name} is about a night of {body['day']!r}, far from the day of its record")
        series = self.series.setdefault(base_attempt(body["slot"]), Series())
        right = series.allows(cohort, body["digest"], body["day"], body["plan"], body["query"])
        right &= self.groups.setdefault(body["digest"], body["group"]) == body["group"]  # no two nights have one digest
        require(right, f"{name} is about another cohort than that of its night, or about its rows or plan otherwise")
        series.reserve(record)
        return cohort

    def _follows_a_loss(self, body: Mapping[str, Any]) -> bool:
        """Tell whether a draw of a release is the first, or follows one that is lost."""
        attempt, mark, draw = body["slot"].partition(REDRAW)
        if not mark:
            return True
        number = int(draw) if re.fullmatch("[1-9][0-9]{0,3}", draw) else 0
        before = attempt if number == 2 else f"{attempt}{REDRAW}{number - 1}"
        return number > 1 and sha256_json({**request_in(body), "slot": before}) in self.lost


def _method(name: str) -> type[Method] | None:
    """The class of a method; None for a plug-in that is not here, or that nobody here trusts."""
    try:
        return method_named(name)
    except (MissingPackageError, ParamsError):
        return None


_SELECTION = "categories_[0-9]{1,5}"
"""Pattern of the names of partition selections."""


def _bare_name(query: str) -> str:
    """The name of a query in the grammar of its method: without that of the rows that it is about."""
    prefixes = sorted({prefix for model in MODELS.values() for prefix in model.prefixes}, key=len, reverse=True)
    return query.removeprefix(next((prefix for prefix in prefixes if query.startswith(prefix)), ""))


def maps_of(method: type[Method]) -> set[str]:
    """Names of the maps that a method or a selection may ask for."""
    return {kind.name for kind in (*SHARED, *method.maps)}
