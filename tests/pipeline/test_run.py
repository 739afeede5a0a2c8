"""`likeness run` and `compare` on a whole project."""

import json
import subprocess
import sys
from pathlib import Path

from small_project import Project


def test_run_is_the_pipeline_and_its_json_is_alone_on_standard_output(finished: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "likeness", "run", "--json"]
    done = subprocess.run(command, cwd=finished.root, env=finished.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, progress = json.loads(done.stdout), done.stderr
    assert (
        "] train: " in progress and "(up to date)" in progress and "[ 1/12] " in progress and "> python" not in progress
    )
    assert found["private"] is True and found["total"]["epsilon_rdp"] <= 1 and found["internal"]["scores"]["synthetic"]
    assert (finished.root / found["files"]["table"]).exists()
    assert finished.run("likeness", "summary", "--json") == done.stdout
    made = json.loads(finished.run("likeness", "bundle", str(tmp_path / "run.zip"), "--json"))
    assert "privacy.json" in made["files"]
    compared = json.loads(finished.run("likeness", "compare", ".", made["bundle"], "--json"))
    assert all(a == b for a, b in compared["account"].values())
    assert compared["internal"] and all(b is None for _, b in compared["internal"].values())
    tracked = json.loads(finished.bytes("reports/tracking.json"))["run_id"]
    compared = json.loads(finished.run("likeness", "compare", tracked, ".", "--json"))
    assert all(a == b for a, b in compared["account"].values())
    assert "holds no privacy account" in finished.run("likeness", "compare", "0" * 32, ".", ok=False)
    words = ("--rows", "5", "--out", str(tmp_path / "rows.csv"), "--where", "income=>50K", "--json")
    drawn = json.loads(finished.run("likeness", "sample", made["bundle"], *words))
    assert drawn["rows"] == 5 and drawn["where"] == {"income": ">50K"} and "age" in drawn["columns"]


def test_a_stage_that_fails_is_heard_and_ends_with_code_two(another: Project) -> None:
    another.set(ingest__source="nowhere.csv")
    command = [sys.executable, "-m", "likeness", "run"]
    done = subprocess.run(command, cwd=another.root, env=another.environment, capture_output=True, text=True)
    assert done.returncode == 2 and "ingest.source nowhere.csv does not exist" in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
