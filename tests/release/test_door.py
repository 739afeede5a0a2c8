"""The door: same request, same bytes; crash at any point; nothing read over budget; noise at the stated scale."""

import dataclasses
import math
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from counting import COUNTS, DATASET, PLAN, forbidden, rows
from pytest import MonkeyPatch
from scipy.stats import chi2
from toy_maps import Trigonometric
from toys import ledger_of_people, plan_with

from likeness.config.load import load_params
from likeness.core.errors import BudgetError, DataError, LedgerError, PlanError, ReleaseError
from likeness.core.files import write_durably
from likeness.core.format import RECIPE
from likeness.core.hashing import sha256_json
from likeness.features.column_marginals import Constant
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import Record
from likeness.ledger.reservation import Dataset, Reservation
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.noise import add_discrete_gaussian
from likeness.privacy.plan import Plan, QueryShare
from likeness.privacy.receipt import FACTS
from likeness.release import door
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.released import from_bytes, to_bytes
from likeness.release.request import REQUEST_KEYS, request_of
from likeness.release.store import restore
from likeness.release.sums.lattice_sum import lattice_sum

ADD = Adjacency.ADD_REMOVE_ONE


def plan(epsilon: float = 1.0, adjacency: Adjacency = ADD, num_records: int | None = None) -> Plan:
    return plan_with([QueryShare("q", "privatize", 1.0)], epsilon, adjacency, num_records)


def query(frequencies: int = 50) -> Query:
    return Query("q", "privatize", Trigonometric(frequencies, 3, 1.0, seed=0), num_groups=2)


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_people()


def test_the_same_request_gives_the_same_bytes_and_costs_nothing(ledger: Ledger) -> None:
    first = Door(plan(), ledger, DATASET, rows).release(query())
    records = ledger.records()
    assert Door(plan(), ledger, DATASET, forbidden).release(query()) == first and ledger.records() == records
    receipt = from_bytes(first, "first").receipt
    assert (receipt.ledger_seq, receipt.adjacency, receipt.private) == (3, "add_remove_one", True)
    assert receipt.rho == pytest.approx(plan().rho, rel=1e-9) and receipt.rho <= plan().rho
    assert receipt.key == sha256_json(request_of(query(), "add_remove_one", receipt.noise_scale, DATASET))


