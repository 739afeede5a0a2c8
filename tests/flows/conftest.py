"""A toy DVC project, and one Prefect test server for the session."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.repo import Repo

import flows  # noqa: F401  (quiet, before Prefect)

ROOT = Path(__file__).parents[2]
GRAPH = """
stages:
  last:
    cmd: python -c "import shutil; shutil.copy('b.txt', 'c.txt')"
    deps: [b.txt]
    outs: [c.txt]
  first:
    cmd: python step.py
    deps: [step.py]
    outs: [a.txt]
  middle:
    cmd: python -c "import shutil; shutil.copy('a.txt', 'b.txt')"
    deps: [a.txt]
    outs: [b.txt]
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three stages, listed out of order; ``step.py`` is what a test wants it to be."""
    root = tmp_path / "toy"
    root.mkdir()
    (root / "dvc.yaml").write_text(GRAPH)
    (root / "step.py").write_text("open('a.txt', 'w').write('a')\n")
    for name in ("params.yaml", "prefect.toml"):
        shutil.copy(ROOT / name, root)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    Repo.init(str(root))
    monkeypatch.chdir(root)
    return root


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a process of its own, with one Prefect home for the session: a fresh one costs ten seconds."""
    home = tmp_path_factory.mktemp("prefect")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return ours | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """An ephemeral Prefect API on a temporary database; its start takes up to ten seconds, once."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    os.environ["PREFECT_LOGGING_LEVEL"] = "ERROR"
    with (
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield
