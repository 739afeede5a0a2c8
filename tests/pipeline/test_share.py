"""What DVC carries away: released artifacts travel, private ones stay; a colleague's clone spends nothing twice."""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from small_project import ROOT, Clone

from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger

PRIVATE = ("data/private", "reports/internal", "table.csv")


def git(root: Path, *words: str) -> str:
    own = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return subprocess.run(["git", *own, *words], cwd=root, check=True, capture_output=True, text=True).stdout


def commit_all(root: Path) -> None:
    """Everything that the project's own rules let into git; the source stays out."""
    shutil.copy(ROOT / ".gitignore", root)
    (root / ".git/info/exclude").write_text("table.csv\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "project")


def files_of(root: Path, *places: str) -> list[Path]:
    found = [path for place in places for path in [root / place, *(root / place).rglob("*")]]
    return [path for path in found if path.is_file() and path.name != ".gitignore"]  # DVC writes those


def digests(paths: list[Path], kind: str) -> set[str]:
    return {hashlib.new(kind, path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.slow
def test_released_files_are_pushed_private_ones_are_not_and_a_clone_can_draw(finished: Clone, tmp_path: Path) -> None:
    origin = Clone(tmp_path / "origin", finished.environment)
    shutil.copytree(finished.root, origin.root, symlinks=True)
    commit_all(origin.root)
    origin.run("dvc", "remote", "add", "--default", "shared", str(tmp_path / "remote"))
    git(origin.root, "commit", "--quiet", "--all", "--message", "remote")
    origin.run("dvc", "push")
    pushed = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    secret = files_of(origin.root, *PRIVATE)
    assert len(secret) > 8
    assert not digests(pushed, "sha256") & digests(secret, "sha256")
    names = {path.parent.name + path.name for path in pushed}  # the remote's objects are named by their MD5
    assert not names & digests(secret, "md5")
    row = (origin.root / "table.csv").read_bytes().splitlines()[1].rpartition(b",")[0]
    assert not [path for path in pushed if row in path.read_bytes()]
    public = ["data/released", "data/models", "data/synthetic", "reports/figures", "reports/privacy.json"]
    public += ["reports/PRIVACY_STATEMENT.md", "reports/metrics.json", "reports/index.html"]
    assert digests(files_of(origin.root, *public), "sha256") <= digests(pushed, "sha256")
    # In git: neither, although dvc.lock is there.
    tracked = git(origin.root, "ls-files").split()
    assert "dvc.lock" in tracked and not [name for name in tracked if name.startswith(PRIVATE)]

    git(tmp_path, "clone", "--quiet", str(origin.root), "clone")
    absent = {"LIKENESS_HOME": str(tmp_path / "nowhere"), "LIKENESS_ANCHOR": str(tmp_path / "no-anchor")}
    source = os.pathsep.join([str(tmp_path / "clone/src"), str(tmp_path / "clone")])
    clone = Clone(tmp_path / "clone", finished.environment | absent | {"PYTHONPATH": source})
    clone.run("dvc", "pull")
    assert not [name for name in PRIVATE if (clone.root / name).exists()]
    page = clone.bytes("reports/index.html")
    assert page == origin.bytes("reports/index.html")
    drawn = clone.run("likeness", "sample", ".", "--rows", "50", "--out", "more.csv", "--where", "income=>50K")
    assert "50 rows" in drawn and clone.bytes("more.csv").count(b">50K") == 50
    clone.run("stages.report")
    assert clone.bytes("reports/index.html") == page and not (clone.root / "reports/internal").exists()


@pytest.mark.slow
def test_an_experiment_in_a_copy_finds_source_and_ledger_and_leaves_no_row_behind(alone: Clone, tmp_path: Path) -> None:
    """`dvc exp run --temp` and the queue run in a copy that holds what git holds: not the source, not the ledger."""
    alone.set(ledger__home="own-ledger", tracking__uri="sqlite:///runs.db")
    own = {name: value for name, value in alone.environment.items() if name != "LIKENESS_HOME"}
    project = Clone(alone.root, own | {"LIKENESS_ANCHOR": str(tmp_path / "own-anchor")})
    project.environment.pop("PYTHONPATH")  # the copy's own code
    project.environment["PYTHONPATH"] = str(project.root / "src")
    project.run("likeness", "ledger", "init")
    (project.root / ".gitignore").write_text("/own-ledger/\n")
    commit_all(project.root)
    with (project.root / ".git/info/exclude").open("a") as file:
        file.write("own-ledger\n")
    project.run("dvc", "exp", "run", "--temp", "--name", "trial", "ingest")
    assert not (project.root / "data/private").exists()  # it ran elsewhere
    shown = project.run("dvc", "exp", "list", "--name-only")
    assert "trial" in shown
    left = [path for path in (project.root / ".dvc").rglob("*.parquet") if path.is_file()]
    assert not left
    reference = git(project.root, "for-each-ref", "--format=%(refname)", "refs/exps").split()
    (trial,) = [name for name in reference if name.endswith("/trial")]
    kept = git(project.root, "ls-tree", "-r", "--name-only", trial).split()
    assert "dvc.lock" in kept and not [name for name in kept if name.startswith(PRIVATE)]


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