def test_a_library_that_does_not_load_costs_nothing(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    with pytest.raises(ImportError):
        Door(plan(), ledger, DATASET, forbidden).release(query())
    assert len(ledger.records()) == 2


@pytest.mark.parametrize(
    "other",
    [
        Dataset("people", "changed rows"),
        Dataset("people", "digest", attempt="2"),
        Dataset("people", "digest", encoding="e"),
    ],
    ids=["rows", "slot", "encoding"],
)
def test_another_request_is_another_release(ledger: Ledger, other: Dataset) -> None:
    ledger.change_cap("people", 5.0, 1e-5)
    first, second = (
        from_bytes(Door(plan(), ledger, of, rows).release(query()), "r").lattice for of in (DATASET, other)
    )
    assert (first != second).mean() > 0.99 and ledger.budget("people").spent_rho == pytest.approx(2 * plan().rho)


def test_the_key_holds_everything_that_shapes_a_release() -> None:
    """Each field by itself makes another key; the fields are those that a verifier hashes again."""
    base = request_of(query(), "add_remove_one", 5.0, DATASET)
    assert tuple(base) == REQUEST_KEYS
    grouped = dataclasses.replace(query(), num_groups=3)
    other = {
        "mechanism": request_of(query(), "add_remove_one", 0.0, DATASET),
        "identity": request_of(query(), "add_remove_one", 5.0, dataclasses.replace(DATASET, population="x")),
        "digest": request_of(query(), "add_remove_one", 5.0, dataclasses.replace(DATASET, digest="x")),
        "slot": request_of(query(), "add_remove_one", 5.0, dataclasses.replace(DATASET, attempt="x")),
        "encoding": request_of(query(), "add_remove_one", 5.0, dataclasses.replace(DATASET, encoding="x")),
        "query": request_of(dataclasses.replace(query(), name="x"), "add_remove_one", 5.0, DATASET),
        "feature": request_of(query(49), "add_remove_one", 5.0, DATASET),
        "num_groups": request_of(grouped, "add_remove_one", 5.0, DATASET),
        "adjacency": request_of(query(), "replace_one", 5.0, DATASET),
        "lattice_bits": request_of(query(5000), "add_remove_one", 5.0, DATASET),
        "noise_scale": request_of(query(), "add_remove_one", 5.1, DATASET),
    }
    for name, request in other.items():
        assert request[name] != base[name], name
    assert base["recipe"] == RECIPE and base["lattice_bits"] == query().lattice_bits


def test_a_receipt_says_what_its_reservation_says_whoever_finishes_it(ledger: Ledger) -> None:
    """A plan that dies has paid: the release of a later plan names it, so that ledger and receipt agree."""
    with pytest.raises(ZeroDivisionError):
        Door(plan(), ledger, DATASET, lambda: iter([1 // 0])).release(query())
    later = dataclasses.replace(plan(), method="another")
    receipt = from_bytes(Door(later, ledger, DATASET, rows).release(query()), "r").receipt
    (entry,) = (record.body for record in ledger.records() if record.kind == "reserve")
    assert (receipt.plan, receipt.method) == (plan().digest, plan().method) != (later.digest, later.method)
    assert {name: receipt.to_dict()[name] for name in FACTS} == {name: entry[name] for name in FACTS}


def test_over_budget_nothing_is_read(ledger: Ledger) -> None:
    Door(plan(), ledger, DATASET, rows).release(query())
    with pytest.raises(BudgetError, match=r"spent epsilon 1 .* No private row was read"):
        Door(plan(), ledger, DATASET, forbidden).release(query(51))


@pytest.mark.long
def test_noise_has_the_stated_scale_and_five_percent_off_is_noticed(ledger: Ledger) -> None:
    """Chi-square on 20,000 coordinates, two-sided false alarm 1e-6; misses 5 % with probability below 1e-6."""
    asked = query(5_000)
    released = from_bytes(Door(plan(), ledger, DATASET, rows).release(asked), "r")
    noise = (released.lattice - lattice_sum(asked, rows())).astype(float)
    expected = np.sqrt(asked.sensitivity_squared(ADD)) / np.sqrt(2 * plan().rho)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], noise.size)
    for factor, accepted in [(1.0, True), (1.05, False), (1 / 1.05, False)]:
        assert (low <= np.square(noise / (expected * factor)).sum() <= high) is np.bool_(accepted)


def test_no_noise_only_when_infinity_is_written_and_then_it_is_marked(ledger: Ledger) -> None:
    with pytest.raises(BudgetError):
        Door(plan(float("inf")), ledger, DATASET, forbidden).release(query())
    ledger.change_cap("people", float("inf"), 1e-5)
    released = from_bytes(Door(plan(float("inf")), ledger, DATASET, rows).release(query()), "r")
    assert not released.receipt.private and released.receipt.mechanism == "none"
    assert np.array_equal(released.lattice, lattice_sum(query(), rows()))
    assert ledger.budget("people").spent_epsilon == float("inf")


def test_public_number_of_records_must_be_right() -> None:
    ledger = ledger_of_people(Adjacency.REPLACE_ONE)
    asked = Query("q", "privatize", Constant())
    with pytest.raises(DataError, match="num_records is 99"):
        Door(plan(adjacency=Adjacency.REPLACE_ONE, num_records=99), ledger, DATASET, rows).release(asked)
    right = plan(adjacency=Adjacency.REPLACE_ONE, num_records=100)
    Door(right, ledger, DATASET, rows).release(asked)  # the same noise: the reservation is resumed
    assert ledger.budget("people").spent_rho == pytest.approx(right.rho)


def contradicting(epsilon: float, noise_multiplier: float) -> Plan:
    made = plan()
    queries = (dataclasses.replace(made.queries[0], noise_multiplier=noise_multiplier),)
    return dataclasses.replace(made, epsilon=epsilon, queries=queries)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (plan(1e11), r"lattice steps wide .* privacy\.epsilon"),
        *((contradicting(*wrong), "contradicts itself") for wrong in ((math.inf, 5.0), (1.0, 0.0), (1.0, -5.0))),
    ],
)
def test_noise_too_coarse_or_against_its_target_is_refused_unspent(ledger: Ledger, wrong: Plan, words: str) -> None:
    ledger.change_cap("people", float("inf"), 1e-5)
    before = ledger.records()
    with pytest.raises(PlanError, match=words):
        Door(wrong, ledger, DATASET, forbidden).release(query())
    assert ledger.records() == before


