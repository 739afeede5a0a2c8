"""A toy DVC project, and one Prefect test server for the session."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dvc.repo import Repo

import likeness.flows  # noqa: F401  (quiet, before Prefect)

ROOT = Path(__file__).parents[2]
LAST = """
  last:
    cmd: cp a.txt b.txt && python mark.py last
    deps: [a.txt]
    outs: [b.txt]
"""
FIRST = """
  first:
    cmd: python step.py && python mark.py first
    deps: [step.py]
    outs: [a.txt]
"""

MARK = """
import pathlib, sys, time
marker = pathlib.Path(".likeness/stages", sys.argv[1] + ".json")
marker.parent.mkdir(parents=True, exist_ok=True)
marker.write_text(str(time.time_ns()))
"""
REFUSING = """
from likeness.core.errors import LikenessError
from likeness.pipeline.run_stage import run_stage

def main(params):
    print("chatter 7f3e9")
    raise LikenessError("column age breaks a rule")

run_stage("first", main)
"""


@pytest.fixture
def refusing() -> str:
    """A first stage that refuses its column."""
    return REFUSING


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two stages, listed out of order; ``step.py`` is what a test wants it to be."""
    root = tmp_path / "toy"
    root.mkdir()
    (root / "dvc.yaml").write_text(f"stages:{LAST}{FIRST}")
    (root / "step.py").write_text("open('a.txt', 'w').write('a')\n")
    (root / "mark.py").write_text(MARK)
    for name in ("params.yaml", "prefect.toml"):
        shutil.copy(ROOT / name, root)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    Repo.init(str(root))
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    return root


@pytest.fixture
def short(toy: Path) -> Path:
    """The same with the first stage alone: DVC's process for each takes a second."""
    (toy / "dvc.yaml").write_text(f"stages:{FIRST}")
    return toy


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory, prefect_server: Path) -> dict[str, str]:
    """Environment of a process of its own, with one Prefect home for the session: a fresh database costs seconds."""
    home = tmp_path_factory.mktemp("prefect")
    with closing(sqlite3.connect(prefect_server)) as made, closing(sqlite3.connect(home / "prefect.db")) as copy:
        made.backup(copy)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return ours | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
    }


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[Path]:
    """An ephemeral Prefect API, and its temporary database; its start takes up to ten seconds, once."""
    from prefect.settings import (
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_SERVER_DATABASE_CONNECTION_URL,
        temporary_settings,
    )
    from prefect.testing.utilities import prefect_test_harness

    os.environ["PREFECT_LOGGING_LEVEL"] = "ERROR"
    with (
        prefect_test_harness(server_startup_timeout=300),
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield Path(str(PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).partition("///")[2])
