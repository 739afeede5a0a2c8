"""The flow on a toy graph against a real Prefect API: order, state names, failures, kills."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import psutil
import pytest
from pytest import MonkeyPatch

from likeness.core.errors import ArtifactError, LikenessError, NightError
from likeness.core.hashing import sha256_bytes
from likeness.flows.reproduce import ended_by_signals, kill, reproduce
from likeness.flows.stage_graph import left_out, stage_graph
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.witness import trailer
from likeness.pipeline.counts import ANSWERS
from likeness.pipeline.dvc_repair import dvc_processes
from likeness.privacy.adjacency import Adjacency

ROOT = Path(__file__).parents[2]
SLEEPER = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)\n"


def client_of_the_server() -> Any:
    """Prefect takes seconds to import: a worker that has none of these tests need not."""
    from prefect.client.orchestration import get_client

    return get_client(sync_client=True)


def test_order_is_the_graphs(toy: Path) -> None:
    assert list(stage_graph(toy / "dvc.yaml")) == ["first", "last"]


def test_order_of_the_real_graph() -> None:
    order = list(stage_graph(ROOT / "dvc.yaml"))
    assert order.index("ingest") < order.index("privatize") < order.index("train") < order.index("sample")
    assert order.index("account") < order.index("report") and order[-1] == "track"


def test_a_stage_is_left_out_with_all_that_need_it(toy: Path) -> None:
    graph = stage_graph(toy / "dvc.yaml")
    assert left_out(graph, []) == [] and left_out(graph, ["first"]) == ["first", "last"]
    assert left_out(stage_graph(ROOT / "dvc.yaml"), ["evaluate"]) == ["evaluate", "track"]
    with pytest.raises(LikenessError, match=r"--without lost: there is no such stage\. Give one of: first,"):
        left_out(graph, ["last", "lost"])


@pytest.mark.parametrize(
    "graph",
    [
        "b: {deps: [out/x.csv]}, a: {outs: [out]}",
        "b: {deps: [out]}, a: {outs: [out/x.csv: {cache: false}]}",
        "b: {deps: [x.json]}, a: {metrics: [x.json]}",
        "b: {deps: [x.csv]}, a: {plots: [x.csv: {x: step}]}",
    ],
)
def test_a_stage_waits_for_every_kind_of_output_and_for_what_lies_in_it(tmp_path: Path, graph: str) -> None:
    (tmp_path / "dvc.yaml").write_text(f"stages: {{{graph}}}")
    assert list(stage_graph(tmp_path / "dvc.yaml")) == ["a", "b"]


def test_a_graph_that_cannot_be_ordered_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dvc.yaml"
    with pytest.raises(ArtifactError, match="missing"):
        stage_graph(path)
    path.write_text("stages:\n  a: {deps: [y], outs: [x]}\n  b: {deps: [x], outs: [y]}\n")
    with pytest.raises(ArtifactError, match=r"wait for each other: (a, b|b, a)\. Remove a dependency\."):
        stage_graph(path)


def test_states_say_ran_up_to_date_and_restored(toy: Path, prefect_server: Path) -> None:
    from prefect.states import Running

    from likeness.flows.synthesize import synthesize

    def endings() -> str:
        state = synthesize(return_state=True)
        assert state.is_completed()
        return str(state.message)

    assert endings() == "first Ran, last Ran"
    (toy / "step.py").write_text("open('a.txt', 'w').write('other')\n")
    assert reproduce(toy, "first", print).ending == "Ran"
    (toy / "step.py").write_text("open('a.txt', 'w').write('a')\n")
    note = toy / ".likeness/flow_run"
    with client_of_the_server() as client:
        killed = client.create_flow_run(synthesize, state=Running())
        note.write_text(str(killed.id))
        assert endings() == "first Restored, last UpToDate"
        assert client.read_flow_run(killed.id).state.is_crashed() and not note.exists()  # type: ignore[union-attr]
        note.write_text(str(uuid4()))  # of another server, with a damaged file as with none
        assert endings() == "first UpToDate, last UpToDate"
        runs = client.read_flow_runs()  # one of the calls that half-broken servers answer with 422
        assert len(runs) >= 3


def test_the_account_and_the_newest_head_are_left_as_artifacts_once(short: Path, prefect_server: Path) -> None:
    """Also where all stages are up to date, because the run before died; after a failure the head alone."""
    import json

    from likeness.flows.synthesize import _COLUMNS, privacy_table, synthesize

    (short / "reports").mkdir()
    query = {column: 1 for column in _COLUMNS}
    privacy = {"private": True, "identity": "people", "method": "pearl", "adjacency": "add_remove_one"}
    privacy |= {"total": {"epsilon": 1.0, "delta": 1e-5, "rho": 0.03}, "queries": [query]}
    (short / "reports/privacy.json").write_text(json.dumps(privacy))
    (short / "reports/PRIVACY_STATEMENT.md").write_text("# Privacy statement")
    head = Ledger.create(locate()).head()

    def left() -> list[str]:
        with client_of_the_server() as client:
            return sorted(str(artifact.key) for artifact in client.read_artifacts())

    assert synthesize(return_state=True).is_completed()
    assert left() == ["ledger-head", "privacy", "privacy-statement"]
    with client_of_the_server() as client:
        artifacts = {artifact.key: artifact for artifact in client.read_artifacts()}
    assert "people" in str(artifacts["privacy"].description)
    assert artifacts["privacy-statement"].data == "# Privacy statement"
    assert artifacts["ledger-head"].data == f"`{trailer(head)}`"
    Ledger.open(locate()).declare_population("people", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    assert synthesize(return_state=True).is_completed()  # a run that spent and was killed comes before this one
    assert left() == ["ledger-head", "ledger-head", "privacy", "privacy-statement"]
    Ledger.open(locate()).declare_population("others", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    (short / "step.py").write_text("raise ValueError('42')")
    (short / "reports/PRIVACY_STATEMENT.md").write_text("# of an earlier run")
    ANSWERS.append(("a question", "private counts"))
    assert synthesize(return_state=True).is_failed()
    assert not ANSWERS  # they end with the run, also with one that fails
    with pytest.MonkeyPatch.context() as patch:  # a run of a series that made no night is red, by a name of its own
        patch.setattr("likeness.flows.synthesize._stages", Mock(side_effect=NightError("no night")))
        state = synthesize(return_state=True)
        assert (state.name, state.is_failed()) == ("NoNight", True)
    assert left() == ["ledger-head", "ledger-head", "ledger-head", "privacy", "privacy-statement"]
    assert "sha256" in privacy_table(privacy)[0]
    # Without noise the bytes are as private as the rows.
    assert "sha256" not in privacy_table(privacy | {"private": False})[0]


def test_as_shipped_prefect_sends_nothing_of_its_times_anywhere(toy: Path, monkeypatch: MonkeyPatch) -> None:
    """Its database tells how long private stages took; it stays in the project's folder."""
    from prefect.settings import Settings

    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    shipped = Settings()
    assert shipped.api.url is None and shipped.api.key is None and shipped.home == Path(".likeness")
    sends = (shipped.server.analytics_enabled, shipped.cloud.enable_orchestration_telemetry)
    assert not any((*sends, shipped.telemetry.enable_resource_metrics, shipped.results.persist_by_default))