def test_a_plan_for_other_people_is_refused(ledger: Ledger) -> None:
    with pytest.raises(PlanError, match=r"plan\.json is for 'people', the rows belong to 'others'"):
        Door(plan(), ledger, Dataset("others", "digest"), forbidden).release(query())


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.fixture
def draws(monkeypatch: MonkeyPatch) -> list[int]:
    """Dimensions of all noise that was drawn."""
    drawn: list[int] = []

    def counting(values: np.ndarray, scale: float) -> np.ndarray:
        drawn.append(values.size)
        return add_discrete_gaussian(values, scale)

    monkeypatch.setattr(door, "add_discrete_gaussian", counting)
    return drawn


@pytest.mark.parametrize(
    ("step", "most_draws"),
    [
        ("likeness.release.door.exact_sum", 1),
        ("os.fsync", 2),  # the first is not whole, and nothing of it stays
        ("likeness.ledger.ledger.Ledger.commit", 1),
        ("likeness.release.store._publish", 1),
        ("likeness.release.store.sync_folder", 1),
    ],
)
def test_a_draw_that_dies_at_any_step_is_drawn_once(
    ledger: Ledger, draws: list[int], step: str, most_draws: int, monkeypatch: MonkeyPatch
) -> None:
    """A whole draw that was not committed is committed by the next process: the noise is drawn no second time."""

    def dies(*arguments: object) -> None:
        raise Killed

    reserve = Ledger.reserve

    def reserve_and_set_the_trap(self: Ledger, request: Reservation) -> Record:
        record = reserve(self, request)
        trap.setattr(step, dies)
        return record

    with monkeypatch.context() as trap, pytest.raises(Killed):
        trap.setattr(Ledger, "reserve", reserve_and_set_the_trap)
        Door(plan(), ledger, DATASET, rows).release(query())
    left = [path.read_bytes() for path in (*ledger.home.staging.iterdir(), *ledger.home.releases.iterdir())]
    data = Door(plan(), Ledger.open(locate()), DATASET, forbidden if left else rows).release(query())
    assert left in ([], [data]) and len(draws) == most_draws and list(ledger.home.staging.iterdir()) == []
    assert ledger.budget("people").spent_rho == pytest.approx(plan().rho) and len(ledger.commits()) == 1


@pytest.mark.parametrize("wrong", ["key", "ledger_id", "ledger_seq", "noise_scale", "cut", "temporary"])
def test_what_is_not_the_whole_draw_of_a_reservation_is_never_committed(
    ledger: Ledger, wrong: str, monkeypatch: MonkeyPatch
) -> None:
    with monkeypatch.context() as trap, pytest.raises(Killed):
        trap.setattr(Ledger, "commit", lambda *arguments: (_ for _ in ()).throw(Killed()))
        Door(plan(), ledger, DATASET, rows).release(query())
    (staged,) = ledger.home.staging.iterdir()
    data = staged.read_bytes()
    if wrong == "cut":
        staged.write_bytes(data[:-1])
    elif wrong == "temporary":
        staged.rename(staged.with_name(f".{staged.name}.123.tmp"))
    else:
        drawn = from_bytes(data, "staged")
        other = {wrong: 3.5 if wrong == "noise_scale" else 99 if wrong == "ledger_seq" else "0" * 64}
        other_receipt = dataclasses.replace(drawn.receipt, **other)
        staged.write_bytes(to_bytes(dataclasses.replace(drawn, receipt=other_receipt)))
    (planted,) = (path.read_bytes() for path in ledger.home.staging.iterdir())
    assert Door(plan(), ledger, DATASET, rows).release(query()) not in (data, planted)
    assert list(ledger.home.staging.iterdir()) == []


def test_other_bytes_in_staging_after_the_commit_are_never_handed_out(ledger: Ledger, monkeypatch: MonkeyPatch) -> None:
    commit = Ledger.commit

    def commit_and_replace(self: Ledger, key: str, sha256: str, data: bytes | None = None) -> Record:
        record = commit(self, key, sha256, data)
        staged = self.home.staging / key
        whole = staged.read_bytes()
        staged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        return record

    monkeypatch.setattr(Ledger, "commit", commit_and_replace)
    for read in (rows, forbidden):
        with pytest.raises(LedgerError, match="lost or altered"):
            Door(plan(), ledger, DATASET, read).release(query())
    assert list(ledger.home.releases.iterdir()) == []


