"""Each stage with what dvc.yaml declares and nothing else; and which stages DVC runs again for other settings.

The stages of a run in one process: DVC finds what it would have written itself, however the run ends.
"""

import contextlib
import dataclasses
import io
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import pytest
import yaml
from dvc.cli import main
from dvc.repo import Repo
from pytest import MonkeyPatch
from small_project import ROOT, Clone, write_settings

from likeness.config import params
from likeness.config.load import load_params
from likeness.core.paths import ProjectPaths, read_json
from likeness.flows.reproduce import ended_by_signals, reproduce
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.methods.marginals.method import Marginals
from likeness.pipeline import provenance
from likeness.pipeline.project import Project
from likeness.stages import FOLDERS

STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
SCHEMA: dict[str, Any] = {
    "name": "staff",
    "source": "made up",
    "task": "classification",
    "label": "sick",
    "columns": {
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "job": {"kind": "categorical", "categories": "private", "other": "rest"},
        "sick": {"kind": "categorical", "categories": ["no", "yes"]},
    },
}
SECTIONS: dict[type, str] = {
    params.Params: "", params.Privacy: "privacy.", params.LedgerSettings: "ledger.", params.Ingest: "ingest.",
    params.Train: "train.", params.Sample: "sample.", params.Evaluate: "evaluate.", params.Categories: "categories.",
    Marginals: "${method}.",
}  # fmt: skip
_OPENS = {"ledger.home", "ledger.url"}  # the ledger is no file of DVC
_SPENDS = {*_OPENS, "ledger.cap", "categories.delta_share"}  # these only refuse
_SEED = {"train.seed"}  # among the public facts of a recipe; only the training draws by it
_UNIT = {"ingest.unit", "privacy.series"}  # only asked whether people have a column, which no schema has
HARMLESS: dict[str, set[str]] = {
    "fingerprint": {"privacy.population", "privacy.adjacency"},  # refuse another ledger, and folders
    "ingest": _OPENS,
    "plan": {*_OPENS, *_SEED, "ledger.attempt"},  # refuse another recipe
    "categories": _SPENDS,
    "preprocess": _UNIT,
    "auxiliary": {*_SPENDS, *_SEED},
    "privatize": {*_SPENDS, *_SEED},
    "train": {*_OPENS, *_UNIT},
    "sample": _UNIT,
    "evaluate": _UNIT,
    "account": _SEED,
    "report": _UNIT,
}
"""Settings that a stage reads, although its outputs do not hang on them."""


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """The folder where the run grows: settings and schema of a small table."""
    folder = tmp_path / "whole"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Ledger.create(locate())
    draw, rows = np.random.default_rng(0), 1_000
    table = {
        "x": draw.random(rows),
        "job": draw.choice(["clerk", "nurse"], rows),
        "sick": draw.choice(["no", "yes"], rows),
    }
    pd.DataFrame(table).to_csv(tmp_path / "staff.csv", index=False)
    Path("schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] |= {
        "source": str(tmp_path / "staff.csv"),
        "schema": "schema.yaml",
        "split": {"test_fraction": 0.3},
    }
    content["marginals"]["privatize"]["bins"] = 4
    content["marginals"]["train"] |= {"iterations": 5, "num_components": 5}
    content["sample"]["rows"] = 100
    write_settings(content, {"evaluate__classifiers": ["decision_tree"]})
    return folder


