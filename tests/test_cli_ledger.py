"""The ledger's command line: who asked, witnesses, restoring and giving up, caps by scope."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likeness.cli import app as cli
from likeness.features.constant import Constant
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.witness import Witness
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import QueryShare, make_plan
from likeness.release.door import release
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset

ROOT = Path(__file__).parents[1]
ADD = Adjacency.ADD_REMOVE_ONE
FACTS = {"asked_by": "somebody", "git_commit": "0123456789abcdef", "git_changed": True, "params_sha256": "fedcba987654"}


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One release in a ledger, as a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 2.0, 1e-5)
    plan = make_plan(
        method="m",
        identity="people",
        shares=[QueryShare("q", "privatize", 1.0)],
        epsilon=1.0,
        delta=1e-5,
        adjacency=ADD,
        num_records=None,
    )
    rows = [Records(np.zeros((10, 1)), np.zeros(10, dtype=np.int64))]
    facts = {**FACTS, "likeness": "9.9", "software": {"opendp": "8.8"}}
    data = release(Query("q", "privatize", Constant()), plan, Dataset("people", "d"), ledger, lambda: rows, facts)
    path = tmp_path / "q.safetensors"
    path.write_bytes(data)
    return path


def run(*words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code, and both streams."""
    monkeypatch.setattr(sys, "argv", ["likeness", "ledger", *words])
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def stored() -> Path:
    (path,) = locate().releases.iterdir()
    return path


def test_show_says_who_asked_with_what(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run("show", monkeypatch=monkeypatch, capsys=capsys)[1]
    wanted = "by somebody  commit 0123456789ab with changes  params fedcba987654  likeness 9.9, opendp 8.8"
    assert wanted in text and "never committed" not in text


def test_witnesses_on_the_command_line(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (tmp_path / "message").write_text("Subject\n")
    assert run("witness", "--into", "message", monkeypatch=monkeypatch, capsys=capsys) == (0, "")
    line = run("witness", monkeypatch=monkeypatch, capsys=capsys)[1]
    assert (tmp_path / "message").read_text() == f"Subject\n\n{line}"
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-F", "message"], check=True)
    code, text = run("verify", str(released), "--git", ".", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0 and "2 of 2 outside witnesses are of this ledger, and on its chain" in text
    altered = tmp_path / "altered.safetensors"
    data = released.read_bytes()
    altered.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, text = run("verify", str(altered), monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "not the bytes that the ledger committed" in text
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "other"))
    code, text = run("init", monkeypatch=monkeypatch, capsys=capsys)
    lost = from_bytes(data, "q").receipt.ledger_id
    assert code == 0 and f"warning: git remembers ledger {lost}" in text
    for witness in (("--git", "."), (str(released),)):
        code, text = run("verify", *witness, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 2 and f"names ledger {lost}" in text
        code, text = run("verify", *witness, "--other", lost, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0 and "0 of 1 outside witnesses" in text


def test_tracking_runs_are_witnesses(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How they are read from a real store is tested in test_tracking."""
    monkeypatch.setattr("likeness.config.load.load_params", lambda: None)
    head = Ledger.open(locate()).head()
    for seq, code in ((head.count, 0), (1000, 2)):
        seen = [Witness("tracking run 0123", head.ledger_id, seq, head.head)]
        monkeypatch.setattr("likeness.tracking.run.run_witnesses", lambda params, seen=seen: seen)
        found, text = run("verify", "--mlflow", monkeypatch=monkeypatch, capsys=capsys)
        assert (found, "tracking run 0123 names record 1000" in text) == (code, code == 2)


def test_lost_bytes_are_restored_or_given_up(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = stored().stem[:12]
    code, text = run("spend-again", key, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "nothing to give up" in text
    stored().unlink()
    assert run("restore", str(released), monkeypatch=monkeypatch, capsys=capsys)[0] == 0
    assert run("verify", monkeypatch=monkeypatch, capsys=capsys)[0] == 0
    stored().unlink()
    embedding = tmp_path / "data/released/embedding.safetensors"
    embedding.parent.mkdir(parents=True)
    embedding.write_bytes(released.read_bytes())
    code, text = run("spend-again", key, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "likeness ledger restore data/released/embedding.safetensors" in text
    embedding.unlink()
    before = len(Ledger.open(locate()).records())
    for wrong in ("", "0" * 12, key[:4]):
        code, text = run("spend-again", wrong, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 2 and "give 8 letters or more" in text
    assert len(Ledger.open(locate()).records()) == before
    code, text = run("spend-again", key, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0 and "is charged rho 0.0" in text
    assert run("verify", monkeypatch=monkeypatch, capsys=capsys)[0] == 0  # given up is not lost
    assert "bytes given up" in run("show", monkeypatch=monkeypatch, capsys=capsys)[1]


def test_caps_by_scope(released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    amount = ("--epsilon", "0.5", "--delta", "1e-5")
    code, text = run("cap", "people", *amount, "--name", "x", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "--name goes with --scope" in text
    assert run("cap", "people", *amount, "--scope", "month", monkeypatch=monkeypatch, capsys=capsys)[0] == 0
    words = ("cap", "people", *amount, "--scope", "user", "--name", "ada")
    assert run(*words, monkeypatch=monkeypatch, capsys=capsys)[0] == 0
    text = run("budget", monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "  month each: at most epsilon 0.5" in text and "  user ada: at most epsilon 0.5" in text
    exported = run("export", monkeypatch=monkeypatch, capsys=capsys)[1].splitlines()
    assert [json.loads(line)["body"]["scope"] for line in exported[-2:]] == ["month", "user"]


def test_what_scripts_read_is_what_people_read(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of budget, verify and show; an infinite cap is text, because JSON has no infinity."""

    def told(*words: str) -> Any:
        code, text = run(*words, "--json", monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    ledger = Ledger.open(locate())
    ledger.change_limit("people", "user", "", 1.5, 1e-5)
    budget = ledger.budget("people")
    assert budget is not None
    (found,) = told("budget")
    assert found["identity"] == "people" and found["cap"] == {"epsilon": 2.0, "delta": 1e-5}
    assert found["spent"] == {"epsilon": budget.spent_epsilon, "rho": budget.spent_rho}
    assert found["remaining_rho"] == budget.remaining_rho > 0 and found["uncommitted"] == 0
    assert found["limits"] == [{"scope": "user", "name": "", "epsilon": 1.5, "delta": 1e-5}]
    found = told("verify", str(released))
    assert (found["releases"], found["witnesses"], found["witnesses_of_this_ledger"]) == (1, 1, 1)
    assert found["head"] == Ledger.open(locate()).head().head
    assert [record["kind"] for record in told("show")][:2] == ["genesis", "cap"]
    ledger.change_cap("people", float("inf"), 1e-5)
    (found,) = told("budget")
    assert found["cap"]["epsilon"] == found["remaining_rho"] == "inf"
    for name in ("params.yaml", "data/schema/adult.yaml"):
        target = released.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    found = told("afford")
    assert found["method"] == "marginals" and 0 < found["rho"] < 0.04
    assert [(room["scope"], room["cap"]["epsilon"], room["spent_rho"]) for room in found["caps"]] == [
        ("lifetime", 10, 0)
    ]
