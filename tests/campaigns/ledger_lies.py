"""Lies in the ledger of a bundle: other records about the same people, caps, orders, days, units and thresholds.

Each is told as well as a forger can: keys, links, digests, the account's lifetime and all texts follow.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Concatenate

from likeness.bundle.files import Bundle
from likeness.core.hashing import sha256_json
from likeness.ledger.records import SALT, Record, opening_of
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.receipt import Receipt
from likeness.privacy.thresholds import threshold_for
from likeness.release.request import request_in
from likeness.verify.receipts import query_again
from tests.campaigns import forgery as f
from tests.campaigns import lie_plants as p
from tests.campaigns.honest_bundles import IDENTITY

Json = dict[str, Any]
Change = Callable[[Json], object]
Told = tuple[str, str, str, f.Plant] | tuple[str, str, str, f.Plant, Json]
COSTS, CHAIN, ENTRIES, LIFETIME = "ledger costs", "ledger chain", "ledger entries", "lifetime"
AUDITED = "audited, eps 0.01"


@f.planted
def another(folder: Path, change: Change = dict, /, query: str = p.COUNTS, commit: bool = True, **changes: Any) -> None:
    """One release more about these people: a copy of one of the bundle, under another attempt, and changed.

    Args:
        change: of the body of its reservation; its key follows.
        query: that is copied.
        commit: whether it has a commit.
        changes: of the body; the key does not follow.
    """
    key = next(one.receipt.key for one in Bundle(folder).answers if one.receipt.query == query)

    def add(chain: list[Json]) -> None:
        entry = next(r for r in chain if r.get("kind") == "reserve" and r["body"]["key"] == key)
        body = {**entry["body"], "slot": "2"}
        change(body)
        body["key"] = sha256_json(request_in(body))
        body |= changes
        seq, time = len(chain), chain[-1]["time"]
        done = {"reserve_seq": seq, "sha256": p.SHA, **{name: body[name] for name in ("key", "identity", SALT)}}
        added = [{"kind": "reserve", "time": time, "body": body}, {"kind": "commit", "time": time, "body": done}]
        chain[-1:-1] = added[: 1 + commit]

    f.edit_chain(folder, add)
    f.follow(folder)


def choices(body: Json) -> None:
    """The reservation becomes one of four choices that a database made, at their cost."""
    spec = {"map": "relation_candidates", "number": 9, "candidates": p.SHA, "rounds": 4, "score": "monotone"}
    sensitivity = 2 * math.sqrt(math.pi / 8 * 4)
    scale = body["noise_multiplier"] * sensitivity * 2.0**20
    body |= {
        "query": "choices",
        "stage": "auxiliary",
        "feature": {**spec, "terms": "all_records"},
        "backend": _DATABASE,
    }
    body |= {"mechanism": "gumbel_choice", "lattice_bits": 20, "num_groups": 1, "dimension": 4, "noise_scale": scale}
    body |= {"sensitivity": sensitivity, "rho": (sensitivity * 2.0**20 / scale) ** 2 / 2}


def chain(change: Callable[[list[Json]], object]) -> f.Plant:
    """Change records, and let the account follow."""
    return f.all_of(p.records(change), f.follow)


def chained(change: Callable[Concatenate[list[Json], f.P], object]) -> Callable[f.P, f.Plant]:
    """Of a function of records and more: a function of the rest, which returns the plant."""
    return lambda *arguments, **keywords: chain(lambda records: change(records, *arguments, **keywords))


def of(kind: str, place: int = -1) -> Callable[[list[Json]], Json]:
    """The record of a kind at a place among those of its kind."""
    return lambda found: [record for record in found if record.get("kind") == kind][place]


@chained
def put(found: list[Json], kind: str, before: str | None = None, **changes: Any) -> None:
    """A copy of the last record of a kind with another body.

    Args:
        kind: of the record.
        before: kind of the first record that it stands before; None: it stands before the last record.
        changes: of the body.
    """
    one = of(kind)(found)
    place = len(found) - 1 if before is None else found.index(of(before, 0)(found))
    found.insert(place, {**one, "time": found[place]["time"], "body": {**one["body"], **changes}})


def cheaper(factor: float, body: Json) -> None:
    """Sensitivity and all that follows from it, but the noise."""
    body["sensitivity"] *= factor
    body["noise_multiplier"] /= factor
    body["rho"] *= factor**2


def right(body: Json, **changes: Any) -> None:
    """Change what was asked, with the numbers that are right for it at this noise multiplier."""
    body |= changes
    receipt = Receipt.from_reservation(body, "", 0, "")
    adjacency = Adjacency(receipt.adjacency)
    query = query_again(receipt)
    squared = query.sensitivity_squared(adjacency, receipt.unit)
    scale = receipt.noise_multiplier * math.sqrt(squared)
    body |= {
        "change": str(query.contributions.change(adjacency)),
        "dimension": query.dimension,
        "lattice_bits": query.lattice_bits,
        "sensitivity": math.sqrt(squared) * 2.0**-query.lattice_bits,
        "noise_scale": scale,
        "rho": squared / (2 * scale**2),
    }


def sets(**changes: Any) -> Change:
    """Set facts of a reservation."""
    return lambda body: body.update(changes)


def rights(**changes: Any) -> Change:
    """As :func:`right`."""
    return partial(right, **changes)


def feature(**changes: Any) -> Change:
    """Change the specification of a map."""
    return lambda body: body.update(feature={**body["feature"], **changes})


def silent(body: Json) -> None:
    """A release without noise."""
    body |= {"mechanism": "none", "noise_scale": 0.0, "noise_multiplier": 0.0, "rho": "inf"}


def wide(body: Json) -> None:
    """Noise of 10^45 lattice steps."""
    body |= {"noise_multiplier": body["noise_multiplier"] * 1e45 / body["noise_scale"], "noise_scale": 1e45}
    body["rho"] = 1 / (2 * body["noise_multiplier"] ** 2)


def for_one_row(body: Json) -> None:
    """A threshold for people of one row, where they have two."""
    body["threshold"] = threshold_for(body["delta_keys"], body["noise_scale"], 1, body["lattice_bits"])


def two_days_back(found: list[Json]) -> None:
    """The cap is of a day before the ledger's first."""
    of("genesis")(found)["time"] = "2026-01-02"
    of("cap")(found)["time"] = "2026-01-01"


