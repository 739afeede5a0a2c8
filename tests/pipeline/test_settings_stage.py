"""DVC's own runs: which stages run again when params.yaml says something else, or the same in fewer words."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from likeness.core.paths import ProjectPaths

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
    shutil.copytree(ROOT / "src/likeness", tmp_path / "src/likeness", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/schema").symlink_to(ROOT / "data/schema")
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    dvc(tmp_path, "init", "--no-scm", "-q")
    return tmp_path


def dvc(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "DVC_NO_ANALYTICS": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    command = [sys.executable, "-m", "dvc", *words]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def rerun(folder: Path, content: dict[str, Any]) -> set[str]:
    """The stages that run with another params.yaml, or another package. The first runs every time."""
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    return {line.split("'")[1] for line in dvc(folder, "repro").splitlines() if line.startswith("Running stage")}


@pytest.mark.process
def test_missing_keys_have_their_defaults_and_another_method_needs_no_section(folder: Path) -> None:
    shipped = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert rerun(folder, shipped) == set(STAGES)
    few = {key: shipped[key] for key in ("method", "privacy", "ingest", "sample", "marginals")}
    assert rerun(folder, few) == {"settings"}
    del few["marginals"]  # whose file says more than the defaults: new projects have better values
    assert yaml.safe_load((folder / ProjectPaths.settings).read_text())["evaluate"] == shipped["evaluate"]
    question = {"plan", "categories", "auxiliary", "privatize", "train", "card", "account"}
    assert rerun(folder, {**few, "method": "hp"}) == {"settings", *question}
    few |= {"method": "hp", "hp": {"train": {"iterations": 5}}}
    assert rerun(folder, few) == {"settings", "train", "account"}
    assert rerun(folder, {**few, "pearl": {"train": {"iterations": 5}}}) == {"settings"}  # of no method in use
    assert dvc(folder, "status") == "settings:\n\talways changed\n"
    with (folder / "src/likeness/generators/training.py").open("a") as module:
        module.write("# of another version\n")
    assert rerun(folder, few) == {"settings", "train", "sample", "account"}
