"""One run at a time for the same people: among processes of a machine, and among machines of a Prefect server."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from likeness.core.errors import LikenessError
from likeness.flows.one_at_a_time import exclusive_run, limit_name, server_limit
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from likeness.flows.one_at_a_time import exclusive_run
from likeness.pipeline.project import Project
with exclusive_run(Project.load(), 5, None):
    print("in", flush=True)
    time.sleep(60)
"""


def test_another_process_waits_until_the_first_is_gone_however_it_went(toy: Path) -> None:
    Ledger.create(locate())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    holder = subprocess.Popen([sys.executable, "-c", HOLD], cwd=toy, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "in\n"
        busy = r"another run of 'uci-adult-1994' was still at work after 0\.6 s"
        with pytest.raises(LikenessError, match=busy), exclusive_run(Project.load(toy), 0.6, None):
            raise AssertionError("two at work")
        settings = (toy / "params.yaml").read_text()
        (toy / "params.yaml").write_text(settings.replace("population: uci-adult-1994", "population: others"))
        with exclusive_run(Project.load(toy), 0, None):  # other people's runs do not wait
            pass
        (toy / "params.yaml").write_text(settings)
    finally:
        holder.kill()
        holder.wait()
    with exclusive_run(Project.load(toy), 5, None):
        pass


def test_runs_on_two_machines_wait_for_each_other_by_the_servers_limit(toy: Path, prefect_server: None) -> None:
    """No ledger, so no lock file: only the server knows."""
    limit = server_limit(Project.load(toy))
    assert limit == limit_name("uci-adult-1994") == "likeness-uci-adult-1994"
    with exclusive_run(Project.load(toy), 5, limit):
        started = time.monotonic()
        with (
            pytest.raises(LikenessError, match="was still at work after 1 s"),
            exclusive_run(Project.load(toy), 1, limit),
        ):
            raise AssertionError("two at work")
        assert time.monotonic() - started < 30
    with exclusive_run(Project.load(toy), 5, limit):
        pass


def test_names_of_limits_are_ones_that_prefect_takes() -> None:
    assert limit_name("Clinic A/B, 2024 & later %") == "likeness-Clinic-A-B-2024-later-"
