"""The DVC graph against the code: dependencies complete, private files at home, stages thin, digests of their code."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from reachability import ROOT, file_of, reached

from likeness.core.paths import ProjectPath, ProjectPaths
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.run_stage import script
from likeness.pipeline.tracking import TRACKING
from likeness.stages import FOLDERS, Stage, code_digests, dvc_yaml
from likeness.stages import STAGES as LISTED

STAGES = {stage.name: stage.to_dvc() for stage in LISTED}
HEAVY = ("torch", "mlflow", "prefect", "sklearn", "xgboost", "matplotlib", "autodp", "opendp", "pandas", "sqlalchemy")
# What each stage may load before it works. Everything else is loaded where it is used, or not at all.
MAY_LOAD = {
    "settings": set(),
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
# Places that a stage reaches, although DVC need not know them.
NO_DEPENDENCY = {
    "account": {"report", "private"},  # deleted where there is nothing to state; and as the plan
    "fingerprint": {"privacy"},  # of the last run
    "plan": {"private"},  # where DuckDB would spill rows, if it read some
    "evaluate": {"internal", "evaluation", "internal_metrics", "internal_report", "stages"},  # nothing of real rows
    "track": {"lock", "markers", "tracked", "private", "internal_metrics"},  # how each stage ended, which ones saw rows
}


@cache
def loaded_modules(stage: str, work: str = "") -> set[str]:
    """Modules in memory after importing a stage, and after some work, in a fresh interpreter."""
    code = f"import sys, stages.{stage}; {work}\nprint('\\n'.join(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_the_file_of_dvc_and_the_scripts_are_rendered_from_the_list() -> None:
    assert (ROOT / "dvc.yaml").read_text() == dvc_yaml(), "run: make dvc.yaml"
    scripts = {path.stem: path.read_text() for path in (ROOT / "stages").glob("*.py") if path.stem != "__init__"}
    assert scripts == {name: script(name) for name in STAGES} and [*MAY_LOAD] == [*STAGES]


def declared(name: str, *keys: str) -> list[str]:
    """Paths of a stage under some keys of dvc.yaml."""
    items = [item for key in keys for item in STAGES[name].get(key, [])]
    return [path for item in items for path in ([item] if isinstance(item, str) else item)]


@pytest.mark.process
@pytest.mark.parametrize("name", FOLDERS)
def test_digests_cover_all_of_the_library_that_a_stage_loads(name: str) -> None:
    """Modules that its import loads, and those that it may import later, inside functions."""
    folders = {line.split()[0] for line in code_digests()[name].splitlines()} - {"stage"}
    modules = loaded_modules(name) | reached(name)[0]
    for module in sorted(module for module in modules if module.startswith("likeness.")):
        path = file_of(module)
        assert path is not None
        folder = path.relative_to(ROOT / "src/likeness").parts[0]
        covered = folder in folders or module == f"likeness.stages.{name}" or path.name == "__init__.py"
        assert covered, f"{name} loads {module}, whose folder is not in FOLDERS"


@pytest.mark.process
def test_imports_inside_functions_are_seen() -> None:
    """The plan loads what checks later stages where it needs it, and no other stage does."""
    assert "likeness.preflight.downstream_checks" in reached("plan")[
        0
    ] and "likeness.preflight.downstream_checks" not in loaded_modules("plan")
    assert {name for name in STAGES if "likeness.preflight.downstream_checks" in reached(name)[0]} == {"plan"}


@pytest.mark.process
@pytest.mark.long
def test_a_stage_at_work_loads_nothing_that_it_may_not_reach(tmp_path: Path) -> None:
    """What it asks of a project is seen: the stages ahead of the method, each in an interpreter of its own."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] = {"source": "rows.csv", "schema": "schema.yaml"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "rows.csv").write_text("x,job\n" + "0.5,clerk\n0.25,nurse\n" * 500)
    job = {"kind": "categorical", "categories": "private", "other": "rest"}
    columns = {"x": {"kind": "numeric", "lower": 0, "upper": 1}, "job": job}
    schema = {"name": "staff", "source": "made up", "task": "none", "columns": columns}
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    Ledger.create(locate())
    for name in ("fingerprint", "ingest", "plan", "categories", "preprocess"):
        work = f"stages.{name}.main(Project.load(Path({str(tmp_path)!r})))"
        code = f"from pathlib import Path; from likeness.pipeline.project import Project; {work}"
        loaded = {module for module in loaded_modules(name, code) if module.startswith("likeness")}
        assert not loaded - reached(name)[0], f"{name} loads what nobody sees"