def noted_day(found: list[Json]) -> None:
    """A person confirms the last day, with a note."""
    body = found[-1]["body"]
    found.insert(len(found) - 1, {**found[-1], "kind": "day", "body": {SALT: body[SALT], "note": p.NOTE}})


@chained
def recovered(found: list[Json], **changes: Any) -> None:
    """The cost of a lost record before the first release, and changed; ``lost`` may be a place on the chain."""
    if isinstance(changes.get("lost"), int):
        changes["lost"] = [found[changes["lost"]]["digest"]]
    cap = of("cap", 0)(found)
    body = {key: cap["body"][key] for key in ("identity", SALT)}
    body |= {"rho": 0.0, "delta_keys": 0.0, "error": 0.0, "lost": [p.SHA], **changes}
    found.insert(found.index(of("reserve", 0)(found)), {**cap, "kind": "recovered", "body": body})


def paid_by_a_loss(found: list[Json]) -> None:
    """The last release has the cost of a lost record in the place of its reservation."""
    record = of("reserve")(found)
    kept = ("identity", "rho", "delta_keys", "digest", "rows_digests", SALT)
    record["body"] = {key: record["body"][key] for key in kept} | {"error": 0.0, "lost": [p.SHA]}
    record["kind"] = "recovered"


def twice(found: list[Json]) -> None:
    """The last reservation a second time, and cheaper, before its commit."""
    place = found.index(of("reserve")(found))
    found.insert(place + 1, {**found[place], "body": {**found[place]["body"], "rho": 1e-9}})


def uncapped(found: list[Json]) -> None:
    """The cap comes after the first release."""
    cap = found.index(of("cap")(found))
    found[cap], found[cap + 1] = found[cap + 1], found[cap]
    of("commit", 0)(found)["body"]["reserve_seq"] = cap + 1


def night(group: str, query: str = p.COUNTS, noise: float = 2.0, **changes: Any) -> f.Plant:
    """One release more, about a cohort, with so many times the noise."""

    def change(body: Json) -> None:
        body |= {"group": group, "slot": "3", "digest": "1" * 64, **_NIGHT, **changes}
        body |= {key: body[key] * noise for key in ("noise_multiplier", "noise_scale")}
        body["rho"] /= noise**2

    return another(change, query)


