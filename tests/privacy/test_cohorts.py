"""Cohorts: what releases about disjoint people cost together, which nights a ledger takes, and first nights.

Thresholds for keys that nobody knows: their cost in δ against exact sums, plan, caps, and what old files were.
"""

import dataclasses
import datetime
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from shutil import copytree, rmtree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pytest import MonkeyPatch
from scipy.stats import norm
from sqlalchemy import select
from toys import ADD, ledger_of_people, plan_with, schema_with

from likeness.bundle.verdict import Wrong
from likeness.core.artifacts import Artifacts
from likeness.core.bounds import Part, PrivacyUnit
from likeness.core.errors import (
    ArtifactError,
    BudgetError,
    DataError,
    LedgerError,
    NightError,
    ParamsError,
    PlanError,
    ReleaseError,
)
from likeness.data.private_tables import read_private
from likeness.features.column_marginals import Constant
from likeness.ledger import records as records_of
from likeness.ledger.budget import composition, costs_on_record
from likeness.ledger.chain import copies_path
from likeness.ledger.database import FIRST_NIGHTS as NIGHTS
from likeness.ledger.first_nights import CohortNight, check_series, cohort_members
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger, recover
from likeness.ledger.reservation import Dataset, Reservation
from likeness.ledger.series import Night, Series, check_night
from likeness.pipeline.datasets import model_of
from likeness.pipeline.ingest import manifest_of
from likeness.pipeline.ledger_session import LedgerSession
from likeness.pipeline.private_rows import dataset_of
from likeness.pipeline.project import Project
from likeness.preflight.doctor import _check_series
from likeness.privacy.accountant import compose
from likeness.privacy.adjacency import Stability, lattice_sensitivity_squared
from likeness.privacy.calibration import delta_of_mu, epsilon_of_rho, rho_for
from likeness.privacy.cohorts import MOST_NIGHTS, Cohort, Composition
from likeness.privacy.plan import Plan, QueryShare
from likeness.privacy.receipt import THRESHOLDED, Receipt
from likeness.privacy.thresholds import log_delta, threshold_for
from likeness.release.query import Query
from likeness.release.request import request_in, request_of
from likeness.stages import fingerprint
from likeness.synthesizer import Synthesizer
from likeness.synthesizer.estimates import running_total
from likeness.verify.ledger import _Spending

TONIGHT = ["ann", "bob", "cid", "fay"]
UNIT, CAP = PrivacyUnit("pid", 1), rho_for(1.0, 1e-5)
COSTS = st.tuples(
    st.floats(0.001, 1), st.floats(0, 1e-6), st.sampled_from(["", "1", "2"]), st.integers(1, 9), st.integers(0, 9)
)


@pytest.fixture
def ledger(monkeypatch: MonkeyPatch) -> Ledger:
    """A ledger of people with names, on the first of some days."""
    on_day(monkeypatch, 1)
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 1.0, 1e-5, "pid")
    return ledger


def on_day(monkeypatch: MonkeyPatch, day: int) -> None:
    """A day in the past: the verifier refuses what lies ahead of today."""
    monkeypatch.setattr(records_of, "_now", lambda: (datetime.date(2025, 1, 1) + datetime.timedelta(day)).isoformat())


def tonight(ledger: Ledger, names: Iterable[str], attempt: str = "1") -> CohortNight:
    return cohort_members(ledger.chain, "people", attempt, names)


def request(key: str, night: CohortNight, rho: float = 0.1 * CAP, **changes: Any) -> Reservation:
    """A release of the last stage about a cohort."""
    seals = {"first_nights": night.first_nights, "day": night.day}
    about = {"group": night.group, "digest": f"rows of {night.group}", **seals, **changes}
    facts = {"query": key, "stage": "privatize", "method": "m", "feature": {}}
    rest = {"others": {}, "attempt": "1", "encoding": "", "details": facts, "unit": UNIT}
    return Reservation(
        **{"key": key, "population": "people", "adjacency": ADD, "rho": rho, "plan": "plan", **rest, **about}
    )


@given(st.lists(COSTS, max_size=12))
@settings(max_examples=40, deadline=None)
def test_costs_add_up_for_each_person_and_the_dearest_person_counts(costs: list[tuple[Any, ...]]) -> None:
    """Against the theorem, person by person: one first night in each of two series."""
    composed = Composition()
    spans = [(rho, delta, series, Cohort(a, a + more) if series else None) for rho, delta, series, a, more in costs]
    for cost in spans:
        composed.add(*cost)

    def of(kind: int, series: str, night: int) -> float:
        return math.fsum(
            c[kind] for c in spans if c[2] == series and (c[3] is None or c[3].first <= night <= c[3].last)
        )

    for kind in (0, 1):
        people = [of(kind, "", 0) + of(kind, "1", f) + of(kind, "2", g) for f in range(1, 20) for g in range(1, 20)]
        assert composed.total[kind] == pytest.approx(max(people), abs=1e-12)