def test_a_run_that_the_cap_has_no_room_for_is_refused_before_the_first_stage(
    short: Path, prefect_server: Path
) -> None:
    """Once there is room, the same flow runs."""
    from likeness.flows.synthesize import synthesize

    (short / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", short / "data/schema")
    ledger = Ledger.create(locate())
    ledger.declare_population("uci-adult-1994", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    ledger.change_cap("uci-adult-1994", 0.5, 1e-5)
    state = synthesize(check_budget=True, return_state=True)
    assert state.is_failed() and "lifetime cap is epsilon 0.5" in str(state.message)
    assert state.name == "OverBudget"  # a notification, or a filter of the server's page, can tell it from a failure
    assert not (short / "a.txt").exists()
    ledger.change_cap("uci-adult-1994", 1.0, 1e-5)
    state = synthesize(check_budget=True, return_state=True)
    assert state.is_completed() and state.message == "first Ran"


def test_a_failed_stage_fails_the_flow_with_the_stages_own_words(
    toy: Path, prefect_server: Path, refusing: str
) -> None:
    from likeness.flows.synthesize import synthesize

    (toy / "step.py").write_text(refusing)
    state = synthesize(return_state=True)
    assert state.is_failed() and state.message == "first: column age breaks a rule" and state.name == "Failed"
    assert not (toy / "b.txt").exists()
    (toy / "step.py").write_text("raise ValueError('42')")  # no stage of ours: what it says may be private
    assert reproduce(toy, "first", print).message == "first: it failed. Run it alone to see why: dvc repro -s first"


def test_nothing_is_retried_and_no_result_is_stored() -> None:
    """A refusal by a cap stays one, and what a stage gives back stays out of Prefect's folders."""
    from likeness.flows.synthesize import budget, dvc_stage, synthesize

    for one in (synthesize, dvc_stage, budget):
        assert one.retries == 0 and one.persist_result is False, one.name


RELEASING = """
import sys
from pathlib import Path
import numpy as np
from likeness.pipeline.project import Project
from likeness.data.encoding.layout import encoding_digest
from likeness.release.door import Door
from likeness.release.request import Dataset
from likeness.release.records import Records

project = Project.load()
facts, ledger = project.context, project.ledger_to_spend
query, *_ = project.method.auxiliary_queries(facts, {})
rows = Dataset(project.params.privacy.population, "digest", "1", encoding_digest(facts.schema))
read = lambda: [Records(np.zeros((3, facts.layout.width)), np.zeros(3, dtype=np.int64))]
data = Door(project.plan, ledger, rows, read).release(query)
if not Path("first.broke").exists():
    Path("first.broke").touch()
    sys.exit("killed between release and output")
Path("a.txt").write_bytes(data)
"""
BREAKING = "test -f last.broke || { touch last.broke; exit 3; }; cp a.txt b.txt; python mark.py last"


@pytest.mark.slow
def test_a_run_that_breaks_at_every_stage_releases_once(toy: Path, prefect_server: Path) -> None:
    """Each stage fails once, the first after its release; the flow is run again until it is through."""
    import yaml

    from likeness.flows.synthesize import synthesize

    (toy / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", toy / "data/schema")
    (toy / "step.py").write_text(RELEASING)
    graph = yaml.safe_load((toy / "dvc.yaml").read_text())
    graph["stages"]["last"]["cmd"] = BREAKING
    (toy / "dvc.yaml").write_text(yaml.safe_dump(graph))
    ledger = Ledger.create(locate())
    for stage in ("first", "last"):
        state = synthesize(return_state=True)
        assert state.is_failed() and str(state.message).startswith(f"{stage}: "), state.message
        assert len(Ledger.open(locate()).commits()) == 1
    state = synthesize(return_state=True)
    assert state.message == "first UpToDate, last Ran"
    kinds = [record.kind for record in Ledger.open(locate()).records()]
    assert kinds.count("reserve") == kinds.count("commit") == 1
    ((_, digest),) = ledger.commits().values()
    assert sha256_bytes((toy / "b.txt").read_bytes()) == digest


def test_a_stage_that_takes_too_long_is_killed(toy: Path, monkeypatch: MonkeyPatch) -> None:
    """Its time begins when it is at work: a busy machine may take any time until then."""

    class Clock(threading.Timer):
        def run(self) -> None:
            while not (toy / "pid").exists() and not self.finished.wait(0.1):
                pass
            super().run()

    monkeypatch.setattr(threading, "Timer", Clock)
    (toy / "step.py").write_text(SLEEPER)
    outcome = reproduce(toy, "first", print, timeout=1)
    assert outcome.ending == "Failed" and "stopped after 1 s" in outcome.message
    assert gone(int((toy / "pid").read_text()))


@pytest.mark.process
def test_without_groups_of_processes_all_that_was_started_is_killed(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Windows has no os.killpg."""
    monkeypatch.delattr(os, "killpg")
    sleeps = "import time; time.sleep(60)"
    starts = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', '{sleeps}']).pid, flush=True)"
    process = subprocess.Popen([sys.executable, "-c", f"{starts}; {sleeps}"], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    kill(process)
    assert gone(child) and process.returncode != 0


def test_a_failed_run_exits_1_with_one_line_and_its_output_stays_out_of_the_database(
    toy: Path, outside: dict[str, str], prefect_server: Path, refusing: str
) -> None:
    from prefect.settings import PREFECT_API_URL

    (toy / "step.py").write_text(refusing)
    environment = {**outside, "PREFECT_API_URL": PREFECT_API_URL.value()}
    done = subprocess.run(
        [sys.executable, "-m", "flows.synthesize"], cwd=toy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "synthesize: Failed: first: column age breaks a rule"
    assert "chatter 7f3e9" in done.stderr and "Traceback" not in done.stderr
    stored = b"".join(path.read_bytes() for path in prefect_server.parent.iterdir())
    assert b"column age breaks a rule" in stored  # so that the search can find something
    assert b"chatter" not in stored
    assert not list(Path(outside["PREFECT_HOME"]).glob("storage/*"))


def at_work(toy: Path, process: "subprocess.Popen[Any]") -> tuple[int, list[int]]:
    """The first stage, as soon as it runs, and all that a process has started."""
    deadline = time.monotonic() + 300
    while not (toy / "pid").exists() or not (toy / "pid").read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    return int((toy / "pid").read_text()), [one.pid for one in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.slow
def test_sigterm_kills_the_running_stage(toy: Path, outside: dict[str, str]) -> None:
    """A flow that is told to end leaves no stage that would finish later, and no server."""
    (toy / "step.py").write_text(SLEEPER)
    flow = subprocess.Popen([sys.executable, "-m", "flows.synthesize"], cwd=toy, env=outside, stderr=subprocess.DEVNULL)
    stage, children = at_work(toy, flow)
    assert stage in children and len(children) >= 3  # dvc, its stage, Prefect's server
    flow.send_signal(signal.SIGTERM)
    assert flow.wait(timeout=300) == 128 + signal.SIGTERM
    assert all(gone(pid) for pid in children)


@pytest.mark.process
def test_sigterm_ends_likeness_run_with_its_stage(toy: Path) -> None:
    """As of systemd, or of cron's ``timeout``, which sends it twice."""
    (toy / "step.py").write_text(SLEEPER)
    ready = "from likeness.pipeline.ledger_session import LedgerSession as one; one.check_ready = lambda *_: None"
    command = [sys.executable, "-c", f"{ready}; from likeness.cli.app import main; main()", "run"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stage, started = at_work(toy, run)
    assert stage in started and len(started) >= 2  # dvc, its stage
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGTERM)
    text, error = run.communicate(timeout=300)
    assert all(gone(pid) for pid in started)
    assert run.returncode == 143 and text == ""
    assert error == "likeness: stopped. Nothing is lost: finished stages and releases stay. Go on: likeness run\n"


def test_a_signal_that_is_ignored_stays_so() -> None:
    with pytest.raises(SystemExit, match="129"), ended_by_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(1)
    assert signal.signal(signal.SIGHUP, signal.SIG_IGN) is signal.SIG_IGN  # no second one stops the end
    with ended_by_signals():
        os.kill(os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.process
def test_a_run_that_meets_another_says_so(toy: Path) -> None:
    """DVC is told to be quiet, so it says nothing itself."""
    lock = toy / ".dvc/tmp/rwlock"
    other = {"pid": os.getpid(), "cmd": "dvc repro"}
    words = f"first: another run is at work in this folder: process {os.getpid()}. .dvc/tmp/rwlock names it."
    for held in ({"read": {str(toy / "a.txt"): [other]}}, {"write": {str(toy / "a.txt"): other}}):
        lock.write_text(json.dumps(held))
        outcome = reproduce(toy, "first", print)
        assert outcome.ending == "Failed" and outcome.message.startswith(words)
        assert "delete the file." in outcome.message
    lock.write_text(lock.read_text().replace(str(os.getpid()), str(2**22 + 1)))  # more than a machine numbers
    assert dvc_processes(toy) == []
    assert reproduce(toy, "first", print).ending == "Ran"


def gone(pid: int) -> bool:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        time.sleep(0.1)
    return False
