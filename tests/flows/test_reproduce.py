"""The stages of a toy graph: order, failures, kills; and one run at a time for the same people."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pytest import MonkeyPatch
from toy_stages import SLEEPER, at_work, gone

from likeness.core.errors import ArtifactError, LikenessError
from likeness.core.paths import ProjectPaths
from likeness.flows.reproduce import ended_by_signals, kill, reproduce
from likeness.flows.stage_graph import left_out, stage_graph
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.dvc_repair import run_at_work
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]


def test_order_is_the_graphs(toy: Path) -> None:
    assert list(stage_graph(toy / "dvc.yaml")) == ["first", "last"]
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
    assert all(gone(pid) for pid in started) and run.returncode == 143 and text == ""
    assert error == "likeness: stopped. Nothing is lost: finished stages and releases stay. Go on: likeness run\n"


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a flow of another test may have taken it for this process
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
    assert run_at_work(toy) == ""
    for done in (ProjectPaths.typed_done, ProjectPaths.encoded_done):  # of rows that somebody deleted
        (toy / done).parent.mkdir(parents=True, exist_ok=True)
        (toy / done).touch()
    assert reproduce(toy, "first", print).ending == "Ran"
    assert not (toy / ProjectPaths.typed_done).exists() and not (toy / ProjectPaths.encoded_done).exists()


HOLD = """
import time
from likeness.pipeline.project import Project
with Project.load().ledger_session.exclusive_run(5):
    print("in", flush=True)
    time.sleep(600)
"""


def test_another_process_waits_until_the_first_is_gone_however_it_went(toy: Path) -> None:
    Ledger.create(locate())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    holder = subprocess.Popen([sys.executable, "-c", HOLD], cwd=toy, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "in\n"
        busy = r"another run of 'uci-adult-1994' was still at work after 0\.6 s.*end process \d+: the lock"
        with pytest.raises(LikenessError, match=busy), Project.load(toy).ledger_session.exclusive_run(0.6):
            raise AssertionError("two at work")
        settings = (toy / "params.yaml").read_text()
        (toy / "params.yaml").write_text(settings.replace("population: uci-adult-1994", "population: others"))
        with Project.load(toy).ledger_session.exclusive_run(0):  # other people's runs do not wait
            pass
        (toy / "params.yaml").write_text(settings)
    finally:
        holder.kill()
        holder.wait()
    with Project.load(toy).ledger_session.exclusive_run(60):
        pass
