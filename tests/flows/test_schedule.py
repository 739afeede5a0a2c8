"""Scheduling against a real server: it must create runs from a cron. And the refusal where there is no server."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger

ROOT = Path(__file__).parents[2]
DEAD = "http://127.0.0.1:9/api"


def schedule(folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "flows.schedule"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    return done.stderr


def test_without_a_server_it_says_what_to_do(toy: Path, outside: dict[str, str]) -> None:
    for url, reason in (
        ("", "PREFECT_API_URL names no Prefect server"),
        (DEAD, f"no Prefect server answers at {DEAD}"),
    ):
        message = schedule(toy, outside | ({"PREFECT_API_URL": url} if url else {}))
        assert reason in message
        assert "prefect server start --no-ui" in message and f"0 3 * * 1  cd {toy} && {sys.executable}" in message


@pytest.mark.parametrize(("key", "value"), [("cron", "every monday"), ("timezone", "Mars/Olympus")])
def test_a_schedule_that_cannot_be_is_refused_by_name(toy: Path, outside: dict[str, str], key: str, value: str) -> None:
    content = yaml.safe_load((toy / "params.yaml").read_text())
    content["schedule"][key] = value
    (toy / "params.yaml").write_text(yaml.safe_dump(content))
    message = schedule(toy, outside)
    assert "params.yaml: schedule" in message and value in message


@pytest.fixture
def server(outside: dict[str, str]) -> Iterator[str]:
    """``prefect server start --no-ui`` on a free port, ended with its children."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--port", str(port)]
    environment = outside | {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}/api"
    try:
        deadline = time.monotonic() + 120
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
def test_the_served_flow_gets_scheduled_runs_and_can_run(toy: Path, outside: dict[str, str], server: str) -> None:
    """The scheduler service dies silently with some versions of its database library: then no run ever appears."""
    (toy / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", toy / "data/schema")
    Ledger.create(locate())  # a scheduled run asks it first
    own = {name: os.environ[name] for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    environment = outside | own | {"PREFECT_API_URL": server, "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    serving = subprocess.Popen(
        [sys.executable, "-m", "flows.schedule"],
        cwd=toy,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
            scheduled = wait_for(lambda: [run for run in client.read_flow_runs() if run.auto_scheduled])
            times = [run.expected_start_time for run in scheduled]
            assert all((at.weekday(), at.hour, at.minute) == (0, 3, 0) for at in times if at is not None)
            deployment = scheduled[0].deployment_id
            assert deployment is not None
            run = client.create_flow_run_from_deployment(deployment).id
            state = wait_for(lambda: (now := client.read_flow_run(run).state) and now.is_final() and now)
            assert state.message == "first Ran, middle Ran, last Ran"
            tasks = client.read_task_runs()
            assert "Affordable" in {task.state_name for task in tasks}
            deployed(toy, environment)
            pool = client.read_work_pool("own-pool")
            found = client.read_deployment_by_name("synthesize/own")
            assert pool.type == "process" and found.work_pool_name == "own-pool"
            assert found.parameters == {"root": str(toy), "check_budget": True}
            assert found.global_concurrency_limit is not None and found.global_concurrency_limit.limit == 1
            assert found.paused and [one.schedule.cron for one in found.schedules] == ["0 3 * * 1"]
            limit = client.read_global_concurrency_limit_by_name("likeness-uci-adult-1994")
            assert limit.limit == 1
    finally:
        os.killpg(serving.pid, signal.SIGKILL)
        serving.wait()


def deployed(folder: Path, environment: dict[str, str]) -> None:
    """The flow registered with a pool of its own."""
    command = [sys.executable, "-m", "flows.deploy", "--pool", "own-pool", "--name", "own", "--paused"]
    for name in ("flows", "src", "stages"):
        (folder / name).symlink_to(ROOT / name)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "prefect worker start --pool own-pool" in done.stderr, done.stderr


def wait_for(look: Callable[[], Any]) -> Any:
    """The first value that is true; a busy machine takes its time."""
    deadline = time.monotonic() + 240
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.5)
    return found