def test_the_tree_covers_all_people_once_and_each_person_in_few_nights() -> None:
    """Cohorts of 200 nights: all nights until each one are a disjoint union of few; a person is in few of them."""
    nights = {t: Cohort.from_night(t, range(t)) for t in range(1, 201)}
    for t in nights:
        ends = [*accumulate(range(20), lambda end, _: nights[end].first - 1 if end else 0, initial=t)]
        chain = [nights[end] for end in ends if end]
        assert sorted(f for one in chain for f in range(one.first, one.last + 1)) == [*range(1, t + 1)]
        assert len(chain) == t.bit_count()
    seen = Counter(f for one in nights.values() for f in range(one.first, one.last + 1))
    assert max(seen.values()) == (200).bit_length()
    assert Cohort.from_night(6, {0, 1, 2, 3}) == Cohort(4, 6)  # night 4 broke: its people are in the next one
    for wrong in ("5-4", "0-1", "1", f"1-{MOST_NIGHTS + 1}"):
        with pytest.raises(ValueError, match=wrong):
            Cohort.from_group(wrong)


def test_a_ledger_takes_one_night_after_the_other(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Each night has one cohort, one day and one version of its rows; the costs are those of the dearest person."""
    groups = []
    for day in range(1, 6):
        on_day(monkeypatch, day)
        night = tonight(ledger, {"ann", "bob"})
        groups.append(night.group)
        ledger.reserve(request(f"night {day}", night))
        budget = ledger.budget("people")
        assert budget is not None and budget.spent_rho == pytest.approx(0.1 * CAP * day.bit_length())
        before = ledger.records()
        schema = {"details": {"query": f"night {day}", "stage": "privatize"}, "encoding": "of a clone's other schema"}
        others = {"digest": "other rows"}, {"group": f"{day + 1}-{day + 1}"}, {"group": "9-9"}, {"plan": "of a clone"}
        for change in (*others, schema):
            with pytest.raises(BudgetError, match=r"on record, and this release is about other rows, or other nights"):
                ledger.reserve(request("other", night, **change))
        assert ledger.records() == before and tonight(ledger, {"ann"}).group == night.group
        if day != 4:
            ledger.commit(f"night {day}", f"{day}" * 64)
    assert groups == ["1-1", "1-2", "3-3", "1-4", "4-5"]  # night 4 has no release, so night 5 asks about its people
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("dear", night, 0.9 * CAP))
    on_day(monkeypatch, 8)
    ledger.confirm_day(records_of._now(), {}, "people")
    new = tonight(ledger, {"cid"})
    ledger.reserve(request("others", new, 0.5 * CAP))  # people who came tonight, and of night 4 on: they paid less


def test_a_verifier_composes_as_the_ledger_and_believes_no_other_cohort(
    ledger: Ledger, monkeypatch: MonkeyPatch
) -> None:
    """Cohorts follow from the nights before, so a record that claims a smaller one is refused."""
    for day in range(1, 9):
        on_day(monkeypatch, day)
        ledger.reserve(request(f"night {day}", tonight(ledger, ["ann"])))
        ledger.commit(f"night {day}", f"{day}" * 64)
    entries = [record for record in ledger.records() if record.kind in ("reserve", "commit")]

    def recomputed(changed: int = 0, **changes: Any) -> float:
        spending = _Spending("people", ledger.id)
        for record in entries:
            if record.kind == "commit":
                for series in spending.series.values():
                    series.commit(record.body["key"])
                continue
            body = {**record.body, **(changes if record.body["key"] == f"night {changed}" else {})}
            one = records_of.Record(record.seq, record.time, "reserve", body, "", "")
            spending._spend(body["rho"], 0.0, "1", spending._cohort("it", one))
        return spending.composed.total[0]

    assert recomputed() == composition(costs_on_record(ledger.records(), "people")).total[0] == pytest.approx(0.4 * CAP)
    lies: list[dict[str, Any]] = [{"group": "8-8"}, {"group": "7-8"}, {"group": "9-9"}, {"group": "7-7"}]
    for lie in lies:
        with pytest.raises(Wrong, match="another cohort than that of its night"):
            recomputed(8, **lie)
    with pytest.raises(Wrong, match="another cohort than that of its night"):
        recomputed(2, group="1-1")  # the rows of another night under the name of a night on record
    with pytest.raises(Wrong, match="another cohort than that of its night"):
        recomputed(8, day=entries[-4].body["day"])  # a second night on one day
    for far in ("2025-01-05", "2025-01-10", "once"):
        with pytest.raises(Wrong, match="far from the day of its record"):
            recomputed(8, day=far)
    for odd, words in (({"group": "8-1"}, "no series has"), ({"unit": None}, "nobody"), ({"group": ""}, "no cohort")):
        with pytest.raises(Wrong, match=words):
            recomputed(8, **odd)


@pytest.mark.long
def test_no_person_moves_the_first_night_of_another(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Neighbors: all nights with a person, and without. Each night has the same cohort and the same others."""
    generator = np.random.default_rng(0)
    nights = [[*"abcdefg"], *(generator.choice([*"abcdefghij"], 8, replace=False).tolist() for _ in range(5))]

    def asked(without: str) -> list[tuple[str, frozenset[str]]]:
        on_day(monkeypatch, 0)
        ledger, found = Ledger.create(Home(tmp_path / f"home{without}", tmp_path / f"anchor{without}")), []
        ledger.declare_population("people", ADD, math.inf, 1e-5, "pid")
        for day, names in enumerate(nights):
            on_day(monkeypatch, day)
            night = tonight(ledger, [name for name in names if name != without])
            ledger.reserve(request(f"{day}", night))
            ledger.commit(f"{day}", f"{day}" * 64)
            found.append((night.group, night.members))
        return found

    everybody = asked("")
    for person in (nights[0][0], nights[-1][0]):
        held = [Cohort.from_group(group) for group, members in everybody if person in members]
        sizes = [cohort.last - cohort.first for cohort in held if cohort is not None]
        assert len(sizes) == len({*sizes})  # at most one cohort of each size
        assert asked(person) == [(group, members - {person}) for group, members in everybody]


def change(ledger: Ledger, statement: str) -> None:
    """Change first nights as the owner of the file can."""
    with sqlite3.connect(ledger.home.database) as connection:
        for verb in ("update", "delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS first_nights_no_{verb}")
        connection.execute(statement)


def test_a_lost_record_costs_people_of_each_cohort_all_of_the_cap(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Nobody knows whom it was about: also who paid nothing before has nothing left."""
    for day in (1, 2):
        on_day(monkeypatch, day)
        ledger.reserve(request(f"{day}", tonight(ledger, ["ann"]), 0.4 * CAP))
        ledger.commit(f"{day}", f"{day}" * 64)
    older = ledger.home.database.read_bytes()
    ledger.declare_population("others", ADD, 1.0, 1e-5, "pid")
    ledger.home.database.write_bytes(older)
    copies_path(ledger.home).unlink()
    assert recover(ledger.home, {"asked_by": "a person"}) == (0, 1)
    on_day(monkeypatch, 3)
    ledger = Ledger.open(locate())
    night = tonight(ledger, ["ann", "new"])
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("new", night, 0.01 * CAP))
    assert (night.group, night.members) == ("3-3", {"new"})


def test_lost_first_nights_are_noticed_and_come_back(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """They are keyed hashes, and a series goes on with those of its newest night only."""
    ledger.reserve(request("one", tonight(ledger, ["ann", "bob"])))
    home, copy = ledger.home.path, ledger.home.path.with_name("copy")
    assert b"ann" not in ledger.home.database.read_bytes()
    late = tonight(ledger, ["ann", "cid"])  # on the same day: the night is complete, so cid belongs to the next one
    assert (late.group, late.members) == ("1-1", {"ann"})
    on_day(monkeypatch, 2)
    night = tonight(ledger, ["bob", "cid", "dan"])
    assert (night.group, night.members) == ("1-2", {"bob", "cid", "dan"})
    with pytest.raises(LedgerError, match=r"people came to the series after these rows were read"):
        tonight(ledger, ["ann", "eve"])
        ledger.reserve(request("two", night))
    copytree(home, copy)
    on_day(monkeypatch, 3)
    ledger.reserve(request("two", tonight(ledger, TONIGHT)))
    copies = next(ledger.home.anchor.glob("*.nights"))
    assert copies.stat().st_mode & 0o077 == 0 and "fay" not in copies.read_text()

    def restored() -> Ledger:
        rmtree(home)
        copytree(copy, home)
        recover(ledger.home, {"asked_by": "a person"})
        return Ledger.open(locate())

    with copies.open("a") as file:
        file.write("\n0123456789abcdef 01234")  # a crash cut this line
    assert len(restored().records()) == 4
    assert tonight(restored(), TONIGHT).first_nights == tonight(ledger, TONIGHT).first_nights
    ledger.home.database.unlink()  # all of it
    assert recover(ledger.home, {"asked_by": "a person"}) == (4, 0)
    assert tonight(Ledger.open(locate()), TONIGHT).group == "1-2"
    kept = copies.read_text()
    for text in ("", kept.replace(" 2\n", " 1\n")):  # no copies, and those of other nights
        copies.write_text(text)
        with pytest.raises(LedgerError, match=r"The first nights of 'people' are not: .* a new value"):
            restored()
        with pytest.raises(LedgerError, match=r"lost, edited or restored .* ledger\.attempt a new value"):
            tonight(Ledger.open(locate()), ["ann"])
    copies.write_text(kept)
    ledger = restored()
    check_series(ledger.chain)
    for statement in ("UPDATE first_nights SET night = 2", "DELETE FROM first_nights WHERE night = 1"):
        change(ledger, statement)
        with pytest.raises(LedgerError, match=r"lost, edited or restored from an older copy.* recover"):
            tonight(ledger, ["ann"])
        with pytest.raises(LedgerError, match=r"of 'people' that night 2 of the series had"):
            check_series(ledger.chain)
    assert tonight(ledger, ["ann"], "2").group == "1-1"
    assert Series.from_records(ledger.records(), "people", "1~2").night is not None


def test_a_night_has_the_day_on_which_its_rows_were_read(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Midnight between reading and asking changes nothing. A clock that jumps needs a person's word."""
    before = tonight(ledger, ["ann", "bob"])
    on_day(monkeypatch, 2)
    ledger.reserve(request("one", before))
    ledger.commit("one", "1" * 64)
    night = tonight(ledger, ["ann", "bob"])
    assert (before.group, night.group) == ("1-1", "1-2") and night.day > before.day
    with pytest.raises(BudgetError, match="a night of the series"):  # two nights of rows of one day
        ledger.reserve(request("again", night._replace(day=before.day)))
    for later, fault in ((4, None), (5, "were read on 2025-01-03, and it is 2025-01-06"), (1, "were read on")):
        on_day(monkeypatch, later)
        if fault is None:
            ledger.reserve(request("two", night))
            ledger.commit("two", "2" * 64)
            continue
        with pytest.raises(LedgerError, match=fault):
            check_night(ledger.records(), request("late", night), records_of._now())
    on_day(monkeypatch, 300)
    ledger.declare_population("others", ADD, 1.0, 1e-5)
    on_day(monkeypatch, 6)
    with pytest.raises(LedgerError, match=r"last record is of 2025-10-28: no night would follow.* day 2025"):
        tonight(ledger, ["ann"])
    ledger.confirm_day(records_of._now(), {})
    assert tonight(ledger, ["ann"]).group == "3-3"  # four days after night 2: the longest gap was one
    ledger.reserve(request("three", tonight(ledger, ["ann"])))
    three = Series.from_records(ledger.records(), "people", "1")
    assert three.night is not None and not three.allows(three.following, "rows", before.day)  # it was for one night
    ledger.confirm_day(records_of._now(), {})
    again = Series.from_records(ledger.records(), "people", "1")
    assert not again.allows(again.following, "rows", three.night.day)  # nor are two of one day
    on_day(monkeypatch, 15)
    with pytest.raises(LedgerError, match=r"newest night of the series is of 2025-01-07, more than twice as long ago"):
        tonight(ledger, ["ann"])
    on_day(monkeypatch, 14)
    assert tonight(ledger, ["ann"]).group == "1-4"


def test_a_half_loaded_source_is_no_night_without_a_persons_word(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Fewer than half of the people whom the ledger knows: nothing is spent, and nobody gets a first night."""
    ledger.reserve(request("one", tonight(ledger, ["ann", "bob", "cid"])))
    on_day(monkeypatch, 2)
    ledger.declare_population("others", ADD, 1.0, 1e-5)
    ledger.confirm_day(records_of._now(), {}, "others")  # a word about other people
    for names in ([], ["ann"], ["ann", *"efgh"]):
        with pytest.raises(DataError, match=r"fewer than half of .* --fewer 'people'") as refusal:
            tonight(ledger, names)
        assert not {"3", "ann"} & {*str(refusal.value).split()}
    ledger.confirm_day(records_of._now(), {"asked_by": "a person"}, "people")
    assert tonight(ledger, ["ann", "eve"]).members == {"ann", "eve"}
    on_day(monkeypatch, 3)
    with pytest.raises(DataError, match="fewer than half"):  # it was for one day
        tonight(ledger, ["ann", "eve"])
    assert tonight(ledger, ["ann", "bob"]).group == "1-2"
    with pytest.raises(LedgerError, match="nobody"):
        ledger.confirm_day(records_of._now(), {}, "nobody")


def test_totals_build_on_a_night_of_which_no_release_waits() -> None:
    newest, waiting = Night(Cohort(1, 2), "2025-01-06", ""), ({}, {"k": "auxiliary"})
    following = [Series(newest, waiting=releases, complete=True).following for releases in waiting]
    assert list(map(str, following)) == ["3-3", "1-3"]


def test_another_attempt_is_another_series(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Names, nights and costs of two attempts, and of two populations, do not mix."""
    for attempt in "12":
        night = tonight(ledger, ["ann"], attempt)
        ledger.reserve(request(f"one {attempt}", night, attempt=attempt))
    budget = ledger.budget("people")
    assert budget is not None and budget.spent_rho == pytest.approx(0.2 * CAP)
    for day, rho in ((2, 0.01), (3, 0.3)):  # the dearest people of series 2 came late, and those of series 1 early
        on_day(monkeypatch, day)
        ledger.commit(f"one 2 {day - 1}" if day > 2 else "one 2", f"{day}" * 64)
        night = tonight(ledger, ["ann"], "2")
        ledger.reserve(request(f"one 2 {day}", night, rho * CAP, attempt="2"))
        if day == 2:  # drawn again, it is of the same series
            ledger.reserve(request("again", night, rho * CAP, attempt="2~2"))
            ledger.commit("again", "a" * 64)
    budget = ledger.budget("people")
    assert night.group == "3-3" and budget is not None
    assert budget.spent_rho == pytest.approx((0.1 + 0.3) * CAP)
    ledger.declare_population("others", ADD, 1.0, 1e-5, "pid")
    assert tonight(ledger, ["ann"]).group == "1-2"
    assert cohort_members(ledger.chain, "others", "1", ["ann"]).group == "1-1"
    people = {person for (_, person) in ledger.chain.engine.connect().execute(select(NIGHTS.c.series, NIGHTS.c.person))}
    assert len(people) == 2  # one person's name has another hash in another population


@pytest.mark.long
def test_rows_of_a_night(ledger: Ledger, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """From a file and from a frame: the rows of the cohort, and a digest that no two nights without people share."""
    schema = schema_with([{"name": "c", "kind": "categorical", "categories": ["u", "v"]}])
    rows = pd.DataFrame({"pid": [*"aab"], "c": [*"uvu"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    told = {"population": "people", "schema": schema, "unit_column": "pid", "max_rows": 2, "series": "growing"}
    given, model = Synthesizer(**told).params(), model_of(schema)
    params = replace(given, ingest=replace(given.ingest, source="rows.csv"))
    project = Project(tmp_path, params, schema)
    digests, sources, empty = [], set(), []
    for day, group, count in ((1, "1-1", 3), (2, "1-2", 3), (3, "3-3", 0), (5, "1-4", 3), (7, "5-5", 0)):
        on_day(monkeypatch, day)
        memory = replace(project, frames={"synthetic": rows}, artifacts=Artifacts())
        fingerprint.main(replace(project))
        sources.add(project.paths.source.read_bytes())
        for each in (project, memory):
            model.ingest(each.sources, ledger, each.paths)
        dataset, again = (dataset_of(params, each.paths.table, ledger.id, {})[0] for each in (project, memory))
        assert dataset == again and dataset.group == group
        assert len(read_private(memory.paths.table)) == count == len(read_private(project.paths.table))
        assert len({*dataset.rows_digests}) == 2  # fewer would show that the night has no rows
        digests.append(dataset.digest)
        empty += [] if count else [dataset.rows_digests[1]]
        asked = request_of(Query("q", "privatize", Constant()), "add_remove_one", 5.0, dataset)
        assert asked["group"] == group and request_in({**asked, "key": ""}) == asked
        night = CohortNight(dataset.group, dataset.first_nights, frozenset(), dataset.day)
        ledger.reserve(request(f"{day}", night, 0.01 * CAP, digest=dataset.digest))
        ledger.commit(f"{day}", f"{day}" * 64)
        session = LedgerSession(tmp_path, params)
        session.check_night(dataset.day)
        on_day(monkeypatch, day + 1)
        session.check_night(dataset.day)  # it went on over midnight
        with pytest.raises(NightError, match=rf"is of {dataset.day}.*makes no night.*--force") as refusal:
            session.check_night(records_of._now())  # the rows were of another night
        assert refusal.value.exit_code == 4
        on_day(monkeypatch, day - 1)
        with pytest.raises(NightError, match=r"makes no night\. Set the clock"):
            _check_series(SimpleNamespace(ledger=ledger, params=params, ledger_session=session))  # type: ignore
    assert len({*digests}) == len(sources) == len(digests)  # a night without a change is one, too
    manifest = manifest_of(params, ledger.id, "d", 0, ["", ""], 0, night)  # nor has the source a row
    assert len({*empty}) == len({*manifest["rows_digests"]}) == 2
    assert "group" not in request_of(Query("q", "privatize", Constant()), "add_remove_one", 5.0, Dataset("people", "d"))
    everybody = replace(params, privacy=replace(params.privacy, series="none"))
    with pytest.raises(ArtifactError, match=r"another privacy\.series"):
        dataset_of(everybody, project.paths.table, ledger.id, {})
    with pytest.raises(ParamsError, match="a column must name the people"):
        model.complete(replace(params, ingest=replace(params.ingest, unit=None)))


@pytest.mark.long
def test_counts_of_all_people_add_up_over_cohorts(ledger: Ledger, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Three nights: all people are those of nights 2 and 3. A run that is missing, or about everybody, is said."""
    schema = schema_with([{"name": name, "kind": "categorical", "categories": ["u", "v"]} for name in "cd"])
    frame = pd.DataFrame({"pid": [f"p{n}" for n in range(900)], "c": [*"uuv"] * 300, "d": [*"uvu"] * 300})
    told = {"epsilon": 40.0, "population": "crowd", "schema": schema, "cap": (100.0, 1e-5)}
    told |= {"unit_column": "pid", "max_rows": 1, "settings": {"train": {"iterations": 2}}}
    folders = [tmp_path / f"night {day}" for day in (1, 2, 3)]
    for day, folder in enumerate(folders, start=1):
        on_day(monkeypatch, day)
        Synthesizer(series="growing", **told).fit(frame.head(300 * day)).save(folder)
    on_day(monkeypatch, 2)  # behind the newest night, whose bytes would come again
    with pytest.raises(NightError, match="makes no night"):
        Synthesizer(series="growing", **told).fit(frame)
    on_day(monkeypatch, 3)
    total, last = running_total(folders, "c"), running_total([folders[0], folders[1]], "c")
    assert total["unbiased"].tolist() == pytest.approx([600, 300], abs=30)
    assert (total["noise_error"] > last["noise_error"]).all()
    width = (total["high"] - total["unbiased"]) / total["noise_error"]
    assert width.tolist() == pytest.approx([1.96, 1.96], rel=1e-3)
    with pytest.raises(ArtifactError, match="the run of night 2 is not among those given"):
        running_total([folders[0], folders[2]], "c")
    Synthesizer(**told).fit(frame).save(tmp_path / "all")
    with pytest.raises(ReleaseError, match="is about everybody"):
        running_total([tmp_path / "all"], "c")


BITS, SCALE = 10, 2_000.0  # a small lattice, which can be summed: a row is 1,024 steps, the noise two rows wide
L = 2**BITS


def masses(reach: int = 40) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The discrete Gaussian of SCALE, exactly up to float64."""
    values = np.arange(-int(reach * SCALE), int(reach * SCALE) + 1)
    weights = np.exp(-(values**2) / (2 * SCALE**2))
    return values, weights / weights.sum()


VALUES, MASSES = masses()


def tail(least: float) -> float:
    """P[N >= least]."""
    return float(MASSES[least <= VALUES].sum())


def splits(rows: int, most: int | None = None) -> Iterator[list[int]]:
    """All ways to split at most so many rows over keys."""
    yield []
    for count in range(min(rows, most or rows), 0, -1):
        for rest in splits(rows - count, count):
            yield [count, *rest]


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
@pytest.mark.parametrize("target", [0.3, 1e-3, 1e-9])
def test_delta_covers_every_way_to_split_rows_over_keys_and_hardly_more(rows: int, target: float) -> None:
    threshold = threshold_for(target, SCALE, rows, BITS)
    told = math.exp(log_delta(threshold, SCALE, rows, BITS))
    passes = [1 - math.prod(1 - tail(threshold - count * L) for count in split) for split in splits(rows)]
    assert max(passes) <= told <= target
    assert max(passes) > 0.8 * target  # the union bound at 0.3 is the farthest
    assert log_delta(threshold - 1, SCALE, rows, BITS) > math.log(target)  # a step is one here: the smallest T


@settings(max_examples=40)
@given(st.floats(-400, -0.1), st.floats(1.1e3, 1e12), st.integers(1, 50))
def test_tiny_deltas_keep_their_digits(log_target: float, scale: float, rows: int) -> None:
    """Against another library's tail, in logarithms."""
    bits = 30
    threshold = threshold_for(math.exp(log_target), scale, rows, bits)
    tails = [norm.logsf((threshold - c * 2**bits - 0.5) / scale) + math.log(rows / c) for c in range(1, rows + 1)]
    assert max(tails) <= log_target + 1e-12 * abs(log_target)
    assert log_delta(threshold, scale, rows, bits) == pytest.approx(max(tails), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1])
def test_a_delta_that_is_none_is_refused(target: float) -> None:
    with pytest.raises(PlanError, match="strictly between 0 and 1"):
        threshold_for(target, SCALE, 1, BITS)


def hockey_stick(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float) -> float:
    return float(np.clip(first - math.exp(epsilon) * second, 0, None).sum())


def outcomes(known: int, new: int, threshold: int) -> tuple[NDArray[np.float64], float]:
    """Law of what a key with so many rows shows, the last place for nothing; and how likely the new key shows."""
    least = threshold - known * L
    shown = np.where(least <= VALUES, MASSES, 0)
    # In places of the released value, so that two tables can be compared.
    law = np.zeros(len(VALUES) + 10 * L + 1)
    law[known * L : known * L + len(VALUES)] = shown
    law[-1] = 1 - shown.sum()
    return law, tail(threshold - new * L) if new else 0.0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_whole_mechanism_has_the_privacy_that_is_claimed_and_less_would_show(epsilon: float) -> None:
    """Exact divergence of two neighbors, both ways: a person adds a row to a known key and one to a new key."""
    delta_keys, rows = 1e-3, 2
    threshold = threshold_for(delta_keys, SCALE, rows, BITS)
    rho = lattice_sensitivity_squared(
        (Part(2, Fraction(1), nonnegative=True),), BITS, Stability.ONE_APPEARS, 1, rows
    ) / (2 * SCALE**2)
    claimed = delta_of_mu(epsilon, math.sqrt(2 * rho)) + delta_keys

    def worst(own: int) -> float:
        without, _ = outcomes(4, 0, own)
        known, shows = outcomes(5, 1, own)
        # With the person: nothing of the new key, or something that the other table can never show.
        return max(
            hockey_stick((1 - shows) * known, without, epsilon) + shows,
            hockey_stick(without, (1 - shows) * known, epsilon),
        )

    assert worst(threshold) <= claimed and worst(threshold - int(4 * SCALE)) > claimed


def plan(keys: Sequence[QueryShare], epsilon: float = 1.0, unit: PrivacyUnit | None = None) -> Plan:
    return plan_with(
        [QueryShare("a", "auxiliary", 0.3), QueryShare("b", "privatize", 0.7)], epsilon, unit=unit, selection=keys
    )


KEYS = [QueryShare(f"categories_{place}", "categories", 0.1, 0.05) for place in (1, 2)]


def test_the_plan_gives_keys_their_shares_and_meets_its_target() -> None:
    made = plan(KEYS)
    assert [query.query for query in made.queries] == ["categories_1", "categories_2", "a", "b"]
    assert [query.share for query in made.queries] == pytest.approx([0.1, 0.1, 0.24, 0.56])
    assert [query.rho / made.rho for query in made.queries] == pytest.approx([0.1, 0.1, 0.24, 0.56])
    assert [query.delta_keys for query in made.queries] == pytest.approx([5e-7, 5e-7, 0, 0])
    mu = math.sqrt(math.fsum(query.noise_multiplier**-2 for query in made.queries))
    assert delta_of_mu(1.0, mu) + made.delta_keys <= 1e-5
    assert 0.999 * rho_for(1.0, 9e-6) < made.rho <= rho_for(1.0, 9e-6) and Plan.from_dict(made.to_dict()) == made


def receipt(**others: object) -> Receipt:
    multiplier, threshold = 10.0, threshold_for(1e-6, 10.0 * 2**30, 1, 30)
    made = Receipt(
        query="categories_1", stage="categories", method="m", feature={}, mechanism=THRESHOLDED, sampler="s",
        adjacency="add_remove_one", change="one_appears", num_groups=1, dimension=1, lattice_bits=30, sensitivity=1.0,
        noise_multiplier=multiplier, noise_scale=multiplier * 2**30, rho=0.005, identity="people", digest="d",
        slot="1", plan="p", key="k", ledger_id="l", ledger_seq=3, threshold=threshold, delta_keys=1e-6,
    )  # fmt: skip
    return dataclasses.replace(made, **others)


def test_the_account_takes_thresholds_off_delta_and_believes_no_receipt() -> None:
    account = compose([receipt(), receipt()], 1e-5)
    assert account.delta == 1e-5 and account.delta_keys == 2e-6
    assert account.epsilon == pytest.approx(epsilon_of_rho(0.01, 8e-6), rel=1e-12)
    with pytest.raises(ReleaseError, match="costs more of delta"):
        compose([receipt(threshold=receipt().threshold - 2**30)], 1e-5)
    with pytest.raises(ReleaseError, match="costs more of delta"):
        compose([receipt(delta_keys=0.0)], 1e-5)
    with pytest.raises(ReleaseError, match="does not know"):
        compose([receipt(threshold=None)], 1e-5)
    with pytest.raises(ReleaseError, match=r"all of privacy\.delta"):
        compose([receipt()], 1e-6)


def test_a_receipt_has_all_fields_and_no_others() -> None:
    made = receipt()
    assert Receipt.from_dict(made.to_dict(), "r") == made
    short = {key: value for key, value in made.to_dict().items() if key != "delta_keys"}
    for wrong in ({**made.to_dict(), "note": ""}, short):
        with pytest.raises(ReleaseError, match="fields of format"):
            Receipt.from_dict(wrong, "r")


def asked(key: str, rho: float, keys: float, **others: object) -> Reservation:
    more = {"plan": "plan", "others": {}, "details": {"query": key}, "delta": keys, **others}
    return Reservation(**{"population": "people", "digest": "digest", "key": key, "adjacency": ADD, "rho": rho, **more})


def test_a_lifetime_cap_keeps_a_part_of_delta_and_both_limits_hold() -> None:
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 1.0, 1e-5, selection_delta=2e-6)
    most = rho_for(1.0, 8e-6)
    ledger.reserve(asked("one", 0.5 * most, 1e-6))
    with pytest.raises(BudgetError, match=r"together 2\.1e-06.*for them is 2e-06.*--delta-keys"):
        ledger.reserve(asked("two", 0.1 * most, 1.1e-6))
    with pytest.raises(BudgetError, match="over budget"):  # the rest of its plan counts too
        ledger.reserve(asked("two", 0.1 * most, 5e-7, others={"x": 0.1 * most}, others_delta={"x": 6e-7}))
    ledger.reserve(asked("two", 0.1 * most, 1e-6))
    with pytest.raises(BudgetError, match="together epsilon 1"):
        ledger.reserve(asked("three", 0.401 * most, 0.0))
    ledger.reserve(asked("three", 0.4 * most, 0.0))
    budget = ledger.budget("people")
    assert budget.spent_delta == pytest.approx(2e-6) == budget.selection_delta
    assert budget.spent_epsilon == pytest.approx(1.0, rel=1e-6) and budget.remaining_rho == pytest.approx(0, abs=1e-9)
    reserved = [record.body["delta_keys"] for record in ledger.records() if record.kind == "reserve"]
    assert reserved == [1e-6, 1e-6, 0.0]
    ledger.change_cap("people", 2.0, 1e-5)
    assert ledger.budget("people").selection_delta == 2e-6
    with pytest.raises(LedgerError, match="below delta"):
        ledger.change_cap("people", 2.0, 1e-5, selection_delta=1e-5)


def test_without_a_part_of_delta_a_threshold_is_refused() -> None:
    ledger = ledger_of_people(ADD, 10.0)
    assert ledger.records()[-1].body["delta_keys"] == 0
    with pytest.raises(BudgetError, match="for them is 0 of 1e-05"):
        ledger.reserve(asked("one", 0.01, 1e-12))
    ledger.change_cap("people", 10.0, 1e-5, selection_delta=5e-6)
    ledger.reserve(asked("one", 0.01, 5e-6))
