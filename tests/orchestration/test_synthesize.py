"""The flow on a toy graph against a real Prefect API: state names, failures, kills."""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
import yaml
from pytest import MonkeyPatch
from toy_stages import SLEEPER, at_work, gone

from likeness.core.errors import NightError
from likeness.core.files import file_lock
from likeness.core.hashing import sha256_bytes
from likeness.flows.reproduce import reproduce
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.witness import trailer
from likeness.pipeline.counts import ANSWERS
from likeness.privacy.adjacency import Adjacency

ROOT = Path(__file__).parents[2]


def wing() -> Any:
    """Prefect takes seconds to import: a worker that has none of these tests need not."""
    return import_module("likeness_orchestration.synthesize")


def synthesize(**settings: Any) -> Any:
    return wing().synthesize(**settings, return_state=True)


def test_states_say_ran_up_to_date_and_restored(toy: Path, prefect_server: Path) -> None:
    from prefect.states import Running

    def endings() -> str:
        state = synthesize()
        assert state.is_completed()
        return str(state.message)

    assert endings() == "first Ran, last Ran"
    (toy / "step.py").write_text("open('a.txt', 'w').write('other')\n")
    assert reproduce(toy, "first", print).ending == "Ran"
    (toy / "step.py").write_text("open('a.txt', 'w').write('a')\n")
    notes = toy / ".likeness/flow_runs"
    with wing().get_client(sync_client=True) as client:
        killed = client.create_flow_run(wing().synthesize, state=Running())
        waiting = client.create_flow_run(wing().synthesize, state=Running())
        for name in (killed.id, uuid4(), "damaged"):  # one is of another server
            (notes / str(name)).touch()
        with file_lock(notes / str(waiting.id)):
            assert endings() == "first Restored, last UpToDate"
        assert [one.name for one in notes.iterdir()] == [str(waiting.id)]
        assert client.read_flow_run(killed.id).state.is_crashed()
        assert client.read_flow_run(waiting.id).state.is_running()
        assert endings() == "first UpToDate, last UpToDate"  # and it waits no more
        assert client.read_flow_run(waiting.id).state.is_crashed()
        assert len(client.read_flow_runs()) >= 3  # one of the calls that half-broken servers answer with 422


def test_the_account_and_the_newest_head_are_left_as_artifacts_once(short: Path, prefect_server: Path) -> None:
    """Also where all stages are up to date, because the run before died; after a failure the head alone."""
    (short / "reports").mkdir()
    query = {column: 1 for column in wing()._COLUMNS}
    privacy = {"private": True, "identity": "people", "method": "pearl", "adjacency": "add_remove_one"}
    privacy |= {"total": {"epsilon": 1.0, "delta": 1e-5, "rho": 0.03}, "queries": [query]}
    (short / "reports/privacy.json").write_text(json.dumps(privacy))
    (short / "reports/PRIVACY_STATEMENT.md").write_text("# Privacy statement")
    head = Ledger.create(locate()).head()

    def left() -> list[str]:
        with wing().get_client(sync_client=True) as client:
            return sorted(str(artifact.key) for artifact in client.read_artifacts())

    assert synthesize().is_completed() and left() == ["ledger-head", "privacy", "privacy-statement"]
    with wing().get_client(sync_client=True) as client:
        artifacts = {artifact.key: artifact for artifact in client.read_artifacts()}
    assert "people" in str(artifacts["privacy"].description)
    assert artifacts["privacy-statement"].data == "# Privacy statement"
    assert artifacts["ledger-head"].data == f"`{trailer(head)}`"
    Ledger.open(locate()).declare_population("people", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    assert synthesize().is_completed()  # a run that spent and was killed comes before this one
    assert left() == ["ledger-head", "ledger-head", "privacy", "privacy-statement"]
    Ledger.open(locate()).declare_population("others", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    (short / "step.py").write_text("raise ValueError('42')")
    (short / "reports/PRIVACY_STATEMENT.md").write_text("# of an earlier run")
    ANSWERS.append(("a question", "private counts"))
    assert synthesize().is_failed()
    assert not ANSWERS  # they end with the run, also with one that fails
    with pytest.MonkeyPatch.context() as patch:  # a run of a series that made no night is red, by a name of its own
        patch.setattr("likeness_orchestration.synthesize._stages", Mock(side_effect=NightError("no night")))
        state = synthesize()
        assert (state.name, state.is_failed()) == ("NoNight", True)
    assert left() == ["ledger-head", "ledger-head", "ledger-head", "privacy", "privacy-statement"]
    assert "sha256" in wing().privacy_table(privacy)[0]
    # Without noise the bytes are as private as the rows.
    assert "sha256" not in wing().privacy_table(privacy | {"private": False})[0]


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
    (short / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", short / "data/schema")
    ledger = Ledger.create(locate())
    ledger.declare_population("uci-adult-1994", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    settings = (short / "params.yaml").read_text()

    def checked(cap: str) -> Any:
        (short / "params.yaml").write_text(settings.replace("    epsilon: 10.0", f"    epsilon: {cap}"))
        return synthesize(check_budget=True)

    ledger.change_cap("uci-adult-1994", 0.5, 1e-5)
    state = checked("10.0")  # the seventh stage would refuse it
    assert state.is_failed() and "The ledger's cap for 'uci-adult-1994' is (0.5" in str(state.message)
    state = checked("0.5")
    assert state.is_failed() and "lifetime cap is epsilon 0.5" in str(state.message)
    assert state.name == "OverBudget"  # a notification, or a filter of the server's page, can tell it from a failure
    assert not (short / "a.txt").exists()
    ledger.change_cap("uci-adult-1994", 1.0, 1e-5)
    state = checked("1.0")
    assert state.is_completed() and state.message == "first Ran"


def test_a_failed_stage_fails_the_flow_with_the_stages_own_words(
    toy: Path, prefect_server: Path, refusing: str
) -> None:
    (toy / "step.py").write_text(refusing)
    state = synthesize()
    assert state.is_failed() and state.message == "first: column age breaks a rule" and state.name == "Failed"
    assert not (toy / "b.txt").exists()
    (toy / "step.py").write_text("raise ValueError('42')")  # no stage of ours: what it says may be private
    assert reproduce(toy, "first", print).message == "first: it failed. Run it alone to see why: dvc repro -s first"


def test_nothing_is_retried_and_no_result_is_stored() -> None:
    """A refusal by a cap stays one, and what a stage gives back stays out of Prefect's folders."""
    for one in (wing().synthesize, wing().dvc_stage, wing().budget):
        assert one.retries == 0 and one.persist_result is False, one.name


RELEASING = """
import sys
from pathlib import Path
import numpy as np
from likeness.pipeline.project import Project
from likeness.data.encoding.layout import encoding_digest
from likeness.release.door import Door
from likeness.ledger.reservation import Dataset
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
    (toy / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", toy / "data/schema")
    (toy / "step.py").write_text(RELEASING)
    graph = yaml.safe_load((toy / "dvc.yaml").read_text())
    graph["stages"]["last"]["cmd"] = BREAKING
    (toy / "dvc.yaml").write_text(yaml.safe_dump(graph))
    ledger = Ledger.create(locate())
    for stage in ("first", "last"):
        state = synthesize()
        assert state.is_failed() and str(state.message).startswith(f"{stage}: "), state.message
        assert len(Ledger.open(locate()).commits()) == 1
    state = synthesize()
    assert state.message == "first UpToDate, last Ran"
    kinds = [record.kind for record in Ledger.open(locate()).records()]
    assert kinds.count("reserve") == kinds.count("commit") == 1
    ((_, digest),) = ledger.commits().values()
    assert sha256_bytes((toy / "b.txt").read_bytes()) == digest


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
    assert b"chatter" not in stored and not list(Path(outside["PREFECT_HOME"]).glob("storage/*"))


def test_a_server_that_starts_too_late_costs_no_night(toy: Path, outside: dict[str, str]) -> None:
    late = outside | {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "1"}
    done = subprocess.run([sys.executable, "-m", "flows.synthesize"], cwd=toy, env=late, capture_output=True, text=True)
    assert done.returncode == 0 and (toy / "b.txt").exists()
    assert "no server of Prefect answers (RuntimeError). The run goes on without it" in done.stderr


@pytest.mark.slow
def test_sigterm_kills_the_running_stage(toy: Path, outside: dict[str, str]) -> None:
    """A flow that is told to end leaves no stage that would finish later, and no server."""
    (toy / "step.py").write_text(SLEEPER)
    flow = subprocess.Popen([sys.executable, "-m", "flows.synthesize"], cwd=toy, env=outside, stderr=subprocess.DEVNULL)
    stage, children = at_work(toy, flow)
    assert stage in children and len(children) >= 3  # dvc, its stage, Prefect's server
    flow.send_signal(signal.SIGTERM)
    assert flow.wait(timeout=300) == 128 + signal.SIGTERM and all(gone(pid) for pid in children)