def rested(found: list[Json]) -> None:
    """All records but the last are of a day long ago."""
    for record in found[:-1]:
        if "time" in record:
            record["time"] = "2026-01-02"


def over_midnight(found: list[Json]) -> None:
    """The last release was drawn on the next day."""
    for record in found[found.index(of("commit")(found)) :]:
        record["time"] = _AFTER


def of_rows(found: list[Json]) -> None:
    """The cap is for rows, and so is the last release, the only one."""
    of("cap")(found)["body"]["person"] = None
    for record in [r for r in found if r.get("kind") in ("reserve", "commit")][:-2]:
        found.remove(record)


@chained
def raised(found: list[Json], **first: Any) -> None:
    """A cap like the last one at the end, and other values in the first."""
    cap = of("cap")(found)
    found.insert(len(found) - 1, {**cap, "time": found[-1]["time"], "body": dict(cap["body"])})
    cap["body"].update(first)


def with_a_point(found: list[Json]) -> None:
    """A commit names its reservation as 14.0."""
    body = of("commit")(found)["body"]
    body["reserve_seq"] = float(body["reserve_seq"])


def same_file(found: list[Json]) -> None:
    """The last commit is of the bytes of the first."""
    of("commit")(found)["body"].update(sha256=of("commit", 0)(found)["body"]["sha256"])


def links(found: list[Json]) -> None:
    """Every record about these people is a link about others."""
    for record in found[1:]:
        if "body" in record:
            record |= opening_of(Record(**{**record, "body": {**record["body"], "identity": "visitors"}}))
            for key in ("time", "kind", "body"):
                del record[key]


def opened_as(identity: Any) -> f.Plant:
    """The first link is about somebody else, and proves it."""

    def change(found: list[Json]) -> None:
        next(record for record in found if "content" in record)["identity"] = identity

    return p.records(change)


def hidden_reservation(folder: Path) -> None:
    """The first reservation of an earlier run is a link about others, and its commit is shown."""
    ours = {one.receipt.key for one in Bundle(folder).answers}

    def change(found: list[Json]) -> None:
        links([{}, next(r for r in found if r.get("kind") == "reserve" and r["body"]["key"] not in ours)])

    chain(change)(folder)


_UNIT = {"column": "pid", "max_rows": 2}
_OF_HISTORIES: Json = {"method": "histories"}
_OF_PEARL: Json = {"method": "pearl"}
_SEAL = "0" * 32
_NIGHT = {"first_nights": _SEAL, "day": datetime.now(UTC).date().isoformat()}
_BEFORE, _AFTER = ((datetime.now(UTC) + timedelta(days=days)).date().isoformat() for days in (-1, 1))
_DATABASE = f"postgres {p.SHA}"
_UNTESTED: Json = {"verdict": None}