@pytest.mark.long
@pytest.mark.parametrize("name", STAGES)
def test_deps_and_outs_name_every_file_that_a_stage_touches(name: str) -> None:
    """Every place of the project's paths that its code reaches; and the schema where one is opened."""
    # A file of random bytes stands for the private files beside it.
    listed = {path.removesuffix("/done.json") for path in declared(name, "deps", "outs", "metrics", "plots")}
    names = {place.partition(".")[2] for module, place in reached(name)[1] if module == "likeness.core.paths"}
    touched = {place for place in names if isinstance(vars(ProjectPaths).get(place), ProjectPath)}
    assert touched, "no path is seen at all"
    for place in sorted(touched - NO_DEPENDENCY.get(name, set())):
        wanted = str(getattr(ProjectPaths, place))
        missing = f"{name} uses {wanted}, which dvc.yaml does not name"
        assert any(path.startswith(wanted) or wanted.startswith(f"{path}/") for path in listed), missing
    if name != "track" or "track" in TRACKING:
        reads_schema = ("likeness.pipeline.project", "Project.written_schema") in reached(name)[1]
        assert reads_schema == ("${ingest.schema}" in declared(name, "deps"))


def test_what_dvc_may_not_know_is_looked_at_every_time() -> None:
    """What follows the source or the ledger waits for a file; DVC's run cache holds accounts of a younger ledger."""
    assert {name for name, stage in STAGES.items() if stage.get("always_changed")} == {"settings", "fingerprint"}
    assert str(ProjectPaths.source) in declared("ingest", "deps")
    assert str(ProjectPaths.unstated) in declared("account", "deps")
    kept = [options for name in ("fingerprint", "account") for out in STAGES[name]["outs"] for options in out.values()]
    assert len(kept) == 4 and all(options["persist"] for options in kept)


@pytest.mark.parametrize("name", ["auxiliary", "privatize", "train"])
def test_what_question_and_generator_hang_on_makes_their_stages_run_again(name: str) -> None:
    """Both follow these settings, even where the files that went before stay as they are."""
    (watched,) = (stage.settings.split() for stage in LISTED if stage.name == name)
    assert {"method", "${method}.auxiliary", "${method}.privatize"} <= {*watched}


@pytest.mark.process
@pytest.mark.parametrize("name", STAGES)
def test_a_stage_loads_only_what_it_needs(name: str) -> None:
    modules = loaded_modules(name)
    assert {heavy for heavy in HEAVY if heavy in modules} <= MAY_LOAD[name]


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_thin_and_begins_with_its_name(name: str) -> None:
    lines = (ROOT / "src/likeness/stages" / f"{name}.py").read_text().splitlines()
    assert len(lines) <= 40 and lines[0].startswith(f'"""{name}: ')


@pytest.mark.parametrize("stage", LISTED)
def test_private_files_are_neither_cached_nor_pushed(stage: Stage) -> None:
    private = [path for path in stage.writes if str(path).startswith(("data/private", "reports/internal"))]
    assert not (private and stage.shared), f"{private} would be copied into DVC's cache"
    internal = {path for path in declared(stage.name, "deps", "outs") if path.startswith("reports/internal")}
    assert internal <= {"reports/internal/done.json"}, "dvc.lock would show hash and size of comparisons with real rows"


def test_what_follows_the_door_depends_on_nothing_private() -> None:
    for name in ("plan", "train", "sample", "account"):
        assert not [dep for dep in STAGES[name]["deps"] if dep.startswith("data/private")]


def test_no_private_input_is_hashed_by_dvc_without_a_key() -> None:
    """The source itself is no dependency: dvc.lock would publish its MD5."""
    for stage in STAGES.values():
        assert "${ingest.source}" not in stage["deps"]
        assert not [dep for dep in stage["deps"] if dep.startswith("data/raw")]


LOADS = {stage: {"core", "config", "pipeline", *folders.split()} for stage, folders in FOLDERS.items()}


def test_a_byte_changes_the_digests_of_the_stages_that_load_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC runs a stage again when its digests change: tests/pipeline/test_declared.py."""
    groups = {"methods": "wing/a", "sources": "wing/b", "tracking": "wing/c"}
    wings = {f"likeness.{group}": [tmp_path / folder] for group, folder in groups.items()}
    monkeypatch.setattr("likeness.stages.wing_folders", lambda groups: wings.get(groups[-1]))
    folders = {path.parent.name for path in (ROOT / "src/likeness").glob("*/__init__.py")}
    cases = {f"{name}/deep/module.py": {stage for stage in LOADS if name in LOADS[stage]} for name in folders}
    cases |= {f"stages/{stage}.py": {stage} for stage in LOADS} | {"wing/b/module.py": {*LOADS}}
    cases |= {"wing/a/module.py": {stage for stage in LOADS if "methods" in LOADS[stage]}, "wing/c/x.py": {"track"}}
    assert cases["generators/deep/module.py"] == {"train", "sample", "account"}  # no stage that asks
    assert not {case for case in cases if case.startswith(("cli/", "verify/", "bundle/", "flows/")) and cases[case]}
    for name in cases:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    before = code_digests(tmp_path)
    for name, stages in cases.items():
        (tmp_path / name).write_text("#")
        assert {stage for stage, digests in code_digests(tmp_path).items() if digests != before[stage]} == stages, name
        (tmp_path / name).write_text("")
    (tmp_path / "core/__pycache__").mkdir()
    (tmp_path / "core/__pycache__/module.pyc").write_text("compiled")
    assert code_digests(tmp_path) == before
