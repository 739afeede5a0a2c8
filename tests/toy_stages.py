"""A toy DVC project of two stages, and the processes that its stages start."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from dvc.repo import Repo

ROOT = Path(__file__).parents[1]
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
SLEEPER = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)\n"
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


def at_work(toy: Path, process: "subprocess.Popen[Any]") -> tuple[int, list[int]]:
    """The first stage, as soon as it runs, and all that a process has started."""
    deadline = time.monotonic() + 300
    while not (toy / "pid").exists() or not (toy / "pid").read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    return int((toy / "pid").read_text()), [one.pid for one in psutil.Process(process.pid).children(recursive=True)]


def gone(pid: int) -> bool:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        time.sleep(0.1)
    return False
