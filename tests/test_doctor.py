"""``likeness doctor`` names each place of a project that is wrong, and the remedy."""

import os
import shutil
from base64 import b64decode
from collections import namedtuple
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from dvc.fs import LocalFileSystem
from dvc.rwlock import rwlock
from pytest import MonkeyPatch
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.core.errors import LikenessError
from likeness.ledger.chain import anchor_path, lock_chain
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project
from likeness.preflight.doctor import _check_server, examine_places

ROOT = Path(__file__).parents[1]


def faults() -> dict[str, str]:
    return {one.place.split(" at ")[0].split(" of /")[0]: one.fault for one in examine_places(Path()) if one.fault}


@pytest.mark.parametrize("name", ["PREFECT_API_URL", "LIKENESS_MLFLOW_URI"])
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://admin:s3cret@127.0.0.1:9/api", "http://127.0.0.1:9 does not answer (ConnectionRefusedError)"),
        ("http://admin:s3cret@127.0.0.1:9/s3cret?token=s3cret", "http://127.0.0.1:9 does not answer"),
        ("http://admin:s3cret@127.0.0.1:s3cret/", "is not a URL"),
        ("http://127.0.0.1:9/s3cret s3cret", "http://127.0.0.1:9 does not answer (InvalidURL)"),
    ],
)
def test_no_secret_of_a_servers_url_is_shown(
    tmp_path: Path, monkeypatch: MonkeyPatch, name: str, url: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    Ledger.create(locate())
    monkeypatch.setenv(name, url)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1 and shown in done.output and "s3cret" not in done.output


def test_credentials_reach_the_server_in_a_header(monkeypatch: MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("urllib.request.urlopen", lambda request, timeout: asked.append(request) or closing(StringIO()))
    _check_server("LIKENESS_MLFLOW_URI", "http://ad%40min:s3cret@host:5000/mlflow")
    (request,) = asked
    assert request.full_url == "http://host:5000/mlflow"
    assert b64decode(request.get_header("Authorization").removeprefix("Basic ")) == b"ad@min:s3cret"


@pytest.mark.long
def test_each_place_that_is_wrong_is_named_with_its_remedy(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(faults()) == ["ledger"]  # no project, and no ledger on this machine
    shutil.copy(ROOT / "params.yaml", tmp_path)
    assert "likeness ledger init" in faults()["ledger"]
    Ledger.create(locate())
    assert list(faults()) == ["source"]
    source = tmp_path / Project.load().params.ingest.source
    source.parent.mkdir(parents=True, exist_ok=True)
    source.touch()
    assert CliRunner().invoke(app, ["doctor"]).exit_code == 0
    with MonkeyPatch.context() as patch:
        patch.setattr("likeness.ledger.records._now", lambda: "2025-01-01")
        assert "Set the clock" in faults()["series of nights"]
    (tmp_path / "dvc.lock").write_text("")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert {place: text.split(". ")[-1] for place, text in faults().items()} == {
        "files of DVC": "`likeness run` mends it.",
        "server of PREFECT_API_URL": "Start it, or correct PREFECT_API_URL.",
    }
    (tmp_path / "dvc.lock").unlink()
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.setattr("likeness.preflight.doctor._SECONDS", 0.1)
    with lock_chain(locate()):
        assert faults()["lock of the ledger"].startswith(f"process {os.getpid()} has held it")
    with Project.load().ledger_session.exclusive_run(0):
        assert f"end process {os.getpid()}: the lock" in faults()["lock of runs"]
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    with rwlock(str(tmp_path / ".dvc/tmp"), LocalFileSystem(), "dvc repro", [], ["a.csv"], False):
        assert f"process {os.getpid()}. .dvc/tmp/rwlock names it" in faults()["files of DVC"]
    usage = namedtuple("usage", "total used free")(10**12, 10**12, 5 * 2**20)
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: usage)
        assert faults()["disk"] == "5 MB are free, and a run needs up to 100 MB. Make room."
    anchor = anchor_path(locate().anchor, locate().location)
    whole = anchor.read_text()
    for cut in ("", whole[:40], None):  # what is said of a lost or cut anchor is done, and mends it
        anchor.unlink() if cut is None else anchor.write_text(cut)
        advice = faults()["ledger"].partition("Run: likeness ")[2].split()
        assert CliRunner().invoke(app, ["doctor"]).exit_code == 1 and advice[:2] == ["ledger", "reanchor"]
        assert CliRunner().invoke(app, advice).exit_code == 0 and anchor.read_text() == whole and not faults()


def test_who_stops_at_a_question_of_new_is_told_how_to_go_on(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        Path("data/schema/t.answers.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("likeness.cli.new.init", stopped)
    monkeypatch.setattr("likeness.cli.new.check_terminal", lambda _: None)
    (tmp_path / "t.csv").write_text("age,ward\n3,a\n")
    output = CliRunner().invoke(app, ["new", "p", "--table", "t.csv", "--label", "my ward", "--ask"]).output
    assert f"Then: cd p, likeness init {tmp_path}/t.csv --label 'my ward' --ask" in output


def test_a_project_begins_in_any_order_and_a_wrong_label_leaves_none(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("age,ward\n3,a\n4,b\n")
    start = ["new", "p", "--table", "t.csv", "--label"]
    refused = CliRunner().invoke(app, [*start, "nope"])
    assert isinstance(refused.exception, LikenessError) and not (tmp_path / "p").exists()
    begun = CliRunner().invoke(app, [*start, "ward", "--columns", "sheet.csv"])
    assert begun.exit_code == 0 and f"init {tmp_path}/t.csv --label ward --columns {tmp_path}/sheet.csv" in begun.output
    assert "ward" in (tmp_path / "sheet.csv").read_text()
    monkeypatch.chdir(tmp_path / "p")
    settings = Path("params.yaml").read_text()
    Path("params.yaml").write_text("privacy: 5\n")
    assert isinstance(CliRunner().invoke(app, ["ledger", "init"]).exception, LikenessError)
    Path("params.yaml").write_text(settings)
    assert CliRunner().invoke(app, ["ledger", "init"]).exit_code == 0  # while the population is an open question
    assert Ledger.open(locate())
