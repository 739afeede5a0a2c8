"""Projects to run: one finished for the session, and fresh clones of it."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from small_project import ROOT, Clone, copy_project

from likeness.core.paths import ProjectPaths
from likeness.pipeline.tracking import TRACKING


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, str]]:
    """Environment of a project: its own code, one ledger for all projects of the session."""
    shared = tmp_path_factory.mktemp("shared")

    def make(root: Path) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {
            **inherited,  # compiled modules are written, as on any machine
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
            # dvc runs `python`: the one that runs the tests.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "LIKENESS_HOME": str(shared / "ledger"),
            "LIKENESS_ANCHOR": str(shared / "anchor"),
            "LIKENESS_MLFLOW_URI": f"sqlite:///{shared}/mlflow.db",
            "DVC_NO_ANALYTICS": "1",
            "DO_NOT_TRACK": "true",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }

    return make


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, environment: Callable[[Path], dict[str, str]]) -> Clone:
    """A project after one whole run, of which DVC knows. That DVC's runs give the same bytes, test_whole_run shows."""
    root = tmp_path_factory.mktemp("project")
    copy_project(root)
    project = Clone(root, environment(root))
    project.run("likeness", "ledger", "init")
    project.stages("track" if "track" in TRACKING else "report")
    (root / ProjectPaths.tracking).touch()  # DVC commits it without the wing, too
    project.start("dvc", "commit", "--force")
    return project


@pytest.fixture
def alone(tmp_path: Path, environment: Callable[[Path], dict[str, str]]) -> Clone:
    """A project, nothing run yet, with a ledger of its own: the same rows cannot have two identities in one."""
    root = tmp_path / "clone"
    root.mkdir()
    copy_project(root)
    project = Clone(root, environment(root))
    project.environment |= {name: str(tmp_path / name.lower()) for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    project.run("likeness", "ledger", "init")
    return project


@pytest.fixture
def another(alone: Clone, finished: Clone, environment: Callable[[Path], dict[str, str]]) -> Clone:
    """The same, sharing the ledger of the finished project."""
    return Clone(alone.root, environment(alone.root))


@pytest.fixture(scope="session")
def built_module(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """A compiled module by its name, built from its source."""
    folder = tmp_path_factory.mktemp("compiled")
    build = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", folder, "--build-temp", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)

    def load(name: str) -> Any:
        built = next(iter(folder.rglob(f"{name.rpartition('.')[2]}*.so")), None)
        if built is None:
            pytest.skip("no compiler")
        spec = spec_from_file_location(name, built)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
