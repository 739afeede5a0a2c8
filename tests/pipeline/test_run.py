"""`likeness run` on a whole project."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_project import Clone

from likeness.cli import app as cli

FEW = ("settings", "ingest", "account")  # each takes a process of DVC's: tests/orchestration shows that all are started


@pytest.fixture
def few_stages(finished: Clone) -> Iterator[Clone]:
    """The finished project with some of its stages; two of them run every time."""
    path = finished.root / "dvc.yaml"
    shipped = path.read_text()
    stages = yaml.safe_load(shipped)["stages"]
    path.write_text(yaml.safe_dump({"stages": {name: stages[name] for name in FEW}}))
    yield finished
    path.write_text(shipped)


def test_run_is_the_pipeline_and_its_json_is_alone_on_standard_output(
    few_stages: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> Any:
        """What a command prints on standard output, as JSON; in this process, which has loaded everything already."""
        monkeypatch.setattr(sys, "argv", ["likeness", *words, "--json"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        assert not end.value.code, captured.err
        return json.loads(captured.out)

    finished, command = few_stages, [sys.executable, "-m", "likeness", "run", "--json"]
    done = subprocess.run(command, cwd=finished.root, env=finished.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, progress = json.loads(done.stdout), done.stderr
    assert "2 of 3 stages were up to date" in progress
    assert "Running stage" not in progress and "didn't change" not in progress
    assert found["private"] is True and found["total"]["epsilon"] <= 1 and found["internal"]["scores"]["synthetic"]
    assert "details" not in found["internal"]
    assert (finished.root / found["files"]["table"]).exists()
    monkeypatch.chdir(finished.root)
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR", "LIKENESS_MLFLOW_URI"):
        monkeypatch.setenv(name, finished.environment[name])
    assert told("summary") == found
    made = told("bundle", str(tmp_path / "run.zip"))
    assert "privacy.json" in made["files"]
    words = ("--rows", "5", "--out", str(tmp_path / "rows.csv"), "--where", "income=>50K")
    drawn = told("sample", made["bundle"], *words)
    assert drawn["rows"] == 5 and drawn["where"] == {"income": ">50K"} and "age" in drawn["columns"]


def test_a_stage_that_fails_is_heard_and_ends_with_code_two(alone: Clone) -> None:
    alone.set(ingest__source="nowhere.csv")
    command = [sys.executable, "-m", "likeness", "run"]
    done = subprocess.run(command, cwd=alone.root, env=alone.environment, capture_output=True, text=True)
    assert done.returncode == 2 and "ingest.source nowhere.csv does not exist" in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
