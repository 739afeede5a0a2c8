"""Bundle and verifier: nothing private inside, everything recomputed. Lying bundles are in test_lies.py."""

import json
from pathlib import Path

import pytest
from small_project import QUERIES, Clone
from typer.testing import CliRunner

from likeness.bundle import contents as bundle
from likeness.bundle.files import Bundle, open_bundle
from likeness.cli.app import app
from likeness.core.errors import ArtifactError
from likeness.pipeline.datasets.table import Table
from likeness.verify import verify
from likeness.verify.checks import CHECKS

NOT_VERIFYING = ("opendp", "matplotlib", "sqlglot", "contourpy", "cycler", "fontTools", "kiwisolver", "pyparsing")


@pytest.fixture(scope="module")
def whole(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the finished run."""
    target = tmp_path_factory.mktemp("bundles") / "bundle"
    assert "Verify it anywhere" in finished.run("likeness", "bundle", "--open-others", str(target))
    return target


@pytest.mark.long
def test_a_bundle_is_right_and_holds_nothing_private(
    finished: Clone, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NOT_VERIFYING:  # the checks run in a process that searches packages where this one does
        (tmp_path / f"{name}.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["verify", "--retrain", "--json", "--page", str(page), str(whole)])
    assert done.exit_code == 0 and [check["name"] for check in json.loads(done.stdout)] == list(CHECKS)
    assert "verdict: everything was recomputed and is right" in done.stderr
    assert all(f'<h2 id="{part}">' in page.read_text() for part in ("what", "columns", "rows", "account"))
    names = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    assert names == {*bundle.always(Table.outputs), *(f"released/{query}.safetensors" for query in QUERIES)}
    everything = b"".join((whole / name).read_bytes() for name in names)
    assert b"table.csv" not in everything and str(finished.root).encode() not in everything
    assert (whole / "README.md").read_text().startswith("---\npretty_name:")


def test_the_same_run_gives_the_same_zip_file(finished: Clone, whole: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.zip", "b.zip")]
    for path in paths:
        finished.run("likeness", "bundle", "--open-others", str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with open_bundle(paths[0]) as folder:
        assert all(path.read_bytes() == (whole / path.relative_to(folder)).read_bytes() for path in folder.rglob("*.*"))
    assert "exists" in finished.run("likeness", "bundle", str(paths[0]), ok=False)


def test_an_account_is_checked_without_the_library_of_noise(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("likeness.pipeline.account.version")
    assert "all keys agree" in CHECKS["account"](Bundle(whole))


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not exist"):
        verify(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("no zip file")
    with pytest.raises(ArtifactError, match="neither a folder nor a zip file"):
        verify(tmp_path / "text.zip")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert [check.passed for check in verify(empty)] == [False, *[None] * (len(CHECKS) - 1)]
    (empty / "params.yaml").touch()
    with pytest.raises(ArtifactError, match="is a project, no bundle"):
        verify(empty)
