"""The ledger: caps, reservations, records."""

import dataclasses
import datetime
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch
from toys import ADD, CAP, ledger_of_people, request

from likeness.bundle.chain import chain_extract
from likeness.bundle.verdict import Wrong
from likeness.core.errors import BudgetError, LedgerError, PlanError
from likeness.core.hashing import canonical_json, sha256_json
from likeness.ledger import chain
from likeness.ledger.budget import discretization_error_of
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import Body, digest_of, hash_of, next_digest, opening_of
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.lattice_error import MOST_ERROR, discretization_error
from likeness.verify.ledger import chain as chain_of

ADA = {"asked_by": "ada"}
NAMES = st.sampled_from(["identity", "rho", 'x"rho', "rho\\", "digest"])


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_people()


def test_a_ledger_is_started_once_and_by_hand(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="likeness ledger init"):
        Ledger.open(locate())
    Ledger.create(locate())
    with pytest.raises(LedgerError, match="It is there: nothing is to be done"):
        Ledger.create(locate())
    assert locate().path.stat().st_mode & 0o777 == 0o700 and locate().key_file.stat().st_mode & 0o777 == 0o600


def test_python_starts_a_ledger_as_the_command_does(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger.start()
    assert "Back up both" in caplog.text and all(str(place) in repr(ledger) for place in (locate().path, ledger.id))
    with pytest.raises(LedgerError, match="It is there: nothing is to be done"):
        Ledger.start()
    caplog.clear()
    assert Ledger.start(if_absent=True).id == ledger.id and not caplog.text
    locate().database.unlink()
    with pytest.raises(LedgerError, match=r"It was lost\. Restore it"):
        Ledger.start(if_absent=True)


@pytest.mark.parametrize(
    ("state", "found"),
    [("state", ("data", "state")), ("data", ("data/ledger", "data/anchor"))],  # as on Linux, as on macOS
)
def test_ledger_and_anchor_lie_apart_by_default(
    state: str, found: tuple[str, str], tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    import platformdirs

    monkeypatch.delenv("LIKENESS_HOME")
    monkeypatch.delenv("LIKENESS_ANCHOR")
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda name: str(tmp_path / "data"))
    monkeypatch.setattr(platformdirs, "user_state_dir", lambda name: str(tmp_path / state))
    home = locate()
    assert (home.path, home.anchor) == (tmp_path / found[0], tmp_path / found[1])


def test_reserving_twice_costs_once(ledger: Ledger) -> None:
    first = ledger.reserve(request("k", CAP / 2))
    assert ledger.reserve(request("k", CAP / 2)) == first and ledger.budget("people").spent_rho == CAP / 2
    assert ledger.budget("people").uncommitted == 1
    ledger.commit("k", "00")
    assert ledger.budget("people").uncommitted == 0


def test_a_record_is_verified_once_however_often_the_ledger_is_asked(monkeypatch: MonkeyPatch) -> None:
    ledger, verified = ledger_of_people(), []
    for number in range(5):
        ledger.reserve(request(f"k{number}", CAP / 10))
        ledger.commit(f"k{number}", f"{number:02}")
    monkeypatch.setattr(chain, "digest_of", lambda record: verified.append(record.seq) or digest_of(record))
    ledger = Ledger.open(locate())
    ledger.declare_population("people", ADD, 1.0, 1e-5)
    ledger.reserve(request("new", CAP / 10))
    assert ledger.budget("people").uncommitted == 1 and ledger.find("k0")[1] and len(ledger.commits()) == 5
    assert verified == [*range(1, 14)]
    locate().database.write_bytes(b"")
    with pytest.raises(LedgerError):
        ledger.records()


@pytest.mark.long
@given(st.recursive(st.text() | st.floats(allow_nan=False), lambda parts: st.dictionaries(NAMES, parts), max_leaves=8))
def test_a_value_of_a_body_is_that_of_its_own_key(nested: object) -> None:
    """Also if a method's object has keys and texts like those of the ledger."""
    for key in ("identity", "rho", "digest"):
        value = {"feature": nested, "digest": "d", "identity": 'a"rho":1', "rho": 0.1}
        assert Body(canonical_json(value))[key] == value[key]


def test_over_the_cap_is_refused_with_spent_asked_and_cap(ledger: Ledger) -> None:
    ledger.reserve(request("k1", 0.75 * CAP))
    with pytest.raises(BudgetError, match=r"spent epsilon .* requested rho .* cap is epsilon 1"):
        ledger.reserve(request("k2", 0.5 * CAP))
    with pytest.raises(BudgetError):
        ledger.reserve(request("k2", 0.251 * CAP))
    ledger.reserve(request("k3", 0.25 * CAP))  # exactly what is left
    assert len(ledger.records()) == 4


def test_lattices_too_coarse_together_are_refused(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Entries that tell dimension and scale count as they are, others, and queries to come, as the coarsest."""
    monkeypatch.setattr("likeness.ledger.budget.ALLOWANCE", 2.5 * MOST_ERROR)
    first = ledger.reserve(request("k1", 0.1 * CAP))
    with pytest.raises(BudgetError, match="'people' has 1 releases on record"):
        ledger.reserve(request("k2", 0.1 * CAP, others={"a": 0.1 * CAP}))
    ledger.reserve(request("k2", 0.1 * CAP))
    with pytest.raises(BudgetError, match="'people' has 2 releases on record"):
        ledger.reserve(request("k3", 0.1 * CAP))
    told = dataclasses.replace(request("k4", 0.1 * CAP), details={"dimension": 1000, "noise_scale": 2.0**31})
    assert discretization_error_of(told.details) == discretization_error(1000, 2.0**31) < 1e-14
    ledger.reserve(told)
    assert ledger.reserve(request("k1", 0.1 * CAP)) == first  # what was granted stays granted
    assert dataclasses.replace(ledger.budget("people"), error=3 * MOST_ERROR).spent_epsilon == float("inf")


def test_a_plan_that_cannot_finish_does_not_start(ledger: Ledger) -> None:
    ledger.reserve(request("other", 0.5 * CAP))
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("first", 0.1 * CAP, {"second": 0.5 * CAP}))
    ledger.reserve(request("first", 0.1 * CAP, {"second": 0.4 * CAP}))
    ledger.reserve(request("second", 0.4 * CAP, {"first": 0.1 * CAP}))  # the other one is paid


@pytest.mark.parametrize("other", [{"attempt": "2"}, {"encoding": "f"}])
def test_what_was_paid_for_another_attempt_or_encoding_is_not_paid(ledger: Ledger, other: dict[str, str]) -> None:
    ledger.reserve(request("counts", 0.1 * CAP, {"embedding": 0.5 * CAP}))
    ledger.reserve(request("embedding", 0.5 * CAP, {"counts": 0.1 * CAP}))
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("more", 0.35 * CAP, {"counts": 0.1 * CAP}, **other))  # .35 fits, the plan does not
    ledger.reserve(request("more", 0.35 * CAP, {"counts": 0.1 * CAP}))  # here the counts are shared


def test_a_plan_about_two_tables_of_people_fits_a_cap_of_its_size(ledger: Ledger) -> None:
    ledger.reserve(request("counts", 0.5 * CAP, {"next_counts": 0.5 * CAP}))
    second = request("next_counts", 0.5 * CAP, {"counts": 0.5 * CAP}, encoding="f")
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(second)
    ledger.reserve(dataclasses.replace(second, sibling_encodings=("e",)))


def test_what_was_given_up_as_lost_is_not_paid(ledger: Ledger) -> None:
    """Its next draw costs again, so a plan that needs it is only begun where there is room for that."""
    ledger.reserve(request("counts", 0.35 * CAP, {"embedding": 0.4 * CAP}))
    ledger.commit("counts", "00")
    ledger.redraw("counts", {})
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("embedding", 0.4 * CAP, {"counts": 0.35 * CAP}))
    ledger.reserve(request("embedding", 0.3 * CAP, {"counts": 0.35 * CAP}))


def test_two_plans_at_once_never_exceed_the_cap(ledger: Ledger) -> None:
    """Both may start, one may not finish: PRIVACY.md says so."""
    ledger.reserve(request("a1", 0.1 * CAP, {"a2": 0.5 * CAP}))
    ledger.reserve(request("b1", 0.1 * CAP, {"b2": 0.5 * CAP}))
    ledger.reserve(request("a2", 0.5 * CAP, {"a1": 0.1 * CAP}))
    with pytest.raises(BudgetError, match="over budget"):
        ledger.reserve(request("b2", 0.5 * CAP, {"b1": 0.1 * CAP}))
    assert ledger.budget("people").spent_rho == pytest.approx(0.7 * CAP)


@pytest.mark.parametrize("rho", [0.0, -1.0, math.nan])
def test_nothing_is_free(ledger: Ledger, rho: float) -> None:
    before = len(ledger.records())
    with pytest.raises(LedgerError, match="more than 0"):
        ledger.reserve(request("k", rho))
    assert len(ledger.records()) == before


@pytest.mark.parametrize("cap", [(0.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (math.nan, 1e-5), (1e-12, 1e-9)])
def test_a_cap_that_means_nothing_is_never_on_record(ledger: Ledger, cap: tuple[float, float]) -> None:
    before = ledger.records()
    with pytest.raises(PlanError):
        ledger.declare_population("others", ADD, *cap)
    with pytest.raises(PlanError):
        ledger.change_cap("people", *cap)
    assert ledger.records() == before


def test_a_backup_without_its_empty_folders_opens(ledger: Ledger) -> None:
    home = locate()
    for folder in (home.locks, home.staging, home.releases):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    Ledger.open(home).reserve(request("k", CAP / 2))
    assert home.staging.stat().st_mode & 0o777 == 0o700


def test_the_same_rows_under_another_name_are_refused(ledger: Ledger) -> None:
    ledger.reserve(request("k1", CAP / 4))
    ledger.declare_population("others", ADD, 1.0, 1e-5)
    with pytest.raises(BudgetError, match=r"accounted under population 'people' \(entry 3\)"):
        ledger.reserve(request("k2", CAP / 4, population="others"))


@pytest.mark.long
@settings(max_examples=15)
@given(costs=st.lists(st.floats(0.01, 0.6), min_size=1, max_size=8))
def test_never_over_the_cap(tmp_path_factory: pytest.TempPathFactory, costs: list[float]) -> None:
    folder = tmp_path_factory.mktemp("property")
    ledger = Ledger.create(Home(folder / "home", folder / "anchor"))
    ledger.declare_population("people", ADD, 1.0, 1e-5)
    accepted = 0.0
    for place, cost in enumerate(costs):
        try:
            ledger.reserve(request(f"k{place}", cost * CAP))
            accepted += cost
        except BudgetError:
            assert accepted + cost > 1 - 1e-9
    assert math.isclose(ledger.budget("people").spent_rho, accepted * CAP, rel_tol=1e-9, abs_tol=1e-12)
    assert accepted <= 1 + 1e-9


def test_the_ledgers_cap_rules(ledger: Ledger) -> None:
    ledger.declare_population("people", ADD, 1.0, 1e-5)
    with pytest.raises(BudgetError, match="likeness ledger cap"):
        ledger.declare_population("people", ADD, 5.0, 1e-5)
    with pytest.raises(BudgetError, match="likeness ledger cap"):
        ledger.declare_population("people", ADD, 1.0, 1e-6)
    with pytest.raises(BudgetError, match="add_remove_one"):
        ledger.declare_population("people", Adjacency.REPLACE_ONE, 1.0, 1e-5)
    ledger.change_cap("people", 5.0, 1e-5, selection_delta=2e-6)
    ledger.declare_population("people", ADD, 5.0, 1e-5)
    ledger.reserve(dataclasses.replace(request("keys", CAP / 8), delta=1e-6))
    with pytest.raises(LedgerError, match="took 1e-06 of delta already"):
        ledger.change_cap("people", 5.0, 1e-5, selection_delta=5e-7)


def test_other_bytes_for_a_committed_release_are_refused(ledger: Ledger) -> None:
    ledger.reserve(request("k", CAP / 2))
    ledger.commit("k", "00")
    assert ledger.commit("k", "00").body["sha256"] == "00"
    with pytest.raises(LedgerError, match="second draw is refused"):
        ledger.commit("k", "11")
    with pytest.raises(LedgerError, match="never reserved"):
        ledger.commit("unknown", "00")


def test_whom_a_record_is_about_is_hidden_and_can_be_opened_alone(ledger: Ledger) -> None:
    """A link is one hash. Identity and hashed salt open the population, and nothing else."""
    ledger.reserve(request("k", CAP / 2))
    ledger.commit("k", "00")
    for record in ledger.records()[1:]:
        shown = opening_of(record)
        assert shown.keys() == {"identity", "population_salt", "content"} and shown["identity"] == "people"
        assert record.digest == next_digest(record.seq, record.previous, hash_of(shown))
        for other in ({"identity": "others"}, {"identity": ""}, {"population_salt": "0" * 64}, {"content": "0" * 64}):
            assert hash_of({**shown, **other}) != hash_of(shown)
        changed = record._replace(body={**record.body, "salt": "0" * 32})  # so a content cannot be guessed
        assert all(opening_of(changed)[key] != shown[key] for key in ("population_salt", "content"))
        assert record.body["salt"] not in str(shown) and len(bytes.fromhex(record.body["salt"])) == 16
    # The records of one run have one salt, and look unrelated.
    assert len({record.body["salt"] for record in ledger.records()}) == 3
    assert len({opening_of(record)["population_salt"] for record in ledger.records()}) == 4


def test_records_tell_days_and_a_commit_that_of_the_record_before_it(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    """Seconds, or a draw over midnight, would tell how long the door read private rows."""
    ledger.reserve(request("k", CAP / 2))
    assert all(str(datetime.date.fromisoformat(record.time)) == record.time for record in ledger.records())
    reserved = ledger.records()[-1].time
    tomorrow = str(datetime.date.fromisoformat(reserved) + datetime.timedelta(1))
    monkeypatch.setattr("likeness.ledger.records._now", lambda: tomorrow)
    assert ledger.commit("k", "00").time == reserved
    ledger.change_cap("people", 2.0, 1e-5)
    assert ledger.records()[-1].time == tomorrow
    monkeypatch.setattr("likeness.ledger.records._now", lambda: reserved)
    ledger.change_cap("people", 1.0, 1e-5)
    assert ledger.records()[-1].time == tomorrow  # a clock that is set back


def test_a_day_far_ahead_or_back_needs_the_word_of_a_person(
    ledger: Ledger, monkeypatch: MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def clock(day: str) -> None:
        monkeypatch.setattr("likeness.ledger.records._now", lambda: day)

    def verified() -> str:
        stated = chain_extract(ledger.records(), "people"), ledger.head().head
        return chain_of(SimpleNamespace(stated_chain=stated))  # type: ignore[arg-type]

    right = ledger.records()[-1].time
    clock("2999-01-01")
    with pytest.raises(LedgerError, match="run: likeness ledger day 2999-01-01"):
        ledger.change_cap("people", 2.0, 1e-5)
    ledger.confirm_day("2999-01-01", {"asked_by": "ada"})  # in error
    clock(right)
    ledger.change_cap("people", 2.0, 1e-5)
    assert ledger.records()[-1].time == "2999-01-01" and f"likeness ledger day {right}" in caplog.text
    with pytest.raises(Wrong, match="the last record is of 2999-01-01"):
        verified()
    with pytest.raises(LedgerError, match=r"you say 2000-01-01\. Set the clock"):
        ledger.confirm_day("2000-01-01", {"asked_by": "ada"})
    ledger.confirm_day(right, {"asked_by": "ada"})
    ledger.change_cap("people", 1.0, 1e-5)
    assert ledger.records()[-1].time == right and "6 records linked, 6 of them whole" in verified()
    late = [record for record in chain_extract(ledger.records(), "others") if record.get("kind") != "cap"]
    assert [record["kind"] for record in late if "kind" in record] == ["genesis", "day", "day"]


@pytest.mark.parametrize(
    "change", [{"seq": 9}, {"time": "2000-01-01"}, {"kind": "cap"}, {"previous": "0" * 64}, {"body": {"rho": 0.0}}]
)
def test_the_digest_of_a_record_holds_all_of_it(ledger: Ledger, change: dict[str, object]) -> None:
    ledger.reserve(request("k", CAP / 2))
    record = ledger.records()[-1]
    body = {"body": {**record.body, **change["body"]}} if isinstance(change.get("body"), dict) else {}
    assert digest_of(record._replace(**{**change, **body})) != digest_of(record) == record.digest


def test_files_are_published_once_and_only_from_releases_of_these_people(ledger: Ledger) -> None:
    ledger.declare_population("others", ADD, 1.0, 1e-5)
    for key in ("a", "b", "open"):
        ledger.reserve(request(key, CAP / 8))
    ledger.reserve(dataclasses.replace(request("theirs", CAP / 8, population="others"), digest="their rows"))
    for key in ("a", "b", "theirs"):
        ledger.commit(key, "00")
    files = {"synthetic.parquet": "1" * 64, "generator": "2" * 64}
    record = ledger.publish("people", files, ["b", "a"])
    body = {"identity": "people", "files": sha256_json(files), "releases": ["a", "b"]}
    assert record.kind == "published" and record == ledger.records()[-1] and body.items() <= record.body.items()
    assert ledger.publish("people", files, ["a", "b"]) == record == ledger.records()[-1]
    for key in ("open", "theirs", "unknown"):
        with pytest.raises(LedgerError, match="not a committed release of 'people'"):
            ledger.publish("people", files, ["a", key])
    assert ledger.records()[-1] == record and ledger.publish("people", files, ["a"]).seq == record.seq + 1
    assert ledger.budget("people").spent_rho == pytest.approx(3 * CAP / 8)


def test_entries_do_not_tell_that_a_source_is_the_same(ledger: Ledger) -> None:
    """The ledger knows the same source again; whoever reads entries of two runs in a bundle does not."""
    one = dataclasses.replace(request("a", 1e-3), rows_digests=("d" * 64, "f" * 64))
    runs = {"again": {}, "plan": {"plan": "q"}, "rows": {"digest": "e"}, "attempt": {"attempt": "2"}}
    seals = [ledger.reserve(dataclasses.replace(one, key=key, **run)).body for key, run in {"a": {}, **runs}.items()]
    seals.append(Ledger.open(locate()).reserve(dataclasses.replace(one, key="later")).body)
    of_runs = [(body["salt"], *body["rows_digests"]) for body in seals]
    assert of_runs[0] == of_runs[1] and len({text for run in of_runs for text in run}) == 3 * 5
    assert "d" * 64 not in str(of_runs)
    ledger.declare_population("others", ADD, 1.0, 1e-5)
    other = dataclasses.replace(one, key="c", population="others", digest="another schema")
    for known in ("d" * 64, "f" * 64):
        with pytest.raises(BudgetError, match="these rows are accounted under population 'people'"):
            ledger.reserve(dataclasses.replace(other, rows_digests=("e" * 64, known)))
    ledger.reserve(dataclasses.replace(other, rows_digests=("e" * 64,)))
