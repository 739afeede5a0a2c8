"""A kill in the middle of a write leaves DVC's own files cut short; runs go on without them."""

from pathlib import Path

import pytest
import yaml
from small_project import Clone

from likeness.pipeline.dvc_repair import dvc_environment, set_aside

LOCK = {"schema": "2.0", "stages": {"plan": {"cmd": "python -m stages.plan", "outs": [{"path": "a", "md5": "b"}]}}}
WHOLE = yaml.safe_dump(LOCK)


def folder(tmp_path: Path, lock: str, rwlock: str) -> Path:
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    (tmp_path / "dvc.lock").write_text(lock)
    (tmp_path / ".dvc/tmp/rwlock").write_text(rwlock)
    return tmp_path


def test_whole_files_stay_and_the_lock_comes_back(tmp_path: Path) -> None:
    assert set_aside(tmp_path, 0) == []
    root = folder(tmp_path, WHOLE, '{"read": {}}')
    assert set_aside(root, 0) == []
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["dvc.lock", "dvc.lock", "rwlock"]
    (root / "dvc.lock").write_text("")  # and a cut one becomes what it was
    assert set_aside(root, 0) == [
        "A kill cut dvc.lock short, or a hand changed it. It is dvc.lock.cut now. Stages that ended meanwhile run "
        "again and spend nothing."
    ]
    assert (root / "dvc.lock").read_text() == WHOLE
    for name in ("dvc.lock", ".likeness/dvc.lock"):  # a copy that is cut too comes not back
        (root / name).write_text("x")
    assert set_aside(root, 0) and not (root / "dvc.lock").exists()


CUT = {
    "empty": "",
    "word": "schema",
    "stage": "schema: '2.0'\nstages:\n  plan:\n    out",
    "quote": "schema: '2",
    "zero": "\0",
    "renamed": WHOLE.replace("outs", "outz"),
    "nameless": WHOLE.replace("path", "paht"),
}


@pytest.mark.parametrize("lock", CUT.values(), ids=CUT)
@pytest.mark.parametrize("rwlock", ["", '{"read": {', "[]", '{"x": 1}'], ids=["empty", "cut", "list", "other"])
def test_cut_files_are_renamed_and_told(tmp_path: Path, lock: str, rwlock: str) -> None:
    root = folder(tmp_path, lock, rwlock)
    told = set_aside(root, 0)
    assert [line.split()[3] for line in told] == ["dvc.lock", ".dvc/tmp/rwlock"]
    assert (root / "dvc.lock.cut").read_text() == lock and (root / ".dvc/tmp/rwlock.cut").read_text() == rwlock
    assert not (root / "dvc.lock").exists() and not (root / ".dvc/tmp/rwlock").exists()


def test_pickles_of_dvc_lie_where_no_other_user_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DVC_SITE_CACHE_DIR", raising=False)
    (tmp_path / ".dvc").mkdir()
    site = Path(dvc_environment(tmp_path)["DVC_SITE_CACHE_DIR"])
    assert site == tmp_path / ".dvc/tmp/site" and site.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", "elsewhere")
    assert dvc_environment(tmp_path)["DVC_SITE_CACHE_DIR"] == "elsewhere"


def test_a_file_that_is_being_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path, "", "{}")
    monkeypatch.setattr(
        "likeness.pipeline.dvc_repair.time.sleep", lambda seconds: (root / "dvc.lock").write_text(WHOLE)
    )
    assert set_aside(root) == []


def test_a_run_goes_on_where_dvc_alone_would_not(alone: Clone) -> None:
    (alone.root / ".dvc/tmp/rwlock").write_text("")
    (alone.root / "dvc.lock").write_text("")
    told = alone.repro("fingerprint", ok=False)  # if this goes well one day, DVC mends its files itself
    assert "validation failed" in told
    dvc_yaml = alone.root / "dvc.yaml"  # so that the run ends with its first stage
    dvc_yaml.write_text(dvc_yaml.read_text().replace("cmd: python -m stages.settings", "cmd: python -m nowhere"))
    told = alone.start("likeness", "run", ok=False)
    assert told.count("A kill cut ") == 2 and "settings: it failed. Run it alone to see why" in told