def paths(stage: dict[str, Any], *keys: str) -> list[str]:
    items = [item for key in keys for item in stage.get(key, [])]
    named = [path for item in items for path in ([item] if isinstance(item, str) else item)]
    return [path.replace("${ingest.schema}", "schema.yaml") for path in named]


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def written(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def watch(monkeypatch: MonkeyPatch, seen: set[str]) -> None:
    """Note every setting that is read, as dvc.yaml would name it."""
    for owner, section in SECTIONS.items():
        keys = {field.name: f"{section}{field.name}" for field in dataclasses.fields(owner)}

        def read(self: Any, name: str, keys: dict[str, str] = keys) -> Any:
            if name in keys:
                seen.add(keys[name])
            return object.__getattribute__(self, name)

        monkeypatch.setattr(owner, "__getattribute__", read)
    monkeypatch.setattr(provenance, "public_settings", lambda _: {})  # the ledger notes all of them


def covered(key: str, names: list[str]) -> bool:
    """Whether a setting, a section of it, or a part of it is declared."""
    return any(f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.") for name in names)


def test_a_stage_needs_reads_and_writes_what_dvc_yaml_says(
    whole: Path, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    """All stages but ``track``, whose files test_pipeline_graph compares."""
    seen: set[str] = set()
    watch(monkeypatch, seen)
    sections = {key.removesuffix(".") for key in SECTIONS.values()} | {"schedule", "tracking", "sections"}
    for name, stage in STAGES.items():
        if name == "track":
            continue
        folder = tmp_path / name
        # A file of random bytes stands for the private files beside it.
        listed = [path.removesuffix("/done.json") for path in paths(stage, "deps")]
        given = ["params.yaml", *(path for path in listed if not path.startswith(("src/", "stages/")))]
        for path in given:
            copy(whole / path, folder / path)
        before, outputs = written(folder), paths(stage, "outs", "metrics", "plots")
        with contextlib.chdir(folder):
            settings = load_params()
            seen.clear()
            import_module(f"stages.{name}").main(Project(Path(), settings))
            read = seen - sections - HARMLESS.get(name, set()) - {"ingest.schema"}  # a path among the deps
        declared = [key for item in stage.get("params", []) for key in item[str(ProjectPaths.settings)]]
        whole_file = "params.yaml" in paths(stage, "deps")
        undeclared = [key for key in sorted(read) if not (whole_file or covered(key, declared))]
        assert not undeclared, f"{name} reads settings that dvc.yaml does not name"
        private = [Path(path).parent for path in outputs if path.endswith("/done.json")]
        places = [*outputs, *private, ProjectPaths.internal]
        stray = [path for path in written(folder) - before if not any(path.is_relative_to(out) for out in places)]
        assert not stray, f"{name} writes files that dvc.yaml does not name"
        for path in outputs:
            assert (folder / path).exists(), f"{name} does not write {path}"
        for path in {*outputs} - {f"{path}/done.json" for path in private} | {*private}:
            copy(folder / path, whole / path)
    assert math.isfinite(read_json(ProjectPaths.privacy)["total"]["epsilon"])


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
    settings = yaml.safe_load((folder / ProjectPaths.settings).read_text())
    assert settings["evaluate"] == shipped["evaluate"]
    assert "uri" not in settings["tracking"]  # which may hold a password
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


RUN = ("likeness", "run", "--without", "evaluate")
# A child for each attempt, which has loaded everything already. After each stage, before DVC records it, it dies once.
KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from likeness.cli.app import main
from likeness.flows import reproduce
from likeness.stages import FOLDERS

for stage in ("settings", *FOLDERS):
    import_module(f"likeness.stages.{stage}")
perform, argv, starts = reproduce.perform_stage, ["likeness", "run", "--without", "evaluate"], 0

def dies(name, main, root):
    failure, mark = perform(name, main, root), Path(f"{name}.died")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return failure

reproduce.perform_stage, sys.argv, status = dies, argv, 1
while status:
    starts += 1
    if not (child := os.fork()):
        main()
    _, status = os.waitpid(child, 0)
print("starts", starts)
"""


def check_record(project: Clone) -> None:
    """The lock file is what DVC writes over the same files, and DVC finds nothing out of date."""
    lock = project.bytes("dvc.lock")
    with project.here():
        repository = Repo(".")
        assert set(repository.status()) == {"settings", "fingerprint", "evaluate", "track"}
        for stage in yaml.safe_load(lock)["stages"]:
            repository.commit(stage, force=True)
    assert project.bytes("dvc.lock") == lock


def test_a_run_starts_no_process_and_dvc_finds_its_own_record(alone: Clone) -> None:
    with patch.object(subprocess, "Popen", wraps=subprocess.Popen) as started:
        told = alone.run(*RUN)
    assert {call.args[0][0] for call in started.call_args_list} <= {"git", "uname"}
    assert "0 of 12 stages were up to date" in told
    check_record(alone)
    assert "10 of 12 stages were up to date" in alone.run(*RUN)
    check_record(alone)


@pytest.mark.slow
def test_a_run_that_is_killed_after_each_stage_releases_once_and_ends_with_the_same_record(alone: Clone) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=alone.root, env=alone.environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "starts 13", done.stderr[-2000:]
    check_record(alone)
    with alone.here():
        kinds = [record.kind for record in Ledger.open(locate()).records()]
    assert kinds.count("reserve") == kinds.count("commit") == 7


def test_a_stage_with_another_command_or_script_is_a_process(alone: Clone) -> None:
    with (alone.root / "stages/settings.py").open("a") as file:
        file.write("print('a script of our own')\n")
    assert "a script of our own" in alone.run(*RUN, "--without", "fingerprint")


def test_an_error_that_quotes_a_cell_shows_its_type_and_place_only(alone: Clone, monkeypatch: MonkeyPatch) -> None:
    quotes = Mock(side_effect=ValueError("cell 7f3e9"))
    monkeypatch.setattr("likeness.stages.settings.main", quotes)
    told = alone.run(*RUN, ok=False)
    assert "settings: unexpected ValueError at mock.py:" in told and "7f3e9" not in told
    assert "cell 7f3e9" in alone.bytes("data/private/errors/settings.txt").decode()
    shown = b"".join(
        path.read_bytes() for path in alone.root.rglob("*") if path.is_file() and "private" not in str(path)
    )
    assert b"7f3e9" not in shown


@pytest.fixture
def ended_by_sigterm() -> Iterator[None]:
    """Signals are as in a new process: after the first one, a process that it ends ignores the next."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


class Ended(BaseException):
    """As Prefect raises at SIGTERM: it has no argument without a name."""

    def __init__(self, *, signal: int) -> None:
        super().__init__()


@pytest.mark.usefixtures("ended_by_sigterm")
@pytest.mark.parametrize("ends", [lambda: os.kill(os.getpid(), signal.SIGTERM), Mock(side_effect=Ended(signal=15))])
def test_a_signal_that_meets_an_error_of_a_stage_shows_nothing_of_it(
    alone: Clone, monkeypatch: MonkeyPatch, ends: Callable[[], None]
) -> None:
    def stopped(_: object) -> None:
        try:
            raise ValueError("cell 7f3e9")
        except ValueError:
            ends()
            time.sleep(60)

    monkeypatch.setattr("likeness.stages.settings.main", stopped)
    with alone.here(), ended_by_signals(), pytest.raises((SystemExit, Ended)) as stop:
        reproduce(Path(), "settings", print)
    assert "7f3e9" not in "".join(traceback.format_exception(stop.value))


def test_a_project_runs_from_any_working_folder(alone: Clone, tmp_path: Path) -> None:
    """Also from another project: DVC by itself takes the stages of the working folder."""
    shutil.copytree(alone.root, tmp_path / "other", symlinks=True)
    for folder in (tmp_path, tmp_path / "other"):
        with alone.here(), contextlib.chdir(folder):
            assert reproduce(alone.root, "settings", print).ending == "Ran"
    assert (alone.root / "data/plan/settings.yaml").exists() and not (tmp_path / "other/data/plan").exists()


def test_a_stage_that_a_library_ends_has_failed(alone: Clone, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.stages.settings.main", lambda _: sys.exit())
    assert "settings: unexpected SystemExit" in alone.run(*RUN, ok=False)


@pytest.mark.usefixtures("ended_by_sigterm")
def test_a_stage_that_takes_too_long_or_gets_a_signal_ends(alone: Clone, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.stages.settings.main", lambda _: time.sleep(60))
    with alone.here():
        outcome = reproduce(Path(), "settings", print, timeout=0.5)
    assert outcome.ending == "Failed" and outcome.message.startswith("settings: stopped after 0.5 s.")
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with alone.here() as output, patch.object(sys, "argv", list(RUN)), pytest.raises(SystemExit, match="143"):
        import_module("likeness.cli.app").main()
    assert "Nothing is lost: finished stages and releases stay" in output.getvalue()
