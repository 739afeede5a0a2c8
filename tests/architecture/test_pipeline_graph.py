"""The DVC graph against the code: dependencies complete, private files at home, stages thin."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
HEAVY = ("torch", "mlflow", "prefect", "sklearn", "xgboost", "matplotlib", "autodp", "opendp", "pandas", "sqlalchemy")
# What each stage may load before it works. Everything else is loaded where it is used, or not at all.
MAY_LOAD = {
    "fingerprint": {"pandas"},
    "ingest": {"pandas"},
    "plan": set(),
    "categories": {"sqlalchemy", "pandas"},
    "preprocess": {"pandas"},
    "auxiliary": {"torch", "sqlalchemy", "pandas"},
    "privatize": {"torch", "sqlalchemy", "pandas"},
    "train": {"torch"},
    "sample": {"torch", "pandas"},
    "evaluate": {"pandas", "sklearn", "xgboost", "matplotlib"},
    "account": {"sqlalchemy"},
    "report": {"matplotlib", "pandas", "sklearn"},
    "track": set(),
}


def loaded_modules(stage: str) -> set[str]:
    """Modules in memory after importing a stage, in a fresh interpreter."""
    code = f"import sys, stages.{stage}; print('\\n'.join(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def outputs(stage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for item in [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]:
        found.update(item if isinstance(item, dict) else {item: {}})
    return found


def test_every_stage_has_its_script_and_every_script_its_stage() -> None:
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")} - {"__init__"}
    assert scripts == set(STAGES) == set(MAY_LOAD)


@pytest.mark.parametrize("name", STAGES)
def test_deps_name_all_of_the_library_that_a_stage_loads(name: str) -> None:
    dependencies = [Path(dep) for dep in STAGES[name]["deps"]]
    modules = loaded_modules(name)
    for module in sorted(module for module in modules if module.startswith("likeness.")):
        path = Path("src", *module.split("."))
        file = path.with_suffix(".py") if (ROOT / path.with_suffix(".py")).exists() else path / "__init__.py"
        covered = any(file == dep or file.is_relative_to(dep) or file.parent == dep for dep in dependencies)
        assert covered or file.name == "__init__.py", f"{name} loads {file}, which dvc.yaml does not name"
    for dependency in dependencies:
        if dependency.is_relative_to("src") or dependency.is_relative_to("stages"):
            assert (ROOT / dependency).exists(), f"{name} names {dependency}, which does not exist"


@pytest.mark.parametrize("name", ["auxiliary", "privatize", "train"])
def test_what_question_and_generator_hang_on_makes_their_stages_run_again(name: str) -> None:
    """Both follow these settings, even where the files that went before stay as they are."""
    assert {"method", "${method}.auxiliary", "${method}.privatize"} <= set(STAGES[name]["params"])


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_loads_only_what_it_needs(name: str) -> None:
    modules = loaded_modules(name)
    assert {heavy for heavy in HEAVY if heavy in modules} <= MAY_LOAD[name]


@pytest.mark.parametrize("name", STAGES)
def test_stages_are_thin_and_say_what_they_read_write_and_spend(name: str) -> None:
    lines = (ROOT / "stages" / f"{name}.py").read_text().splitlines()
    assert len(lines) <= 40
    docstring = "\n".join(lines[:8])
    assert all(word in docstring for word in ("Reads:", "Writes:", "Spends:"))


@pytest.mark.parametrize("name", STAGES)
def test_private_files_are_neither_cached_nor_pushed(name: str) -> None:
    for path, options in outputs(STAGES[name]).items():
        if path.startswith(("data/private", "reports/internal")):
            assert options.get("cache") is False, f"{path} would be copied into DVC's cache"


def test_what_follows_the_door_depends_on_nothing_private() -> None:
    for name in ("plan", "train", "sample", "account"):
        assert not [dep for dep in STAGES[name]["deps"] if dep.startswith("data/private")]


def test_no_private_input_is_hashed_by_dvc_without_a_key() -> None:
    """The source itself is no dependency: dvc.lock would publish its MD5."""
    for stage in STAGES.values():
        assert "${ingest.source}" not in stage["deps"]
        assert not [dep for dep in stage["deps"] if dep.startswith("data/raw")]
