"""A colleague's clone: it draws and reports without rows and ledger, and no second ledger spends on the same people."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_project import Clone
from test_share import commit_all, git

from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger

PUBLIC = ("sample", "account", "report")
PAGES = ("reports/privacy.json", "reports/PRIVACY_STATEMENT.md", "reports/index.html")


@pytest.fixture
def clone(finished: Clone, tmp_path: Path) -> Clone:
    """A git clone of a finished project after ``dvc pull``, on a machine without its ledger."""
    origin, remote = Clone(tmp_path / "origin", finished.environment), tmp_path / "remote"
    shutil.copytree(finished.root, origin.root, symlinks=True)
    with (origin.root / ".dvc/config").open("a") as file:
        file.write(f"[core]\n    remote = shared\n['remote \"shared\"']\n    url = {remote}\n")
    commit_all(origin.root)
    origin.start("dvc", "push", "--quiet")
    git(tmp_path, "clone", "--quiet", str(origin.root), "clone")
    root = tmp_path / "clone"
    places = {name: str(tmp_path / "machine" / name) for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    source = {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    return Clone(root, finished.environment | places | source)


def test_a_clone_spends_nothing_and_says_where_rows_and_ledger_are(clone: Clone, finished: Clone) -> None:
    first = json.loads(finished.bytes("reports/privacy.json"))["ledger"]["id"]
    assert "dvc.lock shows a run" in clone.run("likeness", "ledger", "init", ok=False)  # before the pull
    clone.start("dvc", "pull", "--quiet")
    before = {page: clone.bytes(page) for page in PAGES}
    told = clone.repro(ok=False)
    assert "ingest.source table.csv does not exist" in told and "The rows are elsewhere" in told and first in told
    assert "Ask 'test', who committed dvc.lock" in told and "stages.report" in told
    assert "Traceback" not in told and "ledger init" not in told
    for name in PUBLIC:
        clone.run(f"stages.{name}")
    assert {page: clone.bytes(page) for page in PAGES} == before
    clone.run("likeness", "summary")
    assert "Run: likeness run" in clone.run("stages.evaluate", ok=False)
    clone.set(sample__seed=7)
    clone.run("stages.sample")
    assert "dvc checkout" in clone.run("stages.account", ok=False)  # the account is of another table

    (clone.root / "table.csv").write_bytes(finished.bytes("table.csv"))
    assert first in clone.run("likeness", "ledger", "init", "--if-absent", ok=False)
    home = Home(Path(clone.environment["LIKENESS_HOME"]), Path(clone.environment["LIKENESS_ANCHOR"]))
    ledger = Ledger.create(home)  # as a person does in a folder that is no project
    for words in (["likeness", "run"], ["stages.fingerprint"], ["stages.auxiliary"], ["stages.privatize"]):
        assert first in clone.run(*words, ok=False), words
    assert [record.kind for record in ledger.records()] == ["genesis"]


def test_whoever_moves_the_ledger_goes_on(finished: Clone, tmp_path: Path) -> None:
    places = {name: tmp_path / "machine" / name for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    shutil.copytree(finished.environment["LIKENESS_HOME"], places["LIKENESS_HOME"])
    moved = replace(finished, environment=finished.environment | {name: str(path) for name, path in places.items()})
    assert "ledger reanchor HEAD" in moved.run("likeness", "ledger", "verify", ok=False)
    head = finished.run("likeness", "ledger", "verify").split()[-1]
    moved.run("likeness", "ledger", "reanchor", head)
    moved.run("stages.fingerprint")