def test_bytes_are_on_the_disk_before_their_names_and_names_before_the_next_step(
    ledger: Ledger, monkeypatch: MonkeyPatch
) -> None:
    """Otherwise a power loss leaves a commit without its bytes, or a name without its content."""
    steps, turns = list[str](), ("commit", "sync staging", "sync releases")
    fsync, replace, commit = os.fsync, Path.replace, Ledger.commit

    def name_of(number: int) -> str:
        folders = ledger.home.staging, ledger.home.releases
        places = [place for folder in folders for place in (folder, *folder.iterdir())]
        return next((place.name for place in places if place.stat().st_ino == number), "")

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        about = os.fstat(descriptor)
        steps.append(f"sync {name_of(about.st_ino)} {'' if stat.S_ISDIR(about.st_mode) else about.st_size}".strip())

    def moved(self: Path, target: Path) -> Path:
        steps.append(f"move {self.name} to {target.parent.name}/{target.name}")
        return replace(self, target)

    def committed(self: Ledger, key: str, sha256: str, data: bytes | None = None) -> Record:
        steps.append("commit")
        return commit(self, key, sha256, data)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", moved)
    monkeypatch.setattr(Ledger, "commit", committed)
    data = Door(plan(), ledger, DATASET, rows).release(query())
    key = from_bytes(data, "r").receipt.key
    named = [re.sub(r"\.[^.]*\.tmp", ".tmp", step) for step in steps if key in step or step in turns]
    assert named == [
        *(f"sync .{key}.tmp {len(data)}", f"move .{key}.tmp to staging/{key}", "sync staging"),
        *("commit", f"move {key} to releases/{key}.safetensors", "sync releases"),
    ]


