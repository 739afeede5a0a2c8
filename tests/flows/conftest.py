"""A toy DVC project, and one Prefect test server for the session."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import flows  # noqa: F401  (quiet, before Prefect)

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
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    monkeypatch.chdir(root)
    return root


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
