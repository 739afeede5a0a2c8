"""Scheduling against a real server, which must create runs from a cron."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from likeness.config.params import Schedule
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]
SPEAKING = """
from likeness.core.messages import progress, show_messages
show_messages()
with progress("count", 10) as step:
    step(5, "half")
print("chatter 7f3e9")
open("a.txt", "w").write("a")
"""
ALONE: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
DEAD = "http://127.0.0.1:9/api"


def refusal(url: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says where Prefect has this address, or none."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from likeness_orchestration.deploy import main

    with temporary_settings({PREFECT_API_URL: url} if url else {}, restore_defaults={PREFECT_API_URL}):
        assert main([]) == 2
    return capsys.readouterr().err


def test_without_a_server_it_says_what_to_do(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url, why in (
        ("", "PREFECT_API_URL names no Prefect server"),
        (DEAD, f"no Prefect server answers at {DEAD}"),
    ):
        message = refusal(url, capsys)
        assert why in message
        assert "prefect server start --no-ui" in message and f"0 3 * * 1  cd {toy} && {sys.executable}" in message


@pytest.mark.parametrize(("key", "value"), [("cron", "every monday"), ("timezone", "Mars/Olympus")])
def test_a_schedule_that_cannot_be_is_refused_by_name(
    toy: Path, key: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = yaml.safe_load((toy / "params.yaml").read_text())
    content["schedule"][key] = value
    (toy / "params.yaml").write_text(yaml.safe_dump(content))
    message = refusal("", capsys)
    assert "params.yaml: schedule" in message and value in message


@pytest.fixture
def server(outside: dict[str, str]) -> Iterator[str]:
    """``prefect server start --no-ui`` on a free port, ended with its children."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--port", str(port)]
    environment = outside | {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1"}
    process = subprocess.Popen(command, env=environment, **ALONE)
    url = f"http://127.0.0.1:{port}/api"
    try:
        deadline = time.monotonic() + 300
        while not _healthy(url):
            assert time.monotonic() < deadline and process.poll() is None, "the server did not come up"
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_worker_runs_the_deployed_flow_and_the_server_schedules_it(
    toy: Path, outside: dict[str, str], server: str
) -> None:
    """The scheduler service dies silently with some versions of its database library: then no run ever appears."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, LogFilter
    from prefect.settings import PREFECT_API_URL, temporary_settings

    (toy / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", toy / "data/schema")
    for name in ("flows", "src", "stages"):
        (toy / name).symlink_to(ROOT / name)
    (toy / "step.py").write_text(SPEAKING)
    Ledger.create(locate())  # a scheduled run asks it first
    places = {name: os.environ[name] for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    environment = outside | places | {"PREFECT_API_URL": server, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    command = [sys.executable, "-m", "flows.deploy", "--pool", "a-pool", "--name", "a-name"]
    done = subprocess.run(command, cwd=toy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "prefect worker start --pool a-pool" in done.stderr, done.stderr
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "a-pool"]
    worker = subprocess.Popen(command, cwd=toy, env=environment, **ALONE)
    try:
        with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
            scheduled = wait_for(lambda: [run for run in client.read_flow_runs() if run.auto_scheduled])
            times = [run.expected_start_time for run in scheduled]
            assert all((at.weekday(), at.hour, at.minute) == (0, 3, 0) for at in times if at is not None)
            pool = client.read_work_pool("a-pool")
            deployment = client.read_deployment_by_name("synthesize/a-name")
            assert pool.type == "process" and deployment.id == scheduled[0].deployment_id
            assert not client.read_global_concurrency_limits()  # a killed server would keep its slots
            run = client.create_flow_run_from_deployment(deployment.id).id
            state = wait_for(lambda: (now := client.read_flow_run(run).state) and now.is_final() and now)
            assert state.message == "first Ran, last Ran"
            of_flow = FlowRunFilter.model_validate({"id": {"any_": [run]}})
            assert "Affordable" in {task.state_name for task in client.read_task_runs(flow_run_filter=of_flow)}
            of_run = LogFilter.model_validate({"flow_run_id": {"any_": [run]}})
            shown = wait_for(lambda: len(now := [log.message for log in client.read_logs(of_run)]) > 10 and now)
            assert "count: 5 of 10, half" in shown  # on the page of the run
            assert not [line for line in shown if "chatter" in line]
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def wait_for(look: Callable[[], Any]) -> Any:
    """The first value that is true; a busy machine takes its time."""
    deadline = time.monotonic() + 300
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.5)
    return found


@pytest.mark.parametrize(
    ("day", "hour"), [(datetime(2026, 1, 15, tzinfo=UTC), 2), (datetime(2026, 7, 15, tzinfo=UTC), 1)]
)
def test_hours_are_those_of_the_time_zone_in_winter_and_in_summer(day: datetime, hour: int) -> None:
    """What the server gets of the schedule, and the first time that it makes of it: three o'clock in Berlin."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.server.schemas.schedules import CronSchedule

    from likeness_orchestration.deploy import cron

    sent = DeploymentScheduleCreate.from_schedule(cron(Schedule("0 3 * * *", "Europe/Berlin"))).schedule
    start = day.replace(tzinfo=UTC)
    (first,) = asyncio.run(CronSchedule(**sent.model_dump()).get_dates(1, start))
    assert first.astimezone(UTC) == start.replace(hour=hour)


def test_the_flow_is_deployed_with_the_schedule_of_params(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likeness_orchestration import deploy
    from likeness_orchestration.synthesize import synthesize

    sent: dict[str, Any] = {}
    for name in ("check_server", "ensure_pool"):
        monkeypatch.setattr(deploy, name, lambda _: None)
    monkeypatch.setattr(deploy.Flow, "from_source", lambda **_: synthesize)
    monkeypatch.setattr(deploy.Flow, "deploy", lambda _, **settings: sent.update(settings))
    edited = (toy / "params.yaml").read_text().replace("timezone: UTC", "timezone: Europe/Berlin")
    (toy / "params.yaml").write_text(edited)
    assert deploy.main([]) == 0
    assert (sent["schedule"].cron, sent["schedule"].timezone) == ("0 3 * * 1", "Europe/Berlin")
    assert sent["parameters"] == {"root": str(toy), "check_budget": True}