def test_two_writers_of_one_name_have_temporary_files_of_their_own(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Containers that share a folder have processes of the same number."""
    names: list[str] = []
    replace = Path.replace

    def moved(self: Path, target: Path) -> Path:
        names.append(self.name)
        if len(names) == 1:
            write_durably(target, b"second")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", moved)
    write_durably(tmp_path / "name", b"first", mode=0o444)
    assert len(set(names)) == 2 and (tmp_path / "name").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["name"]
    assert (tmp_path / "name").stat().st_mode & 0o777 == 0o444


def test_lost_and_altered_bytes_are_refused_not_redrawn(ledger: Ledger) -> None:
    Door(plan(), ledger, DATASET, rows).release(query())
    (stored,) = locate().releases.iterdir()
    stored.chmod(0o600)
    stored.write_bytes(b"x" + stored.read_bytes()[1:])
    with pytest.raises(LedgerError, match="lost or altered"):
        Door(plan(), ledger, DATASET, forbidden).release(query())
    stored.unlink()
    with pytest.raises(LedgerError, match="lost or altered"):
        Door(plan(), ledger, DATASET, forbidden).release(query())


def test_later_stages_refuse_what_the_ledger_does_not_know(
    ledger: Ledger, tmp_path: Path, monkeypatch: MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, params = tmp_path / "released.safetensors", load_params(Path(__file__).parents[2] / "params.yaml")
    path.write_bytes(Door(plan(), ledger, DATASET, rows).release(query()))

    def check() -> None:
        Project(tmp_path, params).check_known([path])

    check()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ReleaseError, match="not hold the bytes"):
        check()
    path.write_bytes(data)
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "other"))
    Ledger.create(locate())
    with pytest.raises(ReleaseError, match="does not know"):
        check()
    monkeypatch.setenv("LIKENESS_LEDGER", "absent")
    check()
    assert "not checked" in caplog.text


def test_files_that_are_not_ours_are_refused() -> None:
    for data in (b"", b"garbage", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"):
        with pytest.raises(ReleaseError, match="not a released file"):
            from_bytes(data, "x")


CRASH = """
import os, signal, sys
import likeness.release.door as door
import likeness.release.store as store
from counting import COUNTS, DATASET, PLAN, forbidden, rows
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger

def die(*arguments, **keywords):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv[1]
if where == "after reserve": door.exact_sum = die
if where == "after staging": Ledger.commit = die
if where == "after commit": store._publish = die
data = door.Door(PLAN, Ledger.open(locate()), DATASET, rows).release(COUNTS)
assert "torch" not in sys.modules
sys.stdout.buffer.write(data)
"""


@pytest.fixture
def door_process() -> Callable[[str], "subprocess.Popen[bytes]"]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return lambda where: subprocess.Popen([sys.executable, "-c", CRASH, where], stdout=subprocess.PIPE, env=environment)


@pytest.mark.process
@pytest.mark.parametrize("where", ["after reserve", "after staging", "after commit"])
def test_kill_at_every_step_charges_once_and_publishes_once(
    ledger: Ledger, door_process: Callable[[str], "subprocess.Popen[bytes]"], where: str
) -> None:
    killed = door_process(where)
    killed.communicate(timeout=300)
    assert killed.returncode == -9
    reopened = Ledger.open(locate())
    assert reopened.budget("people").spent_rho == pytest.approx(PLAN.rho)  # spent from the reservation on
    assert list(locate().releases.iterdir()) == []
    staged = {path.name: path.read_bytes() for path in locate().staging.iterdir()}
    data = Door(PLAN, reopened, DATASET, rows).release(COUNTS)
    if where != "after reserve":
        assert data in staged.values()  # the first draw, not a new one
    assert Door(PLAN, reopened, DATASET, forbidden).release(COUNTS) == data
    assert reopened.budget("people").spent_rho == pytest.approx(PLAN.rho) and len(reopened.commits()) == 1
    assert [path.name for path in locate().locks.iterdir()] == ["ledger.lock"]  # that of the release ended with it


@pytest.mark.process
def test_processes_racing_for_one_release_draw_once(
    ledger: Ledger, door_process: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    racers = [door_process("nowhere") for _ in range(2)]
    outputs = {racer.communicate(timeout=300)[0] for racer in racers}
    assert len(outputs) == 1 and len(outputs.pop()) > 900
    assert [record.kind for record in ledger.records()] == ["genesis", "cap", "reserve", "commit"]


def lose(ledger: Ledger, key: str) -> bytes:
    stored = ledger.home.releases / f"{key}.safetensors"
    data = stored.read_bytes()
    stored.unlink()
    return data


def test_a_lost_release_is_spent_again_at_the_full_cost_under_a_slot_of_its_own(ledger: Ledger) -> None:
    ledger.change_cap("people", 1.6, 1e-5)  # room for two of epsilon 1, not for three
    first = from_bytes(Door(plan(), ledger, DATASET, rows).release(query()), "first")
    lose(ledger, first.receipt.key)
    given_up = ledger.redraw(first.receipt.key, {"asked_by": "somebody"})
    assert given_up.kind == "lost" and given_up.body["asked_by"] == "somebody"
    assert ledger.budget("people").spent_rho == pytest.approx(plan().rho)  # giving up costs nothing by itself
    data = Door(plan(), ledger, DATASET, rows).release(query())
    second = from_bytes(data, "second")
    assert (second.receipt.slot, first.receipt.slot) == ("1~2", "1")
    assert (second.lattice != first.lattice).mean() > 0.9
    assert ledger.budget("people").spent_rho == pytest.approx(2 * plan().rho)
    assert Door(plan(), ledger, DATASET, forbidden).release(query()) == data  # once, and then as ever
    with pytest.raises(LedgerError, match="declared lost in entry 6 already"):
        ledger.redraw(first.receipt.key, {})
    lose(ledger, second.receipt.key)
    ledger.redraw(second.receipt.key, {})
    with pytest.raises(BudgetError, match="over budget"):
        Door(plan(), ledger, DATASET, forbidden).release(query())
    assert [r.kind for r in Ledger.open(locate()).records()] == [
        *("genesis", "cap", "cap", "reserve", "commit", "lost", "reserve", "commit", "lost")
    ]


def test_what_was_never_committed_is_not_lost(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="never committed"):
        ledger.redraw("0" * 64, {})


def test_lost_bytes_come_back_from_a_released_file_for_nothing(ledger: Ledger) -> None:
    receipt = from_bytes(Door(plan(), ledger, DATASET, rows).release(query()), "first").receipt
    data = lose(ledger, receipt.key)
    with pytest.raises(LedgerError, match=r"likeness ledger redraw " + receipt.key[:12]):
        Door(plan(), ledger, DATASET, forbidden).release(query())
    records = ledger.records()
    with pytest.raises(LedgerError, match="this ledger never committed this file"):
        restore(ledger, data[:-1], "x")
    assert restore(ledger, data, "x") == receipt.key
    assert Door(plan(), ledger, DATASET, forbidden).release(query()) == data and ledger.records() == records
