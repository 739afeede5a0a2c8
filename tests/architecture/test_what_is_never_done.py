"""No file format that runs code, no path written twice, and private folders that only their owner may enter."""

import ast
import os
import re
from pathlib import Path

import pytest

from likeness.core.errors import BudgetError, DataError, LedgerError, LikenessError
from likeness.core.files import make_private_folder
from likeness.core.paths import ProjectPaths
from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger
from likeness.pipeline import run_stage as stage
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "stages", "flows", "evidence", "scripts", "tests/campaigns")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
DAG = ("stages", "flows")
PLACE = re.compile(r"(data|reports|sweeps|\.likeness|\.dvc)(/\S*)?|params\.yaml|dvc\.(yaml|lock)")


def places(source: str) -> list[str]:
    """Where a source writes a path of a project by itself. A message may name one between other words."""
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    texts = [node for node in texts if isinstance(node.value, str) and PLACE.fullmatch(node.value.strip("/"))]
    return [f"line {node.lineno}: {node.value}" for node in texts if "/" in node.value or "." in node.value]


@pytest.mark.parametrize("source", ["'params.yaml'", "f'{root}/data/plan/plan.json'", "Path('reports/x.html')"])
def test_a_path_is_seen(source: str) -> None:
    assert places(source) and not places("f'{x} is missing in data/plan. Run: dvc repro'; x['data']")


@pytest.mark.long
def test_every_path_of_a_project_is_written_once() -> None:
    """In ``core/paths.py``: every file lies below the root of its project, whatever the current directory is."""
    files = [path for path in FILES if path.is_relative_to(ROOT / "src/likeness") or path.parent.name in DAG]
    sources = {str(path.relative_to(ROOT)): places(path.read_text()) for path in files}
    assert {name: places for name, places in sources.items() if places}.keys() == {"src/likeness/core/paths.py"}


def test_no_argument_asks_for_pickle() -> None:
    """Ruff refuses the modules and functions that write or read it."""
    asked = re.compile(r"allow_pickle(?!=False)|to_pickle|__import__")
    assert len(FILES) > 100 and [path for path in FILES if asked.search(path.read_text())] == []


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_private_folders_are_for_their_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask, and also where the folder was there before with another mode."""
    before = os.umask(0)
    try:
        made = tmp_path / "made"
        make_private_folder(made)
        there = tmp_path / "there"
        there.mkdir(mode=0o777)
        make_private_folder(there)
        home = Home(tmp_path / "ledger", tmp_path / "anchor")
        Ledger.create(home)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())

        def broken(project: Project) -> None:
            raise RuntimeError("Xq7Secret")

        with pytest.raises(SystemExit):
            stage.run_stage("broken", broken)
    finally:
        os.umask(before)
    folders = [made, there, home.path, home.releases, home.staging, home.locks]
    folders += [tmp_path / "data/private", tmp_path / "data/private/errors"]
    assert {str(path): oct(mode(path)) for path in folders if mode(path) != 0o700} == {}
    files = [home.database, home.key_file, tmp_path / "data/private/errors/broken.txt"]
    assert {str(path): oct(mode(path)) for path in files if mode(path) != 0o600} == {}


def test_a_stage_begins_again_after_a_broken_connection_and_after_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("likeness.core.retry.time.sleep", lambda _: None)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    errors: list[LikenessError] = [DataError("cut"), LedgerError("cut")]
    for error in errors:
        error.transient = True

    def main(_: Project) -> None:
        if errors:
            raise errors.pop()

    stage.run_stage("s", main)
    assert not errors
    errors += [BudgetError("over"), BudgetError("over")]
    with pytest.raises(SystemExit):
        stage.run_stage("s", main)
    failed = ProjectPaths.markers / "s.failed"
    assert len(errors) == 1 and failed.exists()
    errors.clear()
    stage.run_stage("s", main)
    assert not failed.exists()


def test_a_full_disk_is_told_in_plain_words_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import errno
    import sqlite3

    from sqlalchemy.exc import IntegrityError, OperationalError

    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    statement, values = "INSERT INTO records", ("Xq7Secret",)
    cases: list[tuple[Exception, int, str]] = [
        (OSError(errno.ENOSPC, "No space left on device", "from/x", None, "to/x"), 2, "s: to/x cannot be read"),
        (OSError(errno.ENOSPC, "No space left on device", "ledger/x"), 2, "ledger/x cannot be read or"),
        (OSError(errno.EROFS, "Read-only file system"), 2, "a file cannot be read or written (Read-only file system)"),
        (OperationalError(statement, values, sqlite3.OperationalError("database or disk is full")), 2, "disk is full"),
        (IntegrityError(statement, values, sqlite3.IntegrityError("Xq7Secret")), 3, "unexpected IntegrityError"),
        (OSError(errno.EINVAL, "Xq7Secret"), 3, "unexpected OSError"),
        (ValueError("Xq7Secret"), 3, "unexpected ValueError"),
    ]
    for error, code, told in cases:

        def fail(project: Project, error: Exception = error) -> None:
            raise error

        with pytest.raises(SystemExit) as ended:
            stage.run_stage("s", fail)
        output = capsys.readouterr()
        assert ended.value.code == code and told in output.err
        assert "Xq7Secret" not in output.err + output.out and "Traceback" not in output.err
    assert (tmp_path / "data/private/errors/s.txt").exists()

    def fill(path: Path, text: str) -> None:
        raise cases[0][0]

    monkeypatch.setattr(stage, "write_privately", fill)
    for error, code, told in cases[:1] + cases[-1:]:  # nor has the disk room for what happened
        failure = stage.perform_stage("s", lambda _, error=error: fail(_, error), tmp_path)  # type: ignore[misc]
        assert failure is not None and failure.code == code and told in failure.message
