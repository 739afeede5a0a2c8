"""DVC's own runs: which stages run again when params.yaml says something else, or the same in fewer words."""

import contextlib
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from dvc.cli import main

from likeness.core.paths import ProjectPaths
from likeness.methods import METHODS
from likeness.stages import FOLDERS

ROOT = Path(__file__).parents[2]
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


def stand_in(name: str, stage: dict[str, Any]) -> dict[str, Any]:
    """A stage with its settings, its files and no code; all but ``settings`` only touch what they would write."""
    outputs = {**stage, "deps": [path for path in stage["deps"] if not path.startswith("stages/")]}
    if name == "settings":
        return outputs
    named = [
        item if isinstance(item, str) else next(iter(item))
        for item in [*stage.get("outs", []), *stage.get("plots", []), *stage.get("metrics", [])]
    ]
    folders = {str(Path(path).parent) for path in named}
    touch = f"mkdir -p {' '.join(sorted(folders))} && touch {' '.join(named)}"
    return {**outputs, "cmd": touch, "always_changed": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository of DVC with the project's stages, without their work."""
    stages = {name: stand_in(name, stage) for name, stage in STAGES.items()}
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/schema").symlink_to(ROOT / "data/schema")
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    dvc(tmp_path, "init", "--no-scm", "-q")
    return tmp_path


def dvc(folder: Path, *words: str) -> None:
    """A command of DVC, in this process, which has loaded it already."""
    environment = {"PYTHONPATH": str(folder / "src"), "DVC_NO_ANALYTICS": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, environment),
        contextlib.redirect_stdout(io.StringIO()) as told,
    ):
        assert main([*words]) == 0, told.getvalue()


@pytest.mark.process
def test_missing_keys_have_their_defaults_and_another_method_needs_no_section(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def rerun(content: dict[str, Any]) -> set[str]:
        """The stages that run with another params.yaml, or another package. The first runs every time."""
        caplog.clear()
        (folder / "params.yaml").write_text(yaml.safe_dump(content))
        dvc(folder, "repro")
        return {message.split("'")[1] for message in caplog.messages if message.startswith("Running stage")}

    shipped = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert rerun(shipped) == set(STAGES)
    few = {key: shipped[key] for key in ("method", "privacy", "ingest", "sample", "marginals")}
    assert rerun(few) == {"settings"}
    del few["marginals"]  # whose file says more than the defaults: new projects have better values
    assert yaml.safe_load((folder / ProjectPaths.settings).read_text())["evaluate"] == shipped["evaluate"]
    if "hp" not in METHODS:
        return
    question = {"plan", "categories", "auxiliary", "privatize", "train", "account"}
    assert rerun({**few, "method": "hp"}) == {"settings", *question}
    few |= {"method": "hp", "hp": {"train": {"iterations": 5}}}
    few |= {"pearl": {"train": {"iterations": 5}, "privatize": {"num_frequencies": 9}}}  # of no method in use
    assert rerun(few) == {"settings", "train", "account"}
    with (folder / "src/likeness_papers/networks/training.py").open("a") as module:
        module.write("# of another version\n")
    with_methods = {name for name, folders in FOLDERS.items() if "methods" in folders.split()}
    assert rerun(few) == {"settings", *with_methods}