OF_LEDGERS: tuple[Told, ...] = (
    # --- what another release cost
    *((f"another release cost {word}", COSTS, "is no number, or too small", another(rho=value))
      for word, value in (("-0.02", -0.02), ("0", 0.0), ("a text", "0.001"), ("a truth value", True), ("1", 1),
                          ("a list", [0.001]), ("nothing", None))),
    ("another release cost 1e-12", COSTS, "rho is 1e-12", another(rho=1e-12)),
    ("another release cost a millionth less", COSTS, "rho is",
     another(lambda body: body.update(rho=body["rho"] * (1 - 1e-6)))),
    ("another release had no noise", COSTS, "is no number, or too small", another(silent)),
    ("another release had noise that no integer holds", COSTS, "too coarse", another(wide)),
    ("another release cost delta of -1e-6", COSTS, "too small", another(sets(delta_keys=-1e-6), p.KEYS)),
    ("another release cost delta in words", COSTS, "too small", another(sets(delta_keys="1e-6"), p.KEYS)),
    ("another release without a threshold cost delta", COSTS, "delta_keys is 1e-07", another(sets(delta_keys=1e-7))),
    ("another release moved by half of what it moves", COSTS, "sensitivity is", another(partial(cheaper, 0.5))),
    ("another release claims twice its noise", COSTS, "noise_scale is",
     another(lambda body: body.update(noise_multiplier=2 * body["noise_multiplier"], rho=body["rho"] / 4))),
    ("another release has half of its coordinates", COSTS, "dimension is", another(dimension=1)),
    ("another release changes nothing", COSTS, "change is wrong", another(change="none_appears")),
    ("another release has other lattice steps", COSTS, "lattice_bits is", another(sets(lattice_bits=20))),
    ("another release has Laplace noise", COSTS, "is unknown", another(sets(mechanism="laplace"))),
    *((f"another release has {word} groups", COSTS, "no number of groups", another(sets(num_groups=value)))
      for word, value in (("no", 0), ("less than no", -2), ("true", True), ("2.0", 2.0))),
    ("another release has a map with a note", COSTS, "cannot be read", another(feature(note=p.NOTE))),
    ("another release has no map", COSTS, "never asks", another(sets(feature={}))),
    ("another release has terms that nobody knows", COSTS, "are unknown", another(feature(terms="no_records"))),
    ("another release has a map of 10^12 frequencies", COSTS, "larger than any map",
     another(lambda body: body.update(feature={**body["feature"], "inner": {
         **body["feature"]["inner"], "num_frequencies": 10**12}}), p.EMBEDDING), _OF_PEARL),
    ("another release has a map of an unknown method", COSTS, "never asks", another(feature(map=AUDITED))),
    ("another release has an unknown map inside its map", COSTS, f"'{AUDITED}'",
     another(lambda body: body.update(feature={**body["feature"], "inner": {
         **body["feature"]["inner"], "map": AUDITED}}, slot="1"), p.EMBEDDING), {**_OF_PEARL, **_UNTESTED}),
    ("another release of an unknown method had noise of a thousand steps", COSTS, "lattices of all releases", another(
        lambda body: body.update(
            feature={**body["feature"], "map": AUDITED}, noise_scale=1e3, method="audited", plugin="audited 1.0"))),
    ("another release is of a later recipe", COSTS, "recipe 99", another(sets(recipe=99)), _UNTESTED),
    ("another release is of recipe 1.0", COSTS, "recipe 1.0", another(sets(recipe=1.0)), _UNTESTED),
    ("another release is of a method that is not there", COSTS, "another distribution", another(method=AUDITED)),
    ("another release is of a plug-in that is not there", COSTS, f"method '{AUDITED}'", another(
        method=AUDITED, plugin="theirs 1.0"), _UNTESTED),
    ("another release names a distribution beside Likeness", COSTS, "another distribution", another(plugin="its 1.0")),
    ("another release cost delta of -0", COSTS, "delta_keys is -0.0", another(sets(delta_keys=-0.0))),
    ("another release has a diagnosis for its name", COSTS, "never asks", another(sets(query="ada_has_hiv"))),
    ("another release is for people in a column with blanks", COSTS, "a fact in another form", another(
        sets(unit={**_UNIT, "column": "pid   "}))),
    ("another release has the file of this one", COSTS, "the file of another release", f.all_of(
        another(), chain(same_file))),
    ("a release is drawn a seventh time without six losses", COSTS, "did not give up", another(sets(slot="1~7"))),
    # --- keys, thresholds, distances and histories of another release
    ("another release has the key of another request", COSTS, "another request", another(key="1" * 64)),
    ("another release has more groups than its key", COSTS, "another request", another(num_groups=3)),
    ("another release of categories has a threshold for one row a person", COSTS, "one person pass",
     another(for_one_row, p.KEYS)),
    ("another release of categories has no threshold", COSTS, "in part only",
     another(sets(threshold=None, mechanism="discrete_gaussian", delta_keys=0.0), p.KEYS)),
    *((f"another release of categories has a threshold that is {word}", COSTS, "no threshold",
       another(lambda body, value=value: body.update(threshold=value(body["threshold"])), p.KEYS))
      for word, value in (("a fraction", float), ("true", bool))),
    ("another release of categories protects people of -1 rows", COSTS, "a whole number from 1", another(
        sets(unit={**_UNIT, "max_rows": -1}, dimension=-1, sensitivity=-1.0, threshold=1, delta_keys=1e-300), p.KEYS)),
    ("another release protects people of a billion rows", COSTS, "people of too many rows", another(
        sets(unit={**_UNIT, "max_rows": 10**9}))),
    ("another release of categories names a column that is a table", COSTS, "not written as this version", another(
        feature(column=[[p.NOTE, p.NOTE]] * 9), p.KEYS)),
    ("another release of categories has as many categories as a table", COSTS, "not written as this version", another(
        feature(most={p.NOTE: p.NOTE}), p.KEYS)),
    ("digests of rows are rows", CHAIN, "a list that Likeness", another(rows_digests=[{p.NOTE: p.NOTE}])),
    ("digests of rows are of more tables than there are", CHAIN, "names more tables",
     another(lambda body: body.update(rows_digests=body["rows_digests"] * 3))),
    ("another release has noise of a negative scale", COSTS, "no noise", another(
        lambda body: body.update(noise_multiplier=-body["noise_multiplier"], noise_scale=-body["noise_scale"]))),
    ("another release of categories costs no delta", COSTS, "no delta for it", another(sets(delta_keys=0.0), p.KEYS)),
    ("another release of categories costs half of its delta", COSTS, "more than delta",
     another(lambda body: body.update(delta_keys=body["delta_keys"] / 2), p.KEYS)),
    ("another release of categories is moved by one row of two", COSTS, "sensitivity is",
     another(partial(cheaper, 0.5), p.KEYS)),
    ("another release has a threshold, and counts no categories", COSTS, "in part only",
     another(sets(threshold=1 << 40, mechanism="thresholded_discrete_gaussian", delta_keys=1e-7))),
    ("another release of histories counts rows of nobody in particular", COSTS, "no person has several", f.all_of(
        another(sets(unit=None), p.FOLLOWING), chain(of_rows)), _OF_HISTORIES),
    ("another release of histories counts each event at the cost of a person", COSTS, "sensitivity is",
     another(feature(terms="each_record"), p.FOLLOWING), _OF_HISTORIES),
    ("another release of histories counts people as in pairs of events, by position", COSTS, "cannot be read",
     another(feature(terms="position_pairs"), p.EMBEDDING), _OF_HISTORIES),
    # --- unit and adjacency of another release
    ("another release replaces people", COSTS, "another adjacency than the cap",
     another(rights(adjacency="replace_one", unit={**_UNIT, "max_rows": 1}))),
    ("another release is under no adjacency", COSTS, "another adjacency than the cap",
     another(sets(adjacency="remove_none"))),
    ("another release protects rows", COSTS, "another unit of privacy than the cap", another(rights(unit=None))),
    ("another release protects departments", COSTS, "another unit of privacy than the cap",
     another(rights(unit={"column": "department", "max_rows": 2}))),
    ("another release is for one row of two, at the noise of two", COSTS, "sensitivity is",
     another(sets(unit={**_UNIT, "max_rows": 4}))),
    *((f"another release is for people of {word} rows", COSTS, because,
       another(sets(unit={**_UNIT, "max_rows": value})))
      for word, value, because in (("no", 0, "a whole number from 1"), ("two and a half", 2.5, "whole number"),
                                   ("true", True, "whole number"))),
    ("another release of histories is of another table's people", COSTS, "another unit of privacy than the cap",
     another(sets(unit={"column": "ward", "max_rows": 3}), p.FOLLOWING), _OF_HISTORIES),
    # --- the cap
    ("the lifetime cap is 0.2, and more is spent", COSTS, "more than the cap", chain(
        lambda found: of("cap")(found)["body"].update(epsilon=0.2))),
    ("the lifetime cap was 0.2 when more was spent, and is raised at the end", COSTS, "more than the cap",
     raised(epsilon=0.2)),
    ("the cap kept no delta for categories when they took it", COSTS, "more than the cap", raised(delta_keys=0.0)),
    ("another run spends beyond the cap", COSTS, "more than the cap", chain(
        lambda found: of("cap")(found)["body"].update(epsilon=1.2)), _OF_PEARL),
    ("an earlier cap is under another adjacency", COSTS, "another adjacency", raised(adjacency="replace_one")),
    ("an earlier cap is for another unit", COSTS, "another unit of privacy", raised(person="department")),
    ("a later cap is under another adjacency", COSTS, "another adjacency or unit", put("cap", adjacency="replace_one")),
    ("a later cap is for rows", COSTS, "another adjacency or unit", put("cap", person=None)),
    ("a later cap leaves categories less than they took", COSTS, "less of delta than it took",
     put("cap", delta_keys=1e-9)),
    *((f"a cap has epsilon {word}", COSTS, "no cap in numbers", chain(
        lambda found, value=value: of("cap")(found)["body"].update(epsilon=value)))
      for word, value in (("in words", "10"), ("true", True), ("0", 0.0), ("-1", -1.0), ("-inf", "-inf"))),
    *((f"a cap has delta {word}", COSTS, "no cap in numbers", chain(
        lambda found, value=value: of("cap")(found)["body"].update(delta=value)))
      for word, value in (("1", 1.0), ("0", 0.0), ("in words", "1e-5"), ("true", True))),
    *((f"a cap keeps {word} of its delta for categories", COSTS, "no cap in numbers", chain(
        lambda found, value=value: of("cap")(found)["body"].update(delta_keys=value)))
      for word, value in (("less than nothing", -1e-6), ("all", 1.0), ("some words", "1e-6"))),
    ("a release comes before the cap", COSTS, "without a cap before it", chain(uncapped)),
    ("the cap is of other people", COSTS, "about other people", f.edit_body("cap", identity="visitors")),
    ("all records are about others", COSTS, "no cap of this population", p.records(links), {"seal": f.Seal.TEXTS}),
    # --- orders
    ("a release is reserved twice, once for less", COSTS, "a second time", chain(twice)),
    ("a reservation has two commits of different bytes", COSTS, "a second time", put("commit", sha256="1" * 64)),
    ("a reservation has two equal commits", COSTS, "a second time", put("commit")),
    ("a commit comes before its reservation", COSTS, "no reservation before it", put(
        "commit", before="reserve", key="1" * 64)),
    ("a commit names another reservation", COSTS, "no reservation before it", f.edit_body(
        "commit", p.EMBEDDING, reserve_seq=1)),
    ("a commit is of a release that nobody reserved", COSTS, "no reservation before it", put("commit", key=p.SHA)),
    ("a release is committed before it is reserved", COSTS, "no reservation before it", f.all_of(
        p.records(p.order), p.renumber)),
    ("an embedding is asked before a release that it follows from is answered", ENTRIES, "before it had an answer",
        f.all_of(p.records(p.asked_early), p.renumber)),
    ("an embedding of another plan is asked before a release that it follows from", ENTRIES, "before it had an answer",
        f.all_of(p.records(p.asked_early), p.renumber, f.edit_both(p.EMBEDDING, plan=p.SHA))),
    ("a commit is for other people", COSTS, "about other people", f.edit_body(
        "commit", p.EMBEDDING, identity="visitors")),
    ("a release that was never committed is given up", COSTS, "gives up no committed release", f.all_of(
        another(commit=False), chain(lambda found: found.insert(len(found) - 1, _lost(found, "reserve"))))),
    ("a release that is not on record is given up", COSTS, "gives up no committed release", chain(
        lambda found: found.insert(len(found) - 1, _lost(found, "commit", key=p.SHA)))),
    ("a release is given up twice", COSTS, "gives up no committed release", chain(
        lambda found: [found.insert(len(found) - 1, _lost(found, "commit")) for _ in range(2)])),
    ("files were made of a release that nobody committed", COSTS, "without a commit before it", put(
        "published", releases=[p.SHA])),
    ("files were made of no release", COSTS, "publishes no release", put("published", releases=[])),
    ("files were made of a release that is named twice", COSTS, "publishes no release", chain(
        lambda found: of("published")(found)["body"].update(releases=of("published")(found)["body"]["releases"] * 2))),
    ("a cap keeps -0 of delta for categories", COSTS, "no cap in numbers", raised(delta_keys=-0.0), _OF_HISTORIES),
    *((f"a cap was {word} what was spent", COSTS, "spends more than the cap", raised(**{key: value}))
      for word, key, value in (("below", "epsilon", 0.5), ("without the delta of", "delta_keys", 0.0))),
    ("the reservation of an earlier run is hidden, and its commit is not", COSTS, "no reservation before it",
     hidden_reservation, _OF_PEARL),
    ("a release that was given up is published", ENTRIES, "gave this release up", chain(
        lambda found: found.insert(len(found) - 1, _lost(found, "commit")))),
    # --- costs that an older copy of the ledger lost
    *((f"a lost record cost {word}", COSTS, "lost cost that is no number, or below 0", recovered(**{key: value}))
      for word, key, value in (("-0.01", "rho", -0.01), ("a text", "rho", "0.01"), ("less delta", "delta_keys", -1e-9),
                               ("fewer lattices", "error", -1.0), ("-0", "rho", -0.0))),
    ("lost records took all, and releases follow", COSTS, "spends more than the cap", recovered(rho=100.0)),
    ("a lost record is called by a name", CHAIN, "does not write", recovered(lost=[p.NOTE])),
    ("a release is paid as a lost record", ENTRIES, "no entry in the ledger", chain(paid_by_a_loss)),
    ("a lost record cost much, and none is named", COSTS, "cost of no lost record", recovered(lost=[])),
    ("a lost record is named twice", COSTS, "or of one record twice", recovered(lost=[p.SHA, p.SHA])),
    ("a record that is here is called lost", COSTS, "a record that is here", recovered(lost=0)),
    # --- the grammar of a run
    ("class counts are the last release of a night", COSTS, "what that method never asks", another(
        sets(stage="privatize"))),
    ("an embedding counts records", COSTS, "never asks", another(sets(query="embedding", stage="privatize"))),
    ("private categories have no threshold", COSTS, "in part only", another(sets(query="categories_99"))),
    ("a threshold is that of no selection", COSTS, "in part only", another(sets(query="columns"), p.KEYS)),
    ("a database counted frequencies", COSTS, "do not give this sum", another(
        sets(backend=_DATABASE), p.EMBEDDING), _OF_PEARL),
    ("classes of an embedding were never counted", COSTS, "nobody counted", another(sets(digest=p.SHA), p.EMBEDDING)),
    ("a lifetime cap is at delta .9", COSTS, "no cap in numbers", raised(delta=0.9)),
    # --- days
    *((f"a record is of {day}", CHAIN, "no day until today", p.last("published", time=day))
      for day in ("9999-99-99", "2026-02-30", "2999-01-01", "20260101", "2026-W01-1", "2026-1-1", "2026-01-01T09:00")),
    ("a ledger begins in 1970", CHAIN, "no day until today", chain(
        lambda found: of("genesis")(found).update(time="1970-01-01"))),
    ("a person confirms a day with a note", CHAIN, "unknown keys", chain(noted_day)),
    ("a cap is of a day before the ledger's first", CHAIN, "before that of an earlier record", chain(two_days_back)),
    ("a commit names its reservation with a point", CHAIN, "of another type", p.records(with_a_point)),
    ("all records have one salt", CHAIN, "two records have one salt", p.records(
        lambda found: [one["body"].update({SALT: _SEAL}) for one in found if "body" in one])),
    # --- cohorts
    ("another release is about a cohort of people whom nothing names", COSTS, "names a cohort of nobody",
     another(sets(group="1-1"))),
    ("another release has first nights, and is about everybody", COSTS, "or no cohort", another(first_nights=_SEAL)),
    ("another release is about nights that run back", COSTS, "that no series has",
     another(sets(group="9-5", **_NIGHT))),
    ("another release claims a night that is not the next, to cost nothing", COSTS, "than that of its night",
     another(sets(group="2-2", **_NIGHT))),
    ("another release is about a night of last year", COSTS, "far from the day of its record",
     another(sets(group="1-1", **{**_NIGHT, "day": "2020-01-01"}))),
    ("a series has no first night", COSTS, "than that of its night", another(sets(group="1-2", **_NIGHT))),
    *((f"a cohort is called {word!a}", CHAIN, "does not know group", another(sets(group=word, **_NIGHT)))
      for word in ("01-1", "1-\uff11", "1-1 ")),
    *((f"of a night {words}", COSTS, "than that of its night", f.all_of(
        night("1-1", day=_BEFORE, digest=p.SHA), night(group, query, 3.0, **changes)))
      for words, group, query, changes in (
          ("the next one has the day", "1-2", p.COUNTS, {"day": _BEFORE}),
          ("the next one has the rows", "1-2", p.COUNTS, {"digest": p.SHA}),
          ("there are two versions of the rows", "1-1", p.COLUMNS, {"day": _BEFORE}),
          ("there are two days", "1-1", p.COLUMNS, {"digest": p.SHA}),
          ("there are two plans", "1-1", p.COLUMNS, {"day": _BEFORE, "digest": p.SHA, "plan": p.SHA}),
          ("one question is asked twice", "1-1", p.COUNTS, {"day": _BEFORE, "digest": p.SHA}))),
    ("a night follows after months, and nobody confirmed the day", COSTS, "than that of its night", f.all_of(
        night("1-1", day="2026-01-02", digest=p.SHA), chain(rested), night("1-2"))),
    # --- salts and seals
    ("one run has two attempts", CHAIN, "one salt", another()),
    ("one run has two plans", CHAIN, "one salt", f.edit_both(p.COLUMNS, plan="1" * 64)),
    ("a database made choices", COSTS, "where nobody chooses", another(choices)),
    ("a database counted one release of a run", CHAIN, "one salt", f.edit_both(p.COLUMNS, backend=_DATABASE)),
    ("two runs have equal seals", CHAIN, "one seal", another(**{SALT: _SEAL})),
    ("a draw lasts over midnight", CHAIN, "on a later day", p.records(over_midnight)),
    # --- words in records
    ("nobody asked for a release", CHAIN, "lacks some", p.records(
        lambda found: of("reserve")(found)["body"].pop("asked_by"))),
    ("a ledger requires a part of a later version", CHAIN, "unknown keys", p.records(
        lambda found: of("genesis")(found)["body"].update(requires=["part"]))),
    ("the digest of a link has capitals", CHAIN, "not a digest", p.link(content="A" * 64)),
    ("a link is about people with a sign that nobody sees", CHAIN, "does not write", opened_as(f"\u200b{IDENTITY}")),
    ("whoever asked is a list of people", CHAIN, "another type", f.edit_body("reserve", asked_by=[p.NOTE, p.NOTE])),
    ("a release of a person has a name of a person", CHAIN, "does not write", another(sets(query="ada lovelace"))),
    ("a stage is a sentence", CHAIN, "does not write", another(stage=p.NOTE)),
    ("a git commit has changes in words", CHAIN, "another type", f.edit_body("reserve", git_changed=p.NOTE)),
    ("software has the names of people", CHAIN, "names software", f.edit_body("reserve", software={"ada": "1.0"})),
    ("software has a list of versions", CHAIN, "names software", f.edit_body(
        "reserve", software={"numpy": ["1.0", "2.0"]})),
    ("a ledger has a format in words", CHAIN, "does not know format", chain(
        lambda found: of("genesis")(found)["body"].update(format=p.NOTE))),
    # --- releases of another plan
    ("a release is of another plan, and of a method that is not there", COSTS, "another distribution", f.edit_both(
        p.COUNTS, plan="1" * 64, method=AUDITED)),
    ("a release is of another plan than its reservation", ENTRIES, "another plan", f.edit_receipt(
        p.COUNTS, plan="1" * 64)),
    ("a release of another plan is of another method than its reservation", ENTRIES, "another method", f.all_of(
        f.edit_both(p.COUNTS, plan="1" * 64), f.edit_receipt(p.COUNTS, method="merf"))),
    ("a release of another plan is of another stage than its reservation", ENTRIES, "another stage", f.all_of(
        f.edit_both(p.COUNTS, plan="1" * 64), f.edit_body("reserve", p.COUNTS, stage="privatize"))),
    ("the reservation of a release is moved by half", COSTS, "sensitivity is", f.all_of(
        f.edit_body("reserve", p.COUNTS, sensitivity=0.5))),
    ("a release is asked for under another key", COSTS, "another request", f.edit_body("reserve", p.COUNTS, slot="3")),
    ("a release is asked for again, of other rows", ENTRIES, "another digest", f.edit_request(p.COUNTS, digest=p.SHA)),
    # --- other people
    ("a link is about nobody", LIFETIME, "about nobody", opened_as("")),
    ("a link is about a list of names", LIFETIME, "about nobody", opened_as([IDENTITY])),
    *((f"a link is about people with the name {name!r}", LIFETIME, "Nobody can compute", opened_as(name), _UNTESTED)
      for name in (f"{IDENTITY} ", IDENTITY.upper(), "s-t-a-f-f", "staﬀ", "st\u0430ff", "st\u0251ff", "sta\u3164ff")),
    ("an earlier run is opened as these people", LIFETIME, "about this population", f.hide(IDENTITY), _OF_PEARL),
)  # fmt: skip


def _lost(found: list[Json], kind: str, **changes: Any) -> Json:
    """A record that gives up the release of the last record of a kind."""
    one = of(kind)(found)
    body = {name: one["body"][name] for name in ("key", "identity", SALT)}
    return {"kind": "lost", "time": found[-1]["time"], "body": {**body, **changes}}
