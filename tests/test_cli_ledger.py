"""The command line of the ledger: what it says of what was spent, who asked, witnesses, caps; and how it says no.

What runs would cost before they start: a grid is composed, what is on record is free, and every cap counts.
"""

import errno
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from toys import ledger_of_people, plan_with, request

from likeness.cli import app as cli
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import BudgetError, LedgerError
from likeness.core.format import RECIPE
from likeness.core.hashing import json_value
from likeness.core.wings import Wings
from likeness.data.encoding.layout import encoding_digest
from likeness.features.column_marginals import Constant
from likeness.ledger.budget import Cost
from likeness.ledger.first_nights import cohort_members
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset, check_same_request
from likeness.ledger.witness import Witness
from likeness.pipeline.project import Project
from likeness.preflight.cost import afford, last_rows, schedule, with_target
from likeness.preflight.cost import grid_costs as priced
from likeness.preflight.faults import examine
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.plan import QueryShare
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.store import check_store
from likeness.stages import plan

ROOT = Path(__file__).parents[1]
ADD = Adjacency.ADD_REMOVE_ONE
FACTS = {"asked_by": "somebody", "git_commit": "0123456789abcdef", "git_changed": True, "params_sha256": "fedcba987654"}
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def heard(command: Callable[..., tuple[int, str, str]]) -> Command:
    """Exit code, and both streams together."""

    def run(*words: str) -> tuple[int, str]:
        code, out, errors = command(*words)
        return code, out + errors

    return run


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One release in a ledger, as a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    ledger = ledger_of_people(ADD, 2.0)
    plan = plan_with([QueryShare("q", "privatize", 1.0)])
    rows = [Records(np.zeros((10, 1)), np.zeros(10, dtype=np.int64))]
    facts = {**FACTS, "likeness": "9.9", "software": {"opendp": "8.8"}}
    data = Door(plan, ledger, Dataset("people", "d"), lambda: rows, facts).release(Query("q", "privatize", Constant()))
    path = tmp_path / "q.safetensors"
    path.write_bytes(data)
    return path


def stored() -> Path:
    (path,) = locate().releases.iterdir()
    return path


def test_show_says_who_asked_with_what(released: Path, heard: Command) -> None:
    text = heard("ledger", "show")[1]
    wanted = "by somebody  commit 0123456789ab with changes  params fedcba987654  likeness 9.9, opendp 8.8"
    assert wanted in text and "never committed" not in text


def test_witnesses_on_the_command_line(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Command
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (tmp_path / "message").write_text("Subject\n")
    assert heard("ledger", "witness", "--into", "message") == (0, "")
    line = heard("ledger", "witness")[1]
    assert (tmp_path / "message").read_text() == f"Subject\n\n{line}"
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-F", "message"], check=True)
    code, text = heard("ledger", "verify", str(released), "--git", ".")
    assert code == 0 and "2 of 2 outside witnesses are of this ledger, and on its chain" in text
    altered = tmp_path / "altered.safetensors"
    data = released.read_bytes()
    altered.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, text = heard("ledger", "verify", str(altered))
    assert code == 2 and "not hold the bytes that the ledger committed" in text
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "other"))
    code, text = heard("ledger", "init")
    lost = from_bytes(data, "q").receipt.ledger_id
    assert code == 0 and f"warning: git remembers ledger {lost}" in text
    for witness in (("--git", "."), (str(released),)):
        code, text = heard("ledger", "verify", *witness)
        assert code == 2 and f"names ledger {lost}" in text
        code, text = heard("ledger", "verify", *witness, "--other", lost)
        assert code == 0 and "0 of 1 outside witnesses" in text


def test_tracking_runs_are_witnesses(released: Path, monkeypatch: pytest.MonkeyPatch, heard: Command) -> None:
    """How they are read from a real store is tested in tests/orchestration."""
    monkeypatch.setattr("likeness.pipeline.project.Project.load", lambda: None)
    head = Ledger.open(locate()).head()
    for seq, code in ((head.count, 0), (1000, 2)):
        seen = [Witness("tracking run 0123", head.ledger_id, seq, head.head)]
        offers = Wings("likeness.tracking", {"run_witnesses": lambda project, seen=seen: seen})
        monkeypatch.setattr("likeness.cli.ledger.TRACKING", offers)
        found, text = heard("ledger", "verify", "--mlflow")
        assert (found, "tracking run 0123 names record 1000" in text) == (code, code == 2)
    monkeypatch.setitem(vars(offers), "_names", [])  # as if the wing were not there
    text = heard("ledger", "verify", "--mlflow")[1]
    assert "--mlflow needs the part of Likeness that asks MLflow. " in text and "is not installed here. Run:" in text


