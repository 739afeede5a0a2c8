"""Scheduling against a real server: it must create runs from a cron. And the refusal where there is no server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

ROOT = Path(__file__).parents[2]


def test_without_a_server_it_says_what_to_do(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PREFECT_API_URL"}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "flows.schedule"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "prefect server start" in done.stderr and "0 3 * * 1" in done.stderr


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """``prefect server start --no-ui`` on a free port, ended with its children."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--port", str(port)]
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path / "prefect")}
    environment["PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS"] = "2"
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
def test_a_cron_deployment_gets_scheduled_runs(server: str) -> None:
    """The scheduler service dies silently with some versions of its database library: then no run ever appears."""
    from prefect.schedules import Cron

    from flows.synthesize import synthesize

    with temporary_settings({PREFECT_API_URL: server}):
        deployment = synthesize.to_deployment("synthesize", schedule=Cron("* * * * *", timezone="UTC")).apply()
        deadline = time.monotonic() + 60
        with get_client(sync_client=True) as client:
            while True:
                runs = [run for run in client.read_flow_runs() if run.deployment_id == deployment]
                if runs:
                    break
                assert time.monotonic() < deadline, "the scheduler created no run"
                time.sleep(1)
            assert runs[0].state is not None and runs[0].state.is_scheduled()
