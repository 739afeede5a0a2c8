"""One run at a time for the same people; among machines see tests/privacy/test_team_ledger.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from likeness.core.errors import LikenessError
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]
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
        busy = r"another run of 'uci-adult-1994' was still at work after 0\.6 s.*end its process"
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