def test_lost_bytes_are_restored_or_given_up(released: Path, tmp_path: Path, heard: Command) -> None:
    key = stored().stem[:12]
    code, text = heard("ledger", "redraw", key)
    assert code == 2 and "is whole in the store" in text
    stored().unlink()
    assert heard("ledger", "restore", str(released))[0] == 0 and heard("ledger", "verify")[0] == 0
    stored().unlink()
    embedding = tmp_path / "data/released/embedding/embedding.safetensors"
    embedding.parent.mkdir(parents=True)
    embedding.write_bytes(released.read_bytes())
    code, text = heard("ledger", "redraw", key)
    assert code == 2 and "likeness ledger restore data/released/embedding/embedding.safetensors" in text
    embedding.unlink()
    before = len(Ledger.open(locate()).records())
    for wrong in ("", "0" * 12, key[:4]):
        code, text = heard("ledger", "redraw", wrong)
        assert code == 2 and "Give 8 letters or more" in text
    assert len(Ledger.open(locate()).records()) == before
    code, text = heard("ledger", "redraw", key)
    assert code == 0 and "costs rho 0.0" in text
    assert heard("ledger", "verify")[0] == 0  # given up is not lost
    assert "bytes given up" in heard("ledger", "show")[1]


def test_what_scripts_read_is_what_people_read(released: Path, heard: Command) -> None:
    """Of budget, verify and show; an infinite cap is text, because JSON has no infinity."""

    def told(*words: str) -> Any:
        code, text = heard("ledger", *words, "--json")
        assert code == 0
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    ledger = Ledger.open(locate())
    budget = ledger.budget("people")
    assert budget is not None
    (found,) = told("budget")
    assert found["identity"] == "people" and found["cap"] == {"epsilon": 2.0, "delta": 1e-5}
    assert found["spent"] == {"epsilon": budget.spent_epsilon, "rho": budget.spent_rho}
    assert found["remaining_rho"] == budget.remaining_rho > 0 and found["uncommitted"] == 0
    found = told("verify", str(released))
    assert (found["releases"], found["witnesses"], found["witnesses_of_this_ledger"]) == (1, 1, 1)
    assert found["head"] == Ledger.open(locate()).head().head
    assert [record["kind"] for record in told("show")][:2] == ["genesis", "cap"]
    ledger.change_cap("people", float("inf"), 1e-5)
    (found,) = told("budget")
    assert found["cap"]["epsilon"] == found["remaining_rho"] == "inf"
    for name in ("params.yaml", "data/schema/adult.yaml"):
        target = released.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    found = told("afford")
    assert found["method"] == "marginals" and 0 < found["rho"] < 0.04
    assert (found["cap"]["epsilon"], found["spent_rho"]) == (10, 0) and found["remaining_rho"] > 0


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two releases, of which one was never committed."""
    monkeypatch.chdir(tmp_path)
    made = ledger_of_people()
    for key in ("a" * 64, "b" * 64):
        details = {"query": "embedding", "asked_by": "somebody"}
        made.reserve(request(key, 0.01, plan=key, details=details))
    made.commit("a" * 64, "0" * 64)
    return made


def test_show_tells_what_was_never_committed(ledger: Ledger, heard: Command) -> None:
    code, text = heard("ledger", "show")
    reserves = [line for line in text.splitlines() if " reserve " in line]
    assert code == 0 and ["never committed: counts as spent" in line for line in reserves] == [False, True]


def test_show_gives_the_whole_chain_as_json(ledger: Ledger, heard: Command) -> None:
    code, text = heard("ledger", "show", "--json")
    records = json.loads(text)
    assert code == 0 and [record["kind"] for record in records] == ["genesis", "cap", "reserve", "reserve", "commit"]
    assert records[2]["body"]["asked_by"] == "somebody" and records[-1]["digest"] == ledger.head().head


def test_budget_and_cap(ledger: Ledger, heard: Command) -> None:
    text = heard("ledger", "budget")[1]
    assert "people (add_remove_one): spent epsilon" in text and "rho 0.02 spent" in text and "1 reserved" in text
    words = ("ledger", "cap", "people", "--epsilon", "2", "--delta", "1e-5")
    assert heard(*words) == (0, "cap of people: epsilon 2 at delta 1e-05\n")
    code, text = heard("ledger", "cap", "nobody", *words[3:])
    assert code == 2 and "population 'nobody' is not in the ledger" in text and "Traceback" not in text


@pytest.mark.long
def test_verify_finds_lost_bytes(ledger: Ledger, heard: Command) -> None:
    code, text = heard("ledger", "verify")
    assert code == 2 and "released bytes are lost or altered: entry 3" in text
    with pytest.raises(LedgerError, match="lacks or has altered 1 of 1 releases"):
        check_store(ledger)
    for place in range(9):
        key = f"{place:064}"
        ledger.reserve(request(key, 1e-6))
        ledger.commit(key, key)
    assert " and 5 more. Restore" in heard("ledger", "verify")[1]  # of years there are thousands
    assert heard("ledger", "init")[0] == 2 and heard("ledger", "init", "--if-absent")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sample", ".", "--rows", "10", "--out", "absent/x.csv"), "--out absent/x.csv: absent is not a folder"),
        (("ledger", "init"), "file/ledger cannot be used (Not a directory)"),
    ],
    ids=["folder of a table", "folder of a ledger"],
)
def test_a_path_that_is_none_is_told_in_a_line(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "file/ledger"))
    code, text = heard(*words)
    assert code == 2 and told in text and text.count("\n") == 1 and "Traceback" not in text


def test_a_full_disk_is_told_in_a_line_and_a_fault_of_the_program_is_not_hidden(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, heard: Command
) -> None:
    def fail(error: Exception) -> None:
        raise error

    for error in (OSError(errno.ENOSPC, "No space left on device", "x"), RuntimeError("a fault")):
        monkeypatch.setattr(cli, "app", lambda error=error: fail(error))
        if isinstance(error, OSError):
            code, text = heard("sample")
            assert code == 2 and text.startswith(
                "likeness: x cannot be read or written (No space left on device). Make room"
            )
            continue
        code, text = heard("sample")
        assert code == 1 and text.startswith("Traceback") and "RuntimeError: a fault" in text


ONE = rho_for(1.0, 1e-5)


def grid_costs(runs: list[Project], dataset: Dataset | None) -> list[float]:
    return [cost.rho for cost in priced(runs, dataset)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and schema, and a ledger that knows nobody."""
    root = tmp_path / "project"
    (root / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", root / "data/schema")
    shutil.copy(ROOT / "params.yaml", root)
    monkeypatch.chdir(root)
    Ledger.create(locate())
    return root


def runs(*wanted: tuple[str, float]) -> list[Project]:
    return [with_target(Project.load(), name, epsilon) for name, epsilon in wanted]


def test_the_grid_is_composed_and_what_runs_share_is_counted_once(project: Path) -> None:
    """Runs ask for the same class counts and columns, whatever their bins are."""
    one, two = runs(("marginals", 1.0), ("marginals", 2.0))
    other = replace(one, params=replace(one.params, sections={"marginals": {"privatize": {"bins": 8}}}))
    costs = grid_costs([one, other, two], None)
    assert costs == pytest.approx([ONE, 0.73 * ONE, rho_for(2.0, 1e-5)], rel=1e-6)
    assert [cost.rho for cost in afford(runs(("marginals", 1.0), ("marginals", 2.0)))[0]] == [costs[0], costs[2]]


def test_a_key_that_the_lock_lacks_had_its_default(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = runs(("marginals", 1.0))
    monkeypatch.setattr("likeness.pipeline.doors.rows_of", lambda project: ("the rows", {}))
    monkeypatch.setattr(Project, "source_digest", lambda self: "the source")
    run.paths.source.parent.mkdir(parents=True, exist_ok=True)
    run.paths.source.write_text('{"hmac": "the source"}')
    written = json_value(run.params.ingest)
    older = {key: value for key, value in written.items() if key != "format"}
    others = {"source": "other.csv"}, {"format": {"decimal": ","}}, {"unknown": 1}
    for ingest, same in ((written, True), (older, True), *(({**written, **other}, False) for other in others)):
        lock = {"stages": {"ingest": {"params": {"data/plan/settings.yaml": {"ingest": ingest}}}}}
        run.paths.lock.write_text(yaml.safe_dump(lock))
        assert (last_rows(run) == "the rows") is same


@pytest.mark.long
def test_what_is_on_record_is_not_counted_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(locate())
    ledger.declare_population("uci-adult-1994", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    (run,) = runs(("marginals", 1.0))
    recipe, facts = run.method, run.context
    dataset = Dataset("uci-adult-1994", "digest", "1", encoding_digest(facts.schema))
    assert last_rows(run) is None  # nothing was ingested here
    assert grid_costs([run], dataset) == pytest.approx([ONE], rel=1e-6)

    def rows() -> list[Records]:
        return [Records(np.zeros((3, facts.layout.width)), np.zeros(3, dtype=np.int64))]

    query, *_ = recipe.auxiliary_queries(facts, {})
    door = Door(run.plan, ledger, dataset, rows)
    door.release(query)
    assert grid_costs([run], dataset) == pytest.approx([0.97 * ONE], rel=1e-6)
    auxiliary = recipe.ask(facts, lambda asked: from_bytes(door.release(asked), asked.name))
    door.release(recipe.embedding_query(facts, auxiliary))
    two = [run, *runs(("marginals", 2.0))]
    assert grid_costs(two, dataset) == pytest.approx([0, rho_for(2.0, 1e-5)], rel=1e-6)
    monkeypatch.setattr("likeness.preflight.cost.last_rows", lambda asked: dataset)
    ledger.change_cap("uci-adult-1994", 1.0, 1e-5)
    assert afford(runs(("marginals", 1.0)))[0] == [Cost(0)]  # nothing is left, and nothing is asked


def test_a_grid_on_the_command_line(project: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    code, text, _ = command(
        "ledger", "afford", "--method", "marginals", "--epsilon", "1", "--epsilon", "2", "--epsilon", "1"
    )
    total = ONE + rho_for(2.0, 1e-5)
    assert code == 0 and text.startswith(f"marginals at epsilon 1: rho {ONE:.6g}\nmarginals at epsilon 2: rho ")
    assert f"all of them: at most rho {total:.6g} to be charged" in text
    assert "lifetime cap of uci-adult-1994: epsilon 0 spent, 2.302 of 10 afterwards" in text
    for words, rule in (
        (("--epsilon", "9", "--epsilon", "10"), "over budget"),
        (("--epsilon", "0"), "--epsilon must be"),
        (("--method", "magic"), "--method must be one of"),
    ):
        code, _, error = command("ledger", "afford", *words)
        assert code == 2 and rule in error


@pytest.mark.long
def test_what_a_schedule_costs(project: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    """The forecast is that of the ledger: so many runs fit, and not one more; with the other epsilon all fit."""
    year = schedule(Project.load(), "week", 1)
    budget = afford([Project.load()])[1]
    budget.check(Cost(year.room * year.cost.rho))
    with pytest.raises(BudgetError):
        budget.check(Cost((year.room + 1) * year.cost.rho))
    assert (year.runs, year.room) == (52, 55)
    years = schedule(Project.load(), "night", 5)
    assert years.runs == 1826 and 1826 <= budget.remaining_rho / rho_for(years.epsilon, 1e-5) < 2200
    code, text, _ = command("ledger", "afford", "--every", "week")
    assert code == 0 and "for 1 year: 52 runs on new rows" in text and "has room for 55." in text
    code, _, error = command("ledger", "afford", "--every", "night", "--years", "5")
    assert code == 2 and "1,826 runs" in error and "has room for 55. privacy.epsilon: 0.14 has room for all" in error
    assert command("ledger", "afford", "--every", "day")[0] == 2
    code, text, _ = command("ledger", "afford", "--every", "night", "--json")
    assert code == 2 and json.loads(text)["room"] == 55  # for scripts a refusal is one, too
    Ledger.open(locate()).declare_population("uci-adult-1994", Adjacency.ADD_REMOVE_ONE, math.inf, 1e-5)
    assert schedule(Project.load(), "night", 5)[2:] == (1826, 1826, math.inf)
    code, text, _ = command("ledger", "afford", "--every", "night", "--json")
    assert code == 0 and json.loads(text)["epsilon"] == "inf"


def test_delta_of_private_categories_may_leave_less_room_than_rho(
    project: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    schema = yaml.safe_load((project / "data/schema/adult.yaml").read_text())
    schema["columns"]["workclass"] = {"kind": "categorical", "categories": "private", "other": "other"}
    (project / "data/schema/adult.yaml").write_text(yaml.safe_dump(schema))
    room = schedule(Project.load(), "month", 1)
    assert (room.runs, room.room, room.keys_room) == (12, 5, 5)
    code, _, error = command("ledger", "afford", "--every", "month")
    assert code == 2 and "for 1 year: 12 runs on" in error and "and delta 1e-06 for private categories each" in error
    assert "delta for private categories has room for 5, whatever privacy.epsilon is: lower categories.del" in error


@pytest.mark.long
def test_a_series_has_room_for_years_of_nights(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A night of five years may cost an eleventh of the cap, and nights on record count for their people."""
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["privacy"] |= {"series": "growing", "unit": "one person", "epsilon": 2.4}
    content["ingest"]["unit"] = {"column": "pid", "max_rows": 1}
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    years = schedule(Project.load(), "night", 5)
    assert years.runs == years.room == 1826 and years.epsilon == 2.4
    assert rho_for(2.5, 1e-5) * 11 > rho_for(10.0, 1e-5) >= years.cost.rho * 11
    content["privacy"]["epsilon"] = 2.5
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    assert schedule(Project.load(), "night", 5).room == 1023
    ledger, name = Ledger.open(locate()), "uci-adult-1994"
    ledger.declare_population(name, Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5, "pid")
    night = cohort_members(ledger.chain, name, "1", ["ann"])
    cost, unit = rho_for(10.0, 1e-5) / 2, PrivacyUnit("pid", 1)
    about = {"unit": unit, "group": night.group, "first_nights": night.first_nights, "day": night.day}
    ledger.reserve(request("dear", cost, population=name, **about))
    assert schedule(Project.load(), "night", 5).room < 1023


@pytest.mark.long
def test_another_recipe_waits_for_a_person(project: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    """Plan and check say it, and the door, which the stages and a fit share: nothing is on record."""
    ledger, name, words = Ledger.open(locate()), "uci-adult-1994", rf"by recipe {RECIPE - 1}. .* has recipe {RECIPE}: "
    ledger.declare_population(name, Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    facts = {"query": "old", "recipe": RECIPE - 1}
    ledger.reserve(request("old", 0.001, {}, name, "1~2", "", digest="old rows", details=facts))
    run, before = Project.load(), ledger.records()
    query, *_ = runs(("marginals", 1.0))[0].method.auxiliary_queries(run.context, {})
    door = Door(runs(("marginals", 1.0))[0].plan, ledger, Dataset(name, "new rows"), list)
    for ask in (lambda: plan.main(run), lambda: door.release(query)):
        with pytest.raises(BudgetError, match=words + r".*It costs rho 0\.0"):
            ask()
    assert any(re.search(words, fault.text) for fault in examine().faults) and ledger.records() == before
    replace(door, dataset=Dataset(name, "new rows", "2")).release(query)
    check_same_request(ledger.records(), name, "2", 1.0)
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["ledger"]["attempt"] = "2"
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    plan.main(Project.load())


def test_a_wished_cap_counts_before_it_is_recorded(project: Path) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["ledger"]["cap"] = {"epsilon": 1.0, "delta": 1e-5}
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(BudgetError, match=r"lifetime cap is epsilon 1 .*Waiting brings no budget back"):
        afford(runs(("marginals", 0.9), ("marginals", 0.8)))
